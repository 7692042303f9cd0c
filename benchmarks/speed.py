"""Time and memory from labels to tables, beside LapTrack and btrack on the same movie.

    python benchmarks/speed.py [--frames 100] [--cells 1000] [--repeats 3] [--folder DIR]
    python benchmarks/speed.py --tables 1000x1000 1000x3000 [--limit 3600]

Simulates a label movie (kept in DIR where given), tracks it in a process of its own for every tool
and repeat, the tools taking turns, and prints a table in markdown. Nobody uses intensities.
LapTrack and btrack get what their users give them: centroids by scikit-image's
``regionprops_table``, and settings that suit the movie; btrack runs in its approximate mode, which
it advises for many cells. A tool that is not installed is left out with a message. ``--tables``
tracks tables of so many cells by so many frames once (`memory.walk`, 40 pixels apart); a tool that
takes more processor time than the limit is ended. ``--python btrack=PYTHON`` names the interpreter
of a tool that is installed elsewhere.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memory import walk
from peer_runner import Cells, Links, links_of, peak_megabytes
from peer_runner import with_btrack as track_by_btrack

PYTHON: dict[str, str] = {}
"""The interpreter of a tool that is installed elsewhere, by its name."""

REACH = 20.0
"""Pixels that a cell may move between frames, for the tools that must be told."""


def mask_files(movie: Path, frames: int) -> list[Path]:
    """The first label images of a movie."""
    return sorted((movie / "01_GT" / "TRA").glob("man_track*.tif"))[:frames]


def with_bridgetrack(movie: Path, frames: int, out: Path) -> dict[str, Any]:
    """Labels to tables by Bridgetrack."""
    from dataclasses import replace

    import bridgetrack as bt

    if movie.is_file():
        tracking = bt.track(movie)
    else:
        labels = bt.open_labels(movie / "01_GT" / "TRA")
        geometry = replace(labels.geometry, n_frames=frames)
        labels = replace(labels, array=labels.array[:frames], geometry=geometry)
        tracking = bt.track(labels)
    tracking.save(out, ["csv"])
    nodes, edges = tracking.tracks.nodes.set_index("id"), tracking.tracks.edges
    ends = [nodes["label"].reindex(edges[end]).to_numpy() for end in ("source", "target")]
    return {"links": np.column_stack(ends).tolist()}


def centroids(movie: Path, frames: int) -> pd.DataFrame:
    """Frame, label and centroid of every cell, as users of scikit-image get them."""
    if movie.is_file():
        names = {"t": "frame", "track": "label", "y": "centroid-0", "x": "centroid-1"}
        return pd.read_csv(movie).rename(columns=names)[list(names.values())]
    import tifffile
    from skimage.measure import regionprops_table

    tables = []
    for t, path in enumerate(mask_files(movie, frames)):
        table = pd.DataFrame(
            regionprops_table(tifffile.imread(path), properties=("label", "centroid"))
        )
        tables.append(table.assign(frame=t))
    return pd.concat(tables, ignore_index=True)


def with_laptrack(movie: Path, frames: int, out: Path) -> dict[str, Any]:
    """Labels to tables by LapTrack, with gap closing and divisions."""
    from laptrack import LapTrack

    cells = centroids(movie, frames)
    tracker = LapTrack(cutoff=REACH**2, gap_closing_cutoff=REACH**2, splitting_cutoff=REACH**2)
    tracks, splits, merges = tracker.predict_dataframe(
        cells, coordinate_cols=["centroid-0", "centroid-1"], frame_col="frame"
    )
    out.mkdir(parents=True, exist_ok=True)
    for name, table in (("tracks", tracks), ("splits", splits), ("merges", merges)):
        table.to_csv(out / f"{name}.csv")
    tracks = tracks.reset_index(drop="frame" in tracks.columns)
    return {"links": labels_linked(tracks, "track_id", splits)}


def labels_linked(cells: pd.DataFrame, track: str, splits: pd.DataFrame) -> Links:
    """Pairs of labels that follow each other within a track or across a division."""
    columns = (cells[name].to_numpy(int) for name in ("frame", "label", track))
    return links_of(*columns, splits)


def with_btrack(movie: Path, frames: int, out: Path) -> dict[str, Any]:
    """Labels to tables by btrack."""
    table = centroids(movie, frames)
    frame, label = (table[name].to_numpy(int) for name in ("frame", "label"))
    position = table[["centroid-0", "centroid-1"]].to_numpy()
    cells = Cells(frame, position, REACH, None, None, None)
    links, _ = track_by_btrack(cells, 2 * REACH, most_exact=0, max_lost=2)
    out.mkdir(parents=True)
    pd.DataFrame(links, columns=["source", "target"]).to_csv(out / "links.csv")
    return {"links": label[np.asarray(links, dtype=int)].tolist()}


TOOLS: dict[str, Callable[[Path, int, Path], dict[str, Any]]] = {
    "bridgetrack": with_bridgetrack,
    "laptrack": with_laptrack,
    "btrack, approximate": with_btrack,
}


def measure(tool: str, movie: Path, frames: int) -> dict[str, Any]:
    """Run one tool in this process; seconds, peak memory, links found and missed."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as out:
        before = resource.getrusage(resource.RUSAGE_SELF)
        start = time.perf_counter()
        found = TOOLS[tool](movie, frames, Path(out) / "out")
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_SELF)
    links = np.asarray(found.pop("links"), dtype=int).reshape(-1, 2)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result = {"tool": tool, "seconds": seconds, "cpu": spent, **found}
    result["memory"] = peak_megabytes()
    return result | judged(links, movie, frames)


