"""Text in rows and columns: its encoding, what parts the columns, and where their names are."""

from __future__ import annotations

import codecs
import csv
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.files import as_path, check_readable
from bridgetrack.io.columns import PLACE, UNIT_OF, guess_columns

EMPTY = ("", "nan", "NaN", "None", "null", "NA")
"""What stands in a cell that holds nothing."""
_ROWS_AT_ONCE = 1 << 16
"""Rows that are parsed at once: a parser takes many times what they hold."""
_ABOVE_HEADER = 12
"""Lines in which the names of the columns are looked for."""


@dataclass(frozen=True)
class TextTable:
    """A table as text, before any number is read."""

    cells: pd.DataFrame  # all columns as strings; the index is the line of the file, from 1
    units: dict[str, str]  # per column, from the last of several header rows
    source: str  # name of the file, for messages
    decimal_comma: bool = False  # where columns are not separated by commas

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return [str(c) for c in self.cells.columns]

    def unit(self, column: str) -> str:
        """Unit of a column, as the last header row or the name of the column says; may be empty."""
        found = UNIT_OF.search(column.strip())
        unit = self.units.get(column) or ("" if found is None else found[found.lastgroup or 0])
        return unit.strip().lower().translate(str.maketrans("µμ²³", "uu23", "^"))

    def numbers(self, column: str, *, empty: float | None = None, infinite: bool = False) -> Array:
        """A column as numbers, shape (n,).

        `empty` stands for an empty cell, which is wrong if None; `infinite` lets ``inf`` pass.
        """
        text = self._with_points(self.cells[column].str.strip(), column)
        blank = text.isin(EMPTY).to_numpy(dtype=bool)
        values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, copy=True)
        # some versions of pandas are wrong in the last digit
        known = np.isfinite(values)
        values[known] = np.fromiter(map(float, text.to_numpy()[known]), np.float64)
        wrong = (np.isnan(values) if infinite else ~np.isfinite(values)) & ~blank
        if empty is None:
            wrong |= blank
        where = f", column {column!r}"
        self.refuse(wrong, lambda k: f"{text.iloc[k]!r} is not a number", where=where)
        if empty is not None:
            values[blank] = empty
        return values

    def _with_points(self, text: pd.Series[str], column: str) -> pd.Series[str]:
        """Numbers without separators of thousands, with a point for a decimal comma."""
        comma = text.str.contains(",", regex=False)
        if not comma.any():
            return text
        both = text[comma & text.str.contains(".", regex=False)]
        if len(both):  # the last of the two marks is the decimal one
            grouping = "," if both.iloc[0].rfind(",") < both.iloc[0].rfind(".") else "."
            text = text.str.replace(grouping, "", regex=False)
        elif not self.decimal_comma and text[comma].str.fullmatch(r"-?\d{1,3}(,\d{3})+").all():
            self.refuse(
                comma.to_numpy(),
                lambda k: (
                    f"{text.iloc[k]!r} may have a decimal comma or thousands; save the table with "
                    "a decimal point, and without separators of thousands"
                ),
                where=f", column {column!r}",
            )
        return text.str.replace(",", ".", regex=False)

    def integers(self, column: str, *, empty: int | None = None) -> Index:
        """A column as integers, shape (n,); raises InputError as `numbers`."""
        values = self.numbers(column, empty=None if empty is None else float(empty))
        self.refuse(
            (values != np.rint(values)) | (np.abs(values) > 2**53),
            lambda k: f"{self.cells[column].iloc[k]!r} is not an integer",
            where=f", column {column!r}",
        )
        return values.astype(np.int64)

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


