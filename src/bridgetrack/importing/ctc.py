"""Where the masks and the track table of a Cell Tracking Challenge folder are.

The track table of the Cell Tracking Challenge: rows of label, begin, end and parent.

Label movies from one TIFF per frame, and where their labels are.

Ground truth and results in the format of the Cell Tracking Challenge (CTC).
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks, assemble_tracks

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


def read_track_table(path: Path) -> NDArray[np.int64]:
    """Rows ``L B E P`` of a track table, shape (n, 4).

    Raises
    ------
    InputError
        Where a row is not four integers, a label repeats or is not positive, a track ends before
        it begins, or a parent is unknown or still there when its child begins.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a text file ({error})") from error
    rows: list[list[int]] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        try:
            row = [int(w) for w in words]
        except ValueError:
            row = []
        if len(row) != 4:
            raise InputError(
                f"{path}, row {number}: expected four integers 'label begin end parent', "
                f"found {line.strip()[:60]!r}"
            )
        rows.append(row)
        numbers.append(number)
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 4)
    _check_table(table, numbers, path)
    return table


def _check_table(table: NDArray[np.int64], numbers: list[int], path: Path) -> None:
    label, begin, end, parent = table.T
    _complain(label < 1, numbers, path, "the label must be 1 or more")
    _complain((begin < 0) | (end < begin), numbers, path, "the track ends before it begins")
    order = np.argsort(label, kind="stable")
    repeats = np.zeros(len(label), dtype=bool)
    repeats[order[1:]] = np.diff(label[order]) == 0
    _complain(repeats, numbers, path, "the label was used before")
    at = np.searchsorted(label[order], parent)
    at = order[np.minimum(at, max(len(order) - 1, 0))] if len(order) else at
    has_parent = parent != 0
    _complain(has_parent & (label[at] != parent), numbers, path, "there is no track of its parent")
    late = has_parent & (end[at] >= begin)
    _complain(late, numbers, path, "its parent is still there when the track begins")


def _complain(wrong: NDArray[np.bool_], numbers: list[int], path: Path, what: str) -> None:
    if np.any(wrong):
        raise InputError(f"{path}, row {numbers[int(np.argmax(wrong))]}: {what}")


