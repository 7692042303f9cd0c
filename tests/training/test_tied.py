"""Joint training of tracking models: the same limits as on the small models of learning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning import L2, Coupling, Domain, LearningOptions, fit, fit_joint
from bridgetrack.training.fit import ALONE, TRANSFER, Movies, Tie
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import clearly_larger
from training.training_cases import tiny_set

FINE = LearningOptions(precision=1e-6)
seeds = st.integers(0, 500)


def tracking(seed: int, full: bool = True) -> TrackingModel:
    return TrackingModel(tiny_set(np.random.default_rng(seed), full=full))


def domain(model: TrackingModel) -> Domain:
    return Domain(model, model.data.samples, float(model.data.n_annotations))


@given(seed=seeds)
@settings(max_examples=8, deadline=None)
def test_one_movie_is_plain_training(seed: int) -> None:
    model = tracking(seed)
    n = float(model.data.n_annotations)
    joint = fit_joint([domain(model)], Coupling(0.3, 0.6), options=FINE)
    plain = fit(model, model.data.samples, L2(0.2), n_annotations=n, options=FINE)
    assert joint.objective == pytest.approx(plain.objective, abs=3e-6)


@given(seed=seeds)
@settings(max_examples=6, deadline=None)
def test_movies_that_know_nothing_of_each_other(seed: int) -> None:
    models = [tracking(seed), tracking(seed + 1000)]
    joint = fit_joint([domain(m) for m in models], Coupling(np.inf, 0.3), options=FINE)
    alone = [
        fit(m, m.data.samples, L2(0.3), n_annotations=float(m.data.n_annotations), options=FINE)
        for m in models
    ]
    assert joint.objective == pytest.approx(sum(r.objective for r in alone), abs=1e-5)


@given(seed=seeds, tie=st.sampled_from(TRANSFER))
@settings(max_examples=10, deadline=None)
def test_objective_of_partly_annotated_movies_never_increases(seed: int, tie: Tie) -> None:
    target, source = tracking(seed, full=False), tracking(seed + 1000, full=False)
    movies = Movies(target, (source,), np.full(target.n_features, 0.1), None)
    steps = movies.fit(tie, TrainingOptions())
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found = stop.value
            break
    assert (np.diff(found.objectives) <= 1e-9).all()
    assert len(found.weights) == (1 if tie.alone else 2)


def test_lambda_and_rho_are_on_the_scale_of_the_target() -> None:
    """A tie that is alone is plain training of the target."""
    target, source = tracking(1), tracking(2)
    n = float(target.data.n_annotations)
    start = np.full(target.n_features, 0.1)
    movies = Movies(target, (source, source), start, None)
    for tie in ALONE:
        steps = movies.fit(tie, TrainingOptions(optimiser=FINE))
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                found = stop.value
                break
        plain = fit(
            target, target.data.samples, L2(tie.tie / n, start), n_annotations=n, options=FINE
        )
        assert tie.strength(n) == tie.tie / n
        assert found.objective == pytest.approx(plain.objective, abs=3e-6)
    assert Tie(2.0, np.inf).strength(4.0) == 0.5
    assert movies.n == n
    assert Movies(None, (source, source), start, None).n == 2 * source.data.n_annotations


def test_clearly_larger() -> None:
    rng, part = np.random.default_rng(3), np.arange(100)
    base = rng.random(100)
    assert not clearly_larger(base, base, part)
    assert clearly_larger(base + 0.01, base, part)
    assert not clearly_larger(base, base + 0.01, part)
    noise = rng.normal(size=100)
    noise -= noise.mean()
    assert not clearly_larger(base + 0.05 + noise, base, part)
    assert clearly_larger(base + 0.05 + 0.1 * noise, base, part)
