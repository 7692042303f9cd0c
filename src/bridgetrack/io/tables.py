"""Tables of text that programs write: what their columns mean, and the cells that they hold."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from bridgetrack.detections.table import Detections, border_distance, content
from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.files import check_readable
from bridgetrack.movie.geometry import MOST_FRAMES, Geometry, GeometryField
from bridgetrack.schema import OpenEntry, check, parse_json, read_text

TABLES = (".csv", ".tsv", ".txt")
"""How names of tables of detections end."""

CELL_COLUMNS: dict[str, tuple[str, ...]] = {
    "frame": ("frame", "t", "timepoint", "time_point", "frame_number", "time", "position_t"),
    "z": ("z", "position_z", "pos_z", "centroid_z", "center_z", "z_px"),
    "y": ("y", "position_y", "pos_y", "centroid_y", "center_y", "y_px"),
    "x": ("x", "position_x", "pos_x", "centroid_x", "center_x", "x_px"),
    "id": ("id", "node_id", "node", "spot_id", "detection_id"),
    "parent": ("parent_id", "parent", "parent_node", "parent_node_id", "parent_spot_id"),
    "track": ("track_id", "track", "trackid", "tracklet_id", "particle"),
    "parent_track": ("parent_track_id", "parenttrackid", "parent_track"),
    "label": ("label", "labelimageid", "label_id", "segmentation_id", "seg_id", "mask_id"),
    "area": ("area", "volume", "size_in_pixels_0", "size_in_pixels", "size"),
    "radius": ("radius", "r", "estimated_radius"),
}
"""Names of the columns of a table of cells, by what they hold; the first that is there counts."""

LINK_COLUMNS: dict[str, tuple[str, ...]] = {
    "source": ("source", "source_id", "spot_source_id", "parent", "from"),
    "target": ("target", "target_id", "spot_target_id", "child", "to"),
}
"""Those of a table of links between cells, which it names by their ids."""

SCORE_COLUMNS: dict[str, tuple[str, ...]] = {
    "frame": ("frame", "t", "source_frame", "frame_source", "time"),
    "source": ("source", "source_label", "label_source", "source_id", "from"),
    "target": ("target", "target_label", "label_target", "target_id", "to"),
    "score": ("score", "link_score", "probability", "weight", "edge_weight", "p"),
}
"""Those of a table of scores of links, which names cells by their frames and labels."""

_NUMBERED = (("centroid", "zyx"), ("center_of_the_object", "xyz"), ("object_center", "xyz"))
_SHOWN = 20
"""Columns that a message names."""
_EMPTY = ("", "nan", "NaN", "None", "null", "NA")
NOTHING = -1
"""In a column of parents or tracks, where a cell has none."""

SIDECAR = "units.json"
_WHAT = "what the program writes beside its tables"
_MICRO = ("micron", "microns", "um", "µm", "μm", "micrometer", "micrometers", "micrometre")
_ROWS_AT_ONCE = 1 << 16
"""Rows that are parsed at once: a parser takes many times what they hold."""


def check_columns(columns: Mapping[str, str], header: Sequence[str], source: str) -> None:
    """Complain about columns that are named but absent, or needed but not named."""
    shown = ", ".join(repr(str(name)) for name in header[:_SHOWN])
    more = f" and {len(header) - _SHOWN} more" if len(header) > _SHOWN else ""
    listed = f"the file has the columns {shown}{more}"
    for role, column in columns.items():
        if column not in header:
            raise InputError(f"{source}: there is no column {column!r} (meant as {role}); {listed}")
    missing = [role for role in ("frame", "y", "x") if role not in columns]
    if missing:
        known = "; ".join(f"{role}: {', '.join(CELL_COLUMNS[role][:4])}" for role in missing)
        raise InputError(
            f"{source}: found no column for {', '.join(missing)}; {listed}. Rename the column "
            f"in the first line of the file (known names are {known}; in upper or lower "
            "case), or, in Python, say which it is: "
            f"columns={{'{missing[0]}': '...'}}"
        )


def guess_columns(header: Sequence[str]) -> dict[str, str]:
    """Guess what the columns of a table mean from their names: a column by its role.

    Knows this package's own files, TrackMate, ilastik, Mastodon-like and scikit-image tables,
    in any case and with units in brackets. ``parent`` is taken for a parent *track* in a table
    that has tracks but no ids.
    """
    plain, found = plain_names(header), known_columns(header, CELL_COLUMNS)
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
    return {role: column for role, column in found.items() if column is not None}


def known_columns(
    header: Sequence[str], names: Mapping[str, Sequence[str]]
) -> dict[str, str | None]:
    """The column of every role, by its possible names; None where there is none."""
    plain = plain_names(header)
    return {
        role: next((plain[name] for name in known if name in plain), None)
        for role, known in names.items()
    }


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
        text = self.cells[column].str.strip()
        blank = text.isin(_EMPTY).to_numpy(dtype=bool)
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

    def integers(self, column: str, *, empty: int | None = None) -> NDArray[np.int64]:
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
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a text file ({error})") from error
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a table ({error})") from error
    names = cells.columns.str.strip()
    if names.is_unique:
        cells.columns = names
    cells.index = pd.RangeIndex(2, 2 + len(cells))
    units = {}
    if _more_header(cells):
        units = {c: str(cells[c].iloc[2]).strip().strip("()") for c in cells.columns}
        cells = cells.iloc[3:]
    return TextTable(cells, units, str(path))


def _read_rows(file: TextIO, separator: str, rows: int | None) -> pd.DataFrame:
    """The rows of a table as text, some at a time: the parser takes many times what they hold."""
    with warnings.catch_warnings(record=True) as longer:
        warnings.simplefilter("always", pd.errors.ParserWarning)
        pieces = pd.read_csv(
            file, sep=separator, dtype=str, keep_default_na=False, index_col=False,
            nrows=rows, chunksize=_ROWS_AT_ONCE,
        )  # fmt: skip
        with pieces:
            cells = pd.concat((piece.fillna("") for piece in pieces), ignore_index=True)
    if longer:  # than the header, be it only by blanks at their ends
        file.seek(0)
        for row in csv.reader(islice(file, rows and rows + 1), delimiter=separator):
            if any(cell.strip() for cell in row[cells.shape[1] :]):
                raise ValueError(f"a row holds {len(row)} cells, the first {cells.shape[1]} names")
    return cells


def _more_header(cells: pd.DataFrame) -> bool:
    """Whether the first three rows hold no number, and the first two some words."""
    head = cells.iloc[:3]
    has_number = head.apply(pd.to_numeric, errors="coerce").notna().any(axis=None)
    words = (head.apply(lambda c: c.astype(str).str.strip()) != "").any(axis=1).to_numpy()
    return len(head) == 3 and not has_number and bool(words[:2].all())


def read_detections_csv(
    path: Path | str,
    columns: Mapping[str, str | None] | None = None,
    *,
    scale: tuple[float, ...] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
    shape: tuple[int, ...] | None = None,
    n_frames: int | None = None,
    positions: str | None = None,
) -> Detections:
    """Read detections from a CSV file that has only centroids.

    Parameters
    ----------
    path
        Parted by commas, semicolons or tabs; TrackMate's four header rows are understood.
    columns
        Column by its role (one of `CELL_COLUMNS`) where the guess of `guess_columns` is wrong;
        None where the table has no such column.
    scale
        Size of a pixel along each axis; with positions in micrometres it turns them to pixels.
    unit
        ``"pixel"`` or ``"micrometer"``.
    frame_interval
        Minutes between frames.
    shape
        Extent of the frames in pixels.
    n_frames
        Number of frames; else up to the last that has a cell.
    positions
        ``"pixel"`` or ``"micrometer"``: what the positions are given in; guessed from the units
        in the file where None.

    Returns
    -------
    Detections
        ``label`` is the file's label, id or track where unique in the frame, else a running
        number; ``id`` keeps the file's id. ``has_masks`` is False; the area is that of a disc or
        ball of the file's radius, 1 where sizes are unknown. ``border_distance`` (from the
        centroid) is there where `shape` is known.

    Raises
    ------
    InputError
        Where a column is missing, a number is unreadable or an id repeats; names file and row.

    Warns
    -----
    BridgetrackWarning
        Where rows were left out.
    """
    cells = read_cells(
        path, columns, scale=scale, unit=unit, frame_interval=frame_interval, shape=shape,
        n_frames=n_frames, positions=positions,
    )  # fmt: skip
    for note in cells.notes:
        warnings.warn(f"{path}: {note}", BridgetrackWarning, stacklevel=2)
    geometry = cells.geometry
    table = cells.table[["frame", "label", *geometry.axes, "area", "id"]]
    table = table.sort_values(["frame", "label"], kind="stable", ignore_index=True)
    if geometry.shape is not None:
        table["border_distance"] = border_distance(table, geometry)
    try:
        return Detections(table, geometry, has_masks=False)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


class Sidecar(OpenEntry):
    """What ``units.json`` says."""

    geometry: GeometryField
    units: dict[str, str]  # unit per column of ``detections.csv``
    # of the columns that are not among the standard ones
    dtypes: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class CellTable:
    """The cells of a file, in the order of its rows."""

    # ``id``, ``frame``, ``label``, position in pixels, ``area`` (pixels or voxels; 1 where
    # unknown); ``parent``, ``track``, ``parent_track`` where there are such columns, with -1
    # for none. The index is the line of the file.
    table: pd.DataFrame
    columns: dict[str, str]  # column by its role
    text: TextTable
    geometry: Geometry
    sidecar: Sidecar | None  # what the package's own sidecar says; None for files of others
    notes: tuple[str, ...]  # what was left out, or is not as in the file

    @property
    def complete(self) -> bool:
        """Whether no row of the file was left out."""
        return len(self.table) == len(self.text.cells)


def read_cells(
    path: Path | str,
    columns: Mapping[str, str | None] | None,
    *,
    scale: tuple[float, ...] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
    shape: tuple[int, ...] | None = None,
    n_frames: int | None = None,
    positions: str | None = None,
) -> CellTable:
    """Read positions, sizes and identities of the cells of a file; see `read_detections_csv`."""
    text = read_text_table(path)
    sidecar = _read_sidecar(Path(path))
    known = None if sidecar is None else sidecar.geometry
    found = _columns(text, columns or {})
    said = (len(scale or ()), len(shape or ()), known.ndim if known else 0)
    if "z" not in (columns or {}) and 3 not in said and _is_flat(text, found.get("z")):
        del found["z"]
    check_columns(found, text.header, text.source)
    if len(text.cells) == 0:
        raise InputError(f"{text.source}: the table has a header but no rows")
    frame = text.integers(found["frame"])
    text.refuse(frame < 0, "the frame is negative; frames count from 0")
    text.refuse(frame >= MOST_FRAMES, f"the frame is beyond the {MOST_FRAMES:,} possible")
    if n_frames is not None:
        text.refuse(frame >= n_frames, f"the movie has {n_frames} frames")
    there = max(int(frame.max()) + 1, known.n_frames if known else 0)
    ndim = 3 if "z" in found else 2
    if known is not None and known.ndim != ndim:
        raise InputError(f"{text.source}: the table has {ndim} axes, its sidecar {known.ndim}")
    if scale is not None and len(scale) != ndim:
        raise InputError(
            f"{text.source}: the table has {ndim} spatial columns, the scale {scale} has "
            f"{len(scale)} numbers"
        )
    micro = _in_micrometers(text, found["x"], positions, sidecar)
    default = "micrometer" if scale is not None or micro else "pixel"
    own = known or Geometry(1, None, (1.0,) * ndim, default)
    geometry = Geometry(
        n_frames=there if n_frames is None else n_frames,
        shape=shape or own.shape,
        scale=tuple(float(s) for s in scale or own.scale),
        unit=unit or (default if scale is not None else own.unit),
        frame_interval=own.frame_interval if frame_interval is None else frame_interval,
    )
    to_pixels = 1 / geometry.scale_array if micro else np.ones(ndim)
    cells: dict[str, NDArray[Any]] = {"frame": frame}
    for axis, factor in zip(geometry.axes, to_pixels, strict=True):
        cells[axis] = text.numbers(found[axis]) * factor
    _identities(cells, text, found)
    keep, notes = _sizes(cells, text, found, to_pixels)
    cells["label"], numbered = _labels(cells, text, found)
    table = pd.DataFrame(cells, index=text.cells.index)[keep]
    return CellTable(table, found, text, geometry, sidecar, (*notes, *numbered))


def _read_sidecar(table: Path) -> Sidecar | None:
    """The sidecar beside a table, None where there is none or it describes other files."""
    path = table.parent / SIDECAR
    if not path.is_file():
        return None
    content = parse_json(read_text(path, _WHAT), _WHAT, str(path))
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, list) or table.name not in files:
        return None
    known: Sidecar = check(Sidecar, content, f"{path}, written beside the tables")
    return known


def _columns(text: TextTable, corrections: Mapping[str, str | None]) -> dict[str, str]:
    """The columns as guessed, with some roles set by hand; None for a role means no column."""
    for role in corrections:
        if role not in CELL_COLUMNS:
            known = list(CELL_COLUMNS)
            raise InputError(f"there is no role {role!r} for a column; known are {known}")
    columns = {**guess_columns(text.header), **corrections}
    return {role: column for role, column in columns.items() if column is not None}


def _is_flat(text: TextTable, depth: str | None) -> bool:
    """Whether a depth is 0 throughout, as TrackMate writes it for 2D movies."""
    return depth is not None and bool(text.cells[depth].str.fullmatch(r"\s*-?0(\.0*)?\s*").all())


def _in_micrometers(
    text: TextTable, column: str, positions: str | None, sidecar: Sidecar | None
) -> bool:
    """Whether positions are micrometres, from what the files say of the column of x."""
    if positions not in (None, "pixel", "micrometer"):
        raise InputError(f"positions are given in 'pixel' or 'micrometer', not in {positions!r}")
    if positions is not None:
        return positions == "micrometer"
    if sidecar is not None:
        return sidecar.units.get(column) == "um"
    bracket = column[column.find("[") + 1 :].rstrip("]") if "[" in column else ""
    return text.units.get(column, bracket).lower() in _MICRO


def _identities(
    cells: dict[str, NDArray[Any]], text: TextTable, columns: Mapping[str, str]
) -> None:
    """Add ``id`` and what the file names of parents, tracks and labels."""
    if "id" not in columns:
        cells["id"] = np.arange(len(text.cells), dtype=np.int64)
    else:
        ids = text.integers(columns["id"])
        again = pd.Series(ids).duplicated().to_numpy(dtype=bool)
        text.refuse(again, lambda k: f"the id {ids[k]} was used before; ids must be unique")
        cells["id"] = ids
    for role in ("parent", "track", "parent_track"):
        if role in columns:
            cells[role] = np.maximum(text.integers(columns[role], empty=NOTHING), NOTHING)
    if "label" in columns:
        cells["file_label"] = text.integers(columns["label"], empty=0)


def _sizes(
    cells: dict[str, NDArray[Any]],
    text: TextTable,
    columns: Mapping[str, str],
    to_pixels: NDArray[np.float64],
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Add ``area``; which rows have a size, and what to say of the others."""
    keep = np.ones(len(text.cells), dtype=bool)
    if "area" in columns:
        cells["area"] = text.numbers(columns["area"], empty=1.0)
        text.refuse(cells["area"] <= 0, "the area is not positive")
        return keep, ()
    if "radius" not in columns:
        cells["area"] = np.ones(len(text.cells))
        return keep, ()
    radius = text.numbers(columns["radius"], empty=0.0)
    keep = radius > 0
    cells["area"] = content(radius, len(to_pixels)) * np.prod(to_pixels)
    dropped = int((~keep).sum())
    if dropped == len(keep):
        raise InputError(f"{text.source}, column {columns['radius']!r}: no radius is positive")
    return keep, (f"{dropped} rows without a positive radius were left out",) if dropped else ()


def _labels(
    cells: dict[str, NDArray[Any]], text: TextTable, columns: Mapping[str, str]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """An identity that is unique in its frame: the file's label, id or track, or a number.

    With what to say where the file has labels that are none.
    """
    said: tuple[str, ...] = ()
    for column in ("file_label", "id", "track"):
        if column in cells and (column != "id" or "id" in columns):
            values = cells[column]
            wrong = values < 1
            both = pd.DataFrame({"frame": cells["frame"], "value": values})
            wrong |= both.duplicated().to_numpy(dtype=bool)
            if not wrong.any():
                return values, said
            if column == "file_label" and values.any():
                k = int(np.argmax(wrong))
                what = f"is {values[k]}" if values[k] < 1 else f"{values[k]} is twice in its frame"
                row = text.cells.index[k]
                said = (
                    f"the cells are numbered anew, since in row {row} the label {what}; "
                    "labels count from 1, each once in a frame",
                )
    frame = cells["frame"]
    return np.asarray(pd.Series(frame).groupby(frame).cumcount(), dtype=np.int64) + 1, said
