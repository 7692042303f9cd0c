"""Text in rows and columns: its encoding, separators, and the names of columns."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.files import as_path
from bridgetrack.io.columns import PLACE, UNIT_OF, guess_columns
from bridgetrack.movie.raw import reading

EMPTY = ("", "nan", "NaN", "None", "null", "NA")
"""Text of empty cells."""
_ROWS_AT_ONCE = 1 << 16
"""Rows that are parsed at once: a parser needs many times their memory."""
_ABOVE_HEADER = 12
"""Lines in which the names of the columns are sought."""
_MOT = ["frame", "id", "bb_left", "bb_top", "bb_width", "bb_height", "conf", "x", "y", "z"]
"""Columns of MOT's tables, which have no names; in 2D the last three are -1."""


@dataclass(frozen=True)
class TextTable:
    """A table as text, before any number is read."""

    cells: pd.DataFrame  # all columns as strings; the index is the line of the file, from 1
    source: str  # name of the file, for messages
    # per column, from the last of several header rows, or from what is written beside
    units: dict[str, str] = field(default_factory=dict)
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
        values = np.fromiter(map(_number, text.to_numpy()), np.float64, len(text))
        blank = text.isin(EMPTY).to_numpy(dtype=bool) & (empty is not None)
        wrong = (np.isnan(values) if infinite else ~np.isfinite(values)) & ~blank
        self.refuse(wrong, lambda k: _no_number(text.iloc[k], column), column=column)
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
                column=column,
            )
        return text.str.replace(",", ".", regex=False)

    def integers(self, column: str, *, empty: int | None = None) -> Index:
        """A column as integers, shape (n,); raises InputError as `numbers`."""
        values = self.numbers(column, empty=empty)
        self.refuse(
            (values != np.rint(values)) | (np.abs(values) > 2**53),
            lambda k: f"{self.cells[column].iloc[k]!r} is not an integer",
            column=column,
        )
        return values.astype(np.int64)

    def refuse(
        self,
        wrong: NDArray[Any],
        what: str | Callable[[int], str],
        *,
        column: str | None = None,
        lines: pd.Index | None = None,
    ) -> None:
        """Raise an error about the first of the `wrong` rows, shape (n,), naming file and row.

        The words `what` may be a function of the row's number; `lines` are the lines of the rows in
        the file, if these are not the rows of the table.
        """
        if np.any(wrong):
            k = int(np.argmax(wrong))
            line = (self.cells.index if lines is None else lines)[k]
            where = "" if column is None else f", column {column!r}"
            said = what if isinstance(what, str) else what(k)
            raise InputError(f"{self.source}, row {line}{where}: {said}")


def _no_number(word: str, column: str) -> str:
    joined = (
        ", but the name of the column: the file holds several tables; save each by itself, or "
        "remove this row if all are of one movie"
    )
    return f"{word!r} is not a number{joined if word == column else ''}"


def _number(word: str) -> float:
    """A word as a number, NaN if it is none."""
    try:
        return np.nan if "_" in word else float(word)
    except ValueError:
        return np.nan


def read_text_table(path: Path | str, rows: int | None = None) -> TextTable:
    """Read a table whose columns are separated by commas, semicolons, tabs or blanks.

    The text is in UTF-8, UTF-16 or Windows' Western European code. Lines above the names of the
    columns (a comment, or the title of Imaris) are skipped. Up to three rows below the names that
    hold no number at all are taken for more header (TrackMate writes names, abbreviations and units
    there), and the names that R gives to rows are left out. Columns without names have those of MOT
    where they are its columns, and else the names 1, 2 and so on. A few `rows` below the first say
    what the file holds; all are read if None.

    Raises an `InputError` if the file is absent, not text, not a table or empty.
    """
    path = as_path(path)
    with reading(path, "a table"):
        encoding = _encoding(path)
        try:
            return _read_as(path, encoding, rows)
        except UnicodeDecodeError:
            if encoding != "utf-8-sig":
                raise
            return _read_as(path, "cp1252", rows)


def _encoding(path: Path) -> str:
    """Encoding of a text by its first bytes; UTF-8 by default."""
    with path.open("rb") as file:
        start = file.read(1024)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" not in start:
        return "utf-8-sig"
    if start[:4:2].count(0) or start[1:4:2] != b"\0\0":
        raise ValueError("it holds no text; if it is a spreadsheet, save it as CSV")
    return "utf-16-le"


