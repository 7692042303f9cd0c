"""Where the masks and the track table of a Cell Tracking Challenge folder are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bridgetrack.errors import InputError

_MASK = re.compile(r"^(?:man_track|mask)_?(\d+)\.tiff?$", re.IGNORECASE)
_TABLES = ("man_track.txt", "res_track.txt")
_SUBFOLDERS = ("FULL", "TRA")


@dataclass(frozen=True)
class CtcLayout:
    """The files of one sequence.

    Parameters
    ----------
    folder
        Where the masks are.
    masks
        One file per frame, in order.
    table
        The track table, rows ``L B E P``.
    markers
        The small official markers of the same truth, where they stand beside whole-cell masks.
    """

    folder: Path
    masks: tuple[Path, ...]
    table: Path
    markers: CtcLayout | None = None


def find_ctc(folder: Path | str, sequence: str | None = None) -> CtcLayout:
    """Find truth or result of one sequence.

    Parameters
    ----------
    folder
        A folder with masks and ``man_track.txt`` or ``res_track.txt``; an ``NN_GT`` folder; a
        folder of results with a ``ctc`` folder; or a data set with ``NN_GT`` folders.
    sequence
        Two digits, where a data set has several sequences.

    Raises
    ------
    InputError
        Where nothing fits, frames are missing, or several sequences are there and none is named.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    if _table(folder) is not None:
        return _layout(folder)
    found = [folder / name for name in _SUBFOLDERS if _has_table(folder / name)]
    if found:
        markers = _layout(found[1]) if len(found) == 2 else None
        return _layout(found[0], markers)
    if _has_table(folder / "ctc"):
        return _layout(folder / "ctc")
    return find_ctc(_sequence_folder(folder, sequence))


def _sequence_folder(folder: Path, sequence: str | None) -> Path:
    truths = sorted(p for p in folder.glob("*_GT") if p.is_dir())
    if sequence is not None:
        truths = [p for p in truths if p.name == f"{sequence}_GT"]
        if not truths:
            raise InputError(f"{folder}: there is no folder {sequence}_GT")
    if not truths:
        raise InputError(
            f"{folder}: found neither man_track.txt nor res_track.txt, and no folder FULL, TRA, "
            "ctc or NN_GT; give the folder of a Cell Tracking Challenge truth or result"
        )
    if len(truths) > 1:
        names = ", ".join(p.name.removesuffix("_GT") for p in truths)
        raise InputError(f"{folder}: there are several sequences ({names}); name one")
    if not any(_has_table(p) for p in (truths[0], *(truths[0] / n for n in _SUBFOLDERS))):
        raise InputError(f"{truths[0]}: there is no man_track.txt in it, nor in FULL or TRA")
    return truths[0]


def _table(folder: Path) -> Path | None:
    return next((folder / name for name in _TABLES if (folder / name).is_file()), None)


def _has_table(folder: Path) -> bool:
    return folder.is_dir() and _table(folder) is not None


def _layout(folder: Path, markers: CtcLayout | None = None) -> CtcLayout:
    table = _table(folder)
    if table is None:
        raise InputError(f"{folder}: there is no man_track.txt or res_track.txt")
    masks = ctc_masks(folder)
    if not masks:
        raise InputError(f"{folder}: there are no masks (man_track000.tif or mask000.tif, ...)")
    return CtcLayout(folder, masks, table, markers)


def ctc_masks(folder: Path) -> tuple[Path, ...]:
    """Mask files of a folder, one per frame from 0 on.

    Raises
    ------
    InputError
        Where a frame is missing or there twice.
    """
    numbered = sorted(
        (int(m.group(1)), p) for p in folder.iterdir() if (m := _MASK.match(p.name)) is not None
    )
    for expected, (number, path) in enumerate(numbered):
        if number < expected:
            raise InputError(f"{path}: frame {number} is there twice")
        if number > expected:
            raise InputError(f"{folder}: the mask of frame {expected} is missing")
    return tuple(path for _, path in numbered)
