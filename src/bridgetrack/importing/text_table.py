"""Tables of text: what their columns mean, and their numbers with the row in every message."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack import paged
from bridgetrack.errors import InputError
from bridgetrack.files import check_readable
from bridgetrack.paged import Pages, in_parts, room_on_disk

_NAMES: dict[str, tuple[str, ...]] = {
    "frame": ("frame", "t", "timepoint", "time_point", "frame_number", "time", "position_t"),
    "z": ("z", "position_z", "pos_z", "centroid_z", "center_z", "z_px"),
    "y": ("y", "position_y", "pos_y", "centroid_y", "center_y", "y_px"),
    "x": ("x", "position_x", "pos_x", "centroid_x", "center_x", "x_px"),
    "id": ("id", "node_id", "node", "spot_id", "detection_id"),
    "parent": ("parent_id", "parent", "parent_node", "parent_node_id", "parent_spot_id"),
    "track": ("track_id", "track", "trackid", "tracklet_id", "particle"),
    "parent_track": ("parent_track_id", "parenttrackid", "parent_track"),
    "lineage": ("lineage_id", "lineageid", "lineage"),
    "label": ("label", "labelimageid", "label_id", "segmentation_id", "seg_id", "mask_id"),
    "area": ("area", "volume", "size_in_pixels_0", "size_in_pixels", "size"),
    "radius": ("radius", "r", "estimated_radius"),
}
_NUMBERED = (("centroid", "zyx"), ("center_of_the_object", "xyz"), ("object_center", "xyz"))
_SHOWN = 20
_LARGE = 1 << 18
"""Rows beyond which the numbers of a table are put on disk."""
_EMPTY = ("", "nan", "NaN", "None", "null", "NA")


@dataclass(frozen=True)
class Columns:
    """Names of the columns that hold what; None where the table has no such column.

    Parameters
    ----------
    frame
        Frame number from 0.
    z, y, x
        Position of the centroid.
    id
        Number of the detection, unique in the file.
    parent
        ``id`` of the detection this one came from; empty or negative at roots.
    track
        Track, constant from birth to division.
    parent_track
        Track this track came from; empty, 0 or negative at roots.
    lineage
        Family tree; read by nothing, so that it is not taken for a track.
    label
        Label in the segmentation, unique in the frame.
    area, radius
        Size.
    """

    frame: str | None = None
    z: str | None = None
    y: str | None = None
    x: str | None = None
    id: str | None = None
    parent: str | None = None
    track: str | None = None
    parent_track: str | None = None
    lineage: str | None = None
    label: str | None = None
    area: str | None = None
    radius: str | None = None

    def used(self) -> dict[str, str]:
        """Role and column of everything that is there."""
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {role: column for role, column in pairs if column is not None}

    def corrected(self, corrections: Mapping[str, str | None]) -> Columns:
        """The same with some roles set by hand."""
        known = [f.name for f in fields(self)]
        for role in corrections:
            if role not in known:
                raise InputError(f"there is no role {role!r} for a column; known are {known}")
        return replace(self, **dict(corrections))

    def check(self, header: Sequence[str], source: str) -> None:
        """Complain about columns that are named but absent, or needed but not named."""
        shown = ", ".join(repr(str(name)) for name in header[:_SHOWN])
        more = f" and {len(header) - _SHOWN} more" if len(header) > _SHOWN else ""
        listed = f"the file has the columns {shown}{more}"
        for role, column in self.used().items():
            if column not in header:
                raise InputError(
                    f"{source}: there is no column {column!r} (meant as {role}); {listed}"
                )
        missing = [role for role in ("frame", "y", "x") if getattr(self, role) is None]
        if missing:
            known = "; ".join(f"{role}: {', '.join(_NAMES[role][:4])}" for role in missing)
            raise InputError(
                f"{source}: found no column for {', '.join(missing)}; {listed}. Rename the column "
                f"in the first line of the file (known names are {known}; in upper or lower "
                "case), or, in Python, say which it is: "
                f"columns={{'{missing[0]}': '...'}}"
            )


def guess_columns(header: Sequence[str]) -> Columns:
    """Guess what the columns of a table mean from their names.

    Knows this package's own files, TrackMate, ilastik, Mastodon-like and scikit-image tables,
    in any case and with units in brackets. ``parent`` is taken for a parent *track* in a table
    that has tracks but no ids.
    """
    plain = plain_names(header)
    found: dict[str, str | None] = {}
    for role, names in _NAMES.items():
        found[role] = next((plain[name] for name in names if name in plain), None)
    for name, order in _NUMBERED:
        columns = [plain.get(f"{name}_{k}") for k in range(3)]
        if found["x"] is None and None not in columns[:2]:
            roles = order if columns[2] else order.replace("z", "")
            found |= dict(zip(roles, columns, strict=False))
    if "position_x" in plain and found["label"] is not None:
        # TrackMate's LABEL is a free text such as "ID4711".
        found["label"] = None
    if found["id"] is None and found["track"] is not None and found["parent"] is not None:
        found["parent_track"] = found["parent_track"] or found["parent"]
        found["parent"] = None
    return Columns(**found)


def plain_names(header: Sequence[str]) -> dict[str, str]:
    """Columns by their plain names: lower case, no unit in brackets, words joined by ``_``.

    Of columns with one plain name the first counts.
    """
    plain: dict[str, str] = {}
    for column in header:
        name = re.sub(r"[\[(].*?[\])]", "", column.strip().lstrip("\ufeff"))
        plain.setdefault(re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"), column)
    return plain


@dataclass(frozen=True)
class TextTable:
    """A table as text, before any number is read."""

    cells: pd.DataFrame  # all columns as strings; the index is the line of the file, from 1
    units: dict[str, str]  # per column, from the last of several header rows
    source: str  # name of the file, for messages
    pages: Pages = field(default_factory=Pages)  # where the numbers of its columns lie

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return [str(c) for c in self.cells.columns]

    def numbers(
        self, column: str, *, empty: float | None = None, infinite: bool = False
    ) -> NDArray[np.float64]:
        """A column as numbers, shape (n,).

        `empty` stands for an empty cell, which is wrong where None; `infinite` lets ``inf`` pass.
        """
        cells, values = self.cells[column], self.pages.zeros(len(self.cells))
        for some in in_parts(len(cells)):
            values[some] = self._numbers(cells.iloc[some], empty, infinite)
        return values

    def _numbers(self, cells: pd.Series[Any], empty: float | None, infinite: bool) -> Any:
        """Some cells of a column as numbers, see `numbers`."""
        text = cells.str.strip()
        blank = text.isin(_EMPTY).to_numpy(dtype=bool)
        values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, copy=True)
        # some versions of pandas are wrong in the last digit
        known = np.isfinite(values)
        values[known] = np.fromiter(map(float, text.to_numpy()[known]), np.float64)
        wrong = (np.isnan(values) if infinite else ~np.isfinite(values)) & ~blank
        if empty is None:
            wrong |= blank
        said = partial(self.refuse, where=f", column {cells.name!r}", lines=cells.index)
        said(wrong, lambda k: f"{text.iloc[k]!r} is not a number")
        if empty is not None:
            values[blank] = empty
        return values

    def integers(self, column: str, *, empty: int | None = None) -> NDArray[np.int64]:
        """A column as integers, shape (n,); raises InputError as `numbers`."""
        values = self.numbers(column, empty=None if empty is None else float(empty))
        text, found = self.cells[column], self.pages.zeros(len(values), np.int64)
        where = f", column {column!r}"
        for some in in_parts(len(values)):
            part, value = text.iloc[some], values[some]
            self.refuse(
                (value != np.rint(value)) | (np.abs(value) > 2**53),
                partial(_no_integer, part),
                where=where,
                lines=part.index,
            )
            found[some] = value
        return found

    def refuse(
        self,
        wrong: NDArray[Any],
        what: str | Callable[[int], str],
        *,
        where: str = "",
        lines: pd.Index | None = None,
    ) -> None:
        """Complain about the first of the rows that are `wrong`, shape (n,), naming file and row.

        `what` to say may be a function of the row's number, `where` is a place in the row, `lines`
        says in which line of the file each row stands.
        """
        if np.any(wrong):
            k = int(np.argmax(wrong))
            line = (self.cells.index if lines is None else lines)[k]
            said = what if isinstance(what, str) else what(k)
            raise InputError(f"{self.source}, row {line}{where}: {said}")


def _no_integer(text: pd.Series[Any], row: int) -> str:
    return f"{text.iloc[row]!r} is not an integer"


def read_text_table(path: Path | str, rows: int | None = None) -> TextTable:
    """Read a table whose columns are parted by commas, semicolons or tabs.

    Up to three rows below the header that hold no number at all are taken for more header
    (TrackMate writes names, abbreviations and units there).

    Parameters
    ----------
    path
        The file.
    rows
        Lines to read below the first, to see what the file holds; all where None.

    Raises
    ------
    InputError
        Where the file is absent, not text, not a table or empty.
    """
    path = Path(path)
    check_readable(path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            separator = max(",;\t", key=next(file, "").count)
            file.seek(0)
            cells = _read_rows(file, separator, rows)
        _refuse_nameless(path, separator, rows, len(cells.columns))
    except pd.errors.ParserError as error:  # of rows that are too long, for instance
        with suppress(OSError, ValueError, csv.Error):
            _refuse_nameless(path, separator, rows, _first_width(path, separator))
        raise InputError(f"{path}: cannot be read as a table ({error})") from error
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a text file ({error})") from error
    except (ValueError, csv.Error, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path}: cannot be read as a table ({error})") from error
    cells.columns = pd.Index(_unlike([str(c).strip() for c in cells.columns]))
    cells.index = pd.RangeIndex(2, 2 + len(cells))
    units = {}
    if _more_header(cells):
        units = {c: str(cells[c].iloc[2]).strip().strip("()") for c in cells.columns}
        cells = cells.iloc[3:]
    pages = Pages(room_on_disk()) if len(cells) > _LARGE else Pages()
    return TextTable(cells, units, str(path), pages)


def _read_rows(file: TextIO, separator: str, rows: int | None) -> pd.DataFrame:
    """The rows of a table as text, some at a time: the parser takes many times what they hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # see `_refuse_nameless`
        pieces = pd.read_csv(
            file, sep=separator, dtype=str, keep_default_na=False, index_col=False,
            nrows=rows, chunksize=paged.ROWS_AT_ONCE,
        )  # fmt: skip
        with pieces:
            return pd.concat((piece.fillna("") for piece in pieces), ignore_index=True)