def _read_as(path: Path, encoding: str, rows: int | None) -> TextTable:
    with path.open(encoding=encoding) as file:
        head = list(islice(file, _ABOVE_HEADER))
        above, mark, first = _layout(head)
        bare = _holds_numbers(first)
        file.seek(0)
        for _ in range(above):
            file.readline()
        begin = file.tell()
        if file.read(1) != "#":  # which is before the names where numpy writes them
            file.seek(begin)
        pieces = pd.read_csv(
            file, sep=r"\s+" if mark == " " else mark, dtype=str, keep_default_na=False,
            nrows=rows, skipinitialspace=True, skip_blank_lines=False, chunksize=_ROWS_AT_ONCE,
            header=None if bare else 0,
        )  # fmt: skip
        with pieces:
            cells = pd.concat(piece.fillna("") for piece in pieces)
    if bare:
        mot = len(first) == len(_MOT) and set(map(_number, first[-3:])) == {-1}
        cells.columns = pd.Index(_MOT if mot else range(1, len(cells.columns) + 1)).astype(str)
    names = cells.columns.str.strip()
    more = 0 if isinstance(cells.index, pd.RangeIndex) else cells.index.nlevels
    whole = cells.reset_index().fillna("") if more else cells
    whole.index = pd.RangeIndex(len(whole)) + above + (1 if bare else 2)
    whole = whole[~_blank(whole)]
    cells = whole.iloc[:, : len(names)]
    if not _blank(whole.iloc[:, len(names) :]).all():
        if more > 1 or not "".join(head[above + 1 : above + 2]).startswith('"'):
            raise ValueError(f"a row holds {whole.shape[1]} cells, the first {len(names)} names")
        cells = whole.iloc[:, 1:]  # R names the rows
    cells = cells.set_axis(names, axis=1).loc[:, ~names.duplicated()]
    units: dict[str, str] = {}
    if below := _more_header(cells):
        if below > 1:  # Mastodon writes the axes of a position there
            plain = cells.columns.str.replace(r"\.\d+$", "", regex=True)
            full = plain + " " + cells.iloc[0].str.strip().to_numpy()
            alike = plain.duplicated(keep=False) & ~full.duplicated(keep=False)
            cells.columns = cells.columns.where(~alike, full)
        units = {str(c): words.iloc[below - 1].strip().strip("()[]") for c, words in cells.items()}
        cells = cells.iloc[below:]
    return TextTable(cells, str(path), units, mark != ",")


def _layout(head: list[str]) -> tuple[int, str, list[str]]:
    """Number of lines above the names of the columns, the separator, and the names."""
    marks = [max(",;\t|", key=line.count) for line in head]
    marks = [mark if mark in line else " " for mark, line in zip(marks, head, strict=True)]
    words = [
        [w for w in line.replace('"', "").split(None if mark == " " else mark) if w.strip()]
        for mark, line in zip(marks, head, strict=True)
    ]
    known = (k for k, named in enumerate(words) if PLACE.issubset(guess_columns(named)))
    several = (k for k, named in enumerate(words) if len(named) > 2 and marks[k] != " ")
    above = next(known, next(several, 0))
    first = words[above] if words else []
    return above, marks[above] if len(first) > 2 else ",", first


def _holds_numbers(first: list[str]) -> bool:
    """Whether the first row holds numbers of cells; pandas numbers columns without names from 0."""
    numbers = [_number(word.replace(",", ".")) for word in first]
    return len(first) > 2 and not np.isnan(numbers).any() and numbers != [*range(len(first))]


def _blank(cells: pd.DataFrame) -> pd.Series[bool]:
    """Which rows are empty."""
    blank = pd.Series(True, index=cells.index)
    for _, column in cells.items():
        blank[blank] = column[blank].str.strip() == ""
    return blank


def _more_header(cells: pd.DataFrame) -> int:
    """How many of the first three rows hold words but no number."""
    head = cells.iloc[:3].apply(lambda c: c.str.strip().str.replace(",", "."))
    has_number = head.map(_number).notna().any(axis=1).to_numpy()
    has_words = (~head.isin(EMPTY)).any(axis=1).to_numpy()
    return int(np.cumprod(has_words & ~has_number).sum())
