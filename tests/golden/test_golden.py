"""What the program computes, compared with what it computed: numbers and chosen events.

PYTHONPATH=src:benchmarks:tests python tests/golden/test_golden.py

keeps the figures of now, where a change is intended.
"""

import json
import sys
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.learning import LOSSES
from bridgetrack.learning.risk import Risk
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import build_training_set
from simulator import SimulationSettings, simulate_to_folder

EXPECTED = Path(__file__).with_name("expected.json")
POOR = Path(__file__).parent / "files" / "poor.json"
FLAT = SimulationSettings(
    frames=8, cells=10, size=140, division_rate=0.04, seed=3, speed=3, jitter=2, fading_rate=0.02,
    debris=0.1, density=0.25,
)  # fmt: skip
STACK = SimulationSettings(
    dim=3, frames=5, cells=10, division_rate=0.04, seed=5, depth=12, size=110
)
GAP = 2e-3
"""Objectives are found to a gap of 0.001."""


@cache
def folder(settings):
    """A simulated movie."""
    return simulate_to_folder(settings, Path(tempfile.mkdtemp(prefix="golden"))).parent


def movie(path):
    """Its true masks and its image."""
    return bt.open_labels(path / "01_GT" / "TRA"), bt.open_movie(path / "01")


@cache
def scene(count=0, seed=1):
    """The flat movie with so many drawn answers."""
    labels, image = movie(folder(FLAT))
    plain = bt.run(bt.prepare(labels, image))
    if not count:
        return plain
    truth = bt.read_ctc(folder(FLAT) / "01_GT")
    events = bt.true_events(plain.detections, labels, truth.tracks, truth.labels)
    answers = bt.draw_annotations(events, plain.detections, count=count, seed=seed)
    return bt.run(bt.prepare(labels, image, answers))


def poor():
    """A model that most answers contradict."""
    return bt.load_model(POOR)


def tracked(tracking):
    """Figures of a tracking."""
    chosen = np.flatnonzero(tracking.solution.chosen)
    margins = tracking.margins[np.isfinite(tracking.margins)]
    return {
        "hypotheses": len(tracking.scores),
        "features": float(abs(tracking.scene.matrix.sparse()).sum()),
        "scores": float(tracking.scores.sum()),
        "objective": float(tracking.scores[chosen].sum()),
        "margins": float(margins.mean()),
        "counts": bt.count_events(tracking.tracks),
        "chosen": zlib.crc32(chosen.astype(np.int64).tobytes()),
    }


def trained(start=None, **options):
    """Figures of a training."""
    return figures(bt.run(bt.train_steps(scene(30), start, bt.TrainingOptions(**options))))


def figures(training):
    """Figures of a training."""
    return {
        "objective of training": training.result.objective,
        "lambda": training.lambda_,
        "annotations": training.n_annotations,
    }


def with_sources(strategy, source):
    """Figures of a training with an earlier movie or a model."""
    options = bt.TrainingOptions(lambda_=0.2)
    given = {"strategy": strategy, "sources": [source]}
    return figures(bt.run(bt.train_steps(scene(8, 2), poor(), options, **given)))


def points():
    """Centroids of the flat movie."""
    found = scene().detections.table[["frame", "y", "x", "area"]].round(3)
    path = folder(FLAT) / "points.csv"
    found.to_csv(path, index=False)
    return path


def six_losses():
    """The losses of the answers at the shipped weights."""
    data = build_training_set(scene(30))
    w = bt.shipped_model().aligned(scene().matrix.features)
    model = TrackingModel(data)
    risks = {name: Risk(model, data.samples, None, loss) for name, loss in LOSSES.items()}
    return {name: float(risk.loss_of_each(w).sum()) for name, risk in risks.items()}


def suggested():
    """Margins of the questions, and what they are about."""
    found = bt.suggest(scene(20), bt.shipped_model(), 8, bt.SuggestOptions(seed=5))
    return {
        "margins": [s.margin for s in found],
        "events": [[s.event.event.key, *map(list, (c.cell for c in s.cells))] for s in found],
    }


CASES: dict[str, Callable[[], Any]] = {
    "track sample": lambda: tracked(bt.track(*movie(Path(bt.sample_folder())))),
    "track flat": lambda: tracked(bt.track(*movie(folder(FLAT)))),
    "track stack": lambda: tracked(bt.track(*movie(folder(STACK)))),
    "track points": lambda: tracked(bt.track(points())),
    "track answered": lambda: tracked(bt.run(bt.track_scene(scene(30), poor()))),
    "six losses": six_losses,
    "suggested": suggested,
    "train": trained,
    "train l1": lambda: trained(poor(), regularizer="l1", precision=1e-2, lambda_=0.1),
    "train literal": lambda: trained(poor(), treatment="literal"),
    "train lambda": lambda: trained(poor(), lambda_=0.02),
    "transfer": lambda: with_sources("transfer", scene(8, 3)),
    "union": lambda: with_sources("union", scene(8, 3)),
    "delta": lambda: with_sources("delta", bt.shipped_model()),
}
for _name in ("ramp", "max-delta"):
    CASES[f"train {_name}"] = lambda name=_name: trained(poor(), loss=name)
for _name in ("n-slack", "frank-wolfe", "perceptron"):
    CASES[f"train {_name}"] = lambda name=_name: trained(poor(), learner=name, lambda_=0.2)
for _name in ("slack", "entropy", "novelty"):
    CASES[f"train by {_name}"] = lambda name=_name: trained(poor(), curriculum=name)


@pytest.mark.parametrize("name", CASES)
def test_as_before(name):
    kept = json.loads(EXPECTED.read_text())[name]
    found = json.loads(json.dumps(CASES[name]()))
    objective = "objective of training"
    if objective in kept:
        assert found.pop(objective) == pytest.approx(kept.pop(objective), abs=GAP)
    for key, value in kept.items():
        numbers = isinstance(value, float | int) or key == "margins"
        assert found[key] == (pytest.approx(value, rel=1e-6, abs=1e-8) if numbers else value), key


if __name__ == "__main__":
    made = {name: case() for name, case in CASES.items()}
    EXPECTED.write_text(json.dumps(made, indent=1) + "\n")
    sys.stdout.write(f"{len(made)} cases\n")
