"""Track movies from their raw images: cells found in one pass, frame by frame, or jointly.

    python benchmarks/masks.py [--data ../shared/data] [--frames A:B] [--how HOW,...] [--border N]
        [NAME ...]

Masks come from the image alone, weights are the shipped ones. For HeLa, as in the Cell Tracking
Challenge, what lies wholly within 25 pixels of the border is left out on both sides, after
tracking; for PSC both are scored. Lost are true links that the scores do not find again, by cause:
one of the cells has *no candidate* (none with an intersection over union above 0.5), another
candidate was chosen for it (*wrong candidate*: by the scores' own matching of cells it is not
there), or both cells are there and the link is not (*wrong link*).

Seconds are processor seconds a frame: all that finds and chooses masks, of these the joint choice
without finding candidates, and tracking the chosen masks as a label movie.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import scipy.sparse as sp
import tifffile
from numpy.typing import NDArray

import bridgetrack as bt
from bridgetrack.evaluation.matching import LineageGraph, graph_of_ctc, match_cells
from bridgetrack.io.ctc import read_ctc
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline import masks as masks_module
from bridgetrack.pipeline.mask_candidates import GivenMasks
from bridgetrack.pipeline.masks import MaskSettings, choose_masks
from bridgetrack.regions.regions import Regions, labels_of, regions_of_labels
from bridgetrack.regions.score import load_score
from bridgetrack.segmentation.movie import segment_movie

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
Labels = NDArray[np.int32]


@dataclass(frozen=True)
class DataSet:
    """A movie with raw images and true masks of whole cells."""

    folder: str
    border: int = 0
    sequence: str = "01"
    also: int | None = None  # another border to score with

    @property
    def truth(self) -> str:
        """Folder of the true masks within the sequence's truth."""
        return "TRA" if self.folder in ("bacteria", "HL60-3D-small") else "FULL"


SETS = {
    "hela": DataSet("Fluo-N2DL-HeLa-01", 25),
    "psc": DataSet("PhC-C2DL-PSC-01", also=25),
    "dic": DataSet("DIC-C2DH-HeLa-01"),
    "u373": DataSet("PhC-C2DH-U373-02", 0, "02"),
    "hl60": DataSet("HL60-3D-small"),
    "bacteria": DataSet("bacteria"),
}


def part(movie: Movie, first: int, last: int) -> Movie:
    """Some frames of a movie."""
    geometry = replace(movie.geometry, n_frames=last - first)
    return replace(movie, array=movie.array[first:last], geometry=geometry)


def of_frames(frames: list[Labels], image: Movie) -> Movie:
    """A label movie in memory."""
    stack = da.from_array(np.stack(frames)[:, None], chunks=(1, 1, *frames[0].shape))
    return Movie(stack, image.geometry, ("labels",), "benchmark")


@dataclass(frozen=True)
class Found:
    """Masks of a movie.

    Attributes
    ----------
    labels
        Of every frame.
    offered
        The candidates there were.
    seconds, choosing
        Of processor time, in all and for the joint choice alone.
    """

    labels: list[Labels]
    offered: list[Regions]
    seconds: float
    choosing: float = 0.0


def found(image: Movie, how: Any, given: GivenMasks) -> Found:
    """Find the cells of a movie in one of three ways."""
    start = time.process_time()
    if how == "plain":
        labels = [done.labels for done in segment_movie(image)]
        seconds = time.process_time() - start
        regions = [regions_of_labels(frame, t) for t, frame in enumerate(labels)]
        return Found(labels, regions, seconds)
    choices: list[Any] = []
    settings = MaskSettings(choose=how)
    with timed_choice() as choosing:
        bt.run(choose_masks(image, choices.append, settings=settings, given=given))
    seconds = time.process_time() - start
    labels = [labels_of(c.candidates.regions, c.chosen, c.frame) for c in choices]
    return Found(labels, [c.candidates.regions for c in choices], seconds, sum(choosing))


