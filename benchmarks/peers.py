"""Other trackers beside Bridgetrack on the same cells, in one run.

    python benchmarks/peers.py --peers /path/to/python [--sets HeLa ...] [--tools LapTrack ...]

``--peers`` is the interpreter of an environment with laptrack, btrack, motile and trackpy (``python
-m venv DIR; DIR/bin/pip install laptrack btrack motile trackpy scipy``), ``--btrack`` another for
btrack, where it needs libraries of its own; the defaults are ``$BRIDGETRACK_PEERS`` and
``$BRIDGETRACK_BTRACK``. True cells are what every tool gets, as centroids and, where there are any,
as masks: Bridgetrack untrained, and trained on the same share of the true links that LapTrack is
tuned on (a twentieth: a block of frames in the middle). A short matcher by overlap, whose only
threshold is tuned on the whole truth of each movie, needs no environment. The raw images, where
there are any, go to Bridgetrack alone, once with and once without them. *Development* movies have
been looked at while setting Bridgetrack's weights; *unseen* ones had no part in any choice.

Edge and division F1 and AOGM (with the Cell Tracking Challenge's weights) are traccuracy's, cell by
cell; wrong events are the share of cells' fates, and of first appearances, that are not the true
ones. Seconds are of the processor, imports left out. Finished runs are kept in ``--log`` (delete it
where a version changed). Draws ``docs/images/peers.svg``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

import bridgetrack as bt
from bridgetrack.annotations.from_tracks import draw_annotations
from bridgetrack.evaluation.scores import graph_of
from bridgetrack.hypotheses.events import Event, Events
from common import DATA, SETS, DataSet, graph_errors, header, row, save_figure
from common import UNSEEN as OTHERS
from peer_runner import NEED_MASKS, TOOLS, peak_megabytes

OURS = ("Bridgetrack", "Bridgetrack, no image", "Bridgetrack, 5 %")
MATCHER = "matching by overlap"
HERE = (*OURS, MATCHER)
"""Tools that run in this environment."""
THRESHOLDS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
SHARE = 0.05
MOST = {"motile": 3000}
"""Cells up to which tools are run that take long."""
LIMIT = 60
"""Processor seconds after which another tool is stopped."""


_PSC, _EPIDERMIS = SETS["PSC"], SETS["epidermis"]
DEVELOPMENT = {
    "HeLa, second half": replace(SETS["HeLa"], start=46),
    **{name: SETS[name] for name in ("bacteria", "iPSC 01", "iPSC 03", "SIM+", "DIC")},
    "PSC, first tenth": replace(_PSC, stop=10),
    "epidermis, first half": replace(_EPIDERMIS, stop=8),
}
UNSEEN = {
    "epidermis, second half": replace(_EPIDERMIS, start=8),
    "iPSC 04, first half": replace(SETS["iPSC 04"], stop=51),
    "PSC, last tenth": replace(_PSC, start=90),
    "Phallusia Pm04, first half": replace(OTHERS["Phallusia Pm04"], stop=45),
    "C2C12 F0018, last fifth": replace(OTHERS["C2C12 F0018"], start=81),
    "CellMigration, first fifth": DataSet("CellMigration", "CellMigration-masks", stop=17),
}
MOVIES = DEVELOPMENT | UNSEEN
"""Frames of movies; no choice of Bridgetrack's has looked at those of `UNSEEN`."""


