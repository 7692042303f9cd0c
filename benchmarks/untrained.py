"""Score the shipped weights on real movies, true masks taken for the segmentation.

    python benchmarks/untrained.py [--data ../shared/data] [NAME ...]

Prints a table in markdown. The movies are not part of the project; `SETS` says which they are.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import bridgetrack as bt
from common import DATA, DataSet, row

_PHALLUSIA = DataSet("Phallusia", "Phallusia-lineages-csv3D", interval=2, masks="points")
_C2C12 = DataSet("C2C12", "C2C12-csv2D", interval=5, masks="points")
SETS = {
    "nuclei": (
        DataSet("Fluo-N2DL-HeLa-01", "Fluo-N2DL-HeLa-01", "01", (0.645, 0.645), 30),
        DataSet("Fluo-N2DH-SIM+-01", "Fluo-N2DH-SIM+-01-masks"),
        DataSet("iPSC-01", "iPSC-01-masks", "01"),
        DataSet("iPSC-03", "iPSC-03-masks", "03"),
        DataSet("iPSC-04", "iPSC-04-masks", "04"),
        DataSet("CellMigration", "CellMigration-masks"),
        DataSet("Fluo-N3DH-CE", "Fluo-N3DH-CE-masks", "01", (1.0, 0.09, 0.09), 1),
        DataSet("HL60-3D", "HL60-3D-small"),
    ),
    "cells": (
        DataSet("PhC-C2DL-PSC-01", "PhC-C2DL-PSC-01", "01", (1.6, 1.6), 10),
        DataSet("DIC-C2DH-HeLa-01", "DIC-C2DH-HeLa-01", "01", (0.19, 0.19), 10),
        DataSet("PhC-C2DH-U373-02", "PhC-C2DH-U373-02", "02", (0.65, 0.65), 15),
        DataSet("bacteria", "bacteria"),
        DataSet("MouseEpidermis-01", "MouseEpidermis-01-masks"),
    ),
    "points": tuple(
        replace(data, name=f"{data.name} {sequence}", sequence=sequence)
        for data, sequences in (
            (_C2C12, ("090303-C2C12P7_F0002", "090318-C2C12P7_F0018")),
            (_PHALLUSIA, ("Pm03", "Pm04", "Pm05", "Pm06", "Pm07")),
        )
        for sequence in sequences
    ),
}
"""Movies by what they show."""


def score(data: DataSet, root: Path) -> tuple[int, float, dict[str, float | None]]:
    """Track one movie; number of cells, seconds of tracking, and the figures."""
    folder = root / data.folder
    image = None
    if data.masks == "points":
        table = folder / f"{data.sequence}_nodes.csv"
        truth: object = bt.read_tracks_csv(table, frame_interval=data.interval)
        source: object = bt.read_detections_csv(table, frame_interval=data.interval)
        masks = None
    else:
        truth = bt.read_ctc(
            folder / f"{data.sequence}_GT", scale=data.scale, frame_interval=data.interval
        )
        source = masks = truth.labels
        if (folder / data.sequence).is_dir():
            image = bt.open_movie(
                folder / data.sequence, scale=data.scale, frame_interval=data.interval
            )
    start = time.perf_counter()
    tracking = bt.track(source, image)
    seconds = time.perf_counter() - start
    scores = bt.evaluate(tracking.tracks, truth, labels=masks, chota=False)
    return len(tracking.scene.detections), seconds, scores.to_dict()


HEADER = (
    "movie",
    "what",
    "cells",
    "divisions",
    "edge F1",
    "division F1",
    "± 1 frame",
    "TRA",
    "LNK",
    "BIO",
    "seconds",
)
FIGURES = ("edge_f1", "division_f1", "division_f1_within_1", "tra", "lnk", "bio")


def lines(root: Path, names: list[str]) -> Iterator[str]:
    """The lines of the table, as they are ready."""
    yield row(*HEADER)
    yield "| --- | --- |" + " ---: |" * (len(HEADER) - 2)
    for kind, data in ((kind, data) for kind, sets in SETS.items() for data in sets):
        wanted = not names or any(n in data.folder or n in data.name for n in names)
        if not wanted or not (root / data.folder).is_dir():
            continue
        cells, seconds, figures = score(data, root)
        values = [figures[key] for key in FIGURES]
        texts = ["–" if v is None else f"{v:.3f}" for v in values]
        divisions = figures["n_divisions"]
        yield row(data.name, kind, f"{cells:,}", f"{divisions:,}", *texts, f"{seconds:.1f}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("names", nargs="*", help="only movies whose name has one of these")
    given = parser.parse_args()
    if not given.data.is_dir():
        sys.exit(f"{given.data}: there is no such folder; give it with --data")
    warnings.simplefilter("ignore")
    for line in lines(given.data, given.names):
        print(line, flush=True)


if __name__ == "__main__":
    main()
