"""A small picture of a model: some of its cells, and what it learned from."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.hypotheses.events import Event
from bridgetrack.models.entry import ModelCard
from bridgetrack.models.statistics import FeatureStatistics

Picture = NDArray[np.uint8]

_SIZE, _DPI = (4.8, 2.4), 100
_INK, _BAR, _RANGE = "#334155", "#0072b2", "#9cc9e6"
_SHOWN = (
    ("move.raw_distance", "move / frame"),
    ("move.size_change", "size change"),
    ("move.covered", "overlap"),
    ("divide.separation", "daughters apart"),
)


def preview_png(card: ModelCard, picture: Picture | None = None) -> bytes:
    """Draw the preview of a model.

    Parameters
    ----------
    card
        What is known of it.
    picture
        Some of its cells with their tracks, shape (h, w, 3); without it the rest has the room.

    Returns
    -------
    bytes
        A PNG file of 480 by 240 pixels.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, dpi=_DPI, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    left = 0.0
    if picture is not None:
        axes = figure.add_axes((0.0, 0.0, 0.5, 1.0))
        axes.imshow(_square(picture), interpolation="antialiased")
        axes.set_axis_off()
        left = 0.5
    _draw_counts(figure, left, card)
    if card.statistics is not None:
        _draw_features(figure, left, card.statistics)
    out = io.BytesIO()
    canvas.print_png(out)
    return out.getvalue()


def _square(picture: Picture) -> Picture:
    """The middle of a picture."""
    height, width = picture.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return picture[top : top + side, left : left + side]


def _panel(figure: Any, left: float, bottom: float, height: float, title: str) -> Any:
    start = left + 0.19 if left else 0.24
    axes = figure.add_axes((start, bottom, 0.96 - start, height))
    axes.set_title(title, fontsize=7, color=_INK, loc="left", pad=2)
    axes.tick_params(labelsize=6, colors=_INK, length=0, pad=2)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def _draw_counts(figure: Any, left: float, card: ModelCard) -> None:
    """Bars of how many answers of every kind there were."""
    found = [(e.key, card.counts[e.key]) for e in Event if card.counts.get(e.key)][:4]
    title = "answers"
    if card.accuracy is not None:
        title += f"; about {100 * card.accuracy[0]:.0f} % right"
    axes = _panel(figure, left, 0.56, 0.34, title)
    axes.set_xticks([])
    if not found:
        axes.set_yticks([])
        axes.text(0, 0.5, "not known", fontsize=7, color=_INK, transform=axes.transAxes)
        return
    places = np.arange(len(found))[::-1]
    numbers = [n for _, n in found]
    axes.barh(places, numbers, color=_BAR, height=0.6)
    axes.set_yticks(places, [name for name, _ in found])
    axes.set_xlim(0, 1.25 * max(numbers))
    axes.set_ylim(-0.6, 3.6)
    for place, number in zip(places, numbers, strict=True):
        axes.text(number, place, f" {number:,}", va="center", fontsize=6, color=_INK)


def _draw_features(figure: Any, left: float, statistics: FeatureStatistics) -> None:
    """Middle value and range of what tells movies apart."""
    row = {key: k for k, key in enumerate(statistics.keys) if statistics.count[k]}
    found = [(name, statistics.quantiles[row[key]]) for key, name in _SHOWN if key in row]
    if not found:
        return
    axes = _panel(figure, left, 0.11, 0.31, "its movie: middle, 80 %")
    places = np.arange(len(found))[::-1]
    for place, (_, (low, middle, high)) in zip(places, found, strict=True):
        axes.plot([low, high], [place, place], color=_RANGE, linewidth=5, solid_capstyle="butt")
        axes.plot([middle], [place], "o", color=_BAR, markersize=3.5)
    axes.set_yticks(places, [name for name, _ in found])
    axes.set_ylim(-0.6, len(found) - 0.4)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