@contextmanager
def timed_choice() -> Iterator[list[float]]:
    """Collect the seconds of joint choices, without those in which candidates are found."""
    whole, spent = masks_module.choose_jointly, list[float]()

    def timed(candidates: Any, *args: Any, **named: Any) -> Any:
        def found_at(t: int) -> Any:
            start = time.process_time()
            one = candidates(t)
            spent.append(start - time.process_time())
            return one

        work = whole(found_at, *args, **named)
        while True:
            start = time.process_time()
            try:
                step = next(work)
            except StopIteration as end:
                return end.value
            finally:
                spent.append(time.process_time() - start)
            yield step

    masks_module.choose_jointly = timed
    try:
        yield spent
    finally:
        masks_module.choose_jointly = whole


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


def likeness(first: Regions, second: Regions) -> sp.csr_matrix:
    """Intersection over union of the regions of two tables in one frame, shape (R, R')."""
    parts = [
        sp.csr_matrix((np.ones(len(r.pixels)), r.pixels, r.starts), (len(r), r.n_pixels))
        for r in (first, second)
    ]
    shared = (parts[0] @ parts[1].T).tocoo()
    union = first.area[shared.row] + second.area[shared.col] - shared.data
    return sp.csr_matrix((shared.data / union, (shared.row, shared.col)), shared.shape)


@dataclass(frozen=True)
class Task:
    """Some frames of a movie, and the truth about them."""

    image: Movie
    truth: list[Labels]
    mothers: dict[int, int]
    border: int


def causes(
    task: Task, offered: list[Regions], true: LineageGraph, result: LineageGraph
) -> dict[str, int]:
    """Why links of true cells, those to daughters among them, are lost."""
    rows, columns, share = match_cells(true, result)
    order = np.lexsort((-share, columns))  # a detection keeps the true cell that it covers best
    best = order[np.r_[True, np.diff(columns[order]) != 0][: len(order)]]
    match = np.full(len(true.frame), -1)
    match[rows[best]] = columns[best]
    there = {tuple(edge) for edge in result.edges.tolist()}
    seen = has_candidate(task, offered)
    counts = dict.fromkeys(CAUSES, 0)
    for a, b in true.edges.tolist():
        if match[a] >= 0 and match[b] >= 0:
            counts["wrong link"] += (match[a], match[b]) not in there
            continue
        missing = [(int(true.frame[k]), int(true.label[k])) for k in (a, b) if match[k] < 0]
        counts["wrong candidate" if seen.issuperset(missing) else "no candidate"] += 1
    return counts


def has_candidate(task: Task, offered: list[Regions]) -> set[tuple[int, int]]:
    """Frames and labels of true cells with a candidate that overlaps well enough."""
    truth = [frame.copy() for frame in task.truth]
    rows_of(truth, task.mothers, task.border)  # without what is not scored, and numbered as there
    found: set[tuple[int, int]] = set()
    for t, (true, regions) in enumerate(zip(truth, offered, strict=True)):
        cells = regions_of_labels(true, t)
        if len(cells) and len(regions):
            good = likeness(cells, regions).max(axis=1).toarray().ravel() > 0.5
            found |= {(t, label) for label in np.unique(true[true > 0])[good].tolist()}
    return found


def open_task(
    data: DataSet, root: Path, frames: tuple[int, int] | None, border: int | None = None
) -> Task | None:
    """A data set, opened; None, and a remark, where it is not here."""
    folder = root / data.folder
    if not folder.is_dir():
        print(f"{folder}: not here, skipped", file=sys.stderr)
        return None
    whole = bt.open_movie(folder / data.sequence)
    first, last = frames or (0, whole.n_frames)
    truth_of = folder / f"{data.sequence}_GT" / data.truth
    truth = read_masks(truth_of, "man_track*.tif")[first:last]
    mothers = parents(truth_of / "man_track.txt")
    return Task(part(whole, first, last), truth, mothers, data.border if border is None else border)


