"""When uncertainty has settled: the convergence measure and stopping rule (000, eq. 1.8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def robust_mean(values: Sequence[float]) -> float:
    """Mean of the values between the 10 % and the 90 % quantile, both included.

    Where there are too few values for any to lie between them, the mean of all.

    Raises
    ------
    ValueError
        Where there are no values.
    """
    found = np.asarray(values, dtype=np.float64)
    if not len(found):
        raise ValueError("the mean of no values is not defined")
    low, high = np.quantile(found, [0.1, 0.9])
    inside = (found >= low) & (found <= high)
    return float(found[inside].mean() if inside.any() else found.mean())


def convergence(values: Sequence[float], window: int) -> float:
    """``eta = |mean(q[t-T+1 .. t]) - mean(q[t-T .. t-1])|`` with the robust mean (eq. 1.8).

    Parameters
    ----------
    values
        Average uncertainties q of all rounds so far.
    window
        T.

    Returns
    -------
    float
        Infinite while there are fewer than ``T + 1`` values.
    """
    if len(values) < window + 1:
        return float("inf")
    last = list(values[-window - 1 :])
    return abs(robust_mean(last[1:]) - robust_mean(last[:-1]))


def has_settled(values: Sequence[float], window: int, threshold: float) -> bool:
    """Whether to stop: ``eta <= threshold`` (Algorithm 1.2, line 15)."""
    return convergence(values, window) <= threshold
