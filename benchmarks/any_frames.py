"""How much the automatic segmentation hangs on which frames of a movie are given.

    python benchmarks/any_frames.py [--frames 40] [--step 20] [--choose jointly]

Successive frames of PSC-01 are segmented by what is decided from them alone, and by what is
decided from all frames; both are tracked and scored against the truth. Plainly, or with masks
chosen together with their tracks, as the program does by itself.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import bridgetrack as bt
from bridgetrack.pipeline.joint import FrameChoice
from bridgetrack.pipeline.masks import choose_masks
from bridgetrack.pipeline.sizing import fitted_settings
from bridgetrack.regions.regions import labels_of
from bridgetrack.segmentation.readings import estimate_settings
from common import DATA, DataSet, some_frames
from masks import of_frames

PSC = DataSet("PSC", "PhC-C2DL-PSC-01", "01", (1.6, 1.6), 10)


def edge_f1(
    image: bt.Movie, truth: object, settings: bt.SegmentationSettings, jointly: bool
) -> float:
    """Edge F1 of the cells found with these settings, tracked by the shipped weights."""
    if jointly:
        choices: list[FrameChoice] = []
        bt.run(choose_masks(image, choices.append, settings))
        frames = [labels_of(c.candidates.regions, c.chosen, c.frame) for c in choices]
        labels = of_frames(frames, image)
        tracks = bt.track(labels, image).tracks
        return float(bt.evaluate(tracks, truth, labels=labels, chota=False).to_dict()["edge_f1"])
    with tempfile.TemporaryDirectory() as spare:
        path = bt.run(bt.segment_to_file(image, Path(spare) / "labels.tif", settings))
        labels = bt.open_labels(path, scale=image.geometry.scale, unit=image.geometry.unit)
        tracks = bt.track(labels, image).tracks
        return float(bt.evaluate(tracks, truth, labels=labels, chota=False).to_dict()["edge_f1"])


def main() -> None:
    """Print one line for every part of the movie."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--step", type=int, default=20)
    parser.add_argument("--choose", choices=("plain", "jointly"), default="plain")
    given = parser.parse_args()
    folder = given.data / PSC.folder
    if not folder.is_dir():
        sys.exit(f"skipped: there is no {folder}; give the folder with --data")
    warnings.simplefilter("ignore")
    how = {"scale": PSC.scale, "frame_interval": PSC.interval}
    whole = bt.open_movie(folder / PSC.sequence, **how)
    jointly = given.choose == "jointly"

    def estimate(movie: bt.Movie) -> bt.SegmentationSettings:
        return (bt.run(fitted_settings(movie)) if jointly else estimate_settings(movie)).settings

    decided = estimate(whole)
    print(f"all {whole.n_frames} frames: {decided.foreground}, {decided.diameter:.1f} pixels")
    print("| frames | cells are | diameter | edge F1, decided by them | decided by all | lost |")
    print("| --- | --- | ---: | ---: | ---: | ---: |", flush=True)
    for start in range(0, whole.n_frames - given.frames + 1, given.step):
        part = DataSet("PSC", PSC.folder, "01", *how.values(), 1, start, start + given.frames)
        with tempfile.TemporaryDirectory() as spare:
            some = some_frames(folder, Path(spare), part)
            image = bt.open_movie(some / PSC.sequence, **how)
            truth = bt.read_ctc(some / f"{PSC.sequence}_GT", **how)
            own = estimate(image)
            here = edge_f1(image, truth, own, jointly)
            there = here if own == decided else edge_f1(image, truth, decided, jointly)
        print(
            f"| {start}-{start + given.frames - 1} | {own.foreground} | {own.diameter:.1f} "
            f"| {here:.3f} | {there:.3f} | {there - here:+.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
