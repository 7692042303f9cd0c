"""Cells from tables of other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections, border_distance, content
from bridgetrack.errors import BridgetrackError, InputError, plural, warn
from bridgetrack.files import as_path
from bridgetrack.io.columns import (
    CELL_COLUMNS,
    MOVIE_COLUMNS,
    PLACE,
    check_columns,
    columns_of,
    guess_columns,
    plain_name,
)
from bridgetrack.io.text_table import EMPTY, TextTable, read_text_table
from bridgetrack.movie.geometry import MOST_FRAMES, Geometry, GeometryField, check_scale
from bridgetrack.movie.raw import micrometers, minutes
from bridgetrack.schema import OpenEntry, check, parse_json, read_text

TABLES = (".csv", ".tsv", ".txt")
"""Endings of the names of tables of detections."""

_MAY_BE_TIMES = ("t", "time", "position_t", "elapsed_time")
_OF_FRAMES = ("", "frame", "frames", "slice", "#")
_OF_PIXELS = ("", "px", "pxl", "pix", "pixel", "pixels", "voxel", "voxels")
"""Units without information, besides those of time and length."""
NOTHING = -1
"""Value of a cell without parent or track."""

_IDENTITIES = (
    ("id", "id", None), ("parent", "parent", NOTHING), ("track", "track", NOTHING),
    ("parent_track", "parent_track", NOTHING), ("label", "file_label", 0),
)  # fmt: skip
"""Columns of whole numbers: the role, the name here, and the value of an empty cell."""

CELLS, SIDECAR, PIECES = "detections.csv", "units.json", "pieces.csv"
"""Files of this program: cells, their units and geometry, and pieces of cells."""
_WHAT = "what the program writes beside its tables"
_UNEVEN = 0.1
"""Share of a step by which times may be off a frame."""


def read_detections_csv(
    path: Path | str, columns: Mapping[str, str | None] | None = None, **reading: Any
) -> Detections:
    """Read detections from a CSV file that has only centroids.

    Parameters
    ----------
    path
        Separated by commas, semicolons or tabs; TrackMate's four header rows are understood.
    columns
        Column by its role (one of `CELL_COLUMNS`, ``t`` for the frame) where the guess of
        `guess_columns` is wrong; None if the table has no such column.
    **reading
        ``scale``: size of a pixel along each axis; with positions in micrometres it turns them to
        pixels. ``unit``: ``"pixel"`` or ``"micrometer"``. ``frame_interval``: minutes between
        frames. ``shape``: extent of the frames in pixels. ``n_frames``: number of frames; else
        up to the last that has a cell.

    Returns
    -------
    Detections
        ``label`` is the file's label, id or track where unique in the frame, else a running
        number; ``id`` keeps the file's id or track. ``has_masks`` is False; the area is that of a
        disc or ball of the file's radius, 1 where sizes are unknown. ``border_distance`` (from the
        centroid) is there where `shape` is known.

    Raises
    ------
    InputError
        If a column is missing, a number is unreadable, times are no frames, or an id, label or
        track stands for two cells of a frame; names file and row.

    Warns
    -----
    BridgetrackWarning
        If rows were left out, or something is not as in the file.
    """
    cells = read_cells(path, columns, **reading)
    for note in cells.notes:
        warn(f"{path}: {note}")
    geometry = cells.geometry
    table = cells.table[["frame", "label", *geometry.axes, "area"]]
    named = "id" if "id" in cells.columns or "track" not in cells.columns else "track"
    table = table.assign(id=cells.table[named])
    table = table.sort_values(["frame", "label"], kind="stable", ignore_index=True)
    if geometry.shape is not None:
        table["border_distance"] = border_distance(table, geometry)
    try:
        return Detections(table, geometry, has_masks=False)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


class Sidecar(OpenEntry):
    """Content of ``units.json``."""

    geometry: GeometryField
    units: dict[str, str]  # unit per column of ``detections.csv``
    files: list[str] = Field(default_factory=list)
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
    text: TextTable  # the same rows
    geometry: Geometry
    sidecar: Sidecar | None  # the sidecar of this program; None for other files
    notes: tuple[str, ...]  # notes about rows that were left out or changed
    complete: bool  # whether no cell was left out because it has no size


def read_cells(
    path: Path | str,
    columns: Mapping[str, str | None] | None = None,
    *,
    pieces: bool = False,
    scale: Sequence[float] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
    shape: tuple[int, ...] | None = None,
    n_frames: int | None = None,
) -> CellTable:
    """Read positions, sizes and identities of the cells of a file; see `read_detections_csv`.

    With `pieces`, cells that this program wrote in pieces are these instead of one.
    """
    path = as_path(path)
    check_scale(scale)
    sidecar, text, known = _read_sidecar(path), read_text_table(path), None
    if sidecar is not None:
        known = sidecar.geometry
        text = replace(text, units={c: u for c, u in sidecar.units.items() if u != "frame"})
    if sidecar is not None and pieces and PIECES in sidecar.files and path.name == CELLS:
        text = _in_pieces(text)
    found, notes = columns_of(text.header, columns or {}), list[str]()
    for role in sorted(_holding_words(text, found).difference(columns or ())):
        notes.append(f"the column {found.pop(role)!r} holds words, so it numbers no cells")
    said = (len(scale or ()), len(shape or ()), known.ndim if known else 0)
    if "z" not in (columns or {}) and 3 not in said and _is_flat(text, found.get("z")):
        del found["z"]
    _check_place(found, text, sidecar)
    if len(text.cells) == 0:
        raise InputError(f"{text.source}: the table has a header but no rows")
    axes = ("z", "y", "x")[0 if "z" in found else 1 :]
    ndim = len(axes)
    if known is not None and known.ndim != ndim:
        raise InputError(f"{text.source}: the table has {ndim} axes, its sidecar {known.ndim}")
    if scale is not None and len(scale) != ndim:
        raise InputError(
            f"{text.source}: the table has {ndim} spatial columns, the scale {scale} has "
            f"{len(scale)} numbers"
        )
    frame, interval = _frames(text, found["frame"], n_frames, known, notes)
    placed, n_rows = _placed(text, found, notes), len(frame)
    text, frame = replace(text, cells=text.cells[placed]), frame[placed]
    movies = _several_movies(text, frame)
    notes += movies
    micro = np.array([_micrometers(text, found, a, notes) for a in axes])
    metric = np.isfinite(micro)
    if metric.any() and not metric.all() and scale is None:
        raise InputError(
            f"{text.source}: some positions are in micrometres and others in pixels; say the size "
            "of a pixel (--scale)"
        )
    default = "micrometer" if scale is not None or metric.any() else "pixel"
    own = known or Geometry(1, None, (1.0,) * ndim, default, interval)
    there = max(int(frame.max()) + 1, known.n_frames if known else 0)
    geometry = Geometry(
        n_frames=there if n_frames is None else n_frames,
        shape=shape or own.shape,
        scale=tuple(float(s) for s in scale or own.scale),
        unit=unit or (default if scale is not None else own.unit),
        frame_interval=own.frame_interval if frame_interval is None else frame_interval,
    )
    to_pixels = np.where(metric, micro / geometry.scale_array, 1.0)
    cells = pd.DataFrame({"frame": frame}, index=text.cells.index)
    for axis, factor in zip(axes, to_pixels, strict=True):
        cells[axis] = text.numbers(found[axis]) * factor
    for role, name, empty in _IDENTITIES:
        if role in found:
            cells[name] = text.integers(found[role], empty=empty)
    unscaled = scale is None and bool(metric.any())  # pixels of no known size
    _add_sizes(cells, text, found, to_pixels, geometry, unscaled, notes)
    cells = _without_copies(cells, notes)
    _check_numbers(cells, text, found, movies)
    cells = _sized(_with_ids(cells, found), notes)
    cells["label"] = _labels(cells, found, notes)
    if len(cells) < len(text.cells):
        text = replace(text, cells=text.cells.loc[cells.index])
    return CellTable(cells, found, text, geometry, sidecar, tuple(notes), len(cells) == n_rows)


_HEAD = 50
"""Lines of a table by which its content is recognised."""


def table_holds(path: Path, named: Mapping[str, str] | None = None) -> str:
    """Content of a table: ``"tracks"``, ``"cells"``, or empty if unknown.

    Some columns may be `named` by their roles.
    """
    columns = columns_of(_header(path), named or {})
    if not PLACE.issubset(columns):
        return ""
    return "tracks" if "track" in columns or "parent" in columns else "cells"


def is_text_table(path: Path) -> bool:
    """Whether a file is a table by its name; a ``.txt`` must have columns, too."""
    suffix = path.suffix.lower()
    return suffix in TABLES and (suffix != ".txt" or len(_header(path)) > 2)


def unknown_columns(path: Path) -> list[str]:
    """The columns of a table if the positions of cells are not recognised; none for other files."""
    header = _header(path) if is_text_table(path) else []
    known = PLACE.issubset(guess_columns(header))
    return [] if known or len(header) < 3 else header  # a frame and a place need three


def _header(path: Path) -> list[str]:
    """Names of the columns of a table; none for other files, reported when they are opened."""
    try:
        return read_text_table(path, rows=_HEAD).header
    except BridgetrackError:
        return []


def _in_pieces(text: TextTable) -> TextTable:
    """A table that this program wrote with the pieces of cells in place of these."""
    pieces = read_text_table(Path(text.source).with_name(PIECES)).cells
    whole = text.cells[~text.cells["id"].isin(pieces["id"])]
    pieces.index += int(text.cells.index.max())
    both = pd.concat([whole, pieces])
    return replace(text, cells=both.loc[both["id"].astype(int).sort_values(kind="stable").index])


def _read_sidecar(table: Path) -> Sidecar | None:
    """The sidecar beside a table, None if there is none or it describes other files."""
    path = table.parent / SIDECAR
    if not path.is_file():
        return None
    content = parse_json(read_text(path, _WHAT), _WHAT, str(path))
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, list) or table.name not in files:
        return None
    known: Sidecar = check(Sidecar, content, f"{path}, written beside the tables")
    return known


def _check_place(found: Mapping[str, str], text: TextTable, sidecar: Sidecar | None) -> None:
    """Raise an error about missing columns, or about a table of ours without cells."""
    path = Path(text.source)
    if sidecar is not None and not PLACE.issubset(found):
        raise InputError(f"{path}: this is the table of {path.stem}; open {CELLS} beside it")
    check_columns(found, text.header, text.source)


def _holding_words(text: TextTable, found: Mapping[str, str]) -> set[str]:
    """Roles of numbers whose columns hold text in their first rows."""
    roles = set()
    for role in {"id", "label", "parent"} & found.keys():
        column = text.cells[found[role]]
        said = column[~column.str.strip().isin(EMPTY)].iloc[:_HEAD]
        if len(said) and pd.to_numeric(said, errors="coerce").isna().all():
            roles.add(role)
    return roles


def _is_flat(text: TextTable, depth: str | None) -> bool:
    """Whether a depth is 0 throughout, as TrackMate writes it for 2D movies."""
    return depth is not None and bool(text.cells[depth].str.fullmatch(r"\s*-?0([.,]0*)?\s*").all())


def _frames(
    text: TextTable, column: str, n_frames: int | None, known: Geometry | None, notes: list[str]
) -> tuple[Index, float | None]:
    """Frame of every row, counted from 0, and minutes between frames where times say them."""
    unit, values = text.unit(column), text.numbers(column)
    fits = known is not None
    if n_frames is not None:
        fits = fits or bool(((values < n_frames) & (values % 1 == 0)).all())
    if not fits and are_times(values, plain_name(column), unit):
        what = f"{text.source}, column {column!r}"
        frame, interval = count_frames(values, unit, what)
        notes.append(f"the times in the column {column!r} were counted as frames")
        return frame, interval
    if unit not in _OF_FRAMES and minutes(1, unit) is None:
        notes.append(f"the unit {unit!r} of the column {column!r} is unknown: taken as frames")
    frame = text.integers(column)
    text.refuse(frame < 0, "the frame is negative; frames count from 0")
    text.refuse(frame >= MOST_FRAMES, f"the frame is beyond the {MOST_FRAMES:,} possible")
    if not fits and (plain_name(column) != "t" or unit) and frame.min() == 1:
        notes.append(f"the column {column!r} counts from 1: its frame 1 is frame 0 here")
        frame -= 1
    if n_frames is not None:
        text.refuse(frame >= n_frames, f"the movie has {n_frames} frames")
    return frame, _interval(text, frame, notes)


def _interval(text: TextTable, frame: Index, notes: list[str]) -> float | None:
    """Minutes between frames by a column of times beside that of frames."""
    for column in text.header:
        unit = text.unit(column)
        if plain_name(column) not in CELL_COLUMNS["frame"] or minutes(1, unit) is None:
            continue
        times = pd.to_numeric(text.cells[column].str.replace(",", "."), errors="coerce")
        moments = times.groupby(frame).median().dropna()
        steps = np.diff(moments) / np.diff(moments.index)
        step = float(steps.mean()) if len(steps) else 0.0
        if np.all(np.abs(steps - step) <= _UNEVEN * step):
            return minutes(step, unit)
        notes.append(f"the times in the column {column!r} are uneven: they give no frame interval")
    return None


def are_times(values: Array, name: str, unit: str) -> bool:
    """Whether a column holds times rather than numbers of frames."""
    if minutes(1, unit) is not None:
        return True
    if unit or (name not in _MAY_BE_TIMES and name in CELL_COLUMNS["frame"]):
        return False
    steps = np.diff(np.unique(values))
    return len(steps) > 0 and bool(steps.min() > 1 or np.any(values != np.rint(values)))


def count_frames(times: Array, unit: str, what: str) -> tuple[Index, float | None]:
    """The frame of each of some times in any order, shape (n,); the earliest is frame 0.

    With the minutes between frames, None if their unit is unknown. Raises an `InputError` that says
    `what` is wrong if the times are not evenly spaced.
    """
    moments, at = np.unique(times, return_inverse=True)
    steps = np.diff(moments)
    if len(steps) == 0:
        return np.zeros(len(times), dtype=np.int64), None
    step = float(np.median(steps[steps < 1.5 * steps.min()]))
    passed = np.rint(steps / step)
    if np.any(np.abs(steps / step - passed) > _UNEVEN) or np.mean(passed == 1) < 1 / 2:
        shown = ", ".join(f"{m:g}" for m in moments[:6])
        raise InputError(
            f"{what}: the times {shown}, ... are not evenly spaced, so that they do not tell "
            "frames; add a column frame with whole numbers that count from 0"
        )
    number = np.concatenate([[0], np.cumsum(passed)]).astype(np.int64)
    return number[at], minutes(float(np.mean(steps / passed)), unit)


def _micrometers(text: TextTable, found: Mapping[str, str], axis: str, notes: list[str]) -> float:
    """Micrometres in the unit of the positions along an axis; NaN if they are pixels."""
    unit = text.unit(found[axis])
    if not unit and "unit" in found:
        unit = str(text.cells[found["unit"]].iloc[0]).strip().lower()
    micro = micrometers(1, unit)
    if micro is None and unit not in _OF_PIXELS:
        notes.append(f"the unit {unit!r} of the column {found[axis]!r} is unknown: taken as pixels")
    return np.nan if micro is None else micro


def _add_sizes(
    cells: pd.DataFrame,
    text: TextTable,
    columns: Mapping[str, str],
    to_pixels: Array,
    geometry: Geometry,
    unscaled: bool,
    notes: list[str],
) -> None:
    """Add ``area`` in pixels, NaN if unknown and 0 where a radius is none; centre boxes."""
    ndim = len(to_pixels)
    cells["area"] = np.nan
    if "width" in columns and "height" in columns:
        width, height = (text.numbers(columns[side]) for side in ("width", "height"))
        cells["x"] += width / 2 * to_pixels[-1]
        cells["y"] += height / 2 * to_pixels[-2]
        cells["area"] = np.pi / 4 * width * height * np.prod(to_pixels)
    if "area" in columns:
        area = text.numbers(columns["area"], empty=np.nan)
        text.refuse(area <= 0, "the area is not positive")
        per_unit = _pixels(text, columns["area"], geometry, unscaled, notes)
        cells["area"] = area * (1.0 if per_unit is None else per_unit)
    elif "radius" in columns:
        radius = np.maximum(text.numbers(columns["radius"], empty=np.nan), 0)
        per_unit = _pixels(text, columns["radius"], geometry, unscaled, notes)
        cells["area"] = content(radius, ndim) * (
            np.prod(to_pixels) if per_unit is None else per_unit
        )
        if not radius.any():
            raise InputError(f"{text.source}, column {columns['radius']!r}: no radius is positive")


def _pixels(
    text: TextTable, column: str, geometry: Geometry, unscaled: bool, notes: list[str]
) -> float | None:
    """Pixels in the unit of a size; None if it has no unit, NaN if that cannot be said."""
    unit = text.unit(column).rstrip("23")
    length = micrometers(1, unit)
    if length is None and unit not in _OF_PIXELS:
        notes.append(f"the unit {unit!r} of the column {column!r} is unknown: ignored")
        return None
    if not unit:
        return None
    if unscaled if length is None else geometry.unit != "micrometer":
        notes.append(
            f"the column {column!r} is left out, since the size of a pixel is not known (--scale)"
        )
        return np.nan
    return 1.0 if length is None else float(np.prod(length / geometry.scale_array))


def _sized(cells: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """The cells that have a size, or whose size is not known: then it is the median of all."""
    sized = ~(cells["area"] <= 0)
    if not sized.all():
        notes.append(f"{int((~sized).sum())} rows without a positive radius were left out")
        cells = cells[sized]
    if unknown := int(cells["area"].isna().sum()):
        usual = 1.0 if unknown == len(cells) else float(cells["area"].median())
        cells = cells.assign(area=cells["area"].fillna(usual))
        if unknown < len(cells):
            notes.append(f"{plural(unknown, 'row')} without an area: the median of all was taken")
    return cells


def _placed(text: TextTable, found: Mapping[str, str], notes: list[str]) -> Mask:
    """Whether a row holds a position; adds a note about rows without one."""
    places = [text.cells[found[axis]].str.strip() for axis in ("y", "x")]
    placed = ~np.all([place.isin(EMPTY) for place in places], axis=0)
    if not placed.any():
        raise InputError(f"{text.source}: no row of the table has a position")
    if without := int((~placed).sum()):
        row = text.cells.index[~placed][0]
        notes.append(f"{plural(without, 'row')} without a position, such as row {row}, left out")
    return placed


def _several_movies(text: TextTable, frame: Index) -> list[str]:
    """A note where the cells of a frame come from several images."""
    for column in text.header:
        if plain_name(column) in MOVIE_COLUMNS:
            name = text.cells[column].str.strip()
            if (name.groupby(frame).nunique() > 1).any():
                shown = ", ".join(map(repr, name.unique()[:3]))
                return [
                    f"by the column {column!r} these are cells of several movies ({shown}), which "
                    "are read as one; give a table of each"
                ]
    return []


def _without_copies(cells: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """The cells without repeated rows, also if they have another id."""
    named = "id" in cells and cells["id"].is_unique and "parent" in cells
    again = cells.drop(columns="id", errors="ignore").duplicated() & (not named)
    if not again.any():
        return cells
    notes.append(
        f"{plural(int(again.sum()), 'row')} that another row repeats, such as row "
        f"{cells.index[again][0]}, left out"
    )
    return cells[~again]


def _check_numbers(
    cells: pd.DataFrame, text: TextTable, found: Mapping[str, str], movies: list[str]
) -> None:
    """Raise an error about two cells of a frame with the same number."""
    # cells that have ids or labels may share a track: in some programs it is that of their lineage
    least = {"id": 0} if "id" in cells else {"file_label": 1, "track": 0}
    names = [name for name in least if name in cells]
    numbered = [(cells[name] >= least[name]).to_numpy() for name in names]
    key = cells[["frame", *names]]

    def what(k: int) -> str:
        name = next(name for name, there in zip(names, numbered, strict=True) if there[k])
        role, number = name.removeprefix("file_"), key[name].iloc[k]
        before = cells.index[(key == key.iloc[k]).all(axis=1)][0]
        cure = (
            f"correct or remove one of the two, or say --columns {role}= (without a name) if the "
            f"column {found[role]!r} does not number cells"
        )
        said = f"the {role} {number} was used before in its frame, by row {before}, which differs; "
        return said + (movies[0] if movies else cure)

    again = key.duplicated().to_numpy() & np.any(numbered, axis=0)
    text.refuse(again, what, lines=cells.index)


def _with_ids(cells: pd.DataFrame, found: dict[str, str]) -> pd.DataFrame:
    """The cells with a unique ``id``: one that is repeated in other frames is a track."""
    if "id" in cells and not cells["id"].is_unique:
        role, name = ("label", "file_label") if "track" in cells else ("track", "track")
        found.setdefault(role, found.pop("id"))
        cells = cells.drop(columns="id") if name in cells else cells.rename(columns={"id": name})
        if role == "track":
            cells = cells.rename(columns={"parent": "parent_track"})
    if "id" not in cells:
        cells = cells.assign(id=np.arange(len(cells), dtype=np.int64))
    for role, own in (("parent", "id"), ("parent_track", "track")):
        if role in cells and own in cells:  # btrack names a track as its own parent
            none = (cells[role] < 0) | (cells[role] == cells[own])
            cells[role] = cells[role].mask(none, NOTHING)
    return cells


def _labels(cells: pd.DataFrame, columns: Mapping[str, str], notes: list[str]) -> Index:
    """An identity that is unique in its frame: the file's label, id or track, or a number."""
    for column in ("file_label", "id", "track"):
        if column not in cells or (column == "id" and "id" not in columns):
            continue
        wrong = ((cells[column] < 1) | cells.duplicated(["frame", column])).to_numpy()
        values = cells[column].to_numpy(dtype=np.int64)
        if not wrong.any():
            return values
        if column == "file_label" and values.any():
            k = int(np.argmax(wrong))
            what = f"is {values[k]}" if values[k] < 1 else f"{values[k]} is twice in its frame"
            notes.append(
                f"the cells are renumbered, since in row {cells.index[k]} the label {what}; "
                "labels count from 1, each once in a frame"
            )
    return np.asarray(cells.groupby("frame").cumcount(), dtype=np.int64) + 1
