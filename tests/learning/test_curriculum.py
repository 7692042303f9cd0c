"""Self-paced learning: who takes part when, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InputError
from bridgetrack.experiments.start import untied_start
from bridgetrack.learning import (
    CRITERIA,
    L2,
    Curriculum,
    LearningOptions,
    Sample,
    fit,
    loss_values,
    train,
)
from bridgetrack.learning.curriculum import easiest, quantile
from models import PartialChain, chain_problem, entropy_of


@dataclass
class PacedChain(PartialChain):
    """A chain that can tell how undecided its hidden labels are; label 2 is the rare kind."""

    def hidden_entropies(self, samples: Sequence[Sample], w: np.ndarray) -> np.ndarray:
        return np.array([entropy_of(np.array(self._scores(s, w))) for s in samples])

    def _scores(self, s: Sample, w: np.ndarray) -> list[float]:
        agree = (y for y in self.outputs(s.x) if self.task_loss(s.y_star, y) == 0)
        return [float(self.joint_feature(s.x, y) @ w) for y in agree]

    def kinds(self, samples: Sequence[Sample]) -> np.ndarray:
        return np.array([[2 in s.y_star] for s in samples])


def paced_chain(seed: int, n: int = 16, **more: Any) -> tuple[PacedChain, tuple[Sample, ...]]:
    _, samples = chain_problem(seed, n=n, **more)
    return PacedChain(3, 3), samples


def how(criterion: Any, **more: Any) -> LearningOptions:
    return LearningOptions(learner="n-slack", curriculum=Curriculum(criterion, **more))


@given(
    seed=st.integers(0, 1000),
    criterion=st.sampled_from(CRITERIA),
    learner=st.sampled_from(["bundle", "n-slack"]),
)
@settings(max_examples=8, deadline=None)
def test_ends_with_everybody_and_a_true_objective(seed: int, criterion: Any, learner: Any) -> None:
    model, samples = paced_chain(seed, n=8)
    options = LearningOptions(learner=learner, curriculum=Curriculum(criterion))
    found = fit(model, samples, L2(0.1), options=options)
    attained = float(loss_values(model, samples, found.w, "bridge").mean())
    assert found.objective == pytest.approx(L2(0.1).value(found.w) + attained, abs=1e-9)
    assert found.state is not None and len(found.state.samples) == len(samples)
    assert (np.diff(found.objectives) <= 1e-9).all()
    thresholds = [s.threshold for s in found.stages]
    assert all(b > a for a, b in pairwise(thresholds)) or len(thresholds) < 2
    assert all(0 < s.share < 1 for s in found.stages)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_tenth_of_the_rare_kind_is_in_from_the_start(criterion: str) -> None:
    model, samples = paced_chain(3, n=30)
    rare = sum(2 in s.y_star for s in samples)
    assert rare >= 2
    found = fit(model, samples, L2(0.1), options=how(criterion, first=0.1))
    assert found.stages
    for stage in found.stages:
        assert stage.of_each_kind[0] >= 0.1
    wanted = fit(model, samples, L2(0.1), options=how(criterion, first=0.1, of_each_kind=1.0))
    assert all(s.of_each_kind == (1.0,) for s in wanted.stages)


def test_full_annotation_has_one_minimum() -> None:
    """Nothing is hidden: the curriculum can only take a detour."""
    model, samples = paced_chain(1, full=True)
    options = LearningOptions(precision=1e-4)
    plain = fit(model, samples, L2(0.1), options=options)
    for criterion in CRITERIA:
        found = fit(
            model,
            samples,
            L2(0.1),
            options=LearningOptions(precision=1e-4, curriculum=Curriculum(criterion)),
        )
        assert found.objective == pytest.approx(plain.objective, abs=2e-4)


def test_untied_start_is_below_the_prior() -> None:
    model, samples = paced_chain(2)
    start = untied_start(model, samples, L2(0.1))
    assert np.linalg.norm(start) > 0

    def objective(w: np.ndarray) -> float:
        return L2(0.1).value(w) + float(loss_values(model, samples, w, "bridge").mean())

    assert objective(start) < objective(np.zeros_like(start))


def test_an_update_does_not_begin_again() -> None:
    model, samples = paced_chain(4)
    first = fit(model, samples, L2(0.1), options=how("slack", first=0.2))
    again = fit(model, samples, L2(0.1), options=how("slack", first=0.2), state=first.state)
    assert first.stages and not again.stages
    assert again.objective <= first.objective + 1e-9


def test_progress_counts_on_and_can_be_cancelled() -> None:
    model, samples = paced_chain(5)
    steps = train(model, samples, L2(0.1), options=how("slack", first=0.2))
    seen = [next(steps) for _ in range(4)]
    steps.close()
    assert [s.iteration for s in seen] == [1, 2, 3, 4]
    assert all(np.isfinite(s.weights).all() for s in seen)
    found = fit(model, samples, L2(0.1), options=how("slack", first=0.2))
    assert found.n_inferences >= found.history.n_inferences[-1]
    assert found.seconds >= found.inference_seconds >= found.history.inference_seconds[-1]


def test_selection() -> None:
    values = np.array([3.0, 1.0, 2.0, np.inf, 1.0])
    assert quantile(values, 0.2) == 1.0
    assert quantile(values, 0.5) == 2.0
    assert quantile(values, 1.0) == np.inf
    kind = np.array([True, False, True, True, False])
    np.testing.assert_array_equal(easiest(values, kind, 0.1), [False, False, True, False, False])
    np.testing.assert_array_equal(easiest(values, kind, 0.5), [True, False, True, False, False])


@pytest.mark.parametrize(
    "wrong",
    [{"criterion": "mood"}, {"first": 0.0}, {"rate": 1.0}, {"alternations": 0}],
)
def test_wrong_choices_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Curriculum(**wrong)
    with pytest.raises(InputError, match="perceptron"):
        LearningOptions(learner="perceptron", curriculum=Curriculum())