def judged(links: np.ndarray, movie: Path, frames: int) -> dict[str, int]:
    """How many links are wrong: labels are true track ids, so truth is in the table."""
    if movie.is_file():
        cells = pd.read_csv(movie).groupby("track", as_index=False)
        table = cells.agg(first=("t", "min"), last=("t", "max"), parent=("parent_track", "max"))
        table = table.to_numpy(dtype=int)
    else:
        table = np.loadtxt(movie / "01_GT" / "TRA" / "man_track.txt", dtype=int, ndmin=2)
    table = table[table[:, 1] < frames]
    parent = dict(zip(table[:, 0].tolist(), table[:, 3].tolist(), strict=True))
    right = sum(a == b or parent.get(b) == a for a, b in links.tolist())
    lengths = np.minimum(table[:, 2], frames - 1) - table[:, 1]
    true = int(lengths.sum() + (table[:, 3] > 0).sum())
    return {"wrong": len(links) - right, "missed": max(0, true - right), "true": true}


def in_own_process(
    tool: str, movie: Path, frames: int, limit: int | None = None
) -> dict[str, Any] | None:
    """As `measure`, in a fresh process; None with a message where the tool cannot run."""
    words = [PYTHON.get(tool.partition(",")[0], sys.executable), __file__]
    words += ["--one", tool, str(movie), str(frames)]
    if limit is not None:
        words += ["--limit", str(limit)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "Error: " in line]
        reason = lines[0] if lines else "no message"
        print(f"{tool} is left out: {reason}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def movie_of(folder: Path, frames: int, cells: int) -> Path:
    """A simulated movie, made where it is not there yet."""
    from simulator import SimulationSettings, simulate_to_folder

    path = folder / f"{frames}x{cells}"
    if not (path / "01").is_dir():
        print(f"simulating {frames} frames of {cells} cells ...", file=sys.stderr)
        settings = SimulationSettings(
            frames=frames, cells=cells, division_rate=0.003, death_rate=0.002, seed=1
        )
        simulate_to_folder(settings, path)
    return path


def side_by_side(movie: Path, frames: int, repeats: int) -> dict[str, list[dict[str, Any]]]:
    """Runs of every tool, taking turns."""
    runs: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    for _ in range(repeats):
        for tool in [t for t in TOOLS if t in runs]:
            result = in_own_process(tool, movie, frames)
            if result is None:
                del runs[tool]
            else:
                runs[tool].append(result)
    return runs


def print_tables(sizes: list[str], limit: int) -> None:
    """Processor time, memory and mistakes of every tool on tables of points."""
    print("| cells | frames | tool | CPU seconds | peak MB | wrong links | missed links |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for size in sizes:
        cells, frames = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "cells.csv"
            walk(cells, frames, table, spacing=2 * REACH)
            for tool in TOOLS:
                found = in_own_process(tool, table, frames, limit)
                figures = "- | - | - | -"
                if found is not None:
                    figures = f"{found['cpu']:.0f} | {found['memory']:,.0f} | "
                    figures += f"{found['wrong']:,} | {found['missed']:,}"
                print(f"| {cells:,} | {frames:,} | {tool} | {figures} |", flush=True)


def middle(runs: list[dict[str, Any]], key: str) -> float:
    """Median of a figure."""
    return statistics.median(r[key] for r in runs)


def print_tools(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Time, memory and mistakes of every tool."""
    ours = middle(runs["bridgetrack"], "seconds")
    print("| tool | seconds | relative | CPU seconds | peak MB | wrong links | missed links |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for tool, results in runs.items():
        seconds = middle(results, "seconds")
        last = results[-1]
        print(
            f"| {tool} | {seconds:.1f} | {seconds / ours:.2f} | {middle(results, 'cpu'):.1f} | "
            f"{middle(results, 'memory'):,.0f} | {last['wrong']:,} | {last['missed']:,} |"
        )
    print(f"\n{runs['bridgetrack'][-1]['true']:,} true links\n")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--tables", nargs="+", metavar="CELLSxFRAMES")
    parser.add_argument("--limit", type=int, help="processor seconds of a tool")
    parser.add_argument("--python", nargs="*", default=[], metavar="TOOL=PYTHON")
    parser.add_argument("--one", nargs=3, metavar=("TOOL", "MOVIE", "FRAMES"))
    given = parser.parse_args()
    PYTHON.update(word.split("=", 1) for word in given.python)
    if given.one:
        tool, movie, frames = given.one
        if given.limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (given.limit, given.limit))
        print(json.dumps(measure(tool, Path(movie), int(frames))))
        return
    if given.tables:
        print_tables(given.tables, given.limit or 3600)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        n, cells = given.frames, given.cells
        movie = movie_of(folder, n, cells)
        print_tools(side_by_side(movie, n, given.repeats))


if __name__ == "__main__":
    main()