@dataclass(frozen=True)
class Cells:
    """What all tools get.

    Parameters
    ----------
    frame, position
        Of every true cell, sorted by frame; positions in pixels of the finest axis.
    links
        True links, rows of cells, shape (k, 2).
    labels
        Masks, cells numbered from 1 in each frame; None for points.
    image
        Raw frames; None where there are none.
    movie
        Which movie.
    """

    frame: NDArray[np.int64]
    position: NDArray[np.float64]
    links: NDArray[np.int64]
    labels: NDArray[np.uint16] | None
    image: NDArray[Any] | None
    movie: DataSet

    @property
    def radius(self) -> float:
        """Of the usual cell; for points, half of the median distance to the nearest."""
        if self.labels is not None:
            areas = np.concatenate([np.bincount(f.ravel())[1:] for f in self.labels])
            return float(np.sqrt(np.median(areas) / np.pi))
        from scipy.spatial import cKDTree

        near = [
            cKDTree(p).query(p, k=2)[0][:, 1]
            for t in np.unique(self.frame)
            if len(p := self.position[self.frame == t]) > 1
        ]
        return float(np.median(np.concatenate(near))) / 2

    def known(self) -> tuple[NDArray[np.int64], tuple[int, int]]:
        """A block of frames in the middle with a twentieth of the links, and these links."""
        pair = self.frame[self.links[:, 0]]
        middle = int(np.median(pair))
        first, stop = middle, middle + 1
        while np.count_nonzero((pair >= first) & (pair < stop)) < SHARE * len(pair):
            first, stop = first - ((stop - first) % 2), stop + 1 - ((stop - first) % 2)
        inside = (pair >= first) & (pair < stop)
        return self.links[inside], (first, stop + 1)


def load(movie: DataSet, root: Path) -> Cells:
    """The cells and true links of a movie."""
    folder = root / movie.folder
    points = movie.masks == "points"
    if points:
        truth: Any = bt.read_tracks_csv(
            folder / f"{movie.sequence}_nodes.csv", frame_interval=movie.interval
        )
        source = None
    else:
        read = bt.read_ctc(folder / f"{movie.sequence}_GT")
        truth, source = read.tracks, read.labels
    graph = graph_of(truth)
    first, stop = movie.start, movie.stop or truth.geometry.n_frames
    inside = (graph.frame >= first) & (graph.frame < stop)
    place = np.cumsum(inside) - 1
    edges = graph.edges[inside[graph.edges].all(axis=1)]
    frame = graph.frame[inside] - first
    labels = None if source is None else numbered(source, graph, inside, first, stop)
    raw = sorted((folder / movie.sequence).glob("t*.tif"))[first:stop]
    image = np.stack([tifffile.imread(p) for p in raw]) if raw and not points else None
    scale = truth.geometry.scale_array
    position = graph.position[inside] / (scale.min() if points else scale)
    return Cells(frame, position, place[edges], labels, image, movie)


def numbered(
    source: bt.Movie, graph: Any, inside: NDArray[np.bool_], first: int, stop: int
) -> NDArray[np.uint16]:
    """Masks whose numbers say nothing of the tracks."""
    frames, label = [], np.zeros(len(graph.frame), dtype=np.int64)
    label[graph.node_cell] = graph.tracks.nodes["label"]
    for t in range(first, stop):
        there = np.flatnonzero(inside & (graph.frame == t))
        frame = np.asarray(source.channel_frame(t))
        number = np.zeros(int(max(frame.max(), label[there].max(initial=0))) + 1, np.uint16)
        number[label[there]] = np.arange(1, len(there) + 1)
        frames.append(number[frame])
    return np.stack(frames)


def events_of(cells: Cells, links: Iterable[Sequence[int]]) -> set[tuple[int, ...]]:
    """What links say: of every cell with a next frame its later cells; which cells are new."""
    later: dict[int, list[int]] = {}
    known = set()
    for a, b in links:
        later.setdefault(int(a), []).append(int(b))
        known.add(int(b))
    last = int(cells.frame.max())
    fates = {(k, *sorted(later.get(k, []))) for k in np.flatnonzero(cells.frame < last).tolist()}
    return fates | {(-1, k) for k in np.flatnonzero(cells.frame > 0).tolist() if k not in known}


