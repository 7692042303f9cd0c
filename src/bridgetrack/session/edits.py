"""Answers about events and whole tracks: each action is one step, which can be undone.

The solver keeps confirmed events, training learns from them, and answers that a verified track
rests on are locked against others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bridgetrack.annotations.anchor import cell_refs, event_refs
from bridgetrack.annotations.annotation import (
    VERIFIED,
    Annotation,
    CellRef,
    EventRef,
    Kind,
    by_label,
)
from bridgetrack.annotations.from_tracks import Answer, ImportedTracks, compare_tracks
from bridgetrack.annotations.history import AnswerChange
from bridgetrack.arrays import Index
from bridgetrack.errors import InputError, plural
from bridgetrack.hypotheses.events import Event, kind_words
from bridgetrack.io.results import read_tracks
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.mend import MaskAnswer
from bridgetrack.tracks.table import verified_tracks

if TYPE_CHECKING:
    from bridgetrack.session.session import Session

JOB = "take over"
"""Name of the background work: reading tracks and comparing them with ours."""

_EDIT = "correction"
"""Source noted in answers that edit tracks."""


class Edits:
    """Answers about events, and corrections of the tracks of the open movie.

    Cells are given as references, tracks by any of their cells. All raise `InputError` where
    something cannot be done, and `OutputError` where it cannot be written down; then nothing has
    changed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    # ------------------------------------------------------------------ answers

    def note(
        self,
        kind: Kind,
        event: EventRef,
        source: str,
        seconds: float | None = None,
        named: str | None = None,
    ) -> None:
        """Save an answer in place of those that it contradicts, and show it."""
        session = self._session
        if session.answers is None:
            return
        with session.telling():
            if kind is Kind.CONFIRM and event.event in session.kinds.absent:
                name = kind_words(event.event)
                raise InputError(f"you excluded {name} in this movie; allow them in step 4 first")
            if named is None and session.questions.answered_by(kind, event):
                return
            said = [(kind, event)]
            [noted], replaced = session.answers.answer(said, source, seconds, named=named)
            told = f"Saved: {session.words_of(noted)}.{_in_place_of(replaced)}"
            session.message.emit("info", told)

    def note_all(self, said: Sequence[Answer], source: str, told: str) -> None:
        """Save answers as one step, in place of those that they contradict, and show this."""
        session = self._session
        if session.answers is not None:
            before = session.answers.history
            _, replaced = session.answers.answer(said, source)
            known = session.answers.history is before
            same = " Nothing changed: this was known already." if known else ""
            session.message.emit("info", f"{told}{same}{_in_place_of(replaced)}")

    def remove(self, answers: Iterable[Annotation | MaskAnswer]) -> None:
        """Remove answers about events and about masks, as one step."""
        store, answers = self._session.answers, list(answers)
        events = tuple(a for a in answers if isinstance(a, Annotation))
        said = tuple(a for a in answers if isinstance(a, MaskAnswer))
        if self._session.masks is not None:
            self._session.masks.refuse_locked(said, going=events)
        if store is not None and answers:
            store.edit(AnswerChange(removed=events, masks_removed=said))

    def locked(self, answer: Annotation) -> bool:
        """Whether a track that somebody verified as a whole rests on an answer."""
        if answer.source == VERIFIED:
            return True
        names = self._session.names
        mine = {names.track(cell) for cell in answer.cells if names.verified(cell)}
        if answer.kind is not Kind.CONFIRM or not mine:
            return False
        whole = (a.cells for a in self._session.annotations or () if a.source == VERIFIED)
        return any(names.track(cell) in mine for cells in whole for cell in cells)

    # ------------------------------------------------------------------ tracks

    def verify(self, cell: CellRef) -> bool:
        """Confirm all events of the track of a cell; if it was verified, undo that.

        Returns whether it is verified now.
        """
        tracking, track = self._tracking(), self._track(cell)
        if track in verified_tracks(tracking.tracks):
            self._release(track)
            return False
        self._verify({track}, f"track {self._session.names(cell)}")
        return True

    def verify_lineage(self, cell: CellRef) -> None:
        """Confirm all that happens to the lineage of a cell."""
        nodes = self._tracking().tracks.nodes
        lineage = nodes.loc[nodes["track_id"] == self._track(cell), "lineage_id"].iloc[0]
        tracks = set(nodes.loc[nodes["lineage_id"] == lineage, "track_id"].tolist())
        self._verify(tracks, f"the lineage of {self._session.names(cell)}, {len(tracks)} tracks")

    def _verify(self, tracks: set[int], called: str) -> None:
        answers = [(Kind.CONFIRM, event) for event in self._events_of(tracks)]
        told = f"Verified and locked: {called}. Undo (Z) takes it back."
        self.note_all(answers, VERIFIED, told)

    def _release(self, track: int) -> None:
        """Undo that a track is verified; single answers about it stay."""
        store = self._session.answers
        assert store is not None
        keys = {event.key for event in self._events_of({track})}
        whole = (a for a in store.annotations if a.source == VERIFIED)
        rests = tuple(a for a in whole if any(e.key in keys for e in a.events))
        if not rests:
            raise InputError(
                "every event of this track was confirmed by an answer of its own; delete some of "
                "these in the list of answers to unlock it"
            )
        store.edit(AnswerChange(removed=rests))
        self._session.message.emit("info", "Unlocked: the track is no longer verified.")

    def delete(self, cell: CellRef) -> None:
        """None of the cells of this track is a cell."""
        rows = self._rows_of({self._track(cell)})
        refs = cell_refs(self._tracking().scene.detections, rows)
        answers = [(Kind.CONFIRM, EventRef(Event.FALSE, (ref,))) for ref in refs]
        called, count = self._session.names(cell), plural(len(rows), "detection")
        words = f"nothing in track {called} is a cell ({count})"
        self.note_all(answers, _EDIT, f"Saved: {words}.")

    def take_over(self, path: Path) -> None:
        """Read tracks of this movie from a file or folder; differences from ours become answers.

        See `read_tracks` for the formats, and `compare_tracks` for the answers.
        """
        scene, chosen = self._tracking().scene, self._tracking().solution.chosen

        def work() -> Steps[ImportedTracks]:
            yield Progress("Reading tracks", 0.0)
            theirs = read_tracks(path)
            yield Progress("Comparing tracks", 0.5)
            ours = event_refs(scene.detections, scene.hypotheses.take(np.flatnonzero(chosen)))
            return compare_tracks(theirs, ours, scene.detections, scene.labels)

        what = f"The import of {path.name}"
        self._session.run(JOB, work, lambda found: self._taken(found, path.name), what=what)

    def _taken(self, found: ImportedTracks, name: str) -> None:
        lost = ""
        if found.lost:
            first = found.lost[0]
            lost = f" {len(found.lost)} events name cells that are not here, e.g. {first.cell}: "
            lost += f"{first.reason}."
        if not found.answers and not found.same:
            none = f"{name}: none of its links is between cells of this movie.{lost}"
            self._session.message.emit("warning", none)
            return
        others = plural(len(found.answers), "event has changed", "events have changed")
        told = f"Imported from {name}: {others}, {found.same} are as before.{lost}"
        with self._session.telling():
            self.note_all(found.answers, "import", told)

    # ------------------------------------------------------------------ what is where

    def _tracking(self) -> Tracking:
        tracking = self._session.tracking
        if tracking is None:
            raise InputError("the movie is not tracked yet; try again in a moment")
        return tracking

    def _track(self, cell: CellRef) -> int:
        self._tracking()
        track = self._session.names.track(cell)
        if not track:
            raise InputError(f"{by_label(cell)} in frame {cell.frame} is in no track")
        return track

    def _rows_of(self, tracks: set[int]) -> Index:
        """Rows of the cells of some tracks, in order of time."""
        nodes = self._tracking().tracks.nodes
        mine = nodes[nodes["track_id"].isin(tracks)].sort_values(["frame", "id"])
        return mine["id"].to_numpy(dtype=np.int64)

    def _events_of(self, tracks: set[int]) -> list[EventRef]:
        """All chosen events that name a cell of some tracks."""
        tracking = self._tracking()
        scene = tracking.scene
        chosen = scene.hypotheses.take(np.flatnonzero(tracking.solution.chosen))
        cells = np.concatenate([chosen.sources, chosen.targets], axis=1)
        mine = np.flatnonzero(np.isin(cells, self._rows_of(tracks)).any(axis=1))
        return event_refs(scene.detections, chosen.take(mine))


def _in_place_of(replaced: int) -> str:
    """Message about earlier answers that were replaced."""
    many = f"{replaced} earlier answers" if replaced > 1 else "an earlier answer"
    return f" It replaces {many}." if replaced else ""
