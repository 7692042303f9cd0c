"""What the built-in segmentation can be told; the defaults need nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bridgetrack.errors import InputError

Foreground = Literal["auto", "bright", "dark", "texture"]
Threshold = Literal["auto", "background", "global", "local"]
Seeds = Literal["both", "distance", "log"]


@dataclass(frozen=True)
class SegmentationSettings:
    """Settings of the built-in segmentation; lengths are in pixels along x.

    Parameters
    ----------
    diameter
        Diameter of a typical cell; estimated from the image unless given.
    foreground
        What a cell looks like: brighter than the background, darker, or more structured
        (``"texture"``, for phase contrast and DIC); ``"auto"`` decides by the image.
    smoothing
        Sigma of the Gaussian filter; unless given, 5 % of the diameter.
    background_window
        Width of the window, in diameters, in which the background is estimated; 0 takes one
        level for the whole frame.
    threshold
        ``"background"``: above the background by `sensitivity` times its noise; ``"global"``:
        Otsu's threshold of the frame; ``"local"``: above the mean of the neighbourhood as well
        as above the background's noise. ``"auto"`` is ``"background"`` for bright cells and
        ``"global"`` for others, whose background is rarely even.
    sensitivity
        How many times the noise a cell must exceed the background; larger finds fewer cells.
    edge
        Each cell is cut back to pixels above this share of its own brightness; 0 keeps all.
    seeds
        What tells touching cells apart: the distance to the outline, a Laplacian of Gaussian
        at the size of a cell, or both.
    separation
        Least distance between two seeds, in diameters.
    depth
        Two hills of the landscape are one cell unless the valley between them is deeper than
        this, in radii; larger splits less. Unless given, 0.05 (bright cells) or 0.15 (others).
    min_size, max_size
        Smallest and largest area or volume of a cell as a share of that of a disc or ball with
        the diameter.
    fill_holes
        Fill holes in cells.
    clear_border
        Remove cells that touch the frame's edge.

    Raises
    ------
    InputError
        Where a setting is out of its range.
    """

    diameter: float | None = None
    foreground: Foreground = "auto"
    smoothing: float | None = None
    background_window: float = 5.0
    threshold: Threshold = "auto"
    sensitivity: float = 4.0
    edge: float = 0.3
    seeds: Seeds = "both"
    separation: float = 0.25
    depth: float | None = None
    min_size: float = 0.1
    max_size: float = 12.0
    fill_holes: bool = True
    clear_border: bool = False

    def __post_init__(self) -> None:
        choices = {"foreground": Foreground, "threshold": Threshold, "seeds": Seeds}
        for name, kind in choices.items():
            if getattr(self, name) not in get_args(kind):
                raise InputError(
                    f"segmentation: {name} is {getattr(self, name)!r}, choose from "
                    + ", ".join(get_args(kind))
                )
        limits = {"diameter": 1.0, "smoothing": 0.0, "background_window": 0.0}
        limits |= {"sensitivity": 0.0, "edge": 0.0, "separation": 0.0}
        limits |= {"depth": 0.0, "min_size": 0.0}
        for name, least in limits.items():
            value = getattr(self, name)
            if value is not None and not least <= value < float("inf"):
                raise InputError(f"segmentation: {name} is {value}, it must be at least {least:g}")
        if self.edge >= 1:
            raise InputError(f"segmentation: edge is {self.edge}, it must be below 1")
        if not self.max_size > self.min_size:
            raise InputError(
                f"segmentation: max_size ({self.max_size}) must exceed min_size ({self.min_size})"
            )
