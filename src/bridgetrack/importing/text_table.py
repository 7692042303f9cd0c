"""Which column of a table means what: guessed from its name, and correctable.

Tables of text: separators, extra header rows and numbers, with the row in every message.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError

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
_SHOWN = 20
_NUMBERED = (
    (("centroid_0", "centroid_1", "centroid_2"), ("z", "y", "x")),
    (("centroid_0", "centroid_1"), ("y", "x")),
    (("center_of_the_object_0", "center_of_the_object_1", "center_of_the_object_2"), "xyz"),
    (("center_of_the_object_0", "center_of_the_object_1"), "xy"),
    (("object_center_0", "object_center_1", "object_center_2"), "xyz"),
    (("object_center_0", "object_center_1"), "xy"),
)


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
        """The same with some roles set by hand.

        Raises
        ------
        InputError
            Where a role is unknown.
        """
        known = [f.name for f in fields(self)]
        for role in corrections:
            if role not in known:
                raise InputError(f"there is no role {role!r} for a column; known are {known}")
        return replace(self, **dict(corrections))


def plain_name(name: str) -> str:
    """A column's name in lower case without a unit in brackets, words joined by ``_``."""
    name = re.sub(r"[\[(].*?[\])]", "", name.strip().lstrip("\ufeff"))
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def guess_columns(header: Sequence[str]) -> Columns:
    """Guess what the columns of a table mean from their names.

    Knows this package's own files, TrackMate, ilastik, Mastodon-like and scikit-image tables,
    in any case and with units in brackets. ``parent`` is taken for a parent *track* in a table
    that has tracks but no ids.
    """
    plain: dict[str, str] = {}
    for column in header:
        plain.setdefault(plain_name(column), column)
    found: dict[str, str | None] = {}
    for role, names in _NAMES.items():
        found[role] = next((plain[name] for name in names if name in plain), None)
    for names, roles in _NUMBERED:
        if found["x"] is None and all(name in plain for name in names):
            found |= {role: plain[name] for role, name in zip(roles, names, strict=True)}
    if "position_x" in plain and found["label"] is not None:
        # TrackMate's LABEL is a free text such as "ID4711".
        found["label"] = None
    if found["id"] is None and found["track"] is not None and found["parent"] is not None:
        found["parent_track"] = found["parent_track"] or found["parent"]
        found["parent"] = None
    return Columns(**found)


def check_columns(columns: Columns, header: Sequence[str], source: str) -> None:
    """Complain about columns that are named but absent, or needed but not named.

    Raises
    ------
    InputError
        As above; the message lists the header.
    """
    for role, column in columns.used().items():
        if column not in header:
            raise InputError(
                f"{source}: there is no column {column!r} (meant as {role}); "
                f"the file has {_listed(header)}"
            )
    missing = [role for role in ("frame", "y", "x") if getattr(columns, role) is None]
    if missing:
        known = "; ".join(f"{role}: {', '.join(_NAMES[role][:4])}" for role in missing)
        raise InputError(
            f"{source}: found no column for {', '.join(missing)}; the file has "
            f"{_listed(header)}. Rename the column in the first line of the file (known names are "
            f"{known}; in upper or lower case), or, in Python, say which it is: "
            f"columns={{'{missing[0]}': '...'}}"
        )


def _listed(header: Sequence[str]) -> str:
    """The first columns of a table for messages."""
    shown = ", ".join(repr(str(name)) for name in header[:_SHOWN])
    more = len(header) - _SHOWN
    return f"the columns {shown}" + (f" and {more} more" if more > 0 else "")


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
