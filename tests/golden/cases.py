"""What the program does, by the public names alone: the cases that are kept and compared.

Every case is a function of a `Bench` that returns plain values.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import bridgetrack as bt
from bridgetrack.cli.main import main
from golden.plain import FILES, pixels, plain, read_json, result
from simulator import SimulationSettings, simulate_to_folder

ALL = "csv,ctc,geff"


class Bench:
    """A folder with small movies, made when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._count = 0

    def new(self, name: str = "out") -> Path:
        """A name that is not taken."""
        self._count += 1
        return self.folder / f"{self._count:02d}_{name}"

    def run(self, *words: Any) -> str:
        """What a command prints."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([str(w) for w in words])
        assert status == 0, f"{words}: {err.getvalue()}"
        return out.getvalue()

    def json(self, *words: Any) -> Any:
        """What a command prints with ``--json``, as plain values."""
        return self.plain(json.loads(self.run(*words, "--json")))

    def plain(self, value: Any) -> Any:
        """Plain values; a name that `new` gave is the same in every order of the cases."""
        return plain(value, self.folder)

    def read(self, path: Path) -> Any:
        """A JSON file as plain values."""
        return read_json(path, self.folder)

    def file(self, name: str) -> Path:
        """A copy of one of the committed files or folders."""
        kept, here = FILES / name, self.folder / "files" / name
        if not here.exists():
            here.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if kept.is_dir() else shutil.copy)(kept, here)
        return here

    def earlier(self) -> Path:
        """The folder of an earlier run, whose files stand beside it."""
        for name in ("cells.tif", "image.tif", "answers.json", "trained.json"):
            here = self.file(name).parent
        out = self.new("result")
        shutil.unpack_archive(self.file("result.zip"), out)
        # The record last: what is younger was changed by a person.
        for path in (out / "result" / "tracks.geff" / ".zattrs", out / "result" / "run.json"):
            path.write_text(path.read_text().replace("{folder}", here.as_posix()))
        return out / "result"

    @cached_property
    def flat(self) -> Path:
        """A flat movie whose cells move far, fade and divide often."""
        out = self.folder / "flat"
        simulate_to_folder(FLAT, out)
        return out

    @cached_property
    def stack(self) -> Path:
        """A movie in three dimensions."""
        out = self.folder / "stack"
        simulate_to_folder(STACK, out)
        return out

    @cached_property
    def found(self) -> Path:
        """Masks of the flat movie with mistakes: cells that are cut in two, and specks."""
        out = self.folder / "found.tif"
        self.run("segment", "--choose", "plain", self.flat / "01", "--out", out, *FOUND)
        return out

    @cached_property
    def points(self) -> Path:
        """Centroids of the flat movie."""
        out, path = self.folder / "points", self.folder / "points.csv"
        self.run("track", self.flat / "01_GT" / "TRA", "--out", out)
        nodes = bt.read_tracks_csv(out / "detections.csv").nodes
        nodes[["frame", "y", "x", "area"]].round(3).to_csv(path, index=False, lineterminator="\n")
        return path

    @property
    def poor(self) -> Path:
        """A model that most answers contradict, so that training has something to learn."""
        return self.file("poor.json")

    def clicks(self, count: int = 60, seed: int = 1) -> Path:
        """Answers about `found`."""
        path = self.folder / f"clicks_{count}_{seed}.json"
        if not path.exists():
            where = (self.found, "--ground-truth", self.flat / "01_GT", "--out", path)
            self.run("annotate", *where, "--count", count, "--seed", seed)
        return path

    def train(self, *words: Any, clicks: Path | None = None) -> dict[str, Any]:
        """What `train` prints about the movie `found`, and the model that it writes."""
        out = self.new("model.json")
        given = ("--image", self.flat / "01", "--annotations", clicks or self.clicks())
        shown = self.json("train", self.found, *given, "--out", out, *words)
        del shown["model"], shown["prior"]
        return {"shown": shown, "model": self.read(out)}

    def track(self, *words: Any, graphs: bool = True) -> dict[str, Any]:
        """What `track` leaves in a folder."""
        out = self.new()
        self.run("track", *words, "--out", out)
        found = result(out, self.folder, graphs)
        del found["run.json"]["out"]
        return found


def words(text: str) -> list[str]:
    """The words of a command line."""
    return text.split()


FLAT = SimulationSettings(
    frames=10, cells=16, size=170, division_rate=0.03, seed=3, speed=3, jitter=2, fading_rate=0.02,
    debris=0.1, density=0.25,
)  # fmt: skip
STACK = SimulationSettings(
    dim=3, frames=5, cells=10, division_rate=0.04, seed=5, depth=12, size=110
)
FOUND = words("--depth 0.01 --sensitivity 3")

FRAGILE = {
    "suggested",
    "track_flat",
    "train_curriculum_entropy",
    "train_curriculum_novelty",
    "train_l1",
    "train_learner_bundle",
    "train_sample",
    "train_source",
    "train_transfer",
    "train_transfer_few",
    "train_transfer_tied",
    "train_union",
    "python_transfer",
}
"""Cases in which last digits lead to another path, which ends within the precision of training (a
gap of 0.001) but not at the same numbers. Equal code on an equal machine gives equal numbers, so
they are compared in full there; elsewhere it is their decisions that must be equal."""

Case = Callable[[Bench], Any]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Keep what a function gives under its name."""
    CASES[function.__name__] = function
    return function


