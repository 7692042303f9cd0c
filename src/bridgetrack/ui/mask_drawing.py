"""What is drawn over the image of masks while they are mended."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bridgetrack.hypotheses.events import Event
from bridgetrack.regions.mend import Mend
from bridgetrack.ui.event_looks import LOOKS, MEND_WORDS, PROPOSAL, rgba
from bridgetrack.ui.overlay import CLEAR, Array, Drawing, SliceShown, draw_outline


def draw_mending(
    drawing: Drawing,
    place: tuple[int, tuple[float, ...]] | None,
    proposed: Iterable[Mend],
    shape: tuple[int, ...],
    view: SliceShown,
) -> None:
    """The first of two clicks on masks, and what is proposed for the masks of this frame.

    The pieces that a cut would leave, or what would be removed, are outlined.
    """
    if place is not None and place[0] == view.frame:
        drawing.mark(place[1], "cross", 0.4 * view.size, rgba(PROPOSAL))
    for mend in proposed:
        if mend.frame != view.frame:
            continue
        top: list[float] = []
        for pixels in mend.right or mend.wrong:
            outline = _border_points(pixels, shape, view)
            draw_outline(drawing, outline, rgba(LOOKS[Event.DIVIDE].colour), view)
            top += outline[:, 0].tolist()
        if top:
            middle = mend.right[0] if mend.right else mend.wrong[0]
            across = float(np.unravel_index(middle, shape)[-1].mean())
            words = f"{MEND_WORDS[mend.kind]}? [P]"
            above = min(top) - 0.5 * view.size
            drawing.mark((above, across), "disc", 0.1, CLEAR, CLEAR, words)


def _border_points(pixels: NDArray[np.int64], shape: tuple[int, ...], view: SliceShown) -> Array:
    """Border of a set of pixels in the plane in view, or in its middle plane, shape (k, 2)."""
    index = np.stack(np.unravel_index(pixels, shape), axis=1)
    if len(shape) == 3:
        plane = round(view.plane if view.plane is not None else float(index[:, 0].mean()))
        index = index[index[:, 0] == plane][:, 1:]
    inside = {(y, x) for y, x in index.tolist()}
    edge = [
        (y, x) for y, x in inside if not {(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)} <= inside
    ]
    return np.array(sorted(edge), dtype=np.float64).reshape(-1, 2)
