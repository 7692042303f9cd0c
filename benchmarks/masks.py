"""Tracks from raw images: cells found frame by frame, or together with their tracks.

    python benchmarks/masks.py [--data ../shared/data] [--frames A:B] [--stages] [NAME ...]

Masks come from the image alone, weights are the shipped ones. For HeLa, as in the Cell Tracking
Challenge, what lies wholly within 25 pixels of the border is left out on both sides, after
tracking; PSC is scored with and without that. Seconds are processor seconds a frame of finding
cells, of this process and its children. ``--stages`` prints them by stage instead; those of looking
at the whole movie (readings, size, score) are shared by its frames.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import GeneratorType
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import tifffile
from numpy.typing import NDArray

import bridgetrack as bt
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline import finding, mask_candidates
from bridgetrack.pipeline.joint import Candidates
from bridgetrack.progress import run
from bridgetrack.regions import describe
from bridgetrack.regions.regions import regions_of_labels, shared_pixels
from common import DATA, DataSet, header, row
from common import SETS as MOVIES

Labels = NDArray[np.int32]


SETS = {
    "hela": replace(MOVIES["HeLa"], border=25),
    "psc": MOVIES["PSC"],
    "dic": MOVIES["DIC"],
    "u373": DataSet("U373", "PhC-C2DH-U373-02", "02"),
    "hl60": DataSet("HL60", "HL60-3D-small"),
    "bacteria": MOVIES["bacteria"],
}
"""Movies with raw images and true masks of whole cells."""
ALSO = {"psc": 25}
"""Another border to score with."""


def part(movie: Movie, first: int, last: int) -> Movie:
    """Some frames of a movie."""
    geometry = replace(movie.geometry, n_frames=last - first)
    return replace(movie, array=movie.array[first:last], geometry=geometry)


def of_frames(frames: list[Labels], image: Movie) -> Movie:
    """A label movie in memory."""
    stack = da.from_array(np.stack(frames)[:, None], chunks=(1, 1, *frames[0].shape))
    return Movie(stack, image.geometry, ("labels",), "benchmark")


def rows_of(masks: list[Labels], parent: dict[int, int], border: int) -> pd.DataFrame:
    """Track table of masks, after erasing in place what lies within the border.

    A track that leaves and comes back is cut; its parts have numbers of their own.
    """
    seen: dict[int, list[int]] = {}
    for t, mask in enumerate(masks):
        inner = mask[tuple(slice(border, n - border) for n in mask.shape[-2:])] if border else mask
        mask[~np.isin(mask, np.unique(inner))] = 0
        for label in np.unique(mask[mask > 0]).tolist():
            seen.setdefault(label, []).append(t)
    rows, free = [], max(seen, default=0) + 1
    for label, times in sorted(seen.items()):
        for k, run_ in enumerate(np.split(times, np.flatnonzero(np.diff(times) > 1) + 1)):
            number, mother = (label, parent.get(label, 0)) if k == 0 else (free, 0)
            if k:
                free += 1
                for t in run_:
                    masks[t][masks[t] == label] = number
            known = mother in seen and seen[mother][-1] == run_[0] - 1
            rows.append((number, int(run_[0]), int(run_[-1]), mother if known else 0))
    return pd.DataFrame(rows, columns=["label", "begin", "end", "parent"])


def write_ctc(folder: Path, masks: list[Labels], table: pd.DataFrame, truth: bool) -> None:
    """Masks and track table in the format of the challenge."""
    folder.mkdir(parents=True)
    for t, mask in enumerate(masks):
        name = f"man_track{t:03d}.tif" if truth else f"mask{t:03d}.tif"
        tifffile.imwrite(folder / name, mask.astype(np.uint16), compression="zlib")
    name = "man_track.txt" if truth else "res_track.txt"
    table.to_csv(folder / name, sep=" ", header=False, index=False)


def read_masks(folder: Path, pattern: str) -> list[Labels]:
    """All masks of a folder, in order."""
    return [tifffile.imread(p).astype(np.int32) for p in sorted(folder.glob(pattern))]


def parents(table: Path) -> dict[int, int]:
    """Mother of every track."""
    lines = (line.split() for line in table.read_text().splitlines() if line.strip())
    return {int(label): int(mother) for label, _, _, mother in lines}


@dataclass(frozen=True)
class Task:
    """Some frames of a movie, and the truth about them."""

    image: Movie
    truth: list[Labels]
    mothers: dict[int, int]
    border: int


def open_task(data: DataSet, root: Path, frames: tuple[int, int] | None = None) -> Task | None:
    """A data set, opened; None, and a remark, where it is not here."""
    folder = root / data.folder
    if not folder.is_dir():
        print(f"{folder}: not here, skipped", file=sys.stderr)
        return None
    whole = bt.open_movie(folder / data.sequence)
    first, last = frames or (0, whole.n_frames)
    truth = folder / f"{data.sequence}_GT"
    truth_of = truth / "FULL" if (truth / "FULL").is_dir() else truth / "TRA"
    masks = read_masks(truth_of, "man_track*.tif")[first:last]
    mothers = parents(truth_of / "man_track.txt")
    return Task(part(whole, first, last), masks, mothers, int(data.border))


def scored(task: Task, frames: list[Labels]) -> dict[str, float]:
    """Track masks with the shipped weights; the scores, and SEG of the masks."""
    true, border = [frame.copy() for frame in task.truth], task.border
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        labels = of_frames([frame.copy() for frame in frames], task.image)
        bt.track(labels, task.image).save(root / "found", ["ctc"])
        result = read_masks(root / "found" / "ctc", "mask*.tif")
        table = rows_of(result, parents(root / "found" / "ctc" / "res_track.txt"), border)
        write_ctc(root / "RES" / "ctc", result, table, False)
        write_ctc(root / "01_GT" / "TRA", true, rows_of(true, task.mothers, border), True)
        score = bt.evaluate(root / "RES", root / "01_GT", chota=False)
    figures = {k: v for k, v in score.to_dict().items() if isinstance(v, int | float)}
    return {**figures, "seg": seg(task.truth, frames)}


def seg(truth: list[Labels], shown: list[Labels]) -> float:
    """SEG of the challenge on whole masks: mean intersection over union of true cells."""
    total, n = 0.0, 0
    for t, (true, labels) in enumerate(zip(truth, shown, strict=True)):
        cells = regions_of_labels(true, t)
        n += len(cells)
        if not len(cells) or not labels.any():
            continue
        regions = regions_of_labels(labels, t)
        shared, area = shared_pixels(cells, regions).toarray(), cells.area[:, None]
        like = shared / (regions.area + area - shared)
        total += float(like[shared > 0.5 * area].sum())
    return total / max(n, 1)


STAGES: dict[str, list[tuple[Any, str]]] = {
    "readings": [(finding, "estimate_settings"), (mask_candidates, "estimate_settings")],
    "size": [(finding, "fitted_settings")],
    "score": [(finding, "learned_score")],
    "plain": [(mask_candidates, "segment_builtin")],
    "candidates": [(mask_candidates, "propose_frame")],
    "description": [(mask_candidates, "describe_frame"), (describe, "describe_in_time")],
    "pruning": [(mask_candidates, "prune")],
    "measuring": [(mask_candidates, "measure_regions")],
    "program": [(finding, "choose_jointly")],
}


class Clock:
    """Seconds of stages; those of a stage within another are its own."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._within = ["rest"]
        self._last = self._now()

    @staticmethod
    def _now() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    def _tick(self) -> None:
        now = self._now()
        self.seconds[self._within[-1]] += now - self._last
        self._last = now

    @contextmanager
    def running(self, stage: str) -> Iterator[None]:
        """A stage that lasts as long as the block."""
        self._tick()
        self._within.append(stage)
        try:
            yield
        finally:
            self._tick()
            self._within.pop()

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose seconds count as those of the stage."""

        def called(*args: Any, **options: Any) -> Any:
            with self.running(stage):
                found = function(*args, **options)
            return self._resumed(stage, found) if isinstance(found, GeneratorType) else found

        return called

    def _resumed(self, stage: str, steps: Any) -> Any:
        while True:
            with self.running(stage):
                try:
                    step = next(steps)
                except StopIteration as end:
                    return end.value
            yield step


def by_stage(names: list[str], given: argparse.Namespace) -> None:
    """Print processor seconds of every stage of finding cells."""
    clock = Clock()
    for stage, places in STAGES.items():
        for module, name in places:
            setattr(module, name, clock.timed(stage, getattr(module, name)))
    print(header("movie", "cells", *STAGES, "all"))
    for name in names:
        task = open_task(SETS[name], given.data, given.frames)
        if task is None:
            continue
        image = bt.open_movie(task.image.array.compute(), axes="TCYX")
        clock.seconds.clear()
        search = finding.CellSearch(image, finding.Finding())
        steps = search.choices(run(search.prepared()))
        cells = sum(int(s.chosen.sum()) for s in steps if isinstance(s, Candidates))
        each = [f"{clock.seconds[stage] / image.n_frames:.2f}" for stage in STAGES]
        print(row(name, cells, *each, f"{clock.seconds.total() / image.n_frames:.2f}"), flush=True)


COLUMNS = ("edge_f1", "division_f1", "complete_tracks", "tra", "det", "seg", "lnk", "bio")
HEAD = (
    *("movie", "masks", "edge F1", "divisions", "complete"),
    *("TRA", "DET", "SEG", "LNK", "BIO", "s/frame"),
)


def main() -> None:
    """Print a table in markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["hela", "psc"], metavar="NAME")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument(
        "--frames", type=lambda text: tuple(map(int, text.split(":"))), help="first:after the last"
    )
    parser.add_argument("--stages", action="store_true", help="seconds by stage, no scores")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.stages:
        by_stage(given.names, given)
        return
    print(header(*HEAD))
    for name in given.names:
        data = SETS[name]
        task = open_task(data, given.data, given.frames)
        if task is None:
            continue
        for how in ("plain", "jointly"):
            start = time.process_time()
            labels = bt.find_cells(task.image, choose=how).labels
            seconds = (time.process_time() - start) / task.image.n_frames
            frames = [np.asarray(frame)[0].astype(np.int32) for frame in labels.array]
            for border in dict.fromkeys((task.border, ALSO.get(name, task.border))):
                figures = scored(replace(task, border=border), frames)
                told = (f"{figures.get(key, np.nan):.3f}" for key in COLUMNS)
                words = name if border == task.border else f"{name}, {border} pixels left out"
                print(row(words, how, *told, f"{seconds:.2f}"), flush=True)


if __name__ == "__main__":
    main()
