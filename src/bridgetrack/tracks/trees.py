"""Lineage trees: where each track stands in a drawing, and pictures of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import OutputError
from bridgetrack.files import as_path, replacing
from bridgetrack.tracks.colours import PALETTES, UNKNOWN, Colouring, colouring, paint
from bridgetrack.tracks.tracks import Tracks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PICTURES = (".svg", ".png", ".pdf")
"""Kinds of pictures that are written."""

_APART = 1.0
"""Columns left free between two lineages."""

_SEEN_ONCE = 0.3
"""Drawn length, in frames, of a track that was seen once."""


_PER_COLUMN, _NARROW, _WIDE, _HIGH = 0.14, 6.0, 160.0, 7.0
"""Inches of a column of the drawing, of the least and the greatest width, and of the height.

At 150 dots to the inch, pictures stay below the 65,000 pixels that PNG readers bear."""

_NAMED = 150
"""Most tracks whose numbers are in the picture."""


@dataclass(frozen=True)
class Lineages:
    """Tracks side by side: time runs down, mothers are above the middle of their daughters.

    Parameters
    ----------
    branches
        One row per track, sorted by ``track_id``: ``lineage_id``, ``x`` (columns of width 1),
        ``start``, ``end`` (first and last frame).
    links
        One row per link of `Tracks`: rows of ``child`` and ``parent`` in `branches`, ``event``.
    """

    branches: pd.DataFrame
    links: pd.DataFrame

    @cached_property
    def _order(self) -> Index:
        return self.branches["track_id"].to_numpy(dtype=np.int64)

    def rows_of(self, tracks: Collection[int]) -> Index:
        """Rows of some tracks, as far as they are drawn."""
        return np.flatnonzero(np.isin(self._order, list(tracks)))

    def strokes(self, colours: Colouring) -> tuple[Array, Array]:
        """Lines of the tracks: x and frame of both ends, (n, 2, 2), and the shade of each, (n,)."""
        x, start, end = (self.branches[c].to_numpy() for c in ("x", "start", "end"))
        if colours.along:
            track, start, shades = colours.track_id, colours.frame, colours.shades
            x = x[np.searchsorted(self._order, track)]
            # From each sight to the next of the same track, from the last to itself.
            last = np.r_[track[1:] != track[:-1], True]
            end = np.where(last, start, np.r_[start[1:], 0])
        else:
            shades = colours.shades[colours.at(self._order, start)]
            end = np.maximum(end, start + _SEEN_ONCE)
        return np.stack([np.column_stack([x, start]), np.column_stack([x, end])], axis=1), shades

    def joints(self, colours: Colouring) -> tuple[Array, Array, Mask]:
        """Lines from parents to the tracks that come from them.

        x and frame of three corners, shape (n, 3, 2); the shade of the later track, and whether it
        is a division, shapes (n,).
        """
        table, links = self.branches, self.links
        child, parent = links["child"].to_numpy(), links["parent"].to_numpy()
        x, start, end = (table[c].to_numpy(dtype=np.float64) for c in ("x", "start", "end"))
        begin = start[child]
        across = np.stack([x[parent], x[parent], x[child]], axis=1)
        down = np.stack([np.minimum(end[parent], begin), begin, begin], axis=1)
        corners = np.stack([across, down], axis=2)
        row = colours.at(self._order[child], table["start"].to_numpy()[child])
        return corners, colours.shades[row], (links["event"] == "divide").to_numpy(dtype=bool)

    def nearest(self, x: float, frame: float) -> tuple[int, int] | None:
        """Track and frame nearest to a place in the drawing; None if nothing is near it."""
        table = self.branches
        first, last = table["start"].to_numpy(), table["end"].to_numpy()
        near = np.flatnonzero((first - 1 <= frame) & (frame <= last + 1))
        aside = np.abs(table["x"].to_numpy()[near] - x)
        if not len(near) or aside.min() > _APART:
            return None
        k = near[int(aside.argmin())]
        return int(self._order[k]), int(np.clip(round(frame), first[k], last[k]))


def lineages(tracks: Tracks) -> Lineages:
    """Lay out all lineages side by side."""
    groups = tracks.nodes.groupby("track_id")
    table = groups.agg(
        lineage_id=("lineage_id", "first"), start=("frame", "min"), end=("frame", "max")
    ).reset_index()
    ids = table["track_id"].to_numpy()
    known = tracks.links[tracks.links[["track_id", "parent_id"]].isin(ids).all(axis=1)]
    ends = {"child": known["track_id"], "parent": known["parent_id"]}
    rows = {name: np.searchsorted(ids, tracks_of) for name, tracks_of in ends.items()}
    links = pd.DataFrame({**rows, "event": known["event"].to_numpy(dtype=object)})
    table["x"] = _places(table, links)
    return Lineages(table, links)


def _places(table: pd.DataFrame, links: pd.DataFrame) -> Array:
    """Horizontal place of every track, depth first without recursion, shape (tracks,)."""
    children: dict[int, list[int]] = {}
    first = links.drop_duplicates("child")  # the parent under which a track stands
    for child, parent in first[["child", "parent"]].to_numpy(dtype=np.int64).tolist():
        children.setdefault(parent, []).append(child)
    lineage = table["lineage_id"].to_numpy()
    roots = np.setdiff1d(np.arange(len(table)), first["child"])
    roots = roots[np.argsort(lineage[roots], kind="stable")]
    place = np.full(len(table), np.nan)
    free, last = 0.0, None
    for root in roots.tolist():
        if last is not None and lineage[root] != last:
            free += _APART
        last = lineage[root]
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


def save_lineages(tracks: Tracks, path: Path | str, *, colour: str = "generation") -> None:
    """Draw lineage trees into a file, in the format of its ending.

    Parameters
    ----------
    tracks
        The tracks.
    path
        A picture, ``.svg``, ``.png`` or ``.pdf``.
    colour
        Colours of the branches, one of `colourings`.

    Raises
    ------
    InputError
        If there is nothing to colour by.
    OutputError
        If the file cannot be written, or its name ends otherwise.
    """
    path = as_path(path)
    kind = path.suffix.lower()
    if kind not in PICTURES:
        raise OutputError(
            f"{path}: lineage trees are written as {', '.join(PICTURES)}; let the name end in one "
            "of these"
        )
    from matplotlib import rc_context

    figure = _figure(tracks, colour)
    # Without a date and random names of parts, equal figures give equal files.
    more: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with replacing(path, "the lineage trees") as spare, rc_context({"svg.hashsalt": "trees"}):
        figure.savefig(
            spare, format=kind[1:], dpi=150, metadata=more.get(kind), bbox_inches="tight"
        )


def _figure(tracks: Tracks, colour: str) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

    drawn, colours = lineages(tracks), colouring(tracks, colour)
    table = drawn.branches
    columns = float(table["x"].max()) + 1 if len(table) else 1.0
    figure = Figure(figsize=(float(np.clip(_PER_COLUMN * columns, _NARROW, _WIDE)), _HIGH))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    interval = tracks.geometry.frame_interval
    per_frame = 1.0 if interval is None else interval / 60
    scale = np.array([1.0, per_frame])
    ends, shades = drawn.strokes(colours)
    corners, later, divides = drawn.joints(colours)
    for kind, paints, style in (
        (divides, paint(later, colours.palette)[divides], "solid"),
        (~divides, [UNKNOWN] * int((~divides).sum()), "dotted"),
    ):
        axes.add_collection(
            LineCollection(corners[kind] * scale, colors=paints, linewidths=1, linestyles=style)
        )
    paints = paint(shades, colours.palette)
    axes.add_collection(
        LineCollection(ends * scale, colors=paints, linewidths=2.5, capstyle="butt")
    )
    if len(table) <= _NAMED:
        for row in table.itertuples():
            axes.annotate(
                str(row.track_id), (float(str(row.x)), float(str(row.start)) * per_frame),
                xytext=(2, -1), textcoords="offset points", fontsize=6, va="top",
            )  # fmt: skip
    axes.set_xlim(-1, columns)
    last = (tracks.geometry.n_frames - 1) * per_frame
    axes.set_ylim(last + 0.02 * max(last, 1), -0.02 * max(last, 1))
    axes.set_ylabel("frame" if interval is None else "time [h]")
    axes.set_xticks([])
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    if colours.palette != "names":
        shown = LinearSegmentedColormap.from_list(colours.palette, PALETTES[colours.palette])
        scaled = ScalarMappable(Normalize(colours.low, colours.high), shown)
        wide = figure.get_size_inches()[0]
        bar = figure.colorbar(
            scaled, ax=axes, label=colours.words, fraction=0.5 / wide, pad=0.2 / wide
        )
        bar.outline.set_visible(False)
    return figure
