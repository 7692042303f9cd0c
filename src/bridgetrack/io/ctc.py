"""Masks and track tables of the Cell Tracking Challenge (CTC), read and written."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from skimage.util import map_array

from bridgetrack.arrays import Index, Mask
from bridgetrack.detections.labels import foreground
from bridgetrack.errors import InputError, plural
from bridgetrack.files import as_path, writing
from bridgetrack.io.text_table import TextTable
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.movie.opening import open_labels
from bridgetrack.movie.raw import reading
from bridgetrack.movie.writers import label_writer
from bridgetrack.tracks.tracks import Tracks, assemble_tracks

Table = Index
"""A track table: rows of label, begin, end and parent (``L B E P``), shape (n, 4)."""

_MASK = re.compile(r"^((?:man_track|mask)_?)(\d+)(\.tiff?)$", re.IGNORECASE)
_TABLES = ("man_track.txt", "res_track.txt")
_SUBFOLDERS = ("FULL", "TRA")


@dataclass(frozen=True)
class CtcTruth:
    """Tracks with the masks they were read from."""

    tracks: Tracks  # one node per frame and label; ``track_id`` and ``label`` are the file's label
    labels: Movie  # the masks (whole cells where there are any)
    # the official small markers, where they stand beside whole-cell masks
    markers: Movie | None = None


def read_ctc(
    folder: Path | str,
    *,
    scale: tuple[float, ...] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
) -> CtcTruth:
    """Read a ground truth or result of the Cell Tracking Challenge.

    A track with several children divides; an only child continues its parent by a ``move`` or a
    ``skip`` to a new track. A track that is not drawn in some frame between its begin and end gets
    a ``skip``.

    Parameters
    ----------
    folder
        A folder with masks and ``man_track.txt`` or ``res_track.txt``; an ``NN_GT`` folder; a
        folder of results with a ``ctc`` folder; or a data set with one ``NN_GT`` folder.
    scale, unit, frame_interval
        Geometry; CTC files have none. The unit is ``"micrometer"`` where a scale is given.

    Raises
    ------
    InputError
        If files are missing, unreadable or contradict each other; names file and row.
    """
    place, *more = _folders(as_path(folder))
    known = {"scale": scale, "unit": unit, "frame_interval": frame_interval}
    path = find_table(place)
    assert path is not None
    table = read_track_table(path)
    labels = _open_masks(place, known)
    markers = _open_masks(more[0], known) if more else None
    if markers is not None and markers.array.shape != labels.array.shape:
        raise InputError(
            f"{more[0]}: the markers have shape {markers.array.shape}, the masks in "
            f"{place.name} have {labels.array.shape}"
        )
    nodes = nodes_of(labels)
    _check_presence(nodes, table, labels, path)
    edges = followers(nodes, table)
    nodes["track_id"] = nodes["label"]
    nodes.insert(0, "id", np.arange(len(nodes), dtype=np.int64))
    tracks = assemble_tracks(nodes, edges, labels.geometry, source=str(path))
    return CtcTruth(tracks, labels, markers)


def is_ctc(folder: Path) -> bool:
    """Whether a folder holds a truth or result of the Cell Tracking Challenge."""
    try:
        return bool(_folders(folder))
    except InputError:
        return False


def _folders(folder: Path) -> list[Path]:
    """The folder of the masks of one sequence, and that of its small markers where there is one."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    if find_table(folder) is not None:
        return [folder]
    inside = [folder / name for name in _SUBFOLDERS if find_table(folder / name) is not None]
    if inside:
        return inside
    if find_table(folder / "ctc") is not None:
        return [folder / "ctc"]
    truths = sorted(p for p in folder.glob("*_GT") if p.is_dir())
    if not truths:
        raise InputError(
            f"{folder}: found neither man_track.txt nor res_track.txt, and no folder FULL, TRA, "
            "ctc or NN_GT; give the folder of a Cell Tracking Challenge truth or result"
        )
    if len(truths) > 1:
        names = ", ".join(p.name for p in truths)
        raise InputError(f"{folder}: there are several sequences; give one of {names}")
    return _folders(truths[0])


def find_table(folder: Path) -> Path | None:
    """The track table in a folder, None if there is none."""
    return next((folder / name for name in _TABLES if (folder / name).is_file()), None)


