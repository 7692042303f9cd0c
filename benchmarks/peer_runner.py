"""Run one other tracker on cells of a file, in an environment that has no Bridgetrack.

    PEERS_PYTHON benchmarks/peer_runner.py TOOL FOLDER

Started by ``peers.py``. FOLDER holds ``cells.npz`` (``frame`` sorted, ``position`` in pixels of the
finest axis, shape (n, d), ``radius`` of the usual cell, ``known`` and ``known_frames``: the true
links of some frames, for tools that are tuned) and, where there are masks, ``labels.npy`` (cells
numbered from 1 within each frame, in the order of ``cells.npz``). Prints one line of JSON: links
as rows of cells, seconds, peak memory, and the settings that were chosen.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RELATIVE = (1.0, 2.0, 3.0, 5.0)
"""Reaches that are tried when tuning, in radii of the usual cell."""


@dataclass(frozen=True)
class Cells:
    """What a tool gets."""

    frame: Any
    position: Any
    radius: float
    known: Any
    known_frames: Any
    labels: Any

    @property
    def n_frames(self) -> int:
        """Frames of the movie."""
        return int(self.frame.max()) + 1

    def part(self, first: int, stop: int) -> tuple[Cells, int]:
        """The cells of some frames, and the row of the first of them."""
        begin, end = np.searchsorted(self.frame, [first, stop])
        labels = None if self.labels is None else self.labels[first:stop]
        frame, position = self.frame[begin:end] - first, self.position[begin:end]
        return Cells(frame, position, self.radius, self.known, None, labels), int(begin)

    def rows(self, t: int) -> Any:
        """Rows of the cells of a frame."""
        begin, end = np.searchsorted(self.frame, [t, t + 1])
        return np.arange(begin, end)


Links = list[tuple[int, int]]


def scipy_distance(cells: Cells) -> tuple[Links, Any]:
    """Assignment by distance; who is left over joins the nearest as a second daughter."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    reach = 4.0 * cells.radius
    links: Links = []
    for t in range(cells.n_frames - 1):
        a, b = cells.rows(t), cells.rows(t + 1)
        far = cdist(cells.position[a], cells.position[b])
        one, other = linear_sum_assignment(np.minimum(far, reach))
        good = far[one, other] < reach
        links += zip(a[one[good]].tolist(), b[other[good]].tolist(), strict=True)
        links += second_daughters(-far, one[good], other[good], a, b, -reach)
    return links, {"reach": reach}


def second_daughters(near: Any, one: Any, other: Any, a: Any, b: Any, least: float) -> Links:
    """Cells that nobody was assigned to join their nearest, each mother once."""
    links: Links = []
    divided: set[int] = set()
    linked = set(one.tolist())
    for k in sorted(set(range(len(b))) - set(other.tolist())):
        mother = int(np.argmax(near[:, k])) if len(near) else -1
        free = mother in linked and mother not in divided
        if mother >= 0 and free and near[mother, k] > least:
            links.append((int(a[mother]), int(b[k])))
            divided.add(mother)
    return links


def laptrack(cells: Cells, reach: float = 15.0, split: float = 15.0) -> tuple[Links, Any]:
    """LapTrack with its default cutoffs (15 pixels), divisions switched on with the same."""
    from laptrack import LapTrack

    tracker = LapTrack(
        cutoff=reach**2, gap_closing_cutoff=reach**2, splitting_cutoff=split**2 if split else False
    )
    return lap_links(cells, tracker), {"reach": reach, "split": split}


def lap_links(cells: Cells, tracker: Any) -> Links:
    """Links of a LapTrack tracker on centroids."""
    coordinates = [cells.position[cells.rows(t)] for t in range(cells.n_frames)]
    start = np.searchsorted(cells.frame, np.arange(cells.n_frames))
    tree = tracker.predict(coordinates)
    return [(int(start[t]) + k, int(start[u]) + j) for (t, k), (u, j) in tree.edges()]


def laptrack_tuned(cells: Cells) -> tuple[Links, Any]:
    """LapTrack with the cutoffs that give the most of the known links right."""
    first, stop = (int(v) for v in cells.known_frames)
    some, begin = cells.part(first, stop)
    true = {tuple(link) for link in (cells.known - begin).tolist()}
    best: tuple[float, float, float] = (-1.0, 15.0, 15.0)
    for reach, split in itertools.product(RELATIVE, (0.0, *RELATIVE)):
        found = set(laptrack(some, reach * cells.radius, split * cells.radius)[0])
        right = 2 * len(found & true) / max(1, len(found) + len(true))
        best = max(best, (right, reach * cells.radius, split * cells.radius))
    return laptrack(cells, *best[1:])


