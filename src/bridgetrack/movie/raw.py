"""A movie as read from its source: an array to slice, with its axes and scale."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.files import check_readable

ORDER = "TCZYX"
_UNKNOWN = "QIR"
_MICROMETERS = (
    (1e6, "m meter"),
    (1e4, "cm centimeter"),
    (1e3, "mm millimeter"),
    (1.0, "um micron micrometer"),
    (1e-3, "nm nanometer"),
    (1e-4, "angstrom"),
)
"""Units of length in the singular; no inches, which describe a screen or a printer."""
_MINUTES = (
    (1440.0, "d day"),
    (60.0, "h hr hour"),
    (1.0, "min minute"),
    (1 / 60, "s sec second"),
    (1 / 60000, "ms msec millisecond"),
)


@dataclass(frozen=True)
class RawMovie:
    """An array that can be sliced, with the metadata of its source."""

    data: Any
    axes: str | None = None  # a letter of ``TCZYX`` per array axis
    # size of a pixel by axis: ``"z"``, ``"y"``, ``"x"``; None where it is not known
    scale: dict[str, float | None] = field(default_factory=dict)
    frame_interval: float | None = None  # minutes between two frames
    channels: tuple[str, ...] = ()
    unit: str = "micrometer"  # of the scale

    def spatial_scale(self, axes: tuple[str, ...]) -> tuple[float, ...] | None:
        """Pixel size along `axes`; None if y or x is unknown.

        A missing step along z is taken to equal the one along y.
        """
        y, x = self.scale.get("y"), self.scale.get("x")
        if y is None or x is None:
            return None
        return tuple(self.scale.get(axis) or y for axis in axes)

    def in_order(self, axes: str) -> da.Array:
        """The array, whose axes are `axes`, as (T, C, [Z,] Y, X), in native byte order.

        There is one chunk per frame and channel. Missing T and C become axes of length one; a Z
        axis of length one is dropped.
        """
        shape = self.data.shape
        chunks = tuple(1 if a in "TC" else int(n) for a, n in zip(axes, shape, strict=True))
        if isinstance(self.data, da.Array):
            array = da.rechunk(self.data, chunks)
        else:
            array = da.from_array(
                self.data, chunks=chunks, name=False, inline_array=True, asarray=True
            )
        native = array.dtype.newbyteorder("=")
        array = array if array.dtype == native else array.astype(native)
        present = [a for a in ORDER if a in axes]
        array = da.transpose(array, [axes.index(a) for a in present])
        if "Z" in present and array.shape[present.index("Z")] == 1:
            array = da.squeeze(array, present.index("Z"))
        for position, letter in enumerate("TC"):
            if letter not in present:
                array = da.expand_dims(array, position)
        return array


class Sliced:
    """An array that dask slices; a bare one, even of a mapped file, it would copy as a whole."""

    def __init__(self, array: Any, source: Path | str) -> None:
        self.array = array
        self.source = source
        self.shape = tuple(int(n) for n in array.shape)
        self.dtype = np.dtype(array.dtype)
        self.ndim = len(self.shape)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """A copy of the slice."""
        with reading(self.source):
            pixels = self.array[key]
            return np.array(pixels) if isinstance(self.array, np.ndarray) else pixels


@contextmanager
def reading(path: Path | str, what: str = "a movie") -> Iterator[None]:
    """Turn whatever goes wrong while reading `path` as `what` into an InputError that names it."""
    try:
        if isinstance(path, Path):
            check_readable(path)
        yield
    except BridgetrackError:
        raise
    except FileNotFoundError as error:
        raise InputError(
            f"{path}: no such file or folder; check the name; if it was moved, give its present "
            "place"
        ) from error
    except PermissionError as error:
        raise InputError(f"{path}: no permission to read it; check its access rights") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except MemoryError as error:
        raise InputError(f"{path}: one frame does not fit in memory") from error
    except Exception as error:  # the libraries raise anything on damaged files
        why = " ".join(str(error).split())[:160] or type(error).__name__
        raise InputError(
            f"{path}: cannot be read as {what} ({why}); if it is damaged or cut off, open it in "
            "the program that wrote it and save it again"
        ) from error


def micrometers(value: object, unit: object) -> float | None:
    """`value` in micrometres; None if it is no positive length in a known unit."""
    return _converted(value, unit, _MICROMETERS)


def minutes(value: object, unit: object) -> float | None:
    """`value` in minutes; None if it is no positive time in a known unit."""
    return _converted(value, unit, _MINUTES)


def check_axes(axes: str, ndim: int, source: str) -> str:
    """`axes` in capitals, checked: letters of TCZYX, no letter twice, one per array axis."""
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

    In one frame of a folder (`one_frame`) an unknown axis is Z rather than time. Elsewhere samples
    before all other axes are frames: stacks of three or four are often saved as such planes.
    """
    if axes.startswith("S") and not one_frame:
        axes = f"Q{axes[1:]}"
    if "S" in axes:
        axes = axes.replace("S", "C" if "C" not in axes else "Q")
    wanted = iter([a for a in ("ZC" if one_frame else "TZC") if a not in axes])
    resolved = [next(wanted, "?") if a in _UNKNOWN else a for a in axes]
    return check_axes("".join(resolved), len(axes), source)


def _converted(value: object, unit: object, factors: tuple[tuple[float, str], ...]) -> float | None:
    name = str(unit).strip().lower().replace("\\u00b5", "u").replace("µ", "u").replace("μ", "u")
    name = re.sub(r"(?<=..)s$", "", name).replace("metre", "meter")
    factor = next((f for f, names in factors if name in names.split()), None)
    try:
        number = float(str(value)) * (factor or math.nan)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None
