"""Ground truth and results in the format of the Cell Tracking Challenge (CTC)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.importing.ctc_layout import CtcLayout, find_ctc
from bridgetrack.importing.ctc_table import only_children, read_track_table
from bridgetrack.importing.masks import nodes_of, open_masks
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.assemble import assemble_tracks
from bridgetrack.tracks.tracks import Tracks


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
