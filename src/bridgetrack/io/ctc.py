"""Masks and track tables of the Cell Tracking Challenge (CTC), read and written."""

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

from bridgetrack.detections.labels import foreground
from bridgetrack.errors import InputError
from bridgetrack.files import check_readable, refuse_foreign, staged, writing
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.tiff import page_head
from bridgetrack.notes import plural
from bridgetrack.tracks.tracks import Tracks, assemble_tracks

Rows = NDArray[np.int64]
Table = NDArray[np.int64]
"""A track table: rows of label, begin, end and parent (``L B E P``), shape (n, 4)."""

_MASK = re.compile(r"^(?:man_track|mask)_?(\d+)\.tiff?$", re.IGNORECASE)
_TABLES = ("man_track.txt", "res_track.txt")
_SUBFOLDERS = ("FULL", "TRA")


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
    table: Table


@dataclass(frozen=True)
class CtcLayout:
    """The files of one sequence."""

    folder: Path  # where the masks are
    masks: tuple[Path, ...]  # one file per frame, in order
    table: Path  # the track table, rows ``L B E P``
    # the small official markers of the same truth, where they stand beside whole-cell masks
    markers: CtcLayout | None = None


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
    labels = _open_masks(layout.masks, scale, unit, frame_interval)
    markers = _markers(layout, labels)
    nodes = nodes_of(labels, layout.masks)
    _check_presence(nodes, table, layout)
    edges = _edges(nodes, table)
    notes = _notes(nodes, edges, table)
    nodes["track_id"] = _joined(table, nodes["label"]) if join_single_children else nodes["label"]
    nodes.insert(0, "id", np.arange(len(nodes), dtype=np.int64))
    tracks = assemble_tracks(nodes, edges, labels.geometry, notes=notes, source=str(layout.table))
    return CtcTruth(tracks, labels, markers, table)


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
    if (table := _table(folder)) is not None:
        return _layout(folder, table)
    inside = [(folder / n, t) for n in _SUBFOLDERS if (t := _table(folder / n)) is not None]
    if inside:
        return _layout(*inside[0], markers=_layout(*inside[1]) if len(inside) == 2 else None)
    if (table := _table(folder / "ctc")) is not None:
        return _layout(folder / "ctc", table)
    return find_ctc(_sequence_folder(folder, sequence))


