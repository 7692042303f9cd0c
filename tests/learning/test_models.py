"""The tiny models themselves: Viterbi finds what enumeration finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import Enumerable, chain_problem


@given(seed=st.integers(0, 10_000), space=st.sampled_from(["all", "compatible", "incompatible"]))
@settings(max_examples=25, deadline=None)
def test_viterbi_equals_enumeration(seed: int, space: str) -> None:
    model, samples = chain_problem(seed, n=2)
    w = np.random.default_rng(seed).normal(size=model.n_features)
    for s in samples:
        signs = {"all": (-1, 1), "compatible": (0,), "incompatible": (1,)}[space]
        for sign in signs:
            wanted = model.enumerate_best(s.x, s.y_star, w, sign, space)
            found = {
                "all": lambda s=s, sign=sign: model.loss_augmented_inference(
                    s.x, s.y_star, w, sign
                ),
                "compatible": lambda s=s: model.compatible_inference(s.x, s.y_star, w),
                "incompatible": lambda s=s: model.incompatible_inference(s.x, s.y_star, w),
            }[space]()
            assert found.bound == pytest.approx(wanted.bound)
            assert found.bound == pytest.approx(found.feature @ w + sign * found.loss)
            assert (found.loss > 0) == (space == "incompatible") or space == "all"


def test_plain_inference_is_enumeration() -> None:
    model, samples = chain_problem(3)
    w = np.random.default_rng(3).normal(size=model.n_features)
    for s in samples:
        assert model.inference(s.x, w).bound == pytest.approx(
            Enumerable.inference(model, s.x, w).bound
        )
        assert model.inference(s.x, w).loss == 0
