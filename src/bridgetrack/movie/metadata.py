"""What a movie file says of itself: axes, scale, frame interval and channel names."""

from __future__ import annotations

import math
from dataclasses import dataclass

_MICROMETERS = {
    "m": 1e6,
    "meter": 1e6,
    "cm": 1e4,
    "centimeter": 1e4,
    "mm": 1e3,
    "millimeter": 1e3,
    "um": 1.0,
    "micron": 1.0,
    "microns": 1.0,
    "micrometer": 1.0,
    "micrometers": 1.0,
    "micrometre": 1.0,
    "nm": 1e-3,
    "nanometer": 1e-3,
    "angstrom": 1e-4,
    "inch": 25400.0,
}
_MINUTES = {
    "d": 1440.0,
    "day": 1440.0,
    "h": 60.0,
    "hour": 60.0,
    "hours": 60.0,
    "min": 1.0,
    "minute": 1.0,
    "minutes": 1.0,
    "s": 1 / 60,
    "sec": 1 / 60,
    "second": 1 / 60,
    "seconds": 1 / 60,
    "ms": 1 / 60000,
    "msec": 1 / 60000,
    "millisecond": 1 / 60000,
}


@dataclass(frozen=True)
class Metadata:
    """What was found in a file; what was not is None.

    Parameters
    ----------
    axes
        One letter of ``TCZYX`` per array axis; None where the file does not say.
    scale
        Pixel size per spatial axis name (``"z"``, ``"y"``, ``"x"``) in micrometres.
    frame_interval
        Minutes between two frames.
    channels
        Channel names.
    """

    axes: str | None = None
    scale: tuple[tuple[str, float], ...] = ()
    frame_interval: float | None = None
    channels: tuple[str, ...] = ()

    def spatial_scale(self, axes: tuple[str, ...]) -> tuple[float, ...] | None:
        """Pixel size along `axes` in micrometres; None where y or x is unknown.

        A missing step along z is taken to equal the one along y.
        """
        known = dict(self.scale)
        if "y" not in known or "x" not in known:
            return None
        return tuple(known.get(axis, known["y"]) for axis in axes)


def micrometers(value: object, unit: object) -> float | None:
    """`value` in micrometres; None where it is no positive length in a known unit."""
    return _converted(value, unit, _MICROMETERS)


def minutes(value: object, unit: object) -> float | None:
    """`value` in minutes; None where it is no positive time in a known unit."""
    return _converted(value, unit, _MINUTES)


def spatial(**sizes: float | None) -> tuple[tuple[str, float], ...]:
    """Pixel sizes per axis, leaving out those that are unknown."""
    return tuple((axis, size) for axis, size in sizes.items() if size is not None)


def _converted(value: object, unit: object, factors: dict[str, float]) -> float | None:
    name = str(unit).strip().lower().replace("\\u00b5", "u").replace("µ", "u").replace("μ", "u")
    try:
        number = float(str(value)) * factors[name]
    except (ValueError, KeyError):
        return None
    return number if math.isfinite(number) and number > 0 else None
