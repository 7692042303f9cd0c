"""Training input that cannot be used is refused in words."""

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.learning import L1, L2, Domain, LearningOptions, Stacked, fit
from models import AmbiguousMulticlass, chain_problem, multiclass_problem

MODEL, SAMPLES = multiclass_problem(0)
CHAINS, CLASSES = Domain(*chain_problem(0)), Domain(MODEL, SAMPLES)


def fitted(regularizer=None, samples=SAMPLES, options=None, **how):
    """A training, to be begun."""
    near = regularizer or L2(1.0)
    return lambda: fit(MODEL, samples, near, options=LearningOptions(**options or {}), **how)


REFUSED = {
    "nothing to learn from": fitted(samples=[]),
    "0 annotations": fitted(n_annotations=0),
    "initial weights": fitted(initial=np.zeros(3)),
    "no loss 'brigde'.*bridge": fitted(loss="brigde"),
    "the regulariser must be positive": fitted(L2(0.0)),
    "another set of features": fitted(L2(1.0, np.zeros(4))),
    "metric of feature 0": fitted(L2(1.0, None, np.zeros(9))),
    "metric has shape": fitted(L2(1.0, None, np.eye(9))),
    "9 finite numbers": fitted(L1(1.0, np.full(9, np.inf))),
    "9 finite numbers.*": fitted(L1(1.0, None, np.full(9, np.nan))),
    "learning: precision": fitted(options={"precision": 0}),
    "learning: max_cccp_iterations": fitted(options={"max_cccp_iterations": 0}),
    "frank-wolfe": fitted(options={"learner": "adam"}),
    "mood": fitted(options={"curriculum": "mood"}),
    "perceptron": fitted(options={"learner": "perceptron", "curriculum": "slack"}),
    "slack or novelty": fitted(options={"curriculum": "entropy"}),
    "l2": fitted(L1(0.1), options={"learner": "n-slack"}),
    "satisfied": fitted(treatment="literal", options={"learner": "frank-wolfe"}),
    "no domain": lambda: Stacked([], 1, 1),
    "same features": lambda: Stacked([CHAINS, CLASSES], 1, 1),
    "nothing to learn": lambda: Stacked([Domain(MODEL, [])], 1, 1),
    "positive, not 1 and nan": lambda: Stacked([CHAINS], 1, np.nan),
    "positive, not 1 and -1": lambda: Stacked([CHAINS], 1, -1),
    "positive, not 0 and 1": lambda: Stacked([CHAINS], 0, 1),
    "positive, not inf and 1": lambda: Stacked([CHAINS], np.inf, 1),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_used_is_refused(words):
    with pytest.raises(InputError, match=words):
        REFUSED[words]()


class Odd(AmbiguousMulticlass):
    """Inference with something wrong about what it returns."""

    def loss_augmented_inference(self, *args, **keywords):
        return replace(super().loss_augmented_inference(*args, **keywords), **self.change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": np.full((12, 9), np.nan)}, "features of training sample 0"),
        ({"bounds": np.full(12, np.inf)}, "bounds of training sample 0"),
        ({"losses": np.full(12, np.nan)}, "task losses of training sample 0"),
    ],
)
def test_inference_that_returns_nonsense(change, words):
    model, samples = multiclass_problem(0, model=Odd)
    model.change = change
    with pytest.raises(InputError, match=words):
        fit(model, samples, L2(1.0))
