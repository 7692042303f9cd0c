"""The table of ``bridgetrack demo``, on masks found plainly and on masks chosen with their tracks.

    python benchmarks/sample_table.py

The bundled sample, its 80 clicks, trained and scored as the demo does. The movie that is scored is
the one that was learned from: it shows how the program works, not how well on other movies.
"""

from __future__ import annotations

import warnings

import numpy as np

import bridgetrack as bt
from bridgetrack.annotations.store import load_annotations
from bridgetrack.cli.demo import COLUMNS
from bridgetrack.evaluation.match import match_detections
from bridgetrack.evaluation.true_events import score_events, true_events
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.scene import annotate, prepare
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.sample import SAMPLE_SEQUENCE, sample_folder
from bridgetrack.segmentation.movie import SegmentedFrame
from bridgetrack.segmentation.settings import Choose
from bridgetrack.training.train import train_steps
from common import header, row
from masks import of_frames

WAYS: tuple[Choose, ...] = ("plain", "jointly")


def main() -> None:
    """Print a row for every way of finding cells, untrained and trained."""
    warnings.simplefilter("ignore")
    folder = sample_folder()
    image = bt.open_movie(folder / SAMPLE_SEQUENCE)
    truth = bt.read_ctc(folder / f"{SAMPLE_SEQUENCE}_GT")
    print(header("masks", "weights", *(title for title, _ in COLUMNS)))
    for how in WAYS:
        work = Finding(choose=how).steps(image)
        frames = [s.labels.astype(np.int32) for s in work if isinstance(s, SegmentedFrame)]
        labels = of_frames(frames, image)
        scene = bt.run(prepare(labels, image))
        clicked = annotate(scene, load_annotations(folder / "annotations.json"))
        model = bt.run(train_steps(clicked)).model
        tracked = {
            "untrained": bt.run(track_scene(scene)),
            "trained on 80 clicks": bt.run(track_scene(scene, model)),
            "and held to them": bt.run(track_scene(clicked, model)),
        }
        match = match_detections(scene.detections, labels, truth.tracks, truth.labels)
        events = true_events(scene.detections, truth.tracks, match)
        for name, found in tracked.items():
            scores = bt.evaluate(found.tracks, truth, labels=labels).to_dict()
            scores["events_right"] = score_events(found.tracks, events).share
            print(row(how, name, *(f"{scores[key]:.4f}" for _, key in COLUMNS)), flush=True)


if __name__ == "__main__":
    main()
