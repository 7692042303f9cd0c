"""Tables of text: separators, extra header rows and numbers, with the row in every message."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError

_EMPTY = ("", "nan", "NaN", "None", "null", "NA")


@dataclass(frozen=True)
class TextTable:
    """A table as text, before any number is read.

    Parameters
    ----------
    cells
        All columns as strings.
    units
        Text in brackets in the last of several header rows (TrackMate), per column.
    first_line
        Line of the file that holds the first row of `cells`, from 1.
    source
        Name of the file, for messages.
    """

    cells: pd.DataFrame
    units: dict[str, str]
    first_line: int
    source: str

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return [str(c) for c in self.cells.columns]

    def numbers(
        self, column: str, *, empty: float | None = None, infinite: bool = False
    ) -> NDArray[np.float64]:
        """A column as numbers, shape (n,).

        Parameters
        ----------
        column
            Its name.
        empty
            What stands for an empty cell; None where empty cells are wrong.
        infinite
            Whether ``inf`` is a number too.

        Raises
        ------
        InputError
            Where a cell is not a finite number; names row and column.
        """
        text = self.cells[column].str.strip()
        blank = text.isin(_EMPTY).to_numpy(dtype=bool)
        values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, copy=True)
        wrong = (np.isnan(values) if infinite else ~np.isfinite(values)) & ~blank
        if empty is None:
            wrong |= blank
        if np.any(wrong):
            k = int(np.argmax(wrong))
            raise InputError(
                f"{self.source}, row {self.first_line + k}, column {column!r}: "
                f"{text.iloc[k]!r} is not a number"
            )
        if empty is not None:
            values[blank] = empty
        return values

    def integers(self, column: str, *, empty: int | None = None) -> NDArray[np.int64]:
        """A column as integers, shape (n,); raises InputError as `numbers`."""
        values = self.numbers(column, empty=None if empty is None else float(empty))
        wrong = (values != np.rint(values)) | (np.abs(values) > 2**53)
        if np.any(wrong):
            k = int(np.argmax(wrong))
            raise InputError(
                f"{self.source}, row {self.first_line + k}, column {column!r}: "
                f"{self.cells[column].iloc[k]!r} is not an integer"
            )
        return values.astype(np.int64)


def read_text_table(path: Path | str) -> TextTable:
    """Read a table whose columns are parted by commas, semicolons or tabs.

    Up to three rows below the header that hold no number at all are taken for more header
    (TrackMate writes names, abbreviations and units there).

    Raises
    ------
    InputError
        Where the file is absent, not text, not a table or empty.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a text file ({error})") from error
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    try:
        cells = pd.read_csv(
            io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, index_col=False
        )
    except (ValueError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path}: cannot be read as a table ({error})") from error
    cells.columns = pd.Index([str(c).strip() for c in cells.columns])
    extra = _extra_header(cells)
    units = {}
    if extra:
        last = cells.iloc[extra - 1].astype(str)
        units = {c: str(last[c]).strip().strip("()") for c in cells.columns}
    cells = cells.iloc[extra:].reset_index(drop=True).fillna("")
    return TextTable(cells, units, first_line=2 + extra, source=str(path))


def _extra_header(cells: pd.DataFrame) -> int:
    head = cells.iloc[:3]
    has_number = head.apply(pd.to_numeric, errors="coerce").notna().any(axis=1).to_numpy()
    words = (head.apply(lambda c: c.astype(str).str.strip()) != "").any(axis=1).to_numpy()
    return 3 if len(head) == 3 and not has_number.any() and words[:2].all() else 0
