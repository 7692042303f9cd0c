"""All numbers of the present tracks that panels show: the table, curves, distributions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.progress import Progress, Steps
from bridgetrack.tracks.colours import title_of
from bridgetrack.tracks.table import cell_features, cells_by_track, track_table
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.tracks.trees import Lineages, lineages

Array = NDArray[np.float64]

_BINS = 40


@dataclass(frozen=True)
class Distribution:
    """How often values occur.

    Parameters
    ----------
    edges
        Of the bins, shape (n + 1,).
    counts
        Of all, shape (n,).
    chosen
        Of those chosen, shape (n,).
    """

    edges: Array
    counts: NDArray[np.int64]
    chosen: NDArray[np.int64]

    @property
    def table(self) -> pd.DataFrame:
        """One row per bin."""
        return pd.DataFrame(
            {
                "from": self.edges[:-1],
                "to": self.edges[1:],
                "count": self.counts,
                "chosen": self.chosen,
            }
        )


@dataclass(frozen=True)
class TrackNumbers:
    """What the tracks of a movie amount to.

    Parameters
    ----------
    tracks
        The tracks.
    table
        One row per track, see `track_table`.
    cells
        One row per track and frame, see `cells_by_track`.
    trees
        All families laid out.
    """

    tracks: Tracks
    table: pd.DataFrame
    cells: pd.DataFrame
    trees: Lineages

    @property
    def features(self) -> dict[str, str]:
        """What can be plotted, with words: numbers of cells, then (with ``track:``) of tracks."""
        geometry = self.tracks.geometry
        known = {name: title_of(name, geometry) for name in cell_features(self.tracks)}
        named = {"track_id", "lineage_id"}
        columns = zip(map(str, self.table.columns), self.table.dtypes, strict=True)
        numbers = [c for c, kind in columns if kind.kind in "iuf" and c not in named]
        return known | {f"track:{c}": f"{c.replace('_', ' ')} of tracks" for c in numbers}

    def sight(self, track: int, frame: int) -> tuple[int, int] | None:
        """Row of the cell and frame at which a track is seen nearest to a frame.

        Before it begins, or after its end, that is its first sight.
        """
        own = self.cells[self.cells["track_id"] == track]
        if not len(own):
            return None
        frames = own["frame"].to_numpy()
        k = int(np.abs(frames - frame).argmin()) if frames[0] <= frame <= frames[-1] else 0
        return int(own["id"].iloc[k]), int(frames[k])

    def track_of(self, row: int) -> int | None:
        """Track of a cell, by its row; None where it belongs to none."""
        nodes = self.tracks.nodes
        found = nodes.loc[nodes["id"] == row, "track_id"]
        return int(found.iloc[0]) if len(found) else None

    def families(self, chosen: Collection[int]) -> list[int]:
        """The families of some tracks."""
        found = self.table.loc[self.table["track_id"].isin(list(chosen)), "lineage_id"]
        return sorted(set(found.tolist()))

    def curves(self, feature: str, chosen: Sequence[int]) -> pd.DataFrame:
        """A number of the cells of some tracks over time: ``track_id``, ``time``, its values."""
        own = self.cells[self.cells["track_id"].isin(list(chosen))]
        names = ["track_id", *dict.fromkeys(("time", feature))]
        return own[names].reset_index(drop=True)

    def distribution(self, feature: str, chosen: Collection[int] = ()) -> Distribution:
        """How a number is distributed over all cells or tracks, and over those chosen."""
        of_tracks = feature.startswith("track:")
        table = self.table if of_tracks else self.cells
        values = table[feature.removeprefix("track:")].to_numpy(dtype=np.float64)
        known = np.isfinite(values)
        mine = table["track_id"].isin(list(chosen)).to_numpy(dtype=bool) & known
        whole = values[known]
        if not len(whole):
            return Distribution(np.array([0.0, 1.0]), np.zeros(1, np.int64), np.zeros(1, np.int64))
        counted = len(np.unique(whole)) <= _BINS and bool((whole == np.rint(whole)).all())
        edges = (
            np.arange(whole.min(), whole.max() + 2) - 0.5
            if counted and np.ptp(whole) < 5 * _BINS
            else np.histogram_bin_edges(whole, _BINS)
        )
        return Distribution(
            edges, np.histogram(whole, edges)[0], np.histogram(values[mine], edges)[0]
        )


def numbers_of(tracks: Tracks) -> Steps[TrackNumbers]:
    """Work out all numbers of some tracks."""
    yield Progress("Measuring the tracks", 0.0)
    table = track_table(tracks)
    yield Progress("Measuring the tracks", 0.4)
    cells = cells_by_track(tracks)
    yield Progress("Measuring the tracks", 0.8)
    return TrackNumbers(tracks, table, cells, lineages(tracks))
