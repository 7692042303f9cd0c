"""How to read a movie: the options of the command line that say so."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from bridgetrack.cli.options import Axes, FrameInterval, ImageAxes, Scale, Unit

OPTIONS: dict[str, Any] = {
    "scale": Scale,
    "unit": Unit,
    "frame_interval": FrameInterval,
    "axes": Axes,
    "image_axes": ImageAxes,
}


@dataclass(frozen=True)
class Reading:
    """How to read a movie, as given on the command line.

    Parameters
    ----------
    axes
        Axis order of the label movie.
    scale
        Text of ``--scale``.
    unit
        ``"micrometer"`` or ``"pixel"``.
    frame_interval
        Minutes.
    image_axes
        Axis order of the image.
    """

    axes: str | None = None
    scale: str | None = None
    unit: str | None = None
    frame_interval: float | None = None
    image_axes: str | None = None


def reads_movie(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes ``reading`` the options of a `Reading` in its place."""

    @wraps(command)
    def with_reading(**given: Any) -> None:
        reading = Reading(**{name: given.pop(name) for name in OPTIONS})
        command(**given, reading=reading)

    found: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        found += _options() if parameter.name == "reading" else [parameter]
    with_reading.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
    with_reading.__annotations__ = {p.name: p.annotation for p in found}
    return with_reading


def _options() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in OPTIONS.items()
    ]