def matched_by_overlap(cells: Cells, least: float) -> list[tuple[int, int]]:
    """Links of most overlap in all, IoU above a threshold; who is left over may be a daughter.

    It joins the cell that covers most of it, if more than the threshold, and that has a match.
    """
    from scipy.optimize import linear_sum_assignment

    assert cells.labels is not None
    links: list[tuple[int, int]] = []
    start = np.searchsorted(cells.frame, np.arange(len(cells.labels) + 1))
    for t, (before, after) in enumerate(pairwise(cells.labels)):
        both = np.zeros(np.diff(start)[t : t + 2] + 1)
        np.add.at(both, (before, after), 1.0)
        shared, size = both[1:, 1:], (both.sum(axis=1)[1:, None], both.sum(axis=0)[1:])
        iou = shared / (size[0] + size[1] - shared)
        one, two = linear_sum_assignment(np.where(iou > least, iou, 0), maximize=True)
        good = iou[one, two] > least
        match = dict(zip(one[good].tolist(), two[good].tolist(), strict=True))
        pairs = list(match.items())
        for k in sorted(set(range(len(size[1]))) - set(match.values())):
            mother = int(np.argmax(shared[:, k])) if len(shared) else -1
            if mother in match and shared[mother, k] > least * size[1][k]:
                pairs.append((mother, k))
                del match[mother]  # no cell has three daughters
        links += [(int(start[t]) + a, int(start[t + 1]) + b) for a, b in pairs]
    return links


def with_matcher(cells: Cells) -> dict[str, Any]:
    """Links by overlap, with the threshold that makes the fewest events of this movie wrong."""
    true = events_of(cells, cells.links)
    found = [matched_by_overlap(cells, least) for least in THRESHOLDS]
    wrong = [len(true - events_of(cells, links)) for links in found]
    spent = time.process_time()
    links = matched_by_overlap(cells, THRESHOLDS[int(np.argmin(wrong))])
    spent = time.process_time() - spent
    return {
        "links": links, "seconds": spent, "cpu": spent, "memory": peak_megabytes(),
        "threshold": THRESHOLDS[int(np.argmin(wrong))],
    }  # fmt: skip


def with_bridgetrack(cells: Cells, tool: str) -> dict[str, Any]:
    """Links by Bridgetrack, in this process."""
    image = None if cells.image is None or "no image" in tool else cells.image
    with tempfile.TemporaryDirectory() as spare:
        source = opened(cells, Path(spare))
        raw = None
        if image is not None:
            raw = bt.open_movie(image, scale=cells.movie.scale, frame_interval=cells.movie.interval)
        start, spent = time.perf_counter(), time.process_time()
        model = taught(cells, source, raw) if "5 %" in tool else None
        tracking = bt.track(source, raw, model)
        seconds, cpu = time.perf_counter() - start, time.process_time() - spent
        graph = graph_of(tracking.tracks)
    # Cells are sorted as ours are: by frame, then by number.
    start_of = np.searchsorted(cells.frame, np.arange(cells.frame.max() + 1))
    at = np.full(len(graph.frame), -1)
    node_frame, number = (tracking.tracks.nodes[c].to_numpy() for c in ("frame", "label"))
    if cells.labels is None:
        number = point_rows(cells, tracking, start_of)
    at[graph.node_cell] = start_of[node_frame] + number - 1
    links = at[graph.edges]
    kept = np.unique(start_of[node_frame] + number - 1)
    lost = sorted(set(range(len(cells.frame))) - set(kept.tolist()))
    return {
        "links": links.tolist(), "seconds": seconds, "cpu": cpu, "memory": peak_megabytes(),
        "lost": lost,
    }  # fmt: skip