def read_track_table(path: Path) -> Table:
    """Rows ``L B E P`` of a track table, shape (n, 4); further columns are ignored."""
    with reading(path, "a track table"):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    rows = {k: re.split(r"[\s,;]+", line.strip())[:4] for k, line in enumerate(lines, start=1)}
    rows = {k: [*words, *[""] * (4 - len(words))] for k, words in rows.items() if any(words)}
    names = ["label", "begin", "end", "parent"]
    text = TextTable(pd.DataFrame.from_dict(rows, "index", dtype=str, columns=names), str(path))
    label, begin, end, parent = (text.integers(name) for name in text.header)
    parent[(parent < 0) | (parent == label)] = 0  # btrack names a track as its own parent
    text.refuse(label < 1, "the label must be 1 or more")
    text.refuse((begin < 0) | (end < begin), "the track ends before it begins")
    text.refuse(pd.Series(label).duplicated().to_numpy(), "the label was used before")
    at = pd.Index(label).get_indexer(pd.Index(parent))
    text.refuse((parent != 0) & (at < 0), "there is no track of its parent")
    late = (parent != 0) & (end[at] >= begin)
    text.refuse(late, "its parent is still there when the track begins")
    return np.column_stack([label, begin, end, parent])


def nodes_of(labels: Movie) -> pd.DataFrame:
    """Frame, label, centroid (pixels) and area of every label, sorted by frame and label."""

    def measured(t: int) -> pd.DataFrame:
        cells = foreground(label_frame(labels, t))
        centroid = dict(zip(labels.geometry.axes, cells.centroid().T, strict=True))
        return pd.DataFrame({"frame": t, "label": cells.labels, **centroid, "area": cells.area()})

    with ThreadPoolExecutor(2) as pool:
        return pd.concat(pool.map(measured, range(labels.n_frames)), ignore_index=True)


def _open_masks(folder: Path, known: dict[str, Any]) -> Movie:
    """The label movie of a folder with one mask per frame, none of which may be missing."""
    found = [m for p in folder.iterdir() if (m := _MASK.match(p.name)) is not None]
    if not found:
        raise InputError(f"{folder}: there are no masks (man_track000.tif or mask000.tif, ...)")
    for expected, number in enumerate(sorted(int(m[2]) for m in found)):
        if number < expected:
            raise InputError(f"{folder}: frame {number} is there twice")
        if number > expected:
            raise InputError(f"{folder}: the mask of frame {expected} is missing")
    pattern = folder / f"{found[0][1]}*{found[0][3]}"
    return replace(open_labels(pattern, **known), source=str(folder))


def _check_presence(nodes: pd.DataFrame, table: Table, labels: Movie, path: Path) -> None:
    """Refuse labels that are drawn where the table has none, and tracks that cannot be drawn."""
    if len(nodes) and not len(table):
        raise InputError(f"{path}: the table is empty, but the masks are not")
    frame, label = (nodes[c].to_numpy(dtype=np.int64) for c in ("frame", "label"))
    number, begin, end, _ = table.T
    last = labels.n_frames - 1
    row = pd.Index(number).get_indexer(pd.Index(label))

    def refuse(wrong: Mask, what: Callable[[int], str]) -> None:
        if wrong.any():
            raise InputError(f"{path}: {what(int(wrong.argmax()))}")

    refuse(
        end > last,
        lambda k: (
            f"the track {number[k]} ends in frame {end[k]}, but the last mask is that of frame "
            f"{last}; correct the table, or add the masks that are missing"
        ),
    )
    refuse(row < 0, lambda k: f"the label {label[k]} of frame {frame[k]} is not in it")
    refuse(
        (frame < begin[row]) | (frame > end[row]),
        lambda k: (
            f"the label {label[k]} has a mask in frame {frame[k]}, but the table has it in the "
            f"frames {begin[row[k]]} to {end[row[k]]}"
        ),
    )
    absent = ~np.isin(number, label)
    refuse(absent, lambda k: f"the track {number[k]} has no mask")


def followers(nodes: pd.DataFrame, table: Table) -> pd.DataFrame:
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


TABLE = "res_track.txt"
_SURE = ("divide", "move", "skip")


@dataclass(frozen=True)
class CtcForm:
    """A track table and the label of every node in it."""

    table: Index  # rows ``L B E P``, sorted by label, shape (n, 4)
    label: Index  # label of every node of the tracks, shape (nodes,)
    notes: tuple[str, ...]  # notes about data that the format cannot hold


def ctc_form(tracks: Tracks) -> CtcForm:
    """Cut tracks at gaps and give each at most one parent that ended before.

    The parts of a track with gaps follow each other as only children. A track born by a merge
    or a split has a parent only where that makes it the only child, because two children mean a
    division in this format. The first part of a track keeps its ``track_id`` as label where that
    fits into 16 bits.
    """
    nodes = tracks.nodes[["track_id", "frame"]].reset_index(drop=True)
    order = nodes.sort_values(["track_id", "frame"], kind="stable")
    step = order.diff()
    run = ((step["track_id"] != 0) | (step["frame"] > 1)).cumsum().sort_index().to_numpy() - 1
    runs = nodes.groupby(run).agg(
        track=("track_id", "first"), begin=("frame", "min"), end=("frame", "max")
    )
    label = _labels(runs)
    parent, notes = _parents(runs, tracks.links)
    up = np.where(parent >= 0, label[parent], 0) if len(runs) else parent
    table = np.column_stack([label, runs["begin"], runs["end"], up]).astype(np.int64)
    if n_cuts := len(runs) - runs["track"].nunique():
        notes.insert(
            0,
            f"{plural(n_cuts, 'gap')} in tracks, which the format does not allow: the part after a "
            "gap is a separate track with the part before as its parent",
        )
    return CtcForm(table[np.argsort(label)], label[run], tuple(notes))


