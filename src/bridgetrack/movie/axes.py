"""Axis orders: what they are called, how they are guessed, how arrays are brought in order."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from bridgetrack.errors import InputError

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
