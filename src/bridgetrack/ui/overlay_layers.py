"""The two layers in which a drawing is shown over the image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from napari.layers import Points, Vectors

from bridgetrack.arrays import Array
from bridgetrack.ui.layers import add_below, place_like, placed_like, tag
from bridgetrack.ui.looks import LOOKS
from bridgetrack.ui.overlay import CLEAR, Arrow, Drawing

_ON_TOP = "translucent_no_depth"
"""Not hidden by opaque cells in front if a volume is in view."""

_LETTERS = "".join(
    {*"0123456789 #✓,%?(frameinvw)"} | {c for look in LOOKS.values() for c in look.sign + look.name}
)
"""The letters of all words for events."""

_LINE = 1.5
"""Largest width of an arrow in pixels."""


class OverlayLayers:
    """*Events* (arrows, which get mouse and keys) and *Marks* (symbols with words) of one viewer.

    They are drawn again only if something changed.
    """

    def __init__(self) -> None:
        self.events: Vectors | None = None
        self.marks: Points | None = None
        self._drawn: tuple[float, float | None, Drawing] | None = None

    def forget(self, layer: Any) -> None:
        """A layer was deleted."""
        if layer is self.events:
            self.events = None
        elif layer is self.marks:
            self.marks = None

    def put_over(
        self, viewer: Any, labels: Any, size: float, prepare: Callable[[Vectors], None]
    ) -> None:
        """Draw over the segmentation `labels`, whose cells have a diameter of `size` pixels.

        `prepare` is called with a new layer that gets mouse and keys.
        """
        for layer in (self.events, self.marks):
            if layer is not None and layer.ndim != labels.ndim - 1:
                viewer.layers.remove(layer)
            elif layer is not None:
                place_like(layer, labels, still=True)
        placed = placed_like(labels, still=True)
        if self.marks is None:
            self._drawn = None
            # Letters are made with the layer: at the first question they would delay the window.
            self.marks = Points(
                np.zeros((1, labels.ndim - 1)), name="Marks", metadata=tag("marks"),
                blending=_ON_TOP, face_color="transparent", border_color="transparent",
                border_width=0.12, size=0.1, opacity=1.0,
                text={"string": "{text}", "color": {"feature": "ink"}, "size": 11,
                      "anchor": "center", "blending": _ON_TOP},
                features={"text": [_LETTERS], "ink": ["transparent"]},
                **placed,
            )  # fmt: skip
            add_below(viewer, self.marks)
        if self.events is None:
            self._drawn = None
            # One arrow without length until the first drawing: without any, napari's controls would
            # show an undefined colour.
            self.events = Vectors(
                np.zeros((1, 2, labels.ndim - 1)), ndim=labels.ndim - 1, name="Events",
                metadata=tag("events"), blending=_ON_TOP, vector_style="arrow", edge_width=_LINE,
                opacity=1.0, edge_color="white", **placed,
            )  # fmt: skip
            prepare(self.events)
            add_below(viewer, self.events)
        width = min(_LINE, 0.1 * size)  # does not hide small cells
        if self.events.edge_width != width:
            self.events.edge_width = width

    def raise_in(self, viewer: Any) -> None:
        """Bring the layers to the top, so that nothing hides them."""
        own = [layer for layer in (self.marks, self.events) if layer in viewer.layers]
        if list(viewer.layers)[len(viewer.layers) - len(own) :] != own:
            for layer in own:
                viewer.layers.move(viewer.layers.index(layer), len(viewer.layers))

    def draw(self, drawing: Drawing, dot: float = 0.0, plane: float | None = None) -> None:
        """Show a drawing.

        `dot` is the size of a screen pixel, in pixels of the movie; `plane` the one in view of a 3D
        movie, None if all are.
        """
        if self.events is None or self.marks is None:
            return
        before, self._drawn = self._drawn, (dot, plane, drawing)
        same = before is not None and before[:2] == (dot, plane)
        if not same or before is None or before[2].arrows != drawing.arrows:
            _set_arrows(self.events, drawing, plane)
        if not same or before is None or before[2].marks != drawing.marks:
            _set_marks(self.marks, drawing, dot, plane)


def _set_arrows(layer: Vectors, drawing: Drawing, plane: float | None) -> None:
    nowhere = (0.0,) * layer.ndim
    # Without arrows, napari cannot draw frames as a volume: one without length then, as at first.
    arrows = drawing.arrows or [Arrow(nowhere, nowhere, CLEAR)]
    start, stop = (_placed([a[k] for a in arrows], layer.ndim, plane) for k in (0, 1))
    # On an event of the data, the viewer would compute the extent of all layers.
    with layer.events.blocker_all():
        layer.data = np.stack([start, stop - start], axis=1)
        if drawing.arrows:
            layer.edge_color = np.array([a.colour for a in drawing.arrows])
    layer.refresh()


_RIM = [(1.2, 1.2), (-1.2, -1.2)]
"""Screen pixels by which dark copies of words are shifted, which form a rim."""


def _placed(places: Sequence[tuple[float, ...]], ndim: int, plane: float | None) -> Array:
    """Places as an array, shape (k, ndim): in the plane in view, or each in its own."""
    flat = np.array([place[-2:] for place in places], dtype=np.float64).reshape(-1, 2)
    if ndim == 2:
        return flat
    known = [place[0] for place in places if len(place) > 2]
    middle = float(np.mean(known)) if known else 0.0
    own = [place[0] if len(place) > 2 else middle for place in places]
    z = own if plane is None else [plane] * len(places)
    return np.column_stack([np.array(z, dtype=np.float64), flat])


def _set_marks(
    layer: Points, drawing: Drawing, dot: float = 0.0, plane: float | None = None
) -> None:
    """Show marks; words have a dark rim, without which they would be invisible on bright cells."""
    words = [m for m in drawing.marks if m.text] if dot else []
    rims = [
        m._replace(place=(*m.place[:-2], m.place[-2] + dot * y, m.place[-1] + dot * x))
        for m in words
        for y, x in _RIM
    ]
    shapes = [m for m in drawing.marks if not (m.text and dot)]
    marks = [*shapes, *rims, *words]
    ink = ["black"] * (len(shapes) + len(rims)) + ["white"] * len(words) if dot else []
    with layer.events.blocker_all():
        layer.data = _placed([m.place for m in marks], layer.ndim, plane)
        if marks:
            layer.symbol = [m.symbol for m in marks]
            layer.size = np.array([m.size for m in marks])
            layer.face_color = np.array([m.face for m in marks])
            layer.border_color = np.array([m.border for m in marks])
            layer.features = {
                "text": np.array([m.text for m in marks], dtype=object),
                "ink": np.array(ink or ["white"] * len(marks), dtype=object),
            }
    layer.refresh()
