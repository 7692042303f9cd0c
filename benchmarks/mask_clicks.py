"""What clicks that mend masks are worth: some parts of frames are mended, then all is redone.

    python benchmarks/mask_clicks.py [--data ../shared/data] [--clicks 50] [--seeds 5]
        [--frames A:B] [NAME ...]

A person looks at areas around places drawn at random, half as wide and high as the picture where
they do not reach beyond it, as masks were chosen from the image alone, and mends every error there
with a click: a cell that was missed, cut or joined with others gets the outline that is best among
the candidates (where none overlaps it by half, its true outline); what is no cell, as the truth has
it, is said to be none. One more click says that all in view is right. This goes on until the clicks
are spent. Then masks are chosen again with these answers, movies are tracked with the shipped
weights, and scored as in `masks.py`.
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
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.pipeline import mask_candidates
from bridgetrack.pipeline.mask_candidates import GivenMasks
from bridgetrack.pipeline.masks import choose_masks
from bridgetrack.regions.acts import check
from bridgetrack.regions.mend import Mend, MendKind, MendSite
from bridgetrack.regions.regions import Regions, labels_of, regions_of_labels
from bridgetrack.segmentation.settings import SegmentationSettings

Labels = NDArray[np.int32]
Index = NDArray[np.int64]


def pixels(regions: Regions, row: int) -> Index:
    """Places of a region in the flat frame."""
    return regions.pixels[regions.starts[row] : regions.starts[row + 1]]


def errors(
    t: int, true: Labels, shown: Labels, offered: Regions, view: NDArray[np.bool_]
) -> list[Mend]:
    """What mends every error that lies wholly in view."""
    cells, now = regions_of_labels(true, t), regions_of_labels(shown, t)
    seen = view.reshape(-1)
    like = masks.likeness(cells, now).toarray()
    best = masks.likeness(cells, offered).toarray()
    none = np.zeros(0, dtype=np.int64)
    found = []
    for k in range(len(cells)):
        mine = pixels(cells, k)
        if like[k].max(initial=0) > 0.5 or not seen[mine].all():
            continue
        row = int(best[k].argmax()) if len(offered) else -1
        right = pixels(offered, row) if row >= 0 and best[k, row] > 0.5 else mine
        near = [pixels(now, j) for j in np.flatnonzero(like[k])]
        wrong = [w for w in near if len(np.intersect1d(w, right)) > 0.25 * min(len(w), len(right))]
        sides = ((right,), tuple(wrong))
        found.append(Mend(MendKind.GROW, t, (), none, none, none, (), *sides))
    for j in np.flatnonzero(like.max(axis=0, initial=0) == 0).tolist():
        mine = pixels(now, j)
        if seen[mine].all():
            found.append(Mend(MendKind.REMOVE, t, (), none, none, none, (), (), (mine,)))
    return found


def answered(
    image: Any, truth: list[Labels], shown: list[Labels], offered: list[Regions], border: int,
    clicks: int, seed: int,
) -> MaskAnswers:  # fmt: skip
    """What the person says."""
    rng = np.random.default_rng(seed)
    now = [frame.copy() for frame in shown]
    answers, shape = MaskAnswers(image.geometry), truth[0].shape
    views: set[int] = set()
    while clicks > 0 and len(views) < len(truth):
        t = int(rng.integers(len(truth)))
        middle = [int(rng.integers(border, n - border)) for n in shape[-2:]]
        sides = list(zip(middle, shape[-2:], strict=True))
        low = [*[0] * (len(shape) - 2), *(max(border, m - n // 4) for m, n in sides)]
        high = [*shape[:-2], *(min(n - border, m + n // 4) for m, n in sides)]
        view = np.zeros(shape, dtype=bool)
        view[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = True
        if t in views:
            continue
        views.add(t)
        found = errors(t, truth[t], now[t], offered[t], view)
        flat = now[t].reshape(-1)
        for mend in found[:clicks]:
            answers = answers.added(mend)
            for places in mend.wrong:
                flat[places] = 0
            for places in mend.right:
                flat[places[flat[places] == 0]] = flat.max() + 1
        clicks -= len(found)
        if clicks > 0:
            site = MendSite(t, now[t], SegmentationSettings(), int(flat.max()) + 1)
            try:
                mend = check(site, tuple(low), tuple(n - 1 for n in high))
            except bt.BridgetrackError:
                continue  # nothing in view
            answers = answers.added(mend)
            clicks -= 1
    return answers


def remember() -> None:
    """Keep what is read of an image between choices: it does not hang on answers."""
    proposed, read = mask_candidates.propose_frame, mask_candidates.segment_frame
    kept: dict[Any, Any] = {}

    def once(key: Any, work: Any) -> Any:
        if key not in kept:
            kept[key] = work()
        return kept[key]

    def propose_frame(image: Any, *args: Any, t: int, **named: Any) -> Any:
        return once((image.tobytes()[:4096], t), lambda: proposed(image, *args, t=t, **named))

    def segment_frame(image: Any, *args: Any, **named: Any) -> Any:
        return once(image.tobytes(), lambda: read(image, *args, **named))

    mask_candidates.propose_frame = propose_frame
    mask_candidates.segment_frame = segment_frame


def chosen(image: Any, given: GivenMasks) -> tuple[list[Labels], list[Regions]]:
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
    remember()
    print("| movie | clicks | edge F1 | divisions | complete | TRA | DET | SEG |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in args.names or ["hela", "psc"]:
        task = masks.open_task(masks.SETS[name], args.data, args.frames)
        if task is None:
            continue
        image, truth = task.image, task.truth

        def figures(frames: list[Labels], task: masks.Task = task) -> list[float]:
            found = masks.scored(task, frames)
            return [float(found.get(k, np.nan)) for k in masks.COLUMNS]

        shown, offered = chosen(image, GivenMasks())
        print(row(name, "0", np.array([figures(shown)])), flush=True)
        rows = []
        for seed in range(args.seeds):
            answers = answered(image, truth, shown, offered, task.border, args.clicks, seed)
            frames, _ = chosen(image, GivenMasks(answers=answers))
            rows.append(figures(frames))
            seen = sum(len(a.right) for a in answers if a.kind == MendKind.CHECK)
            said = f"{len(answers)} answers, {seen} cells in view"
            print(f"{name}, seed {seed}: {said}, {rows[-1]}", file=sys.stderr)
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