def read_track_table(path: Path) -> Table:
    """Rows ``L B E P`` of a track table, shape (n, 4); a row that cannot be is refused."""
    check_readable(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a text file ({error})") from error
    rows = {number: line.split() for number, line in enumerate(lines, start=1) if line.split()}
    for number, words in rows.items():
        if len(words) != 4 or not all(re.fullmatch(r"[+-]?\d{1,18}", w) for w in words):
            raise InputError(
                f"{path}, row {number}: expected four integers 'label begin end parent' of at "
                f"most 18 digits, found {lines[number - 1].strip()[:60]!r}"
            )
    table = np.asarray([[int(w) for w in words] for words in rows.values()], dtype=np.int64)
    table = table.reshape(-1, 4)
    _check_table(table, list(rows), path)
    return table


def nodes_of(labels: Movie, masks: tuple[Path, ...] = ()) -> pd.DataFrame:
    """Frame, label, centroid (pixels) and area of every label, sorted by frame and label.

    The frames are read from the files of `masks` where they are given.
    """

    def measured(t: int) -> pd.DataFrame:
        image = _read_mask(masks[t]) if masks else labels.channel_frame(t)
        if image.shape != labels.geometry.shape:
            raise InputError(
                f"frame {t}: the masks have shape {image.shape}, the first frame has "
                f"{labels.geometry.shape}"
            )
        if image.min(initial=0) < 0:
            raise InputError(f"frame {t}: the label {image.min()} is negative")
        cells = foreground(image)
        centroid = dict(zip(labels.geometry.axes, cells.centroid().T, strict=True))
        return pd.DataFrame({"frame": t, "label": cells.labels, **centroid, "area": cells.area()})

    with ThreadPoolExecutor(2) as pool:
        return pd.concat(pool.map(measured, range(labels.n_frames)), ignore_index=True)


def _table(folder: Path) -> Path | None:
    return next((folder / name for name in _TABLES if (folder / name).is_file()), None)


def _layout(folder: Path, table: Path, markers: CtcLayout | None = None) -> CtcLayout:
    numbered = sorted(
        (int(m.group(1)), p) for p in folder.iterdir() if (m := _MASK.match(p.name)) is not None
    )
    for expected, (number, path) in enumerate(numbered):
        if number < expected:
            raise InputError(f"{path}: frame {number} is there twice")
        if number > expected:
            raise InputError(f"{folder}: the mask of frame {expected} is missing")
    if not numbered:
        raise InputError(f"{folder}: there are no masks (man_track000.tif or mask000.tif, ...)")
    return CtcLayout(folder, tuple(path for _, path in numbered), table, markers)


def _sequence_folder(folder: Path, sequence: str | None) -> Path:
    """The folder of the truth of one sequence of a data set."""
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
    if not any(_table(p) for p in (truths[0], *(truths[0] / n for n in _SUBFOLDERS))):
        raise InputError(f"{truths[0]}: there is no man_track.txt in it, nor in FULL or TRA")
    return truths[0]


def _check_table(table: Table, lines: list[int], path: Path) -> None:
    label, begin, end, parent = table.T

    def refuse(wrong: NDArray[np.bool_], what: str) -> None:
        if np.any(wrong):
            raise InputError(f"{path}, row {lines[int(np.argmax(wrong))]}: {what}")

    refuse(label < 1, "the label must be 1 or more")
    refuse((begin < 0) | (end < begin), "the track ends before it begins")
    refuse(pd.Series(label).duplicated().to_numpy(), "the label was used before")
    at = pd.Index(label).get_indexer(pd.Index(parent))
    refuse((parent != 0) & (at < 0), "there is no track of its parent")
    late = (parent != 0) & (end[at] >= begin)
    refuse(late, "its parent is still there when the track begins")


def _open_masks(
    paths: tuple[Path, ...],
    scale: tuple[float, ...] | None,
    unit: str | None,
    frame_interval: float | None,
) -> Movie:
    """A label movie from one TIFF per frame, loaded frame by frame."""
    first = _read_mask(paths[0])
    dtype = np.result_type(*(page_head(path)[1] for path in paths))
    geometry = Geometry(
        n_frames=len(paths),
        shape=first.shape,
        scale=tuple(scale) if scale is not None else (1.0,) * first.ndim,
        unit=unit or ("pixel" if scale is None else "micrometer"),
        frame_interval=frame_interval,
    )

    def load(block_info: Any = None) -> NDArray[Any]:
        path = paths[block_info[None]["chunk-location"][0]]
        image = _read_mask(path)
        if image.shape != first.shape:
            raise InputError(
                f"{path}: the frame has shape {image.shape}, the first has {first.shape}"
            )
        return image[None, None].astype(dtype, copy=False)

    chunks = ((1,) * len(paths), (1,), *((n,) for n in first.shape))
    array = da.map_blocks(
        load, chunks=chunks, dtype=dtype, meta=np.empty((0,) * (2 + first.ndim), dtype)
    )
    return Movie(array, geometry, ("labels",), str(paths[0].parent))


def _read_mask(path: Path) -> NDArray[Any]:
    """One label image, shape ([z,] y, x)."""
    check_readable(path)
    try:
        image = np.asarray(tifffile.imread(path))
    except Exception as error:
        raise InputError(f"{path}: cannot be read as a TIFF ({error})") from error
    if image.ndim not in (2, 3):
        raise InputError(f"{path}: expected a 2D or 3D label image, found shape {image.shape}")
    if image.dtype.kind not in "iu":
        raise InputError(f"{path}: labels must be integers, found {image.dtype}")
    return image


def _markers(layout: CtcLayout, labels: Movie) -> Movie | None:
    if layout.markers is None:
        return None
    known = labels.geometry
    movie = _open_masks(layout.markers.masks, known.scale, known.unit, known.frame_interval)
    if movie.array.shape != labels.array.shape:
        raise InputError(
            f"{layout.markers.folder}: the markers have shape {movie.array.shape}, the masks in "
            f"{layout.folder.name} have {labels.array.shape}"
        )
    return movie


def _check_presence(nodes: pd.DataFrame, table: Table, layout: CtcLayout) -> None:
    """Refuse labels that are drawn where the table has none, and tracks that cannot be drawn."""
    label, frame = (nodes[c].to_numpy(dtype=np.int64) for c in ("label", "frame"))
    late = table[:, 2] >= len(layout.masks)
    if np.any(late):
        number, _, end, _ = table[late][0]
        raise InputError(
            f"{layout.table}: the track {number} ends in frame {end}, but the last mask is that of "
            f"frame {len(layout.masks) - 1}; correct the table, or add the masks that are missing"
        )
    if len(table) == 0 and len(nodes):
        raise InputError(f"{layout.table}: the table is empty, but the masks are not")
    at = pd.Index(table[:, 0]).get_indexer(pd.Index(label))
    name = layout.table.name
    if np.any(at < 0):
        k = int(np.argmax(at < 0))
        raise InputError(f"{layout.masks[frame[k]]}: the label {label[k]} is not in {name}")
    outside = (frame < table[at, 1]) | (frame > table[at, 2])
    if np.any(outside):
        k = int(np.argmax(outside))
        _, begin, end, _ = table[at[k]]
        raise InputError(
            f"{layout.masks[frame[k]]}: the label {label[k]} is drawn here, but {name} has it in "
            f"the frames {begin} to {end}"
        )
    absent = ~np.isin(table[:, 0], label)
    if np.any(absent):
        raise InputError(
            f"{layout.table}: the track {table[absent, 0][0]} is not drawn in any mask"
        )


def _edges(nodes: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Edges along every label, and from the last sight of a parent to the first of its child."""
    rows = nodes.sort_values(["label", "frame"])["label"]
    same = (rows == rows.shift()).to_numpy()
    row = rows.index.to_numpy(dtype=np.int64)
    by_label = pd.Series(row, index=rows.to_numpy()).groupby(level=0)
    child = table[table[:, 3] != 0]
    source = [row[:-1][same[1:]], by_label.last().reindex(child[:, 3]).to_numpy()]
    target = [row[same], by_label.first().reindex(child[:, 0]).to_numpy()]
    edges = {"source": np.concatenate(source), "target": np.concatenate(target)}
    return pd.DataFrame(edges).astype(np.int64).sort_values(["source", "target"], ignore_index=True)


def _only_children(table: Table) -> Table:
    """Rows of the tracks whose parent has no other child."""
    parents, counts = np.unique(table[table[:, 3] != 0, 3], return_counts=True)
    return table[np.isin(table[:, 3], parents[counts == 1])]


def _joined(table: Table, label: pd.Series[Any]) -> NDArray[np.int64]:
    """Track of every node, where an only child continues the track of its parent."""
    owner = {k: k for k in table[:, 0].tolist()}
    children = _only_children(table)
    for child, _, _, parent in children[np.argsort(children[:, 1])].tolist():
        owner[child] = owner[parent]
    return label.map(owner).to_numpy(dtype=np.int64)


def _notes(nodes: pd.DataFrame, edges: pd.DataFrame, table: Table) -> tuple[str, ...]:
    notes = []
    only = len(_only_children(table))
    if only:
        notes.append(f"{only} tracks are the only child of their parent: they continue it")
    frame = nodes["frame"].to_numpy(dtype=np.int64)
    gaps = int((frame[edges["target"]] - frame[edges["source"]] > 1).sum())
    if gaps:
        notes.append(f"{gaps} edges bridge frames in which the cell is not drawn")
    drawn = nodes.groupby("label")["frame"].agg(["min", "max"]).to_numpy()
    short = int((drawn != table[np.argsort(table[:, 0]), 1:3]).any(axis=1).sum())
    if short:
        notes.append(f"{short} tracks are drawn in fewer frames than the table says")
    _, counts = np.unique(table[table[:, 3] != 0, 3], return_counts=True)
    if np.any(counts > 2):
        notes.append(f"{int((counts > 2).sum())} cells divide into three or more")
    return tuple(notes)


TABLE = "res_track.txt"
_OURS = re.compile(r"^(mask\d+\.tif|res_track\.txt)$")
_SURE = ("divide", "move", "skip")


@dataclass(frozen=True)
class CtcForm:
    """A track table and the label of every node in it."""

    table: Rows  # rows ``L B E P``, sorted by label, shape (n, 4)
    label: Rows  # label of every node of the tracks, shape (nodes,)
    notes: tuple[str, ...]  # what the format cannot hold


def ctc_form(tracks: Tracks) -> CtcForm:
    """Cut tracks at gaps and give each at most one parent that ended before.

    The parts of a track with gaps follow each other as only children. A track born by a merge
    or a split has a parent only where that makes it the only child, because two children mean a
    division in this format. The first part of a track keeps its ``track_id`` as label where that
    fits into 16 bits.
    """
    nodes = tracks.nodes
    track = nodes["track_id"].to_numpy(dtype=np.int64)
    frame = nodes["frame"].to_numpy(dtype=np.int64)
    run, runs = _runs(track, frame)
    label = _labels(runs)
    parent, notes = _parents(runs, tracks.links)
    up = np.where(parent >= 0, label[parent], 0) if len(runs) else parent
    begin, end = runs["begin"].to_numpy(), runs["end"].to_numpy()
    table = np.column_stack([label, begin, end, up]).astype(np.int64).reshape(-1, 4)
    n_cuts = len(runs) - runs["track"].nunique()
    if n_cuts:
        notes.insert(
            0, f"{plural(n_cuts, 'gap')} inside tracks: the part after a gap is an only child"
        )
    return CtcForm(table[np.argsort(label)], label[run] if len(runs) else run, tuple(notes))


def _runs(track: Rows, frame: Rows) -> tuple[Rows, pd.DataFrame]:
    """Index of the run of consecutive frames of every node, and the runs."""
    order = np.lexsort((frame, track))
    t, f = track[order], frame[order]
    new = np.r_[True, (t[1:] != t[:-1]) | (f[1:] > f[:-1] + 1)][: len(order)]
    run = np.empty(len(order), dtype=np.int64)
    run[order] = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    stops = np.r_[starts[1:], len(order)][: len(starts)] - 1
    table = pd.DataFrame({"track": t[starts], "begin": f[starts], "end": f[stops]})
    return run, table


def _labels(runs: pd.DataFrame) -> Rows:
    track = runs["track"].to_numpy(dtype=np.int64)
    later = runs["track"].duplicated().to_numpy(dtype=bool)
    top = int(track.max(initial=0))
    label = track.copy()
    label[later] = top + 1 + np.arange(int(later.sum()))
    if len(label) and (int(label.max()) > np.iinfo(np.uint16).max or track.min() < 1):
        return np.arange(1, len(label) + 1, dtype=np.int64)
    return label


def _parents(runs: pd.DataFrame, links: pd.DataFrame) -> tuple[Rows, list[str]]:
    """Row of every run's parent, -1 where it has none."""
    track, begin = runs["track"].to_numpy(dtype=np.int64), runs["begin"].to_numpy(dtype=np.int64)
    end = runs["end"].to_numpy(dtype=np.int64)
    parent = np.full(len(runs), -1, dtype=np.int64)
    again = np.flatnonzero(runs["track"].duplicated().to_numpy(dtype=bool))
    parent[again] = again - 1
    child = np.searchsorted(track, links["track_id"].to_numpy(dtype=np.int64), side="left")
    mother = _last_before(track, end, links["parent_id"].to_numpy(dtype=np.int64), begin[child])
    event = links["event"].to_numpy(dtype=object)
    sure = np.isin(event.astype(str), _SURE)
    good = sure & (mother >= 0)
    parent[child[good]] = mother[good]
    n_late = int((sure & (mother < 0)).sum())
    n_children = np.bincount(parent[parent >= 0], minlength=len(runs))
    unsure = np.flatnonzero(~sure & (mother >= 0))
    wanted = np.bincount(mother[unsure], minlength=len(runs))
    for k in unsure.tolist():
        if parent[child[k]] < 0 and n_children[mother[k]] == 0 and wanted[mother[k]] == 1:
            parent[child[k]] = mother[k]
            n_children[mother[k]] += 1
    kept = mother >= 0
    kept[kept] = parent[child[kept]] == mother[kept]
    notes = []
    for kind in ("merge", "split"):
        lost = int(((event == kind) & ~kept).sum())
        if lost:
            notes.append(
                f"{plural(lost, 'link')} of tracks to their parents by a {kind}: a track has one "
                "parent, and two children would mean a division"
            )
    if n_late:
        notes.append(
            f"{plural(n_late, 'link')} to parents that are still there when the child begins"
        )
    return parent, notes


def _last_before(track: Rows, end: Rows, wanted: Rows, begin: Rows) -> Rows:
    """Last run of the wanted track that ends before `begin`, -1 where there is none."""
    span = int(end.max(initial=0)) + 2
    key = track * span + end
    at = np.searchsorted(key, wanted * span + begin, side="left") - 1
    at_safe = np.maximum(at, 0)
    there = (at >= 0) & (track[at_safe] == wanted) if len(track) else at >= 0
    return np.where(there, at, -1)


def write_ctc(tracks: Tracks, labels: Movie, folder: Path | str) -> tuple[str, ...]:
    """Write ``maskNNN.tif`` and ``res_track.txt``.

    The masks are the segmentation renamed to tracks, frame by frame; pieces of one cell get one
    label, and detections that belong to no track are erased.

    Parameters
    ----------
    tracks
        The tracks; ``label`` of their nodes refers to `labels`.
    labels
        The segmentation.
    folder
        Where to. A folder that holds nothing but an earlier result is replaced.

    Returns
    -------
    tuple of str
        What the format cannot hold (see `ctc_form`).

    Raises
    ------
    InputError
        Where a node is not drawn in the segmentation.
    OutputError
        Where the files cannot be written; nothing is left behind then.
    """
    form = ctc_form(tracks)
    notes = list(form.notes)
    dtype: type[np.unsignedinteger[Any]] = np.uint16
    if form.label.max(initial=0) > np.iinfo(np.uint16).max:
        dtype = np.uint32
        notes.append("more than 65,535 tracks: the masks have 32 bits, the format asks for 16")
    renamed = Renamed(tracks, labels, form.label)
    digits = max(3, len(str(labels.n_frames - 1)))
    folder = Path(folder)
    with writing(folder):
        refuse_foreign(folder, lambda name: _OURS.match(name) is not None)
    with writing(folder), staged(folder) as staging:
        staging.mkdir()
        for t in range(labels.n_frames):
            tifffile.imwrite(
                staging / f"mask{t:0{digits}d}.tif",
                renamed.frame(t).astype(dtype),
                compression="zlib",
                photometric="minisblack",
            )
        text = "".join(f"{a} {b} {c} {d}\n" for a, b, c, d in form.table.tolist())
        (staging / TABLE).write_text(text, encoding="ascii")
    return tuple(notes)


class Renamed:
    """The segmentation with other labels: each node's `number`, and 0 for what is no node."""

    def __init__(self, tracks: Tracks, labels: Movie, number: Rows) -> None:
        frame = tracks.nodes["frame"].to_numpy(dtype=np.int64)
        self._label = tracks.nodes["label"].to_numpy(dtype=np.int64)
        self._labels, self._number = labels, number
        self._order = np.argsort(frame, kind="stable")
        self._starts = np.searchsorted(frame[self._order], np.arange(labels.n_frames + 1))

    def frame(self, t: int) -> NDArray[np.int64]:
        """A frame, shape ([Z,] Y, X).

        Raises
        ------
        InputError
            Where a node is not drawn in the segmentation.
        """
        from skimage.util import map_array

        nodes = self._order[self._starts[t] : self._starts[t + 1]]
        image, old = self._labels.channel_frame(t), self._label[nodes]
        absent = old[~np.isin(old, image)]
        if len(absent):
            raise InputError(
                f"{self._labels.source}, frame {t}: the cell {absent[0]} is in the "
                "tracks but not in the segmentation; give the segmentation that was tracked"
            )
        return np.asarray(map_array(image.astype(np.int64), old, self._number[nodes]))