def opened(cells: Cells, folder: Path) -> Any:
    """The masks, or a table of points."""
    known = {"scale": cells.movie.scale, "frame_interval": cells.movie.interval}
    if cells.labels is not None:
        return bt.open_labels(cells.labels, **known)
    axes = ("z", "y", "x")[-cells.position.shape[1] :]
    lines = [",".join(("t", *axes))]
    lines += [
        ",".join([str(t), *(f"{v:.3f}" for v in p)])
        for t, p in zip(cells.frame.tolist(), cells.position, strict=True)
    ]
    (folder / "cells.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return bt.read_detections_csv(folder / "cells.csv", frame_interval=cells.movie.interval)


def point_rows(cells: Cells, tracking: Any, start_of: Any) -> NDArray[np.int64]:
    """Number within its frame of each node of tracks made of points."""
    nodes = tracking.tracks.nodes
    axes = ["z", "y", "x"][-cells.position.shape[1] :]
    from scipy.spatial import cKDTree

    stretch = np.column_stack([1e6 * cells.frame, cells.position])
    asked = np.column_stack([1e6 * nodes["frame"].to_numpy(), nodes[axes].to_numpy()])
    found = cKDTree(stretch).query(asked)[1]
    return found - start_of[nodes["frame"].to_numpy(int)] + 1


def taught(cells: Cells, source: Any, raw: Any) -> Any:
    """A model trained on all true events of the known frames, and on nothing else."""
    detections = bt.track(source, raw).scene.detections
    if not np.array_equal(detections.frame, cells.frame):
        raise ValueError("detections are not in the order of the cells")
    links, (first, stop) = cells.known()
    children: dict[int, list[int]] = {}
    for a, b in links.tolist():
        children.setdefault(a, []).append(b)
    begin, last, end = np.searchsorted(cells.frame, [first, stop - 1, stop]).tolist()
    after = int(np.searchsorted(cells.frame, first + 1))
    had_parent = set(links[:, 1].tolist())
    rows = []
    for a in range(begin, last):
        mine = sorted(children.get(a, []))[:2]
        kind = (Event.DISAPPEAR, Event.MOVE, Event.DIVIDE)[len(mine)]
        rows.append((kind, a, -1, *mine, *[-1] * (2 - len(mine))))
    rows += [(Event.APPEAR, -1, -1, b, -1) for b in range(after, end) if b not in had_parent]
    table = np.array(rows, dtype=np.int64)
    events = Events(table[:, 0].astype(np.int8), table[:, 1:3], table[:, 3:])
    clicks = draw_annotations(events, detections, fraction=1.0)
    return bt.train(source, raw, clicks)


def with_peer(cells: Cells, tool: str, python: str) -> dict[str, Any] | None:
    """Links by another tracker, in a process of its own environment; None where it fails."""
    with tempfile.TemporaryDirectory() as spare:
        folder = Path(spare)
        known, frames = cells.known()
        np.savez(
            folder / "cells.npz", frame=cells.frame, position=cells.position,
            radius=cells.radius, known=known, known_frames=frames,
        )  # fmt: skip
        if tool in NEED_MASKS:
            np.save(folder / "labels.npy", cells.labels)
        runner = Path(__file__).with_name("peer_runner.py")
        done = subprocess.run(
            [python, str(runner), tool, str(folder)], capture_output=True, text=True, check=False,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)),
        )  # fmt: skip
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"error": f"stopped after {LIMIT} s"}
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": reason[:200]}
    return json.loads(done.stdout.splitlines()[-1])


def measure(name: str, tools: list[str], given: argparse.Namespace) -> None:
    """Run every tool on a movie, and keep its figures."""
    done = {(r["set"], r["tool"]) for r in kept(given.log)}
    missing = [
        t
        for t in tools
        if (name, t) not in done and (t in HERE or interpreter(t, given) is not None)
    ]
    if not missing or not (given.data / MOVIES[name].folder).is_dir():
        return
    cells = load(MOVIES[name], given.data)
    for tool in missing:
        if cells.labels is None and tool in (*NEED_MASKS, MATCHER):
            continue
        if cells.image is None and "no image" in tool:
            continue
        if len(cells.frame) > MOST.get(tool, len(cells.frame)):
            continue
        found = (
            in_own_process(name, tool, given)
            if tool in HERE
            else with_peer(cells, tool, interpreter(tool, given))
        )
        line = {"set": name, "tool": tool, "cells": len(cells.frame), "true": len(cells.links)}
        if "error" in found:
            line["error"] = found["error"]
        else:
            line |= {k: found[k] for k in ("seconds", "cpu", "memory", "threshold") if k in found}
            true = events_of(cells, cells.links)
            line["wrong_events"] = len(true - events_of(cells, found["links"])) / len(true)
            line |= graph_errors(
                cells.frame, cells.position, cells.links, found["links"], found.get("lost", ())
            )
        print(line, file=sys.stderr, flush=True)
        with given.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def interpreter(tool: str, given: argparse.Namespace) -> str | None:
    """Of the environment that a tool lives in."""
    return (given.btrack if tool == "btrack" else None) or given.peers


