"""Families as trees: where each track stands in a drawing, and Newick's notation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.tracks.colours import Colouring
from bridgetrack.tracks.table import generations
from bridgetrack.tracks.tracks import Tracks

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_APART = 1.0
"""Columns left free between two families."""

_SEEN_ONCE = 0.3
"""Length in frames at which a track is drawn that was seen once."""


@dataclass(frozen=True)
class Lineages:
    """Tracks side by side: time runs down, mothers stand over the middle of their daughters.

    Parameters
    ----------
    branches
        One row per track, sorted by ``track_id``: ``lineage_id``, ``x`` (columns of width 1),
        ``start``, ``end`` (first and last frame), ``generation``.
    links
        One row per link of `Tracks` between two of them: rows of ``child`` and ``parent`` in
        `branches`, ``event``, and ``main``, false for the further parents of a merged track.
    """

    branches: pd.DataFrame
    links: pd.DataFrame

    @cached_property
    def _order(self) -> Rows:
        return self.branches["track_id"].to_numpy(dtype=np.int64)

    def row_of(self, track: int) -> int:
        """Row of a track, -1 where it is not drawn."""
        k = int(np.searchsorted(self._order, track))
        return k if k < len(self._order) and self._order[k] == track else -1

    def strokes(self, colours: Colouring) -> tuple[Array, Array]:
        """Lines of the tracks, and the shade of each.

        Returns
        -------
        ends
            x and frame of both ends, shape (n, 2, 2).
        shades
            Shape (n,).
        """
        table = self.branches
        if not colours.along:
            ends = np.stack([table[["x", "start"]], table[["x", "end"]]], axis=1)
            row = colours.at(table["track_id"].to_numpy(), table["start"].to_numpy())
            shades = colours.shades[row]
        else:
            known = np.isin(colours.track_id, self._order)
            track, frame = colours.track_id[known], colours.frame[known]
            x = table["x"].to_numpy()[np.searchsorted(self._order, track)]
            # From each sight to the next of the same track, from the last to itself.
            last = np.r_[track[1:] != track[:-1], True]
            after = np.where(last, frame, np.r_[frame[1:], 0])
            ends = np.stack([np.column_stack([x, frame]), np.column_stack([x, after])], axis=1)
            shades = colours.shades[known]
        ends = ends.astype(np.float64)
        ends[:, 1, 1] = np.maximum(ends[:, 1, 1], ends[:, 0, 1] + _SEEN_ONCE * (not colours.along))
        return ends, shades

    def joints(self, colours: Colouring) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Lines from parents to the tracks that come from them.

        Returns
        -------
        corners
            x and frame of three corners, shape (n, 3, 2).
        shades
            That of the later track, shape (n,).
        divides
            Whether it is a division, shape (n,).
        """
        table, links = self.branches, self.links
        child, parent = links["child"].to_numpy(), links["parent"].to_numpy()
        x, start, end = (table[c].to_numpy(dtype=np.float64) for c in ("x", "start", "end"))
        begin = start[child]
        corners = np.stack(
            [
                np.column_stack([x[parent], np.minimum(end[parent], begin)]),
                np.column_stack([x[parent], begin]),
                np.column_stack([x[child], begin]),
            ],
            axis=1,
        )
        row = colours.at(self._order[child], table["start"].to_numpy()[child])
        return corners, colours.shades[row], (links["event"] == "divide").to_numpy(dtype=bool)

    def nearest(self, x: float, frame: float) -> tuple[int, int] | None:
        """Track and frame next to a place in the drawing; None where nothing is drawn near it."""
        table = self.branches
        first, last = table["start"].to_numpy(), table["end"].to_numpy()
        near = np.flatnonzero((first - 1 <= frame) & (frame <= last + 1))
        aside = np.abs(table["x"].to_numpy()[near] - x)
        if not len(near) or aside.min() > _APART:
            return None
        k = near[int(aside.argmin())]
        return int(self._order[k]), int(np.clip(round(frame), first[k], last[k]))


def lineages(tracks: Tracks, families: Collection[int] | None = None) -> Lineages:
    """Lay out all families side by side, or some of them.

    Raises
    ------
    InputError
        Where there is no such family.
    """
    nodes = tracks.nodes
    groups = nodes.groupby("track_id")
    table = pd.DataFrame(
        {
            "lineage_id": groups["lineage_id"].first(),
            "start": groups["frame"].min(),
            "end": groups["frame"].max(),
        }
    ).reset_index()
    ids, start = table["track_id"].to_numpy(), table["start"].to_numpy()
    table["generation"] = generations(ids, start, tracks.links)
    if families is not None:
        missing = sorted(set(families) - set(table["lineage_id"].tolist()))
        if missing:
            raise InputError(
                f"there is no family {missing[0]}: a family has the number of its first track, "
                "see lineage_id in tracks.csv"
            )
        table = table[table["lineage_id"].isin(list(families))].reset_index(drop=True)
    links = _known_links(table["track_id"].to_numpy(), tracks.links)
    table["x"] = _places(table, links)
    return Lineages(table, links)


