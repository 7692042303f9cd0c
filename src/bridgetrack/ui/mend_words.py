"""What is told after masks were mended."""

from __future__ import annotations

from collections.abc import Sequence

from bridgetrack.regions.outlines import FEW_OUTLINES, usual_ratio
from bridgetrack.regions.taught import FEW


def checked_words(now: int, all_in_all: int) -> str:
    """What is told after an area was found right, which held some cells."""
    told = f"Kept: {now} cell{'s are' if now > 1 else ' is'} right here, and none is missing. "
    left = FEW - all_in_all
    if left > 0:
        return f"{told}After {left} more such cells, W goes by what cells look like in this movie."
    return f"{told}W chooses all masks again by what cells look like in this movie."


def outline_words(ratios: Sequence[float], checked: int) -> str:
    """What is told after an outline was corrected."""
    ratio, left = usual_ratio(ratios, checked), FEW_OUTLINES - len(ratios)
    if ratio != 1.0:
        return f"W draws all cells about {ratio:.1f} times as large, as you drew these."
    if left > 0:
        return f"Kept. After {left} more that go the same way, W draws all cells so."
    return "Kept. Too few go the same way for W to change the size of other cells."