def in_own_process(name: str, tool: str, given: argparse.Namespace) -> dict[str, Any]:
    """Bridgetrack in a process of its own, so that its peak of memory is its own."""
    words = [sys.executable, __file__, "--data", str(given.data), "--one", name, tool]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def kept(log: Path) -> list[dict[str, Any]]:
    """Finished runs."""
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def table(names: list[str], rows: dict[tuple[str, str], dict[str, Any]], tools: list[str]) -> str:
    """A table in markdown, a block for each movie."""
    lines = [
        header("movie", "tool", "edge F1", "division F1", "wrong events, %", "AOGM", "wrong links",
               "missed links", "seconds", "peak MB")
    ]  # fmt: skip
    for name in names:
        mine = [t for t in tools if (name, t) in rows]
        good = [rows[name, t] for t in mine if "error" not in rows[name, t]]
        for k, tool in enumerate(mine):
            r = rows[name, tool]
            first = f"{name} ({r['cells']:,} cells)" if not k else ""
            if "error" in r:
                lines.append(row(first, tool, r["error"], "", "", "", "", "", "", ""))
                continue
            cells = [best(r, good, "edge_f1", 4), best(r, good, "division_f1", 3)]
            cells += [f"{100 * r['wrong_events']:.2f}" if "wrong_events" in r else "–"]
            cells += [best(r, good, "aogm", 0, low=True), f"{r['wrong']:,}", f"{r['missed']:,}"]
            lines.append(row(first, tool, *cells, f"{r['cpu']:.1f}", f"{r['memory']:,.0f}"))
    return "\n".join(lines)


def best(
    mine: dict[str, Any], all_: list[dict[str, Any]], key: str, digits: int, *, low: bool = False
) -> str:
    """A figure, bold where none is better."""
    value = mine[key]
    if value is None or not np.isfinite(value):
        return "–"
    others = [r[key] for r in all_ if r[key] is not None and np.isfinite(r[key])]
    top = min(others) if low else max(others)
    text = f"{value:,.{digits}f}"
    return f"**{text}**" if text == f"{top:,.{digits}f}" else text


def behind(names: list[str], rows: dict[tuple[str, str], dict[str, Any]], tools: list[str]) -> str:
    """Where another tool is better than Bridgetrack untrained, and by how much."""
    lines = [
        header("movie", "", "edge F1", "best other", "tool", "division F1", "best other", "tool")
    ]  # fmt: skip
    for name in names:
        ours = rows.get((name, OURS[0]))
        others = [t for t in tools if t not in OURS and "edge_f1" in rows.get((name, t), {})]
        if ours is None or "error" in ours or not others:
            continue
        cells = []
        ahead = True
        for key, digits in (("edge_f1", 4), ("division_f1", 3)):
            scored = {t: rows[name, t][key] for t in others if np.isfinite(rows[name, t][key])}
            if not scored or not np.isfinite(ours[key]):
                cells += ["–", "–", "–"]
                continue
            top = max(scored, key=lambda t: scored[t])
            ahead &= ours[key] >= scored[top] - 0.5 * 10.0**-digits
            cells += [f"{ours[key]:.{digits}f}", f"{scored[top]:.{digits}f}", top]
        kind = "unseen" if name in UNSEEN else "development"
        lines.append(row(f"{name} ({kind})", "ahead or level" if ahead else "**behind**", *cells))
    return "\n".join(lines)


