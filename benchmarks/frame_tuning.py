"""Masks chosen frame by frame and jointly, each with the bias of regions that suits it best.

    python benchmarks/frame_tuning.py [--data ../shared/data]

On development movies (HeLa-01 and PSC-01, frames 0 to 19, 25 pixels left out). Frame
by frame, only the ratio of bias and trust matters, so that one sweep is all that can be tuned.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bridgetrack as bt
import masks
from bridgetrack.pipeline.masks import MaskSettings, choose_masks
from bridgetrack.regions.regions import labels_of
from mask_clicks import remember

MOVIES = {"hela": ((0, 20), 25), "psc": ((0, 20), 25)}
BIASES = {"frame": (-2.5, -1.5, -0.5, 0.5, 1.5), "jointly": (-1.5, -0.5, 0.5)}
COLUMNS = ("edge_f1", "division_f1", "complete_tracks", "tra", "seg")


def main() -> None:
    """Print a row for every movie, way and bias."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=masks.DATA)
    args = parser.parse_args()
    remember()
    print("| movie | masks | bias | edge F1 | divisions | complete | TRA | SEG |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for name, (frames, border) in MOVIES.items():
        task = masks.open_task(masks.SETS[name], args.data, frames, border)
        if task is None:
            continue
        for how, biases in BIASES.items():
            for bias in biases:
                settings = replace(MaskSettings(), choose=how, bias=bias)
                choices: list[Any] = []
                bt.run(choose_masks(task.image, choices.append, settings=settings))
                shown = [labels_of(c.candidates.regions, c.chosen, c.frame) for c in choices]
                found = masks.scored(task, shown)
                figures = " | ".join(f"{found.get(k, np.nan):.3f}" for k in COLUMNS)
                print(f"| {name} | {how} | {bias} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
