"""Tracking fulfils the boundary that learners rely on."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import ContradictionError
from bridgetrack.learning import L2, LearningOptions, fit
from bridgetrack.models.model import untrained_model
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import build_training_set
from models import entropy_of
from partition_problems import interval_covers
from training.training_cases import (
    confirmed,
    outputs,
    plain_scene,
    some_true,
    tiny_set,
    true_columns,
)

START = untrained_model().weights
SEEDS = st.integers(0, 2**32 - 1)


def weights(rng, n):
    """Zero, tied or any weights."""
    kind = int(rng.integers(4))
    if kind == 0:
        return np.zeros(n)
    return rng.integers(-1, 2, n).astype(float) if kind == 1 else rng.normal(size=n)


def losses_of(data, x):
    """Task loss of every output of a sample, by counting."""
    rows = data.sets[list(data.samples[x].y_star)][:, TrackingModel(data).columns(x)]
    return [
        float(data.importance[x] * (rows.shape[0] - (rows @ y).sum())) for y in outputs(data, x)
    ]


@settings(max_examples=15)
@given(SEEDS)
def test_every_inference_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    data = replace(tiny_set(rng, 3, covers=interval_covers), importance=rng.random(3) + 0.5)
    model, w = TrackingModel(data), weights(rng, 4)
    samples = data.samples
    plain = model.inference(samples, w)
    augmented = model.loss_augmented_inference(samples, w)
    reduced = model.loss_augmented_inference(samples, w, -1)
    kept = model.compatible_inference(samples, w)
    for k in range(3):
        f = np.array(
            [data.importance[k] * (data.phi[model.columns(k)] @ w) @ y for y in outputs(data, k)]
        )
        loss = np.array(losses_of(data, k))
        assert plain.bounds[k] == pytest.approx(f.max(), abs=1e-6)
        assert augmented.bounds[k] == pytest.approx((f + loss).max(), abs=1e-6)
        assert reduced.bounds[k] == pytest.approx((f - loss).max(), abs=1e-6)
        assert kept.bounds[k] == pytest.approx(f[loss == 0].max(), abs=1e-6)
        assert kept.losses[k] == 0
    for found, sign in ((plain, 0), (augmented, 1), (reduced, -1), (kept, 0)):
        np.testing.assert_allclose(found.values(w, sign), found.bounds, atol=1e-9)


@settings(max_examples=12)
@given(SEEDS, st.booleans())
def test_the_relaxation_is_never_below_the_exact_values(seed, full):
    rng = np.random.default_rng(seed)
    data = tiny_set(rng, full=full)
    model, w = TrackingModel(data), weights(rng, 4)
    upper = model.loss_augmented_inference(data.samples, w).bounds
    reward = model.compatible_inference(data.samples, w).bounds
    f = [[float((data.phi[model.columns(k)] @ w) @ y) for y in outputs(data, k)] for k in range(3)]
    both = [(np.array(f[k]), np.array(losses_of(data, k))) for k in range(3)]
    best = np.array([(value + loss).max() for value, loss in both])
    kept = np.array([value[loss == 0].max() for value, loss in both])
    assert (upper >= best - 1e-6).all()
    assert (reward >= kept - 1e-6).all()
    assert (upper >= reward - 1e-6).all()
    if full:  # the reward has one candidate then, and the risk is that of P
        np.testing.assert_allclose(reward, kept, atol=1e-6)
        assert (upper - reward >= best - kept - 1e-6).all()


def test_many_small_programs_equal_one(monkeypatch):
    rng = np.random.default_rng(5)
    data = tiny_set(rng, 6)
    w = rng.normal(size=4)
    one = TrackingModel(data)
    monkeypatch.setattr("bridgetrack.training.tracking_model.SIZE", 1)
    many = TrackingModel(data)
    assert (len(one.blocks(data.samples)), len(many.blocks(data.samples))) == (1, 6)
    for method in ("inference", "loss_augmented_inference", "compatible_inference"):
        ours, theirs = (getattr(m, method)(data.samples, w) for m in (one, many))
        np.testing.assert_allclose(ours.bounds, theirs.bounds, atol=1e-7)


def test_annotations_that_leave_no_choice():
    rng = np.random.default_rng(1)
    data = tiny_set(rng, 1)
    blocked = data.allowed.copy()
    blocked[data.incidence[:, 0].nonzero()[0]] = False
    model = TrackingModel(replace(data, allowed=blocked))
    with pytest.raises(ContradictionError, match="annotations exclude each other"):
        model.compatible_inference(data.samples, np.zeros(4))


# --- self-paced learning


@cache
def clicked(count=60):
    return build_training_set(confirmed(plain_scene(), some_true(count)))


@settings(max_examples=15)
@given(seed=st.integers(0, 100_000))
def test_hidden_entropy_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    data = tiny_set(rng)
    w = rng.normal(size=data.phi.shape[1])
    model = TrackingModel(data)
    found = model.hidden_entropies(data.samples, w, 100)
    for sample, entropy in zip(data.samples, found, strict=True):
        columns = model.columns(sample.x)
        sets = data.sets[list(sample.y_star)][:, columns]
        agree = [y for y in outputs(data, sample.x) if (sets @ y > 1 - 1e-9).all()]
        scores = np.array([float(data.phi[columns] @ w @ y) for y in agree])
        assert entropy == pytest.approx(entropy_of(scores), abs=1e-8)


def test_weights_of_their_own():
    data = clicked()
    rng = np.random.default_rng(0)
    w = rng.normal(size=data.phi.shape[1])
    same = np.tile(w, (len(data.samples), 1))
    model, other = TrackingModel(data), rng.normal(size=same.shape)
    each = model.loss_augmented_inference(data.samples, same)
    together = model.loss_augmented_inference(data.samples, w)
    np.testing.assert_allclose(each.values(w, 1), together.values(w, 1), atol=1e-7)
    found = model.loss_augmented_inference(data.samples, other)
    for k, sample in enumerate(data.samples[:4]):
        alone = model.loss_augmented_inference([sample], other[k])
        reached = found.features[k] @ other[k] + found.losses[k]
        assert reached == pytest.approx(float(alone.values(other[k], 1)[0]), abs=1e-7)


def trained(data, criterion, start):
    """Objective after training towards zero."""
    options = LearningOptions(learner="n-slack", curriculum=criterion)
    regularizer = L2(0.01, np.zeros_like(start))
    n = float(data.n_annotations)
    model = TrackingModel(data)
    found = fit(model, data.samples, regularizer, n_annotations=n, options=options, initial=start)
    return found.objective


def test_from_zero_the_undecided_must_wait():
    """All outputs tie at zero: plain training stays there; sure samples first lead away.

    Some components are annotated as a whole, of the others one event each.
    """
    columns = true_columns()
    whole = build_training_set(confirmed(plain_scene(), columns))
    sample = whole.annotation_sample
    first = np.unique(sample, return_index=True)[1]
    keep = np.union1d(first, np.flatnonzero(sample % 3 == 1))
    data = build_training_set(confirmed(plain_scene(), columns[keep]))
    zero = np.zeros(data.phi.shape[1])
    plain = trained(data, None, zero)
    assert trained(data, "entropy", zero) < 0.1 * plain