def picture(
    names: list[str], rows: dict[tuple[str, str], dict[str, Any]], tools: list[str]
) -> None:
    """Wrong and missed links, and division errors, of every tool on every movie."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib import ticker

    figure, axes = plt.subplots(1, 2, figsize=(10, 0.46 * len(names) + 1.6), sharey=True)
    marks = "oDPsv^<>X*p"
    for axis, key, title, none, ticks in (
        (axes[0], "edge_f1", "1 - edge F1, %", 0.003, (0.01, 0.1, 1, 10)),
        (axes[1], "division_f1", "1 - division F1, %", 0.3, (1, 3, 10, 30, 100)),
    ):
        for k, tool in enumerate(tools):
            points = [
                (100 * (1 - r[key]), y)
                for y, name in enumerate(names)
                if np.isfinite((r := rows.get((name, tool), {})).get(key, np.nan))
            ]
            if not points:
                continue
            x, y = np.asarray(points).T
            ours = tool in OURS
            axis.plot(
                np.maximum(x, none), y, marks[k % len(marks)],
                color=f"C{k % 10}", ms=9 if ours else 6, alpha=0.95 if ours else 0.7,
                label=tool, mec="black" if ours else "none",
            )  # fmt: skip
        axis.set(xscale="log", xlabel=f"{title} (less is better)")
        axis.set_xticks([none, *ticks], ["none", *(f"{tick:g}" for tick in ticks)])
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())
        axis.set_ylim(-0.5, len(names) - 0.5)
        axis.grid(axis="y", color="0.9")
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_axisbelow(True)
    labels = [f"{n} *" if n in UNSEEN else n for n in names]
    axes[0].set_yticks(range(len(names)), labels)
    axes[0].invert_yaxis()
    handles, texts = axes[0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="upper center", ncol=4, frameon=False, fontsize=9)
    figure.text(0.01, 0.01, "* seen by no choice", fontsize=8, color="0.4")
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.9 / (0.46 * len(names) + 1.6)))
    save_figure(figure, "peers")


def main() -> None:
    """Run what is missing, print the tables, and draw."""
    warnings.simplefilter("ignore")
    every = [*HERE, *TOOLS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the movies")
    parser.add_argument("--peers", default=os.environ.get("BRIDGETRACK_PEERS"), metavar="PYTHON")
    parser.add_argument("--btrack", default=os.environ.get("BRIDGETRACK_BTRACK"), metavar="PYTHON")
    parser.add_argument("--sets", nargs="*", default=list(MOVIES), choices=MOVIES, metavar="SET")
    parser.add_argument("--tools", nargs="*", default=every, choices=every, metavar="TOOL")
    parser.add_argument("--log", type=Path, default=Path("peers.jsonl"), help="finished runs")
    parser.add_argument("--one", nargs=2, metavar=("SET", "TOOL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.data.is_dir():
        sys.exit(f"{given.data}: there is no such folder; give it with --data")
    if given.one:
        name, tool = given.one
        cells = load(MOVIES[name], given.data)
        print(json.dumps(with_matcher(cells) if tool == MATCHER else with_bridgetrack(cells, tool)))
        return
    if given.peers is None and set(given.tools) - set(HERE):
        sys.exit("give the interpreter of the other trackers' environment with --peers")
    for name in ("peers", "btrack"):
        path = getattr(given, name)
        if path is not None and not Path(path).is_file():
            sys.exit(f"--{name} {path}: there is no such interpreter")
    for name in given.sets:
        measure(name, given.tools, given)
    rows = {(r["set"], r["tool"]): r for r in kept(given.log)}
    names = [n for n in given.sets if any((n, t) in rows for t in given.tools)]
    if not names:
        sys.exit(f"none of these movies is in {given.data}")
    print(behind(names, rows, given.tools) + "\n")
    print(table(names, rows, given.tools))
    picture(names, rows, given.tools)


if __name__ == "__main__":
    main()
