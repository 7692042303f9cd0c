"""Labels brought along, before and after their repair: what was mended and what was broken.

    python benchmarks/repair_labels.py [--data ../shared/data] [--frames A:B] [--loyalty 2]

The labels are the automatic masks that come with HeLa-01. A true cell is right where a label
overlaps it by more than half of their union; it is mended where that was not so before, broken
where it was so before only. Likewise for labels where the truth has nothing. What lies within 25
pixels of the border is left out, as in the Cell Tracking Challenge.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bridgetrack as bt
import masks
from bridgetrack.pipeline.mask_candidates import GivenMasks
from bridgetrack.pipeline.masks import MaskSettings, choose_masks
from bridgetrack.regions.regions import labels_of, regions_of_labels

Labels = NDArray[np.int32]
Mask = NDArray[np.bool_]


def within(frame: Labels, border: int) -> Labels:
    """Without what lies wholly within the border."""
    inner = np.unique(frame[border:-border, border:-border])
    return np.where(np.isin(frame, inner), frame, 0).astype(np.int32)


def state(true: Labels, shown: Labels, t: int) -> tuple[Mask, int]:
    """Which true cells are right, and how many labels lie where nothing is."""
    cells, found = regions_of_labels(true, t), regions_of_labels(shown, t)
    like = masks.likeness(cells, found).toarray()
    return like.max(axis=1, initial=0) > 0.5, int((like.max(axis=0, initial=0) == 0).sum())


def main() -> None:
    """Print a table in markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=masks.DATA)
    parser.add_argument("--frames", type=lambda text: tuple(map(int, text.split(":"))))
    parser.add_argument("--loyalty", type=float, default=MaskSettings().loyalty)
    args = parser.parse_args()
    data = masks.SETS["hela"]
    task = masks.open_task(data, args.data, args.frames)
    if task is None:
        return
    image, truth = task.image, task.truth
    labels = bt.open_labels(args.data / data.folder / "01_AUTO")
    first, last = args.frames or (0, labels.n_frames)
    given = masks.part(labels, first, last)
    choices: list[Any] = []
    settings = MaskSettings(loyalty=args.loyalty)
    bt.run(choose_masks(image, choices.append, settings=settings, given=GivenMasks((given,))))
    after = [labels_of(c.candidates.regions, c.chosen, c.frame) for c in choices]
    before = [np.asarray(given.channel_frame(t)).astype(np.int32) for t in range(given.n_frames)]
    mended = broken = false_before = false_after = 0
    for t, (true, old, new) in enumerate(zip(truth, before, after, strict=True)):
        cells = within(true, data.border)
        right, wrong = state(cells, within(old, data.border), t)
        right_now, wrong_now = state(cells, within(new, data.border), t)
        mended += int((right_now & ~right).sum())
        broken += int((right & ~right_now).sum())
        false_before, false_after = false_before + wrong, false_after + wrong_now
    print(f"true cells mended {mended}, broken {broken}: {mended / max(broken, 1):.1f} for one")
    print(f"labels where nothing is: {false_before} before, {false_after} after")
    print("| labels | edge F1 | divisions | complete | TRA | DET | SEG |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, frames in (("as they came", before), ("repaired", after)):
        found = masks.scored(task, frames)
        cells = [f"{found.get(k, np.nan):.3f}" for k in masks.COLUMNS]
        print("| " + " | ".join([name, *cells]) + " |")


if __name__ == "__main__":
    main()