def read_text_table(path: Path | str, rows: int | None = None) -> TextTable:
    """Read a table whose columns are separated by commas, semicolons, tabs or blanks.

    The text is in UTF-8, UTF-16 or Windows' Western European code. Lines above the names of the
    columns (a comment, or the title of Imaris) are passed over. Up to three rows below the names
    that hold no number at all are taken for more header (TrackMate writes names, abbreviations and
    units there), and the names that R gives to rows are left out. A few `rows` below the first say
    what the file holds; all are read if None.

    Raises an `InputError` if the file is absent, not text, not a table or empty.
    """
    path = as_path(path)
    check_readable(path)
    try:
        encoding = _encoding(path)
        try:
            found = _read_as(path, encoding, rows)
        except UnicodeDecodeError:
            if encoding != "utf-8-sig":
                raise
            found = _read_as(path, "cp1252", rows)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read as a text file ({error})") from error
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a table ({error})") from error
    cells, above, separator = found
    names = cells.columns.str.strip()
    if names.is_unique:
        cells.columns = names
    cells.index = pd.RangeIndex(above + 2, above + 2 + len(cells))
    blank = cells.iloc[:, 0].str.strip() == ""
    blank[blank] = cells[blank].apply(lambda c: c.str.strip() == "").all(axis=1)
    cells = cells[~blank] if blank.any() else cells
    units: dict[str, str] = {}
    if more := _more_header(cells):
        units = {c: str(cells[c].iloc[more - 1]).strip().strip("()[]") for c in cells.columns}
        cells = cells.iloc[more:]
    return TextTable(cells, units, str(path), separator != ",")


def _encoding(path: Path) -> str:
    """How a text is encoded, by its first bytes; as UTF-8 where they say nothing."""
    with path.open("rb") as file:
        start = file.read(1024)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" not in start:
        return "utf-8-sig"
    if start[:4:2].count(0) or start[1:4:2] != b"\0\0":
        raise ValueError("it holds no text; if it is a spreadsheet, save it as CSV")
    return "utf-16-le"


def _read_as(path: Path, encoding: str, rows: int | None) -> tuple[pd.DataFrame, int, str]:
    """The rows of a table as text, the number of lines above its header, and what parts columns."""
    with path.open(encoding=encoding) as file:
        head = list(islice(iter(file.readline, ""), _ABOVE_HEADER)) or [""]
        parted = [max(",;\t|", key=line.count) for line in head]
        parted = [s if s in line else " " for s, line in zip(parted, head, strict=True)]
        words = [
            [w for w in line.replace('"', "").split(None if s == " " else s) if w.strip()]
            for s, line in zip(parted, head, strict=True)
        ]
        known = (k for k, named in enumerate(words) if PLACE.issubset(guess_columns(named)))
        several = (k for k, named in enumerate(words) if len(named) > 2 and parted[k] != " ")
        above = next(known, next(several, 0))
        separator = parted[above] if len(words[above]) > 2 else ","
        file.seek(0)
        for _ in range(above):
            file.readline()
        begin = file.tell()
        if file.read(1) != "#":  # which is before the names where numpy writes them
            file.seek(begin)
        return _read_rows(file, separator, rows), above, separator


def _read_rows(
    file: TextIO, separator: str, rows: int | None, named: Literal[False] | None = False
) -> pd.DataFrame:
    """The rows of a table as text, some at a time: the parser takes many times what they hold.

    `named` is None where the first cell of each row, above which nothing stands, is its name.
    """
    begin = file.tell()
    quoted = f'{separator} "' in file.readline()
    file.seek(begin)
    with warnings.catch_warnings(record=True) as longer:
        warnings.simplefilter("always", pd.errors.ParserWarning)
        pieces = pd.read_csv(
            file, sep=r"\s+" if separator == " " else separator, dtype=str,
            keep_default_na=False, index_col=named, nrows=rows, chunksize=_ROWS_AT_ONCE,
            skipinitialspace=quoted,
        )  # fmt: skip
        with pieces:
            cells = pd.concat((piece.fillna("") for piece in pieces), ignore_index=True)
    if longer:  # than the header, be it only by blanks at their ends
        file.seek(begin)
        lines = list(islice(file, rows and rows + 1))
        for row in csv.reader(lines, delimiter=separator):
            if not any(cell.strip() for cell in row[cells.shape[1] :]):
                continue
            if named is False and all(line.startswith('"') for line in lines[1:]):
                file.seek(begin)
                return _read_rows(file, separator, rows, None)
            raise ValueError(f"a row holds {len(row)} cells, the first {cells.shape[1]} names")
    return cells


def _more_header(cells: pd.DataFrame) -> int:
    """How many of the first three rows hold words but no number."""
    head = cells.iloc[:3].apply(lambda c: c.astype(str).str.strip().str.replace(",", "."))
    has_number = head.apply(pd.to_numeric, errors="coerce").notna().any(axis=1).to_numpy()
    has_words = (~head.isin(EMPTY)).any(axis=1).to_numpy()
    return int(np.cumprod(has_words & ~has_number).sum())