def only_children(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the tracks whose parent has no other child."""
    parents, counts = np.unique(table[table[:, 3] != 0, 3], return_counts=True)
    return table[np.isin(table[:, 3], parents[counts == 1])]


def open_masks(
    paths: tuple[Path, ...],
    scale: tuple[float, ...] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
) -> Movie:
    """A label movie from one TIFF per frame, loaded frame by frame.

    Raises
    ------
    InputError
        Where a file is unreadable, has another shape than the first, or holds no labels.
    """
    first = read_mask(paths[0])
    known = scale is not None
    geometry = Geometry(
        n_frames=len(paths),
        shape=first.shape,
        scale=tuple(scale) if scale is not None else (1.0,) * first.ndim,
        unit=unit if unit is not None else ("micrometer" if known else "pixel"),
        frame_interval=frame_interval,
    )

    def load(block_info: Any = None) -> NDArray[Any]:
        t = block_info[None]["chunk-location"][0]
        image = read_mask(paths[t])
        if image.shape != first.shape:
            raise InputError(
                f"{paths[t]}: the frame has shape {image.shape}, the first has {first.shape}"
            )
        return image[None, None].astype(first.dtype, copy=False)

    chunks = ((1,) * len(paths), (1,), *((n,) for n in first.shape))
    array = da.map_blocks(load, chunks=chunks, dtype=first.dtype, meta=first[:0])
    return Movie(array, geometry, ("labels",), str(paths[0].parent))


def read_mask(path: Path) -> NDArray[Any]:
    """One label image, shape ([z,] y, x).

    Raises
    ------
    InputError
        Where it cannot be read or its values are not integers.
    """
    try:
        image = np.asarray(tifffile.imread(path))
    except Exception as error:
        raise InputError(f"{path}: cannot be read as a TIFF ({error})") from error
    if image.ndim not in (2, 3):
        raise InputError(f"{path}: expected a 2D or 3D label image, found shape {image.shape}")
    if image.dtype.kind not in "iu":
        raise InputError(f"{path}: labels must be integers, found {image.dtype}")
    return image


def nodes_of(labels: Movie, paths: tuple[Path, ...] | None = None) -> pd.DataFrame:
    """Frame, label, centroid (pixels) and area of every label, sorted by frame and label."""

    def measure(t: int) -> pd.DataFrame:
        image = read_mask(paths[t]) if paths is not None else labels.channel_frame(t)
        return _measure(image, t, labels.geometry)

    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(measure, range(labels.n_frames)))
    return pd.concat(parts, ignore_index=True)


def _measure(image: NDArray[Any], t: int, geometry: Geometry) -> pd.DataFrame:
    if image.shape != geometry.shape:
        raise InputError(
            f"frame {t}: the masks have shape {image.shape}, the first frame has {geometry.shape}"
        )
    where = np.nonzero(image)
    values = image[where]
    if values.size and values.min() < 0:
        raise InputError(f"frame {t}: the label {values.min()} is negative")
    labels, index = compact(values)
    area = np.bincount(index, minlength=len(labels))
    columns: dict[str, NDArray[Any]] = {
        "frame": np.full(len(labels), t, dtype=np.int64),
        "label": labels,
    }
    for axis, coordinate in zip(geometry.axes, where, strict=True):
        columns[axis] = np.bincount(index, weights=coordinate, minlength=len(labels)) / area
    columns["area"] = area.astype(np.float64)
    return pd.DataFrame(columns)


def compact(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct non-negative values, sorted, and the index of each value among them."""
    if values.size == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    top = int(values.max())
    if top > 2 * values.size + 100_000:
        labels, index = np.unique(values, return_inverse=True)
        return labels.astype(np.int64), index.astype(np.int64)
    present = np.zeros(top + 1, dtype=bool)
    present[values] = True
    rank = np.cumsum(present, dtype=np.int64) - 1
    return np.flatnonzero(present).astype(np.int64), rank[values]


@dataclass(frozen=True)
class CtcTruth:
    """Tracks with the masks they were read from.

    Parameters
    ----------
    tracks
        One node per frame and label; ``track_id`` and ``label`` are the file's label.
    labels
        The masks (whole cells where there are any).
    markers
        The official small markers, where they stand beside whole-cell masks.
    table
        The track table as it is in the file, shape (n, 4): label, begin, end, parent.
    """

    tracks: Tracks
    labels: Movie
    markers: Movie | None
    table: NDArray[np.int64]


def read_ctc(
    folder: Path | str,
    *,
    sequence: str | None = None,
    scale: tuple[float, ...] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
    join_single_children: bool = False,
) -> CtcTruth:
    """Read a CTC ground truth or result.

    A track with several children divides; an only child continues its parent by a ``move`` or a
    ``skip`` to a new track, or as the same track with `join_single_children`. A track that is
    not drawn in some frame between its begin and end gets a ``skip``.

    Parameters
    ----------
    folder
        See `find_ctc`.
    sequence
        Two digits, where a data set has several sequences.
    scale, unit, frame_interval
        Geometry; CTC files have none. The unit is ``"micrometer"`` where a scale is given.
    join_single_children
        Whether an only child takes its parent's track id. This undoes the cuts that `write_ctc`
        makes at gaps.

    Raises
    ------
    InputError
        Where files are missing, unreadable or contradict each other; names file and row.
    """
    layout = find_ctc(folder, sequence)
    table = read_track_table(layout.table)
    labels = open_masks(layout.masks, scale, unit, frame_interval)
    markers = _markers(layout, labels)
    nodes = nodes_of(labels, layout.masks)
    _check_presence(nodes, table, layout)
    edges = _edges(nodes, table)
    notes = _notes(nodes, edges, table)
    nodes["track_id"] = nodes["label"]
    if join_single_children:
        nodes["track_id"] = _joined(table, nodes["label"].to_numpy(dtype=np.int64))
    nodes.insert(0, "id", np.arange(len(nodes), dtype=np.int64))
    tracks = assemble_tracks(nodes, edges, labels.geometry, notes=notes, source=str(layout.table))
    return CtcTruth(tracks, labels, markers, table)


def _markers(layout: CtcLayout, labels: Movie) -> Movie | None:
    if layout.markers is None:
        return None
    geometry = labels.geometry
    movie = open_masks(layout.markers.masks, geometry.scale, geometry.unit, geometry.frame_interval)
    if movie.array.shape != labels.array.shape:
        raise InputError(
            f"{layout.markers.folder}: the markers have shape {movie.array.shape}, the masks in "
            f"{layout.folder.name} have {labels.array.shape}"
        )
    return movie


def _check_presence(nodes: pd.DataFrame, table: NDArray[np.int64], layout: CtcLayout) -> None:
    order = np.argsort(table[:, 0])
    label = nodes["label"].to_numpy(dtype=np.int64)
    frame = nodes["frame"].to_numpy(dtype=np.int64)
    if len(table) == 0 and len(nodes):
        raise InputError(f"{layout.table}: the table is empty, but the masks are not")
    at = np.searchsorted(table[order, 0], label)
    rows = order[np.minimum(at, max(len(order) - 1, 0))] if len(order) else at
    unknown = table[rows, 0] != label
    if np.any(unknown):
        k = int(np.argmax(unknown))
        raise InputError(
            f"{layout.masks[frame[k]]}: the label {label[k]} is not in {layout.table.name}"
        )
    outside = (frame < table[rows, 1]) | (frame > table[rows, 2])
    if np.any(outside):
        k = int(np.argmax(outside))
        _, begin, end, _ = table[rows[k]]
        raise InputError(
            f"{layout.masks[frame[k]]}: the label {label[k]} is drawn here, but "
            f"{layout.table.name} has it in the frames {begin} to {end}"
        )
    absent = ~np.isin(table[:, 0], label)
    if np.any(absent):
        raise InputError(
            f"{layout.table}: the track {table[absent, 0][0]} is not drawn in any mask"
        )


def _edges(nodes: pd.DataFrame, table: NDArray[np.int64]) -> pd.DataFrame:
    label = nodes["label"].to_numpy(dtype=np.int64)
    order = np.lexsort((nodes["frame"].to_numpy(), label))
    same = label[order[1:]] == label[order[:-1]]
    source, target = order[:-1][same], order[1:][same]
    last = np.r_[~same, True][: len(order)]
    first = np.r_[True, ~same][: len(order)]
    child = table[table[:, 3] != 0]
    known = label[order[last]]
    mothers = order[last][np.searchsorted(known, child[:, 3])]
    daughters = order[first][np.searchsorted(known, child[:, 0])]
    edges = pd.DataFrame(
        {
            "source": np.concatenate([source, mothers]).astype(np.int64),
            "target": np.concatenate([target, daughters]).astype(np.int64),
        }
    )
    return edges.sort_values(["source", "target"], ignore_index=True)


def _joined(table: NDArray[np.int64], label: NDArray[np.int64]) -> NDArray[np.int64]:
    owner = {int(lab): int(lab) for lab in table[:, 0]}
    children = only_children(table)
    for child, _, _, parent in children[np.argsort(children[:, 1])].tolist():
        owner[child] = owner[parent]
    known = np.asarray(sorted(owner), dtype=np.int64)
    owners = np.asarray([owner[k] for k in known.tolist()], dtype=np.int64)
    return owners[np.searchsorted(known, label)]


def _notes(nodes: pd.DataFrame, edges: pd.DataFrame, table: NDArray[np.int64]) -> tuple[str, ...]:
    notes = []
    only = len(only_children(table))
    if only:
        notes.append(f"{only} tracks are the only child of their parent: they continue it")
    frame = nodes["frame"].to_numpy(dtype=np.int64)
    gap = frame[edges["target"]] - frame[edges["source"]] > 1
    if np.any(gap):
        notes.append(f"{int(gap.sum())} edges bridge frames in which the cell is not drawn")
    drawn = nodes.groupby("label")["frame"].agg(["min", "max"])
    rows = table[np.argsort(table[:, 0])]
    short = (drawn["min"].to_numpy() != rows[:, 1]) | (drawn["max"].to_numpy() != rows[:, 2])
    if np.any(short):
        notes.append(f"{int(short.sum())} tracks are drawn in fewer frames than the table says")
    _, counts = np.unique(table[table[:, 3] != 0, 3], return_counts=True)
    if np.any(counts > 2):
        notes.append(f"{int((counts > 2).sum())} cells divide into three or more")
    return tuple(notes)