def case_of(name: str, *words: str, count: int = 60) -> None:
    """Keep what a training with some options gives."""

    def trained(bench: Bench) -> Any:
        return bench.train(*words, "--prior", bench.poor, clicks=bench.clicks(count))

    CASES[name] = trained


@case
def segmented(bench: Bench) -> Any:
    """Pixels that the built-in segmentation finds."""
    default = bench.new("default.tif")
    shown = bench.json("segment", "--choose", "plain", bench.flat / "01", "--out", default)
    return {
        "shown": shown,
        "default": pixels(default)["sha256"],
        "mistaken": pixels(bench.found)["sha256"],
    }


@case
def track_sample(bench: Bench) -> Any:
    """Tables of the bundled movie; its graph is left out for its size."""
    sample = bt.sample_folder()
    given = (sample / "01_GT" / "TRA", "--image", sample / "01", "--format", "csv,ctc")
    found = bench.track(*given)
    found["run.json"]["input"] = {
        k: v and Path(v).name for k, v in found["run.json"]["input"].items()
    }
    return found


@case
def track_flat(bench: Bench) -> Any:
    """True masks and image."""
    movie = bench.flat
    return bench.track(movie / "01_GT" / "TRA", "--image", movie / "01", "--format", ALL)


@case
def track_stack(bench: Bench) -> Any:
    """Three dimensions."""
    movie = bench.stack
    return bench.track(movie / "01_GT" / "TRA", "--image", movie / "01", "--format", ALL)


@case
def track_points(bench: Bench) -> Any:
    """A table of centroids, in pixels of another size and without."""
    return {
        "plain": bench.track(bench.points, "--format", "csv,geff"),
        "scaled": bench.track(bench.points, "--scale", "0.5,0.5", "--frame-interval", "7"),
    }


@case
def track_found(bench: Bench) -> Any:
    """Masks with mistakes: splits, merges and false detections."""
    return bench.track(bench.found, "--image", bench.flat / "01", "--format", ALL)


@case
def track_answered(bench: Bench) -> Any:
    """Another model, and answers that the tracks honour."""
    given = ("--model", bench.poor, "--annotations", bench.clicks())
    return bench.track(bench.found, "--image", bench.flat / "01", *given, graphs=False)


@case
def train_default(bench: Bench) -> Any:
    """The shipped weights as a start."""
    return bench.train()


@case
def train_sample(bench: Bench) -> Any:
    """The bundled movie with its clicks."""
    sample, out = bt.sample_folder(), bench.new("model.json")
    given = ("--image", sample / "01", "--annotations", sample / "annotations.json")
    shown = bench.json("train", sample / "01_GT" / "TRA", *given, "--out", out)
    del shown["model"], shown["prior"]
    return {"shown": shown, "model": bench.read(out)}


@case
def train_chosen(bench: Bench) -> Any:
    """More than 300 clicks: lambda is chosen by cross-validation."""
    sample, out, clicks = bt.sample_folder(), bench.new("model.json"), bench.new("clicks.json")
    masks = sample / "01_GT" / "TRA"
    bench.run("annotate", masks, "--ground-truth", masks.parent, "--count", 310, "--out", clicks)
    shown = bench.json("train", masks, "--annotations", clicks, "--out", out)
    del shown["model"], shown["prior"]
    return {"shown": shown, "model": bench.read(out)}


for loss in ("bridge", "hinge", "ramp", "max", "ramp-delta", "max-delta"):
    case_of(f"train_loss_{loss}", "--loss", loss)
for learner in ("n-slack", "bundle", "frank-wolfe", "subgradient", "perceptron"):
    few = learner == "subgradient"  # it is slow
    case_of(f"train_learner_{learner}", "--learner", learner, count=6 if few else 60)
for curriculum in ("slack", "entropy", "novelty"):
    case_of(f"train_curriculum_{curriculum}", "--curriculum", curriculum)
case_of("train_l1", "--regularizer", "l1")
case_of("train_lambda", "--lambda", "0.02")