def laptrack_overlap(cells: Cells) -> tuple[Links, Any]:
    """LapTrack's overlap tracker, as in its documentation, with divisions."""
    from laptrack import OverLapTrack

    tracker = OverLapTrack(
        cutoff=0.9, gap_closing_cutoff=False, splitting_cutoff=0.9, merging_cutoff=False,
        metric_coefs=(1.0, 0.0, 0.0, 0.0, -1.0), splitting_metric_coefs=(1.0, 0.0, 0.0, 0.0, -1.0),
    )  # fmt: skip
    table, splits, _ = tracker.predict_overlap_dataframe(list(cells.labels))
    table = table.reset_index()
    start = np.searchsorted(cells.frame, np.arange(cells.n_frames))
    rows = start[table["frame"].to_numpy(int)] + table["label"].to_numpy(int) - 1
    return links_of(cells.frame[rows], rows, table["track_id"].to_numpy(int), splits), {}


def links_of(frame: Any, rows: Any, track: Any, splits: Any) -> Links:
    """Links along tracks, and from parents to children."""
    order = np.lexsort([frame, track])
    rows, track = np.asarray(rows)[order], np.asarray(track)[order]
    same = track[1:] == track[:-1]
    links = list(zip(rows[:-1][same].tolist(), rows[1:][same].tolist(), strict=True))
    last = dict(zip(track.tolist(), rows.tolist(), strict=True))
    first = dict(zip(track[::-1].tolist(), rows[::-1].tolist(), strict=True))
    pairs = np.asarray(splits)[:, :2].astype(int).tolist() if len(splits) else []
    return links + [(last[p], first[c]) for p, c in pairs if p in last and c in first]


def with_btrack(
    cells: Cells, reach: float = 100.0, most_exact: int = 1000, max_lost: int = 5
) -> tuple[Links, Any]:
    """btrack with the numbers of its cell configuration; exact up to 1,000 cells a frame.

    `speed.py` gives the reach in pixels, and after how many lost frames a track ends.
    """
    import btrack
    from btrack.constants import BayesianUpdates

    columns = {"t": cells.frame, "seen": np.arange(len(cells.frame), dtype=float)}
    axes = ("x", "y", "z")
    for k, axis in enumerate(axes):
        there = k < cells.position.shape[1]
        columns[axis] = cells.position[:, -1 - k] if there else np.zeros(len(cells.frame))
    objects = btrack.io.objects_from_dict(columns)
    far = [float(columns[axis].max()) + 1.0 for axis in axes]
    with btrack.BayesianTracker(verbose=False) as tracker:
        tracker.configure(btrack_settings(max_lost))
        crowded = np.bincount(cells.frame).max() > most_exact
        tracker.update_method = BayesianUpdates["APPROXIMATE" if crowded else "EXACT"]
        tracker.max_search_radius = reach
        tracker.append(objects)
        tracker.volume = tuple((0.0, v) for v in far[: 3 if cells.position.shape[1] == 3 else 2])
        tracker.track(step_size=cells.n_frames)
        tracker.optimize()
        tracks = tracker.tracks
    rows = [
        (int(t), int(seen), track.ID)
        for track in tracks
        for t, seen, dummy in zip(track.t, track.properties["seen"], track.dummy, strict=True)
        if not dummy
    ]
    frame, row, number = np.asarray(rows, dtype=int).T
    splits = [(x.parent, x.ID) for x in tracks if x.parent not in (x.ID, 0)]
    return links_of(frame, row, number, splits), {}


def btrack_settings(max_lost: int) -> dict[str, Any]:
    """The published cell configuration of btrack: motion and hypotheses of dividing cells."""
    import btrack

    eye, zero = np.eye(3), np.zeros((3, 3))
    motion = {
        "name": "cell_motion", "dt": 1.0, "measurements": 3, "states": 6, "accuracy": 7.5,
        "prob_not_assign": 0.001, "max_lost": max_lost,
        "A": np.block([[eye, eye], [zero, eye]]), "H": np.hstack([eye, zero]),
        "P": 150.0 * np.diag([0.1] * 3 + [1.0] * 3),
        "G": 15.0 * np.array([[0.5] * 3 + [1.0] * 3]), "R": 5.0 * eye,
    }  # fmt: skip
    hypotheses = {
        "name": "cell_hypothesis",
        "hypotheses": ["P_FP", "P_init", "P_term", "P_link", "P_branch", "P_dead"],
        "lambda_time": 5.0, "lambda_dist": 3.0, "lambda_link": 10.0, "lambda_branch": 50.0,
        "eta": 1e-10, "theta_dist": 20.0, "theta_time": 5.0, "dist_thresh": 40, "time_thresh": 2,
        "apop_thresh": 5, "segmentation_miss_rate": 0.1, "apoptosis_rate": 0.001, "relax": True,
    }  # fmt: skip
    return {
        "motion_model": btrack.models.MotionModel(**motion),
        "hypothesis_model": btrack.models.HypothesisModel(**hypotheses),
    }