def _labels(runs: pd.DataFrame) -> Index:
    """Label of every run: its track where it is the first of that, else a new one."""
    label = runs["track"].to_numpy(dtype=np.int64).copy()
    later = runs["track"].duplicated().to_numpy(dtype=bool)
    label[later] = label.max(initial=0) + 1 + np.arange(later.sum())
    if label.max(initial=0) > np.iinfo(np.uint16).max or label.min(initial=1) < 1:
        return np.arange(1, len(label) + 1, dtype=np.int64)
    return label


def _parents(runs: pd.DataFrame, links: pd.DataFrame) -> tuple[Index, list[str]]:
    """Row of every run's parent, -1 where it has none."""
    again = runs["track"].duplicated().to_numpy(dtype=bool)
    parent = np.where(again, np.arange(len(runs)) - 1, -1)
    runs = runs.astype(np.int64).rename_axis("run").reset_index()
    children = runs[~again].rename(columns={"run": "child", "track": "track_id"})
    links = links.astype({"track_id": np.int64, "parent_id": np.int64})
    links = links.merge(children[["track_id", "child", "begin"]]).reset_index()
    # the mother is the last run of the parent track that ends before the child begins
    links = pd.merge_asof(
        links.sort_values("begin"), runs[["run", "track", "end"]].sort_values("end"),
        left_on="begin", right_on="end", left_by="parent_id", right_by="track",
        allow_exact_matches=False,
    ).sort_values("index")  # fmt: skip
    child, mother = links["child"].to_numpy(), links["run"].fillna(-1).to_numpy(dtype=np.int64)
    sure, known = links["event"].isin(_SURE).to_numpy(), mother >= 0
    parent[child[sure & known]] = mother[sure & known]
    n_children = np.bincount(parent[parent >= 0], minlength=len(runs))
    unsure = np.flatnonzero(~sure & known)
    wanted = np.bincount(mother[unsure], minlength=len(runs))
    for k in unsure.tolist():
        if parent[child[k]] < 0 and n_children[mother[k]] == 0 and wanted[mother[k]] == 1:
            parent[child[k]] = mother[k]
            n_children[mother[k]] += 1
    kept = known & (parent[child] == mother)
    notes = []
    for kind, why in (
        ("merge", "the format allows one parent per cell"),
        ("split", "in the format two daughters mean a division"),
    ):
        if lost := int(((links["event"] == kind) & ~kept).sum()):
            notes.append(f"{plural(lost, f'{kind} link')} left out: {why}")
    if n_late := int((sure & ~known).sum()):
        notes.append(
            f"{plural(n_late, 'parent')} left out that still exist when the daughter appears"
        )
    return parent, notes


def write_ctc(tracks: Tracks, labels: Movie, folder: Path | str) -> tuple[str, ...]:
    """Write ``maskNNN.tif`` and ``res_track.txt`` into a new folder.

    The masks are the segmentation that the tracks' labels refer to, renamed to tracks, frame by
    frame; pieces of one cell get one label, and detections that belong to no track are erased.
    Gives what the format cannot hold (see `ctc_form`). Raises an `InputError` if a node is not
    drawn in the segmentation, and an `OutputError` if the files cannot be written.
    """
    form = ctc_form(tracks)
    notes = list(form.notes)
    wide = form.label.max(initial=0) > np.iinfo(np.uint16).max
    if wide:
        notes.append("more than 65,535 tracks: the masks have 32 bits, the format asks for 16")
    frame, label = (tracks.nodes[c].to_numpy(dtype=np.int64) for c in ("frame", "label"))
    folder = as_path(folder)
    with label_writer(folder, labels.geometry, dtype="uint32" if wide else "uint16") as write:
        for t in range(labels.n_frames):
            here = frame == t
            write(_renamed(labels, t, label[here], form.label[here]))
    text = "".join(f"{a} {b} {c} {d}\n" for a, b, c, d in form.table.tolist())
    with writing(folder):
        (folder / TABLE).write_text(text, encoding="ascii")
    return tuple(notes)


def _renamed(labels: Movie, t: int, old: Index, new: Index) -> Index:
    """A frame of the segmentation with other labels, 0 for cells that are no nodes."""
    image = labels.channel_frame(t)
    absent = old[~np.isin(old, image)]
    if len(absent):
        raise InputError(
            f"{labels.source}, frame {t}: the cell {absent[0]} is in the tracks but not in the "
            "segmentation; give the segmentation that was tracked"
        )
    return np.asarray(map_array(image.astype(np.int64), old, new))