@case
def train_few(bench: Bench) -> Any:
    """Too few answers for a cross-validation."""
    return bench.train("--prior", bench.poor, clicks=bench.clicks(6, 2))


@case
def train_points(bench: Bench) -> Any:
    """Without masks and image."""
    masks, clicks, out = bench.flat / "01_GT" / "TRA", bench.new("a.json"), bench.new("m.json")
    bench.run("annotate", masks, "--ground-truth", masks.parent, "--count", 40, "--out", clicks)
    given = ("--annotations", clicks, "--prior", bench.poor, "--out", out)
    shown = bench.json("train", bench.points, *given)
    del shown["model"], shown["prior"]
    return {"shown": shown, "model": bench.read(out)}


def with_source(name: str, strategy: str, *words: str, count: int = 24) -> None:
    """Keep what training with the help of the committed project or model gives."""

    def trained(bench: Bench) -> Any:
        bench.file("cells.tif")
        bench.file("image.tif")
        source = "trained.json" if strategy in ("prior", "delta") else "project.json"
        given = ("--source", bench.file(source), "--strategy", strategy, *words)
        if strategy in ("transfer", "union", "source"):
            given = (*given, "--prior", bench.poor)
        return bench.train(*given, clicks=bench.clicks(count, 3))

    CASES[name] = trained


with_source("train_transfer", "transfer")
with_source("train_transfer_tied", "transfer", "--lambda", "0.05", "--rho", "0.5")
with_source("train_transfer_few", "transfer", count=6)
with_source("train_union", "union")
with_source("train_source", "source")
with_source("train_prior", "prior")
with_source("train_delta", "delta")


@case
def suggested(bench: Bench) -> Any:
    """Questions, without and with answers and another model."""
    given = ("suggest", bench.found, "--image", bench.flat / "01", "-n", 8)
    more = ("--model", bench.poor, "--annotations", bench.clicks(20), "--seed", 5)
    return {
        "plain": bench.json(*given),
        "answered": bench.json(*given, *more),
        "random": bench.json(*given, "--random-share", 1),
        "stack": bench.json("suggest", bench.stack / "01_GT" / "TRA", "-n", 4),
    }


@case
def explained(bench: Bench) -> Any:
    """Features for and against events."""
    given = ("explain", bench.found)
    more = ("--image", bench.flat / "01", "--model", bench.poor)
    events = bench.track(bench.found, graphs=False)["events.csv"]
    assert "divide" in events
    return {
        "chosen": [bench.json(*given, "--frame", 2, "--cell", label) for label in (3, 7, 11)],
        "other": bench.json(*given, *more, "--frame", 4, "--cell", 5, "--event", "disappear"),
    }


@case
def evaluated(bench: Bench) -> Any:
    """Scores of tracks with mistakes."""
    out, truth = bench.new(), bench.flat / "01_GT"
    bench.run("track", bench.found, "--out", out, "--format", ALL)
    given = ("evaluate", out, "--ground-truth", truth)
    return {"all": bench.json(*given), "sparse": bench.json(*given, "--sparse")}


HERE = words("--axes TYX --image-axes TYX --scale 0.645,0.645 --frame-interval 10")
"""Calibration of the committed movie."""


@case
def opened_project(bench: Bench) -> Any:
    """A project that was saved earlier is run again."""
    bench.file("cells.tif")
    bench.file("image.tif")
    out = bench.new()
    bench.run("run", bench.file("project.json"), "--out", out)
    found = result(out, bench.folder)
    del found["run.json"]["out"]
    return found


@case
def opened_files(bench: Bench) -> Any:
    """Answers, models and exported models that were saved earlier."""
    cells, image, answers = (bench.file(n) for n in ("cells.tif", "image.tif", "answers.json"))
    given = (cells, "--image", image, *HERE, "--annotations", answers, "--model")
    found = {
        name: bench.track(*given, bench.file(name), graphs=False)
        for name in ("trained.json", "exported.json")
    }
    kept, again = bt.load_annotations(answers), bench.new("again.json")
    bt.save_annotations(kept, again)
    found["answers again"] = bench.read(again)
    bt.save_model(bt.load_model(bench.file("trained.json")), again)
    found["model again"] = bench.read(again)
    return found


@case
def opened_result(bench: Bench) -> Any:
    """The folder of an earlier run: explained, read, and written over."""
    out = bench.earlier()
    given = ("explain", out, "--frame", 2, "--cell")
    tracks = {
        "csv": bt.read_tracks_csv(out / "detections.csv"),
        "geff": bt.read_geff(out / "tracks.geff"),
        "ctc": bt.read_ctc(out / "ctc").tracks,
    }
    found: dict[str, Any] = {
        "explained": [bench.json(*given, label) for label in (3, 8)],
        "read": {k: [t.n_tracks, bt.count_events(t)] for k, t in tracks.items()},
    }
    cells = bench.file("cells.tif")
    bench.run("track", cells, "--out", out, "--format", "csv")
    found["after"] = sorted(p.name for p in out.iterdir())
    return found