def with_motile(cells: Cells) -> tuple[Links, Any]:
    """motile, costs by hand in radii: a link its length - 4, an appearance 2, a division 2."""
    import motile
    import networkx as nx
    from motile import constraints, costs
    from scipy.spatial import cKDTree

    radius, reach = cells.radius, 6.0
    graph: Any = nx.DiGraph()
    for row, (t, place) in enumerate(zip(cells.frame.tolist(), cells.position, strict=True)):
        graph.add_node(row, t=t, place=tuple((place / radius).tolist()))
    for t in range(cells.n_frames - 1):
        a, b = cells.rows(t), cells.rows(t + 1)
        if not len(a) or not len(b):
            continue
        tree = cKDTree(cells.position[b] / radius)
        k = min(5, len(b))
        far, near = tree.query(cells.position[a] / radius, k=k, distance_upper_bound=reach)
        for row, ds, js in zip(a, np.reshape(far, (-1, k)), np.reshape(near, (-1, k)), strict=True):
            for d, j in zip(ds, js, strict=True):
                if np.isfinite(d):
                    graph.add_edge(int(row), int(b[j]), far=float(d))
    solver = motile.Solver(motile.TrackGraph(graph))
    solver.add_cost(costs.EdgeSelectedCost(weight=1.0, attribute="far", constant=-4.0))
    solver.add_cost(costs.NodeSelectedCost(constant=-10.0))
    solver.add_cost(costs.NodeAppearCost(constant=2.0))
    solver.add_cost(costs.NodeSplitCost(constant=2.0))
    solver.add_constraint(constraints.MaxParents(1))
    solver.add_constraint(constraints.MaxChildren(2))
    solver.solve(timeout=150)
    chosen = solver.get_selected_subgraph()
    return [(int(a), int(b)) for a, b in chosen.edges], {}


def with_trackpy(cells: Cells) -> tuple[Links, Any]:
    """trackpy: a reach of four radii, one frame of memory; it knows no divisions."""
    import pandas as pd
    import trackpy

    trackpy.quiet()
    axes = ["z", "y", "x"][-cells.position.shape[1] :]
    table = pd.DataFrame(cells.position, columns=axes).assign(
        frame=cells.frame, row=np.arange(len(cells.frame))
    )
    reach = 4.0 * cells.radius
    linked = trackpy.link(
        table, reach, pos_columns=axes, memory=1, adaptive_stop=0.5 * cells.radius
    )
    row, particle = linked["row"].to_numpy(int), linked["particle"].to_numpy(int)
    return links_of(cells.frame[row], row, particle, []), {"reach": reach}


TOOLS: dict[str, Callable[[Cells], tuple[Links, Any]]] = {
    "assignment by distance": scipy_distance,
    "LapTrack": laptrack,
    "LapTrack, tuned": laptrack_tuned,
    "LapTrack, overlap": laptrack_overlap,
    "btrack": with_btrack,
    "motile": with_motile,
    "trackpy": with_trackpy,
}
NEED_MASKS = ("LapTrack, overlap",)


def peak_megabytes() -> float:
    """The most memory that this process had; getrusage gives that of its parent if it had more."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def main() -> None:
    """Run one tool."""
    warnings.simplefilter("ignore")
    tool, folder = sys.argv[1], Path(sys.argv[2])
    with np.load(folder / "cells.npz") as given:
        values = {name: given[name] for name in given.files}
    labels = np.load(folder / "labels.npy", mmap_mode="r") if tool in NEED_MASKS else None
    cells = Cells(
        values["frame"], values["position"], float(values["radius"]),
        values["known"], values["known_frames"], labels,
    )  # fmt: skip
    start, spent = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(sys.stderr):
        links, chosen = TOOLS[tool](cells)
    seconds, cpu = time.perf_counter() - start, time.process_time() - spent
    result = {"links": links, "seconds": seconds, "cpu": cpu, "chosen": chosen}
    print(json.dumps(result | {"memory": peak_megabytes()}))


if __name__ == "__main__":
    main()
