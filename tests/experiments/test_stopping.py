"""The convergence measure of eq. 1.8."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgetrack.experiments.algorithm import convergence, robust_mean

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)


@given(VALUES)
def test_robust_mean_lies_between_the_quantiles(values: list[float]) -> None:
    low, high = np.quantile(values, [0.1, 0.9])
    assert low - 1e-6 <= robust_mean(values) <= high + 1e-6


def test_robust_mean_ignores_outliers() -> None:
    assert robust_mean([*range(1, 10), 1e9]) == pytest.approx(np.mean(range(2, 10)), abs=0.51)
    assert robust_mean([*range(1, 10), 1e9]) < 10
    with pytest.raises(ValueError, match="no values"):
        robust_mean([])


@given(VALUES, st.integers(1, 20))
def test_eta_as_printed(values: list[float], window: int) -> None:
    found = convergence(values, window)
    if len(values) < window + 1:
        assert found == float("inf")
        return
    last = values[-(window + 1) :]
    assert found == pytest.approx(abs(robust_mean(last[1:]) - robust_mean(last[:window])))


@given(st.floats(-1e3, 1e3), st.integers(1, 10))
def test_constant_uncertainty_has_settled(value: float, window: int) -> None:
    assert convergence([value] * window, window) == np.inf
    assert convergence([value] * (window + 1), window) <= 1e-6
    assert convergence([value] * window + [value + 100.0 * window], 1) > 1e-6
