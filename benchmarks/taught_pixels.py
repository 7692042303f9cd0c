"""What a few strokes bring to the segmentation of single frames.

    python benchmarks/taught_pixels.py [--strokes 20] [--seeds 5] [NAME ...]

Strokes are drawn at random from the truth (a third each on background, cells and edges), on five
frames; three other frames are scored: true cells found and found cells that are right (IoU above
one half), and SEG, the mean IoU of true cells with 0 for those not found. Choices were made on
HeLa-01 and on the first half of PSC-01.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import bridgetrack as bt
from bridgetrack.segmentation import movie_settings
from common import DATA
from strokes import Array, draw_strokes, true_masks

SETS = (
    ("Fluo-N2DL-HeLa-01", "01"),
    ("PhC-C2DL-PSC-01", "01"),
    ("DIC-C2DH-HeLa-01", "01"),
    ("PhC-C2DH-U373-02", "02"),
)


def scores(found: Array, truth: Array) -> tuple[float, float, float]:
    """Share of true cells found, of found cells right, and SEG."""
    n, k = int(truth.max()) + 1, int(found.max()) + 1
    shared = np.bincount((truth.astype(np.int64) * k + found).ravel(), minlength=n * k)
    shared = shared.reshape(n, k)
    union = shared.sum(axis=1)[:, None] + shared.sum(axis=0)[None] - shared
    there = shared.sum(axis=1)[1:] > 0
    iou = (shared / np.maximum(union, 1))[1:, 1:][there]
    if not iou.size:
        return 0.0, 0.0, 0.0
    best = np.where(iou > 0.5, iou, 0).max(axis=1)
    return float((best > 0).mean()), float((iou > 0.5).any(axis=0).mean()), float(best.mean())


def lines(folder: Path, sequence: str, count: int, seeds: int) -> None:
    """Print the lines of one movie."""
    movie, truth = bt.open_movie(folder / sequence), true_masks(folder.name, sequence)
    half = movie.n_frames // 2
    painted = np.linspace(0, half - 1, 5).round().astype(int).tolist()
    scored = [(a + b) // 2 for a, b in zip(painted[:3], painted[1:4], strict=True)]
    frames = {t: movie.channel_frame(t) for t in scored}
    plain = movie_settings(movie)
    start = time.process_time()
    rows = [scores(bt.segment_frame(frames[t], plain), truth(t)) for t in scored]
    seconds = (time.process_time() - start) / len(scored)
    _say(folder.name, "built in", [np.mean(rows, axis=0)], seconds)
    results, spent = [], 0.0
    for seed in range(seeds):
        shape = movie.geometry.shape or ()
        drawn = np.zeros((movie.n_frames, *shape), np.uint8)
        for t, marks in draw_strokes(truth, painted, shape, count, seed).items():
            drawn[t] = marks
        model = bt.learn_pixels(movie, drawn)
        start = time.process_time()
        rows = [scores(bt.segment_frame(frames[t], model=model), truth(t)) for t in scored]
        spent += (time.process_time() - start) / len(scored)
        results.append(np.mean(rows, axis=0))
    _say(folder.name, f"{count} strokes", results, spent / seeds)


def _say(name: str, how: str, results: list[np.ndarray], seconds: float) -> None:
    mean, spread = np.mean(results, axis=0), np.std(results, axis=0)
    several = len(results) > 1
    texts = [
        f"{m:.3f} ± {s:.3f}" if several else f"{m:.3f}" for m, s in zip(mean, spread, strict=True)
    ]
    print(f"| {name} | {how} | {' | '.join(texts)} | {seconds:.2f} |", flush=True)


def main() -> None:
    """Print a table in markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--strokes", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("names", nargs="*", help="only movies whose name has one of these")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| movie | how | true cells found | found cells right | SEG | seconds a frame |")
    print("| --- | --- | ---: | ---: | ---: | ---: |", flush=True)
    for name, sequence in SETS:
        if given.names and not any(n in name for n in given.names):
            continue
        if (given.data / name).is_dir():
            lines(given.data / name, sequence, given.strokes, given.seeds)
        else:
            print(f"{name} is skipped: there is no {given.data / name}", file=sys.stderr)


if __name__ == "__main__":
    main()
