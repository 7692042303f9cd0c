"""Masks and track table of the Cell Tracking Challenge: contiguous tracks, one parent at most."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.files import refuse_foreign, staged, writing
from bridgetrack.movie.movie import Movie
from bridgetrack.notes import plural
from bridgetrack.tracks.tracks import Tracks

Rows = NDArray[np.int64]

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
        nodes = self._order[self._starts[t] : self._starts[t + 1]]
        image, old = self._labels.channel_frame(t), self._label[nodes]
        highest = max(int(image.max(initial=0)), int(old.max(initial=0)))
        table = np.zeros(highest + 1, dtype=np.int64)
        table[old] = self._number[nodes]
        present = np.zeros(len(table), dtype=bool)
        present[image.ravel()] = True
        if not present[old].all():
            raise InputError(
                f"{self._labels.source}, frame {t}: the cell {old[~present[old]][0]} is in the "
                "tracks but not in the segmentation; give the segmentation that was tracked"
            )
        return np.asarray(table[image])
