"""What clicks that mend masks are worth: some errors of the masks are mended, then all is redone.

    python benchmarks/mask_clicks.py [--data ../shared/data] [--clicks 50] [--seeds 5]
        [--frames A:B] [NAME ...]

A person looks at ten frames of the movie, drawn at random, as they were chosen from the image alone
and mends as many of the errors there as there are clicks, drawn at random: a cell that was missed,
cut or joined with others gets the outline that is best among the candidates (where none overlaps
it by half, its true outline); what is no cell is said to be none. Then masks are chosen again with
these answers, movies are tracked with the shipped weights, and scored as in `masks.py`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bridgetrack as bt
import masks
from bridgetrack.annotations.mask_answers import MaskAnswer, MaskAnswers, runs_of
from bridgetrack.pipeline.mask_candidates import Given
from bridgetrack.pipeline.masks import choose_masks
from bridgetrack.regions.mend import MendKind
from bridgetrack.regions.regions import Regions, labels_of, regions_of_labels

Labels = NDArray[np.int32]
LOOKED_AT = 10
COLUMNS = ("edge_f1", "division_f1", "complete_tracks", "tra", "det")


def pixels(regions: Regions, row: int) -> NDArray[np.int64]:
    """Places of a region in the flat frame."""
    return regions.pixels[regions.starts[row] : regions.starts[row + 1]]


def errors(
    t: int, true: Labels, shown: Labels, offered: Regions, border: int
) -> list[tuple[MendKind, list[Any], list[Any]]]:
    """Kind, right and wrong sets of pixels of every error of a frame."""
    cells, now = regions_of_labels(true, t), regions_of_labels(shown, t)
    shape = true.shape
    found: list[tuple[MendKind, list[Any], list[Any]]] = []
    like = masks.likeness(cells, now).toarray()
    best = masks.likeness(cells, offered).toarray()

    def inside(places: NDArray[np.int64]) -> bool:
        at = np.unravel_index(places, shape)[-2:]
        return all(
            bool(((a >= border) & (a < n - border)).any())
            for a, n in zip(at, shape[-2:], strict=True)
        )

    for k in range(len(cells)):
        mine = pixels(cells, k)
        if like[k].max(initial=0) > 0.5 or not inside(mine):
            continue
        row = int(best[k].argmax()) if len(offered) else -1
        right = pixels(offered, row) if row >= 0 and best[k, row] > 0.5 else mine
        near = [pixels(now, j) for j in np.flatnonzero(like[k])]
        wrong = [w for w in near if len(np.intersect1d(w, right)) > 0.25 * min(len(w), len(right))]
        found.append((MendKind.GROW, [right], wrong))
    for j in np.flatnonzero(like.max(axis=0, initial=0) == 0).tolist():
        mine = pixels(now, j)
        if inside(mine) and not at_border(mine, shape):
            found.append((MendKind.REMOVE, [], [mine]))
    return found


def at_border(places: NDArray[np.int64], shape: tuple[int, ...]) -> bool:
    """Whether a region touches the edge of the picture: truth often leaves such cells out."""
    at = np.unravel_index(places, shape)[-2:]
    return any(bool(((a == 0) | (a == n - 1)).any()) for a, n in zip(at, shape[-2:], strict=True))


def answered(
    image: Any, truth: list[Labels], shown: list[Labels], offered: list[Regions], border: int,
    clicks: int, seed: int,
) -> MaskAnswers:  # fmt: skip
    """What the person says."""
    rng = np.random.default_rng(seed)
    looked = rng.permutation(len(truth))[:LOOKED_AT].tolist()
    pool = [
        (t, *error)
        for t in sorted(looked)
        for error in errors(t, truth[t], shown[t], offered[t], border)
    ]
    chosen = sorted(rng.permutation(len(pool))[:clicks].tolist())
    past = tuple(
        MaskAnswer(
            f"m{n}", pool[k][0], pool[k][1], "2026-01-01T00:00:00+00:00",
            tuple(map(runs_of, pool[k][2])), tuple(map(runs_of, pool[k][3])),
        )
        for n, k in enumerate(chosen, 1)
    )  # fmt: skip
    return MaskAnswers(image.geometry, past)


def chosen(image: Any, given: Given) -> tuple[list[Labels], list[Regions]]:
    """Labels and candidates of every frame."""
    choices: list[Any] = []
    bt.run(choose_masks(image, choices.append, given=given))
    labels = [labels_of(c.candidates.regions, c.chosen, c.frame) for c in choices]
    return labels, [c.candidates.regions for c in choices]


def main() -> None:
    """Print a table in markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*masks.SETS, []])
    parser.add_argument("--data", type=Path, default=masks.DATA)
    parser.add_argument("--clicks", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--frames", type=lambda text: tuple(map(int, text.split(":"))))
    args = parser.parse_args()
    print("| movie | clicks | edge F1 | divisions | complete | TRA | DET | SEG |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in args.names or ["hela", "psc"]:
        data = masks.SETS[name]
        folder = args.data / data.folder
        if not folder.is_dir():
            print(f"{folder}: not here, skipped", file=sys.stderr)
            continue
        whole = bt.open_movie(folder / data.sequence)
        first, last = args.frames or (0, whole.n_frames)
        image = masks.part(whole, first, last)
        truth_of = folder / f"{data.sequence}_GT" / data.truth
        truth = masks.read_masks(truth_of, "man_track*.tif")[first:last]

        def figures(
            frames: list[Labels], image: Any = image, truth_of: Path = truth_of,
            data: masks.DataSet = data, span: tuple[int, int] = (first, last),
            truth: list[Labels] = truth,
        ) -> list[float]:  # fmt: skip
            found = masks.scored(image, [f.copy() for f in frames], truth_of, data, span)
            return [*(float(found.get(k, np.nan)) for k in COLUMNS), masks.seg(truth, frames)]

        shown, offered = chosen(image, Given())
        print(row(name, "0", np.array([figures(shown)])), flush=True)
        rows = []
        for seed in range(args.seeds):
            answers = answered(image, truth, shown, offered, data.border, args.clicks, seed)
            frames, _ = chosen(image, Given(answers=answers))
            rows.append(figures(frames))
            print(f"{name}, seed {seed}: {len(answers)} answers, {rows[-1]}", file=sys.stderr)
        print(row(name, str(args.clicks), np.array(rows)), flush=True)


def row(name: str, clicks: str, rows: NDArray[np.float64]) -> str:
    """A line of the table: mean and standard deviation."""
    spread = rows.std(axis=0) if len(rows) > 1 else None
    cells = [
        f"{mean:.3f}" + ("" if spread is None else f" ± {spread[k]:.3f}")
        for k, mean in enumerate(rows.mean(axis=0))
    ]
    return "| " + " | ".join([name, clicks, *cells]) + " |"


if __name__ == "__main__":
    main()
