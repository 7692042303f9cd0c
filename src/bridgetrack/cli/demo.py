"""``bridgetrack demo``: the whole way on the sample movie that comes with the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import Stopwatch, emit, plural, say, show, table
from bridgetrack.cli.options import Json
from bridgetrack.cli.segment import segmenting
from bridgetrack.export.may_write import sign

if TYPE_CHECKING:
    from bridgetrack.hypotheses.events import Events
    from bridgetrack.importing.ctc import CtcTruth
    from bridgetrack.movie.movie import Movie
    from bridgetrack.pipeline.scene import Scene
    from bridgetrack.pipeline.tracking import Tracking

FORMATS = ("csv", "ctc", "geff")
COLUMNS = (
    ("events right", "events_right"),
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
    """Segment, track, train, track again and score the sample movie; draw its tracks."""
    from bridgetrack.cli.sources import collecting_warnings

    notes: list[str] = []
    with collecting_warnings(notes):
        result = _demo(out, notes)
    if json:
        emit(result.to_dict())
    else:
        say(*result.lines())


@dataclass(frozen=True)
class _Result:
    """What the demo found."""

    record: dict[str, Any]
    training: dict[str, Any]
    scores: dict[str, dict[str, Any]]
    picture: Path

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "run": self.record,
            "training": self.training,
            "scores": self.scores,
            "picture": str(self.picture),
        }

    def lines(self) -> list[str]:
        """The same for people."""
        from bridgetrack.cli.report import tracking_lines

        rows = [
            [name, *(_figure(scores[key]) for _, key in COLUMNS)]
            for name, scores in self.scores.items()
        ]
        return [
            *tracking_lines(self.record),
            "",
            f"training: {self.training['reason']}",
            *([self.training["estimate_words"]] if self.training["estimate_words"] else []),
            "",
            *table(["against the sample's truth", *(title for title, _ in COLUMNS)], rows),
            *worse(self.scores),
            "",
            f"picture: {self.picture}",
        ]


def worse(scores: dict[str, dict[str, Any]]) -> list[str]:
    """A sentence on the figures that are lower than those of the untrained model."""
    (name, first), *others = scores.items()
    lower = [title for title, key in COLUMNS if any(_lower(o[key], first[key]) for _, o in others)]
    if not lower:
        return []
    return [
        f"lower than {name} in a row below: {', '.join(lower)}; training follows the clicks, which "
        "are about the events of this segmentation (events right), and does not raise every score"
    ]


def _lower(after: Any, before: Any) -> bool:
    return after is not None and before is not None and round(after, 4) < round(before, 4)


def _figure(value: Any) -> str:
    return "-" if value is None else f"{value:.4f}"


def _demo(out: Path, notes: list[str]) -> _Result:
    from bridgetrack.annotations.store import load_annotations
    from bridgetrack.cli.options import Reading, check_file
    from bridgetrack.cli.record import Given, check_run, finish
    from bridgetrack.cli.train import describe_training, learn
    from bridgetrack.evaluation.evaluate import evaluate
    from bridgetrack.evaluation.true_events import score_events
    from bridgetrack.importing.ctc import read_ctc
    from bridgetrack.movie.opening import open_movie
    from bridgetrack.pipeline.scene import annotate, prepare
    from bridgetrack.pipeline.tracking import track_scene
    from bridgetrack.simulation.folder import SAMPLE_SEQUENCE, sample_folder
    from bridgetrack.training.options import TrainingOptions

    sample = sample_folder()
    image = open_movie(sample / SAMPLE_SEQUENCE)
    answers = sample / "annotations.json"
    made = Given(
        out / "labels.tif",
        sample / SAMPLE_SEQUENCE,
        out / "model.json",
        answers,
        FORMATS,
        Reading(),
        command="demo",
    )
    check_run(out, made)
    for name in ("labels.tif", "model.json", "overlay.png"):
        check_file(out / name, sample / SAMPLE_SEQUENCE, answers)
    watch = Stopwatch()
    labels = _segmented(image, out / "labels.tif", watch)
    truth = read_ctc(sample / f"{SAMPLE_SEQUENCE}_GT")
    scene: Scene = show(prepare(labels, image), watch)
    clicked = annotate(scene, load_annotations(answers))
    training = learn(clicked, None, TrainingOptions(), out / "model.json", watch)
    clicks = plural(training.n_annotations, "click")
    tracked: dict[str, Tracking] = {
        "untrained": show(track_scene(scene)),
        f"trained on {clicks}": show(track_scene(scene, training.model), watch),
    }
    tracked["trained, and held to them"] = show(track_scene(clicked, training.model), watch)
    events = _true_events(scene, labels, truth)
    scores = {
        name: evaluate(t.tracks, truth, labels=labels).to_dict()
        | {"events_right": score_events(t.tracks, events).share}
        for name, t in tracked.items()
    }
    last = tracked["trained, and held to them"]
    record = finish(last, out, made, watch, notes)
    picture = _picture(image, labels, last, out)
    return _Result(
        record, describe_training(training, out / "model.json", watch, []), scores, picture
    )


def _segmented(image: Movie, path: Path, watch: Stopwatch) -> Movie:
    from bridgetrack.movie.opening import open_labels

    show(segmenting(image, path), watch)
    sign(path)
    return open_labels(path)


def _true_events(scene: Scene, labels: Movie, truth: CtcTruth) -> Events:
    from bridgetrack.evaluation.match import match_detections
    from bridgetrack.evaluation.true_events import true_events

    match = match_detections(scene.detections, labels, truth.tracks, truth.labels)
    return true_events(scene.detections, truth.tracks, match)


def _picture(image: Movie, labels: Movie, tracking: Tracking, out: Path) -> Path:
    from bridgetrack.tracks.overlay import draw_overlay

    last = image.n_frames - 1
    path = out / "overlay.png"
    draw_overlay(image.channel_frame(last), labels.channel_frame(last), tracking.tracks, last, path)
    sign(path)
    return path
