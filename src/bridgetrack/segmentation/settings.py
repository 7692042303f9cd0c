"""Settings of the built-in segmentation; none of them must be given."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from bridgetrack.errors import InputError
from bridgetrack.schema import Share, settings

Foreground = Literal["auto", "bright", "dark", "texture"]
Choose = Literal["jointly", "plain"]
"""Whether cells are chosen among candidates, together with their tracks, or each frame is segmented
in one way, which is faster."""
Backend = Literal["builtin", "cellpose"]


@settings("segmentation:")
class SegmentationSettings:
    """Settings of the built-in segmentation; lengths are in pixels along x.

    Parameters
    ----------
    diameter
        Diameter of a typical cell; estimated from the image unless given.
    foreground
        What a cell looks like: brighter than the background, darker, or more structured
        (``"texture"``, for phase contrast and DIC); ``"auto"`` decides by the image.
    sensitivity
        Threshold: how many times the noise a cell must stand out from the background; larger
        values find fewer cells.
    depth
        Touching cells are split where the neck between them is narrower than both by more than
        this fraction of the radius; larger values split fewer cells. Unless given, 0.05 (bright
        cells) or 0.15 (others).
    min_size
        Smallest area or volume of a cell, as a fraction of a disc (in 3D a ball) of the given
        diameter.
    max_size
        Largest area or volume of a cell, as such a fraction.
    clear_border
        Remove cells that touch the frame's edge, except those drawn or confirmed by hand.

    Raises
    ------
    InputError
        Where a setting is out of its range.
    """

    diameter: Annotated[float | None, Field(ge=1)] = None
    foreground: Foreground = "auto"
    sensitivity: Annotated[float, Field(ge=0)] = 4.0
    depth: Annotated[float | None, Field(ge=0)] = None
    min_size: Annotated[float, Field(ge=0)] = 0.1
    max_size: Annotated[float, Field(gt=0)] = 12.0
    clear_border: bool = False

    def __post_init__(self) -> None:
        if not self.max_size > self.min_size:
            raise InputError(
                f"segmentation: max_size ({self.max_size}) must exceed min_size ({self.min_size})"
            )


@settings("cells:")
class Appearance:
    """The look of cells, for users who need not know the method.

    Parameters
    ----------
    diameter
        Diameter of a typical cell, in pixels.
    faint
        To the right, fainter cells are found too.
    split
        To the right, touching cells are split more readily.
    """

    diameter: Annotated[float, Field(ge=4, le=1000)] = 20.0
    faint: Share = 0.5
    split: Share = 0.5

    def applied_to(self, settings: SegmentationSettings) -> SegmentationSettings:
        """Settings chosen for a movie, adjusted; the middle of a range changes nothing."""
        depth = settings.depth if settings.depth is not None else 0.05
        return replace(
            settings,
            diameter=self.diameter,
            sensitivity=SegmentationSettings().sensitivity * 8 ** (1 - 2 * self.faint),
            depth=depth * 10 ** (1 - 2 * self.split),
        )
