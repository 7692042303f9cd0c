"""Lineage trees as files: SVG, PNG or PDF pictures, and Newick's notation."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridgetrack.errors import OutputError
from bridgetrack.files import staged, writing
from bridgetrack.tracks.colours import PALETTES, UNKNOWN, colouring, paint
from bridgetrack.tracks.lineages import Lineages, lineages, newick
from bridgetrack.tracks.tracks import Tracks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".svg", ".png", ".pdf")
TREES = (".nwk", ".newick", ".tree")

_PER_COLUMN, _NARROW, _WIDE, _HIGH = 0.14, 6.0, 160.0, 7.0
"""Inches of a column of the drawing, of the least and the greatest width, and of the height."""

_NAMED = 150
"""Up to so many tracks have their numbers in the picture."""


def save_lineages(
    tracks: Tracks,
    path: Path | str,
    *,
    families: Collection[int] | None = None,
    colour: str = "generation",
) -> Lineages:
    """Write family trees to a file, as the end of its name says.

    Parameters
    ----------
    tracks
        The tracks.
    path
        ``.svg``, ``.png`` or ``.pdf`` for a picture, ``.nwk`` for trees in Newick's notation.
    families
        Which families, by the numbers of their first tracks; all where None.
    colour
        What the branches are coloured by, one of `colourings`.

    Returns
    -------
    Lineages
        What was drawn.

    Raises
    ------
    InputError
        Where there is no such family, or nothing to colour by.
    OutputError
        Where the file cannot be written, or its name ends otherwise.
    """
    path = Path(path)
    end = path.suffix.lower()
    if end not in (*PICTURES, *TREES):
        raise OutputError(
            f"{path}: family trees are written as {', '.join((*PICTURES, TREES[0]))}; "
            "let the name end in one of these"
        )
    drawn = lineages(tracks, families)
    what = "the family trees"
    if end in TREES:
        text = newick(tracks, families)
        with staged(path, what) as spare, writing(path, what):
            spare.write_text(text, encoding="utf-8")
        return drawn
    save_figure(_figure(tracks, drawn, colour), path, what)
    return drawn


def save_figure(figure: Figure, path: Path, what: str) -> None:
    """Write a figure of matplotlib, whole or not at all."""
    # Without a date equal figures give equal files.
    kind = path.suffix.lower()[1:]
    more: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with staged(path, what) as spare, writing(path, what):
        figure.savefig(
            spare, format=kind, dpi=_dpi(figure), metadata=more.get(kind), bbox_inches="tight"
        )


def _dpi(figure: Figure) -> float:
    """Fine, but a picture stays below the 65,000 pixels that PNG readers bear."""
    return float(min(150.0, 30_000 / figure.get_size_inches()[0]))


def _figure(tracks: Tracks, drawn: Lineages, colour: str) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

    colours, table = colouring(tracks, colour), drawn.branches
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
