"""Labels brought along, before and after their repair: what was mended and what was broken.

    python benchmarks/repair_labels.py [--data ../shared/data] [--frames A:B]

The labels are the automatic masks that come with HeLa-01. A true cell is right where a label
overlaps it by more than half of their union; it is mended where that was not so before, broken
where it was so before only. Likewise for labels where the truth has nothing. What lies within 25
pixels of the border is left out, as in the Cell Tracking Challenge.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import bridgetrack as bt
import masks
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.mask_changes import with_outlines_of
from bridgetrack.pipeline.repair import repair_masks
from bridgetrack.regions.regions import regions_of_labels

Labels = NDArray[np.int32]
Mask = NDArray[np.bool_]


def within(frame: Labels, border: int) -> Labels:
    """Without what lies wholly within the border."""
    inner = np.unique(frame[border:-border, border:-border])
    return np.where(np.isin(frame, inner), frame, 0).astype(np.int32)


def state(true: Labels, shown: Labels, t: int, border: int) -> tuple[Mask, NDArray[np.int64]]:
    """Which true cells are right, and how many labels lie where nothing is.

    Of these all, and those that reach into the border, in which the truth holds no cells.
    """
    cells, found = regions_of_labels(true, t), regions_of_labels(shown, t)
    like = masks.likeness(cells, found).toarray()
    nothing = np.unique(shown[shown > 0])[like.max(axis=0, initial=0) == 0]
    rim = shown.copy()
    rim[border:-border, border:-border] = 0
    both = np.array([len(nothing), np.isin(nothing, rim).sum()], dtype=np.int64)
    return like.max(axis=1, initial=0) > 0.5, both


def main() -> None:
    """Print a table in markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=masks.DATA)
    parser.add_argument("--frames", type=lambda text: tuple(map(int, text.split(":"))))
    args = parser.parse_args()
    data = masks.SETS["hela"]
    task = masks.open_task(data, args.data, args.frames)
    if task is None:
        return
    image, truth = task.image, task.truth
    labels = bt.open_labels(args.data / data.folder / "01_AUTO")
    first, last = args.frames or (0, labels.n_frames)
    given = masks.part(labels, first, last)
    anew: list[Labels] = []
    bt.run(repair_masks(given, image, anew.append, shipped_model(), outlines=True))
    before = [np.asarray(given.channel_frame(t)).astype(np.int32) for t in range(given.n_frames)]
    kept = [with_outlines_of(old, new) for old, new in zip(before, anew, strict=True)]
    repaired = {"repaired": kept, "and outlined anew": anew}
    for name, after in repaired.items():
        print(f"- {name}: {told(truth, before, after, data.border)}")
    print()
    print("| labels | edge F1 | divisions | complete | TRA | DET | SEG | BIO |")
    print("| --- |" + " ---: |" * 7)
    for name, frames in {"as they came": before, **repaired}.items():
        found = masks.scored(task, frames)
        cells = [f"{found.get(k, np.nan):.3f}" for k in masks.COLUMNS]
        print("| " + " | ".join([name, *cells]) + " |")


def told(truth: list[Labels], before: list[Labels], after: list[Labels], border: int) -> str:
    """What was mended and broken, in words."""
    mended = broken = 0
    false_before, false_after = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    for t, (true, old, new) in enumerate(zip(truth, before, after, strict=True)):
        cells = within(true, border)
        right, wrong = state(cells, within(old, border), t, border)
        right_now, wrong_now = state(cells, within(new, border), t, border)
        mended += int((right_now & ~right).sum())
        broken += int((right & ~right_now).sum())
        false_before, false_after = false_before + wrong, false_after + wrong_now
    return (
        f"true cells mended {mended}, broken {broken}, {mended / max(broken, 1):.1f} for one; "
        f"labels where nothing is: {false_before[0]} before, {false_after[0]} after, of which "
        f"{false_before[1]} and {false_after[1]} reach into the border that is left out"
    )


if __name__ == "__main__":
    main()
