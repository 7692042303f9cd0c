"""Training input that cannot be used is refused in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.learning import L1, L2, Inferred, LearningOptions, fit
from models import AmbiguousMulticlass, multiclass_problem


def test_nothing_to_learn_from() -> None:
    model, samples = multiclass_problem(0)
    with pytest.raises(InputError, match="nothing to learn from"):
        fit(model, [], L2(1.0))
    with pytest.raises(InputError, match="0 annotations"):
        fit(model, samples, L2(1.0), n_annotations=0)


@pytest.mark.parametrize(
    ("regularizer", "words"),
    [
        (L2(0.0), "must be positive"),
        (L2(1.0, np.zeros(4)), "another set of features"),
        (L1(1.0, np.full(9, np.inf)), "9 finite numbers"),
        (L2(1.0, None, np.zeros(9)), "metric of feature 0"),
        (L2(1.0, None, np.eye(9)), "metric has shape"),
        (L1(1.0, None, np.full(9, np.nan)), "9 finite numbers"),
    ],
)
def test_regularizer_that_does_not_fit(regularizer: L1 | L2, words: str) -> None:
    model, samples = multiclass_problem(0)
    with pytest.raises(InputError, match=words):
        fit(model, samples, regularizer)


def test_initial_weights_that_do_not_fit() -> None:
    model, samples = multiclass_problem(0)
    with pytest.raises(InputError, match="initial weights"):
        fit(model, samples, L2(1.0), initial=np.zeros(3))


@pytest.mark.parametrize("wrong", [{"precision": 0}, {"max_cccp_iterations": 0}])
def test_options_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"learning: {next(iter(wrong))}"):
        LearningOptions(**wrong)


class Odd(AmbiguousMulticlass):
    """Inference with something wrong about what it returns."""

    change: dict[str, Any]

    def loss_augmented_inference(self, *args: Any, **keywords: Any) -> Inferred:
        return replace(super().loss_augmented_inference(*args, **keywords), **self.change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": np.full((12, 9), np.nan)}, "features of training sample 0"),
        ({"bounds": np.full(12, np.inf)}, "bounds of training sample 0"),
        ({"losses": np.full(12, np.nan)}, "task losses of training sample 0"),
    ],
)
def test_inference_that_returns_nonsense(change: dict[str, Any], words: str) -> None:
    model, samples = multiclass_problem(0, model=Odd)
    model.change = change
    with pytest.raises(InputError, match=words):
        fit(model, samples, L2(1.0))