def _known_links(ids: Rows, links: pd.DataFrame) -> pd.DataFrame:
    known = links["track_id"].isin(ids) & links["parent_id"].isin(ids)
    links = links[known]
    return pd.DataFrame(
        {
            "child": np.searchsorted(ids, links["track_id"].to_numpy(dtype=np.int64)),
            "parent": np.searchsorted(ids, links["parent_id"].to_numpy(dtype=np.int64)),
            "event": links["event"].to_numpy(dtype=object),
            "main": ~links["track_id"].duplicated().to_numpy(dtype=bool),
        }
    )


def _children(links: pd.DataFrame) -> dict[int, list[int]]:
    """Rows of the tracks that come from each row, by their first parents."""
    found: dict[int, list[int]] = {}
    main = links[links["main"]]
    for child, parent in zip(main["child"].tolist(), main["parent"].tolist(), strict=True):
        found.setdefault(parent, []).append(child)
    return found


def _roots(table: pd.DataFrame, links: pd.DataFrame) -> list[int]:
    """Rows without a parent, those of one family next to each other."""
    rootless = np.ones(len(table), dtype=bool)
    rootless[links["child"].to_numpy(dtype=np.int64)] = False
    rows = np.flatnonzero(rootless)
    return rows[np.argsort(table["lineage_id"].to_numpy()[rows], kind="stable")].tolist()


def _places(table: pd.DataFrame, links: pd.DataFrame) -> Array:
    """Horizontal place of every track, depth first without recursion, shape (tracks,)."""
    children, family = _children(links), table["lineage_id"].tolist()
    place = np.full(len(table), np.nan)
    free, last = 0.0, None
    for root in _roots(table, links):
        if last is not None and family[root] != last:
            free += _APART
        last = family[root]
        stack = [(root, False)]
        while stack:
            track, done = stack.pop()
            below = children.get(track, [])
            if not done and below:
                stack += [(track, True), *((c, False) for c in reversed(below))]
            elif below:
                place[track] = np.mean([place[c] for c in below])
            else:
                place[track], free = free, free + 1
    return place


def newick(tracks: Tracks, families: Collection[int] | None = None) -> str:
    """All families, or some, as trees in Newick's notation, one a line.

    A tree is named by track numbers; the length of a branch is the time until its daughters
    begin, or until it was last seen, in minutes where the interval is known, else in frames.
    Where a track goes on while another parts from it, the place has no name. Of the parents of a
    merged track the tree has the first.

    Raises
    ------
    InputError
        Where there is no such family.
    """
    drawn = lineages(tracks, families)
    table, interval = drawn.branches, tracks.geometry.frame_interval or 1.0
    start, end = table["start"].tolist(), table["end"].tolist()
    names, children = table["track_id"].tolist(), _children(drawn.links)
    text: dict[int, str] = {}
    lines = []
    for root in _roots(table, drawn.links):
        stack = [(root, False)]
        while stack:
            row, done = stack.pop()
            below = children.get(row, [])
            if below and not done:
                stack += [(row, True), *((c, False) for c in below)]
                continue
            text[row] = _branch(row, names, start, end, {c: text.pop(c) for c in below}, interval)
        lines.append(f"{text.pop(root)};\n")
    return "".join(lines)


def _branch(
    row: int,
    names: list[int],
    start: list[int],
    end: list[int],
    below: dict[int, str],
    interval: float,
) -> str:
    """A track with all that comes of it, from what comes of its daughters."""
    after = [c for c in below if start[c] > end[row]]
    begin = min((start[c] for c in after), default=end[row])
    name = f"({','.join(below[c] for c in after)}){names[row]}" if after else f"{names[row]}"
    # Those that part earlier, the last of them first: each cuts the branch in two.
    for child in sorted((c for c in below if c not in after), key=lambda c: -start[c]):
        name = f"({name}:{_length(begin - start[child], interval)},{below[child]})"
        begin = start[child]
    return f"{name}:{_length(begin - start[row], interval)}"


def _length(frames: int, interval: float) -> str:
    return f"{frames * interval:.10g}"
