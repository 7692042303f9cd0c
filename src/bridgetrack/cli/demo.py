"""``bridgetrack demo``: all steps on the sample movie."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack import api
from bridgetrack.annotations.files import load_annotations
from bridgetrack.cli.console import answer, show, table
from bridgetrack.cli.options import Json
from bridgetrack.cli.track import run_lines
from bridgetrack.cli.train import describe_training, learn
from bridgetrack.evaluation.scores import evaluate
from bridgetrack.files import SAMPLE_SEQUENCE, sample_folder
from bridgetrack.io.ctc import read_ctc
from bridgetrack.io.may_write import check_file, check_folder, signed
from bridgetrack.movie.opening import open_labels, open_movie
from bridgetrack.movie.writers import label_writer
from bridgetrack.notes import Note, collecting_warnings, plural
from bridgetrack.pipeline.finding import Finding, find_masks
from bridgetrack.pipeline.inputs import RunInputs
from bridgetrack.pipeline.result_folder import save_run
from bridgetrack.pipeline.scene import annotate, prepare
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.training.outcome import Training

FORMATS = ("csv", "ctc", "geff", "lineage")
COLUMNS = (
    ("edges F1", "edge_f1"),
    ("divisions F1", "division_f1"),
    ("TRA", "tra"),
    ("complete tracks", "ct"),
)


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the results.")
    ] = Path("demo"),
    json: Json = False,
) -> None:
    """Segment and track the sample movie, train, track again, and score all results."""
    notes: list[Note] = []
    with collecting_warnings(notes):
        record, lines = _demo(out, notes)
    answer(json, record, lambda: lines)


def _demo(out: Path, notes: list[Note]) -> tuple[dict[str, Any], list[str]]:
    """The results of the demo, as JSON values and as lines."""
    folder = sample_folder()
    images, clicks = folder / SAMPLE_SEQUENCE, folder / "annotations.json"
    masks, weights = out / "labels.tif", out / "model.json"
    given = RunInputs(masks, images, weights, clicks, formats=FORMATS, command="demo")
    result = out / "result"
    check_folder(result, *given.inputs)
    for path in (masks, weights):
        check_file(path, images, clicks)
    began, image = time.perf_counter(), open_movie(images)
    with signed(masks) as spare, label_writer(spare, image.geometry) as writer:
        found = show(find_masks(Finding(SegmentationSettings()), image, writer.write))
    labels, truth = open_labels(masks), read_ctc(folder / f"{SAMPLE_SEQUENCE}_GT")
    scene = show(prepare(labels, image))
    clicked = annotate(scene, load_annotations(clicks))

    def train(report: api.Report) -> Training:
        learned = api.train(clicked, progress=report).training
        assert learned is not None
        return learned

    training = learn(train, weights)
    model, n = training.model, plural(training.n_annotations, "annotation")
    held = "trained, with annotations as constraints"
    tracked = {
        "untrained": show(track_scene(scene)),
        f"trained on {n}": show(track_scene(scene, model)),
        held: show(track_scene(clicked, model)),
    }
    scores = {
        name: evaluate(t.tracks, truth, labels=labels).to_dict() for name, t in tracked.items()
    }
    done, said = save_run(tracked[held], result, given, began, notes, found=found.finding)
    learned = describe_training(training, weights, began, ())
    record = {"run": done, "training": learned, "scores": scores}
    rows = [[name, *(_figure(s[key]) for _, key in COLUMNS)] for name, s in scores.items()]
    lines = [
        *run_lines(done, said),
        "",
        f"training: {learned['words']}",
        *([learned["estimate_words"]] if learned["estimate_words"] else []),
        "",
        *table(["compared with ground truth", *(title for title, _ in COLUMNS)], rows),
    ]
    return record, lines


def _figure(value: Any) -> str:
    return "-" if value is None else f"{value:.4f}"