@case
def resumed(bench: Bench) -> Any:
    """A session of questions that the plugin saved beside a project's answers."""
    from bridgetrack.active.session_file import load_session, save_session

    where = {"axes": "TYX", "scale": (0.645, 0.645), "frame_interval": 10.0}
    cells, image = bench.file("cells.tif"), bench.file("image.tif")
    project, kept = json.loads(bench.file("project.json").read_text()), bench.new("answers.json")
    kept.write_text(json.dumps(project["annotations"]))
    answers = bt.load_annotations(kept)
    steps = bt.prepare(bt.open_labels(cells, **where), bt.open_movie(image, **where), answers)
    session = load_session(bench.file("project.suggestions.json"), bt.run(steps))
    again = bench.read(save_session(session, bench.new("session.json")))
    there = {answer.id for answer in answers}
    again["records"] = [r for r in again["records"] if r["id"] in there]
    assert len(again["records"]) > 5
    return again


def training(bench: Bench, done: Any) -> dict[str, Any]:
    """What a training in Python says, and its model."""
    path = bt.save_model(done.model, bench.new("model.json"))
    return bench.plain(
        {
            "kept": done.kept,
            "strength": done.strength,
            "chosen_by": done.chosen_by,
            "n_annotations": done.n_annotations,
            "changes": {k: list(v) for k, v in done.changes.items()},
            "exchanged": {k: list(v) for k, v in done.exchanged.items()},
            "doubtful": [a.id for a in done.doubtful],
            "suited": done.suited,
            "origin": list(done.origin),
            "notes": len(done.notes),
            "model": bench.read(path),
        }
    )


def scene(bench: Bench, count: int, seed: int) -> Any:
    """The movie `found` with answers."""
    answers = bt.load_annotations(bench.clicks(count, seed))
    image = bt.open_movie(bench.flat / "01")
    return bt.run(bt.prepare(bt.open_labels(bench.found), image, answers))


@case
def python_training(bench: Bench) -> Any:
    """What only Python offers: literal treatment, two movies at once."""
    poor, here = bt.load_model(bench.poor), scene(bench, 60, 1)
    literal = bt.TrainingOptions(treatment="literal")
    other = bt.TrainingOptions(balance=0, hold_sure=False)
    return {
        "literal": training(bench, bt.run(bt.train_steps(here, poor, literal))),
        "two": training(bench, bt.run(bt.train_steps([here, scene(bench, 40, 5)], poor))),
        "first": training(bench, bt.run(bt.train_steps(here, poor))),
        "other": training(bench, bt.run(bt.train_steps(here, poor, other))),
    }


@case
def python_transfer(bench: Bench) -> Any:
    """Two earlier movies."""
    here, poor = scene(bench, 40, 1), bt.load_model(bench.poor)
    others = [scene(bench, 60, 7), scene(bench, 50, 8)]
    done = bt.run(bt.strategy_steps("transfer", here, others, poor, tie=0.5))
    return training(bench, done)


@case
def python_tracking(bench: Bench) -> Any:
    """Least certain events, counts, margins and drawn answers."""
    labels, image = bt.open_labels(bench.found), bt.open_movie(bench.flat / "01")
    tracking = bt.track(labels, image)
    truth = bt.read_ctc(bench.flat / "01_GT")
    detections = tracking.scene.detections
    match = bt.match_detections(detections, labels, truth.tracks, truth.labels)
    events = bt.true_events(detections, truth.tracks, match).to_frame()
    drawn = bench.new("drawn.json")
    bt.save_annotations(bt.draw_annotations(events, detections, count=25, seed=3), drawn)
    return bench.plain(
        {
            "counts": bt.count_events(tracking.tracks),
            "least_certain": bt.least_certain(tracking, 12),
            "true.csv": events.to_csv(index=False),
            "drawn": bench.read(drawn),
            "untrained": bt.untrained_model().weights.tolist(),
            "shipped": dict(zip(*_weights(bt.shipped_model()), strict=True)),
            "mean": float(np.nanmean(tracking.margins[np.isfinite(tracking.margins)])),
            "scores": float(tracking.scores.sum()),
            "hypotheses": len(tracking.scores),
        }
    )


def _weights(model: Any) -> tuple[tuple[str, ...], list[float]]:
    return model.keys, model.weights.tolist()
