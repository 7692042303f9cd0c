"""Annotations and priors that cannot be used, or hardly: clear words or a sensible model."""

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.annotations.annotation import Kind
from bridgetrack.errors import ContradictionError, InputError
from bridgetrack.features.feature import FeatureMatrix
from bridgetrack.hypotheses.events import Event
from bridgetrack.progress import run
from bridgetrack.training.fit import errors_of
from bridgetrack.training.options import TrainingOptions, default_lambda
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import build_training_set
from gallery import movie_of
from training.training_cases import (
    bad_prior,
    confirmed,
    plain_scene,
    says,
    some_true,
    with_annotations,
)

QUICK = TrainingOptions(lambda_=0.3)


def sensible(found, scene, prior):
    """Finite weights that explain the annotations no worse than the prior does."""
    assert np.isfinite(found.model.weights).all()
    model = TrackingModel(build_training_set(scene))
    after, before = (errors_of(model, m.weights).mean() for m in (found.model, prior))
    assert after <= before + 1e-6


def test_no_annotations():
    with pytest.raises(InputError, match=r"nothing to learn from.*annotate some cells"):
        run(train_steps(plain_scene()))


def test_one_annotation():
    prior = bad_prior()
    scene = confirmed(plain_scene(), some_true(1))
    found = run(train_steps(scene, prior))
    assert found.n_annotations == 1
    assert found.lambda_ == default_lambda(1)
    assert found.estimate is None
    sensible(found, scene, prior)


def test_only_negatives():
    plain = plain_scene()
    false = np.flatnonzero(plain.hypotheses.event == Event.DIVIDE)[:200:10]
    false = np.setdiff1d(false, some_true(40, divisions=40))
    scene = with_annotations(plain, says(plain, false, Kind.REJECT))
    found = run(train_steps(scene, bad_prior(), QUICK))
    sensible(found, scene, bad_prior())
    assert any("rejections" in note.words for note in found.notes)


@pytest.mark.parametrize("kind", [Event.MOVE, Event.DIVIDE])
def test_all_of_one_kind(kind):
    rows = some_true(9, divisions=5 if kind == Event.DIVIDE else 0)
    rows = rows[plain_scene().hypotheses.event[rows] == kind]
    scene = confirmed(plain_scene(), rows)
    found = run(train_steps(scene, bad_prior(), QUICK))
    sensible(found, scene, bad_prior())
    missing = "divide" if kind == Event.MOVE else "move"
    assert any(f"no {missing} was annotated" in note.words for note in found.notes)
    assert not any(f"no {kind.key} was annotated" in note.words for note in found.notes)


def circle():
    """Two cells, one cell that both may only move to: found by the solver alone."""
    labels = np.zeros((2, 60, 60), dtype=np.int32)
    labels[0, 10:20, 10:20] = 1
    labels[0, 10:20, 26:36] = 2
    labels[1, 10:20, 18:28] = 3
    from bridgetrack.pipeline.scene import prepare

    return run(prepare(movie_of(labels)))


def test_a_hidden_contradiction_names_the_annotations():
    plain = circle()
    h = plain.hypotheses
    excluded = [Event.DISAPPEAR, Event.FALSE, Event.MERGE]
    rows = np.flatnonzero(np.isin(h.event, excluded) & (h.sources[:, 0] >= 0))
    rows = rows[plain.detections.frame[h.sources[rows, 0]] == 0]
    scene = with_annotations(plain, says(plain, rows, Kind.REJECT))
    with pytest.raises(ContradictionError, match=r"contradict each other.*frame 0.*\(a\d"):
        run(train_steps(scene))


def test_movies_with_other_features():
    first = confirmed(plain_scene(), some_true(3))
    features = first.matrix.features
    fewer = replace(features, features=features.features[:-1])
    second = replace(first, matrix=FeatureMatrix(first.evidence, first.hypotheses, fewer))
    with pytest.raises(InputError, match=features.keys[-1]):
        run(train_steps(first, strategy="union", sources=[second]))
