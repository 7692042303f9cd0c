"""What a movie file says of itself: axes, scale, frame interval and channel names.

Axis orders: what they are called, how they are guessed, how arrays are brought in order.

A movie's array as read from a source, before it is brought in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import BridgetrackError, InputError

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


ORDER = "TCZYX"
_GUESSES = {2: "YX", 3: "TYX", 4: "TZYX", 5: "TCZYX"}
_UNKNOWN = set("QIR")


def guess_axes(ndim: int, source: str) -> str:
    """Axis order of an array of `ndim` axes that says nothing: YX, TYX, TZYX or TCZYX."""
    if ndim not in _GUESSES:
        raise InputError(
            f"{source}: an array with {ndim} axes is no movie; expected 2 to 5 axes out of {ORDER} "
            "(--axes or --image-axes says their order)"
        )
    return _GUESSES[ndim]


def check_axes(axes: str, ndim: int, source: str) -> str:
    """`axes` in capitals, checked: letters of TCZYX, no letter twice, one per array axis.

    Raises
    ------
    InputError
        Where that does not hold.
    """
    axes = axes.upper()
    if set(axes) - set(ORDER) or len(set(axes)) != len(axes) or not {"Y", "X"} <= set(axes):
        raise InputError(
            f"{source}: the axis order {axes!r} must name Y and X, at most once each of {ORDER}; "
            "e.g. TYX, TCYX or TZYX (--axes or --image-axes)"
        )
    if len(axes) != ndim:
        raise InputError(
            f"{source}: the axis order {axes!r} names {len(axes)} axes but the array has {ndim}; "
            "--axes or --image-axes says the order, e.g. TYX"
        )
    return axes


def resolve_unknown(axes: str, source: str, *, one_frame: bool = False) -> str:
    """Replace the letters of a TIFF reader (S samples, Q/I/R unknown) by those of TCZYX.

    Parameters
    ----------
    axes
        Axis letters as the TIFF reader gives them.
    source
        For messages.
    one_frame
        Whether the file is one frame of a folder: then an unknown axis is Z rather than time.
    """
    if "S" in axes:
        axes = axes.replace("S", "C" if "C" not in axes else "Q")
    wanted = iter([a for a in ("ZC" if one_frame else "TZC") if a not in axes])
    resolved = [next(wanted, "?") if a in _UNKNOWN else a for a in axes]
    return check_axes("".join(resolved), len(axes), source)


def time_chunks(shape: tuple[int, ...], axes: str) -> tuple[int, ...]:
    """Chunks of one frame and one channel for an array with these axes."""
    return tuple(1 if a in "TC" else n for a, n in zip(axes, shape, strict=True))


def in_order(array: da.Array, axes: str) -> da.Array:
    """Bring an array with any axis order to (T, C, [Z,] Y, X).

    Missing T and C become axes of length one; a Z axis of length one is dropped.

    Parameters
    ----------
    array
        Array with one axis per letter of `axes`.
    axes
        Letters of TCZYX in the order of the array's axes.
    """
    present = [a for a in ORDER if a in axes]
    array = da.transpose(array, [axes.index(a) for a in present])
    if "Z" in present and array.shape[present.index("Z")] == 1:
        array = array[tuple(0 if a == "Z" else slice(None) for a in present)]
        present.remove("Z")
    for position, letter in enumerate("TC"):
        if letter not in present:
            array = da.expand_dims(array, position)
    return array


def check_numeric(dtype: np.dtype[Any], source: str) -> None:
    """Refuse pixels that are not booleans, integers or real numbers."""
    if dtype.kind not in "buif":
        raise InputError(f"{source}: pixels of type {dtype} are not numbers")


class ArrayLike(Protocol):
    """What is read lazily: something with a shape and a type that can be sliced."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of every axis."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the pixels."""

    @property
    def ndim(self) -> int:
        """Number of axes."""

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Pixels of a slice."""


@dataclass(frozen=True)
class RawMovie:
    """An array-like with what its source says of it.

    Parameters
    ----------
    data
        Anything that can be sliced; not read yet.
    metadata
        What the source says.
    """

    data: ArrayLike
    metadata: Metadata = field(default_factory=Metadata)

    def lazy(self, axes: str) -> da.Array:
        """The array as dask array, one chunk per frame and channel."""
        if isinstance(self.data, da.Array):
            return da.rechunk(self.data, time_chunks(self.data.shape, axes))
        chunks = time_chunks(tuple(self.data.shape), axes)
        return da.from_array(self.data, chunks=chunks, name=False, inline_array=True, asarray=True)


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Turn whatever goes wrong while reading `path` into an InputError that names it."""
    try:
        yield
    except BridgetrackError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file or folder") from error
    except PermissionError as error:
        raise InputError(f"{path}: no permission to read it; check its access rights") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except MemoryError as error:
        raise InputError(f"{path}: one frame does not fit in memory") from error
    except Exception as error:  # the libraries raise anything on damaged files
        raise InputError(
            f"{path}: damaged, cut off or of an unknown layout ({_one_line(error)}); "
            "open it in the program that wrote it and save it again"
        ) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__