def _unlike(names: list[str]) -> list[str]:
    """Names of columns, those that stood before numbered, as pandas does but for blanks."""
    found: list[str] = []
    for name in names:
        more = (f"{name}.{k}" for k in count(1))
        found.append(
            name if name not in found else next(n for n in more if n not in {*names, *found})
        )
    return found


def _first_width(path: Path, separator: str) -> int:
    """Cells of the first row that has any."""
    with path.open(encoding="utf-8-sig") as file:
        return next((len(line.split(separator)) for line in file if line.strip()), 0)


def _refuse_nameless(path: Path, separator: str, rows: int | None, columns: int) -> None:
    """Refuse rows with more cells than there are columns, which pandas leaves out."""
    stop = None if rows is None else rows + 1
    with path.open(encoding="utf-8-sig") as file:
        if max((line.count(separator) for line in islice(file, stop)), default=0) < columns:
            return
        file.seek(0)
        long = (row for row in csv.reader(islice(file, stop), delimiter=separator) if row[columns:])
        wrong = next((row for row in long if any(cell.strip() for cell in row[columns:])), None)
    if wrong is not None:
        raise InputError(
            f"{path}: a row holds {len(wrong)} cells, and the first only {columns} names of "
            "columns; give every column a name"
        )


def _more_header(cells: pd.DataFrame) -> bool:
    """Whether the first three rows hold no number, and the first two some words."""
    head = cells.iloc[:3]
    has_number = head.apply(pd.to_numeric, errors="coerce").notna().any(axis=None)
    words = (head.apply(lambda c: c.astype(str).str.strip()) != "").any(axis=1).to_numpy()
    return len(head) == 3 and not has_number and bool(words[:2].all())