def scored(
    task: Task, frames: list[Labels], offered: list[Regions] | None = None
) -> dict[str, float]:
    """Track masks with the shipped weights and score them.

    Beside the scores there are SEG, the seconds of tracking, and why links are lost where it is
    known what the candidates were.
    """
    true, border = [frame.copy() for frame in task.truth], task.border
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        labels = of_frames([frame.copy() for frame in frames], task.image)
        start = time.process_time()
        tracked = bt.track(labels, task.image)
        seconds = time.process_time() - start
        tracked.save(root / "found", ["ctc"])
        result = read_masks(root / "found" / "ctc", "mask*.tif")
        table = rows_of(result, parents(root / "found" / "ctc" / "res_track.txt"), border)
        write_ctc(root / "RES" / "ctc", result, table, False)
        write_ctc(root / "01_GT" / "TRA", true, rows_of(true, task.mothers, border), True)
        score = bt.evaluate(root / "RES", root / "01_GT", chota=False)
        why: dict[str, int] = {}
        if offered is not None:
            truth = graph_of_ctc(read_ctc(root / "01_GT"), markers=True)
            shown = graph_of_ctc(read_ctc(root / "RES" / "ctc"), markers=False)
            why = causes(task, offered, truth, shown)
    figures = {k: v for k, v in score.to_dict().items() if isinstance(v, int | float)}
    return {**figures, "seg": seg(task.truth, frames), "tracking": seconds, **why}


def seg(truth: list[Labels], shown: list[Labels]) -> float:
    """SEG of the challenge on whole masks: mean intersection over union of true cells."""
    total, n = 0.0, 0
    for t, (true, labels) in enumerate(zip(truth, shown, strict=True)):
        cells = regions_of_labels(true, t)
        n += len(cells)
        if not len(cells) or not labels.any():
            continue
        regions = regions_of_labels(labels, t)
        like = likeness(cells, regions).toarray()
        both = like * (regions.area + cells.area[:, None]) / (1 + like)
        covered = both > 0.5 * cells.area[:, None]
        total += float((like * covered).sum())
    return total / max(n, 1)


def rows(args: argparse.Namespace) -> Iterator[list[str]]:
    """One row per movie and way of finding cells."""
    given = GivenMasks(score=None if args.score is None else load_score(args.score))
    for name in args.names or ["hela", "psc"]:
        task = open_task(SETS[name], args.data, args.frames, args.border)
        if task is None:
            continue
        also = SETS[name].also if args.border is None else None
        for how in args.how.split(","):
            one = found(task.image, how, given)
            for border in dict.fromkeys((task.border, task.border if also is None else also)):
                figures = scored(replace(task, border=border), one.labels, one.offered)
                n_cells = sum(len(np.unique(t)) - 1 for t in task.truth)
                yield [
                    name if border == task.border else f"{name}, {border} pixels left out",
                    how,
                    *(f"{figures.get(k, np.nan):.3f}" for k in COLUMNS),
                    f"{sum(map(len, one.offered)) / max(n_cells, 1):.1f}",
                    *(str(figures[cause]) for cause in CAUSES),
                    *(
                        f"{seconds / task.image.n_frames:.2f}"
                        for seconds in (one.seconds, one.choosing, figures["tracking"])
                    ),
                ]


CAUSES = ("no candidate", "wrong candidate", "wrong link")
COLUMNS = ("edge_f1", "division_f1", "complete_tracks", "tra", "det", "seg", "bio")
HEAD = (
    "movie", "masks", "edge F1", "divisions", "complete", "TRA", "DET", "SEG", "BIO",
    "candidates/cell", "links lost: no candidate", "wrong candidate", "wrong link",
    "s/frame", "joint choice alone", "tracking",
)  # fmt: skip


def main() -> None:
    """Print a table in markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*SETS, []])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--how", default="plain,frame,jointly")
    parser.add_argument("--border", type=int, help="pixels left out; as the movie's own")
    parser.add_argument("--score", type=Path, help="a score of regions, instead of the shipped one")
    parser.add_argument(
        "--frames", type=lambda text: tuple(map(int, text.split(":"))), help="first:after the last"
    )
    args = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |")
    print("|" + " --- |" * len(HEAD))
    for row in rows(args):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
