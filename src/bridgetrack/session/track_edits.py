"""Tracks corrected and verified as a whole: each act is one step of answers, which Undo takes back.

The solver keeps what is confirmed, training learns from it, and what a verified track rests on is
locked against other answers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bridgetrack.annotations.anchor import cell_refs, event_refs
from bridgetrack.annotations.annotation import VERIFIED, CellRef, EventRef, Kind
from bridgetrack.annotations.imported_tracks import ImportedTracks, compare_tracks
from bridgetrack.arrays import Index
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.results import read_tracks
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.tracked_movie import TrackedMovie
from bridgetrack.tracks.table import verified_tracks

JOB = "take over"
"""Name of the background work: reading tracks and comparing them with ours."""

_EDIT = "correction"
"""Source noted in answers that edit tracks."""


class TrackEdits:
    """Corrects and verifies the tracks of the open movie.

    Cells are given as references, tracks by any of their cells. All raise `InputError` where
    something cannot be done, and `OutputError` where it cannot be written down; then nothing has
    changed.
    """

    def __init__(self, movie: TrackedMovie) -> None:
        self._movie = movie

    # ------------------------------------------------------------------ verifying

    def verify(self, cell: CellRef) -> bool:
        """Confirm all that happens to the track of a cell; where it was verified, release it.

        Returns
        -------
        bool
            Whether it is verified now.
        """
        tracking, track = self._tracking(), self._track(cell)
        if track in verified_tracks(tracking.tracks):
            self._release({track})
            return False
        self._verify({track}, f"track {self._movie.names(cell)}")
        return True

    def verify_family(self, cell: CellRef) -> None:
        """Confirm all that happens to the family of a cell."""
        nodes = self._tracking().tracks.nodes
        family = nodes.loc[nodes["track_id"] == self._track(cell), "lineage_id"].iloc[0]
        tracks = set(nodes.loc[nodes["lineage_id"] == family, "track_id"].tolist())
        self._verify(tracks, f"the family of {self._movie.names(cell)}, {len(tracks)} tracks")

    def _verify(self, tracks: set[int], called: str) -> None:
        answers = [(Kind.CONFIRM, event) for event in self._events_of(tracks)]
        told = f"Verified and locked: {called}. Undo (Z) takes it back."
        self._movie.note_all(answers, VERIFIED, told)

    def _release(self, tracks: set[int]) -> None:
        """Take back that some tracks are verified; single answers about them stay."""
        movie = self._movie
        assert movie.answers is not None and movie.annotations is not None
        keys = {event.key for event in self._events_of(tracks)}
        ids = [
            a.id
            for a in movie.annotations
            if a.source == VERIFIED and any(e.key in keys for e in a.events)
        ]
        if not ids:
            raise InputError(
                "every event of this track was confirmed by an answer of its own; delete some of "
                "these in the list of answers to release it"
            )
        movie.answers.remove(*ids)
        movie.message.emit("info", "Released: the track is no longer verified.")

    # ------------------------------------------------------------------ correcting

    def delete(self, cell: CellRef) -> None:
        """None of the cells of this track is a cell."""
        rows = self._rows_of({self._track(cell)})
        answers = [
            (Kind.CONFIRM, EventRef(Event.FALSE, (ref,)))
            for ref in cell_refs(self._tracking().scene.detections, rows)
        ]
        called = self._movie.names(cell)
        self._movie.note_all(answers, _EDIT, f"Deleted: track {called}, {len(rows)} cells.")

    def cut(self, cell: CellRef) -> None:
        """The track does not go on from this cell as it does."""
        row = self._tracking().scene.detections.row_of(*cell.cell)
        ahead = [e for e in self._events({row}) if cell.cell in [c.cell for c in e.sources]]
        event = next((e for e in ahead if e.targets), None)
        if event is None:
            raise InputError("this cell has no link to a later frame that could be cut")
        self._movie.note_all([(Kind.REJECT, event)], _EDIT, "Cut: this link does not hold.")

    # ------------------------------------------------------------------ from elsewhere

    def take_over(self, path: Path) -> None:
        """Read tracks of this movie from a file or folder; what differs from ours are answers.

        See `read_tracks` for what is read, and `compare_tracks` for what is said.
        """
        tracking = self._tracking()

        def work() -> Steps[ImportedTracks]:
            yield Progress("Reading tracks", 0.0)
            theirs = read_tracks(path)
            yield Progress("Comparing tracks", 0.5)
            scene = tracking.scene
            ours = event_refs(
                scene.detections, scene.hypotheses.take(np.flatnonzero(tracking.solution.chosen))
            )
            return compare_tracks(theirs, ours, scene.detections, scene.labels)

        self._movie.run(
            JOB,
            work,
            lambda found: self._taken(found, path),
            unfinished=f"Taking over {path.name} ended before it was done, as its movie or its "
            "cells are not open any more; none of its tracks were taken.",
        )

    def _taken(self, found: ImportedTracks, path: Path) -> None:
        movie, lost = self._movie, ""
        if found.lost:
            lost = f" {len(found.lost)} events name cells that are not here, e.g. "
            lost += f"{found.lost[0].cell}: {found.lost[0].reason}."
        if not found.answers and not found.same:
            movie.message.emit(
                "warning", f"{path.name}: none of its links is between cells of this movie.{lost}"
            )
            return
        if not found.answers:
            same = f"all {found.same} events that it names are in these tracks already"
            movie.message.emit("info", f"{path.name}: {same}; nothing has changed.{lost}")
            return
        n = len(found.answers)
        others = f"{n} events are others" if n > 1 else "one event is another"
        told = f"Taken over from {path.name}: {others} now, {found.same} stay as they were.{lost}"
        with movie.telling():
            movie.note_all(found.answers, "import", told)

    # ------------------------------------------------------------------ what is where

    def _tracking(self) -> Tracking:
        tracking = self._movie.tracking
        if tracking is None:
            raise InputError("the movie is not tracked yet; try again in a moment")
        return tracking

    def _track(self, cell: CellRef) -> int:
        self._tracking()
        track = self._movie.names.track(cell)
        if not track:
            raise InputError(f"{cell} is in no track")
        return track

    def _rows_of(self, tracks: set[int]) -> Index:
        """Rows of the cells of some tracks, in order of time."""
        nodes = self._tracking().tracks.nodes
        mine = nodes[nodes["track_id"].isin(tracks)].sort_values(["frame", "id"])
        return mine["id"].to_numpy(dtype=np.int64)

    def _events_of(self, tracks: set[int]) -> list[EventRef]:
        """All that happens to some tracks."""
        return self._events(set(self._rows_of(tracks).tolist()))

    def _events(self, rows: set[int]) -> list[EventRef]:
        """Chosen events that name one of some cells."""
        tracking = self._tracking()
        scene = tracking.scene
        chosen = scene.hypotheses.take(np.flatnonzero(tracking.solution.chosen))
        cells = np.concatenate([chosen.sources, chosen.targets], axis=1)
        mine = np.flatnonzero(np.isin(cells, list(rows)).any(axis=1))
        return event_refs(scene.detections, chosen.take(mine))
