"""Track movies from their raw images: cells found in one pass, frame by frame, or jointly.

    python benchmarks/masks.py [--data ../shared/data] [--frames A:B] [--how HOW,...] [--border N]
        [NAME ...]

Masks come from the image alone, weights are the shipped ones. For HeLa, as in the Cell Tracking
Challenge, what lies wholly within 25 pixels of the border is left out on both sides, after
tracking. Errors are counted by cause: a true link is lost because a cell has *no candidate* (none
with an intersection over union above 0.5), because another candidate was chosen (*wrong
candidate*), or because both cells are right and the link is not (*wrong link*: those that are lost
beyond the others, which count cells of little overlap though they may be linked).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
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
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.mask_candidates import GivenMasks
from bridgetrack.pipeline.masks import MaskSettings, choose_masks
from bridgetrack.regions.regions import Regions, labels_of, no_regions, regions_of_labels
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

    @property
    def truth(self) -> str:
        """Folder of the true masks within the sequence's truth."""
        return "TRA" if self.folder in ("bacteria", "HL60-3D-small") else "FULL"


SETS = {
    "hela": DataSet("Fluo-N2DL-HeLa-01", 25),
    "psc": DataSet("PhC-C2DL-PSC-01"),
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


def found(image: Movie, how: Any, given: GivenMasks) -> tuple[list[Labels], list[Regions], float]:
    """Labels of every frame, the candidates there were, and seconds of processor time."""
    start = time.process_time()
    if how == "plain":
        labels = [done.labels for done in segment_movie(image)]
        seconds = time.process_time() - start
        return labels, [regions_of_labels(frame, t) for t, frame in enumerate(labels)], seconds
    choices: list[Any] = []
    settings = MaskSettings(choose=how)
    bt.run(choose_masks(image, choices.append, settings=settings, given=given))
    seconds = time.process_time() - start
    labels = [labels_of(c.candidates.regions, c.chosen, c.frame) for c in choices]
    return labels, [c.candidates.regions for c in choices], seconds


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


def causes(task: Task, shown: list[Labels], offered: list[Regions], lost: int) -> dict[str, int]:
    """Why so many links of true cells, those to daughters among them, are lost."""
    counts = {"no candidate": 0, "wrong candidate": 0}
    truth = [frame.copy() for frame in task.truth]
    table = rows_of(truth, task.mothers, task.border)  # without what is not scored
    mother = dict(zip(table["label"].tolist(), table["parent"].tolist(), strict=True))
    state = []
    for t, (true, labels, regions) in enumerate(zip(truth, shown, offered, strict=True)):
        cells = regions_of_labels(true, t)
        names = np.unique(true[true > 0])

        def seen(others: Regions, cells: Regions = cells) -> NDArray[np.bool_]:
            if not len(others) or not len(cells):
                return np.zeros(len(cells), dtype=bool)
            return np.asarray(likeness(cells, others).max(axis=1).toarray().ravel() > 0.5)

        chosen = seen(regions_of_labels(labels, t) if labels.any() else no_regions(labels.shape))
        state.append(
            dict(zip(names.tolist(), zip(seen(regions), chosen, strict=True), strict=True))
        )
    for before, after in zip(state, state[1:], strict=False):
        for name in after:
            earlier = name if name in before else mother[name]
            if earlier not in before:
                continue
            (offered_a, chosen_a), (offered_b, chosen_b) = before[earlier], after[name]
            if chosen_a and chosen_b:
                continue
            missing = not (offered_a and offered_b)
            counts["no candidate" if missing else "wrong candidate"] += 1
    return counts | {"wrong link": max(0, lost - sum(counts.values()))}


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


def scored(task: Task, frames: list[Labels]) -> dict[str, float]:
    """Track masks with the shipped weights and score them; SEG, too."""
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
        for how in args.how.split(","):
            frames, offered, seconds = found(task.image, how, given)
            figures = scored(task, frames)
            lost = round(figures["n_edges"] * (1 - figures["edge_recall"]))
            why = causes(task, frames, offered, lost)
            n_cells = sum(len(np.unique(t)) - 1 for t in task.truth)
            yield [
                name,
                how,
                *(f"{figures.get(k, np.nan):.3f}" for k in COLUMNS),
                f"{sum(map(len, offered)) / max(n_cells, 1):.1f}",
                *map(str, why.values()),
                f"{seconds / task.image.n_frames:.2f}",
            ]


COLUMNS = ("edge_f1", "division_f1", "complete_tracks", "tra", "det", "seg", "bio")
HEAD = (
    "movie", "masks", "edge F1", "divisions", "complete", "TRA", "DET", "SEG", "BIO",
    "candidates/cell", "links lost: no candidate", "wrong candidate", "wrong link",
    "s/frame",
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
