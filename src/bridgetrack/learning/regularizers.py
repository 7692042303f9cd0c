"""Regularisers: how far weights may go from a prior, and in which directions.

``L2``: ``lambda/2 (w - w0)' M (w - w0)``; ``L1``: ``lambda sum_i m_i |w_i - w0_i|``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError


@dataclass(frozen=True)
class Regularizer(ABC):
    """Distance from the prior, `L2` or `L1`.

    Parameters
    ----------
    weight
        lambda > 0.
    prior
        Weights w0 to stay close to, shape (d,); None: zero.
    metric
        Positive factor of each weight, the diagonal of M or m, shape (d,); None: one.
    """

    weight: float
    prior: Array | None = None
    metric: Array | None = None

    @abstractmethod
    def value(self, w: Array) -> Array:
        """Value at weights (d,), or at each of several, (k, d)."""

    def centre(self, d: int) -> Array:
        """The prior, or zeros, shape (d,)."""
        return np.zeros(d) if self.prior is None else np.asarray(self.prior, dtype=float)

    def factor(self, d: int) -> Array:
        """The metric, or ones, shape (d,)."""
        return np.ones(d) if self.metric is None else np.asarray(self.metric, dtype=float)

    def check(self, d: int) -> None:
        """Refuse, with an InputError, what does not fit ``d`` weights."""
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise InputError(f"the weight of the regulariser must be positive, not {self.weight}")
        for name, values in (("prior", self.centre(d)), ("metric", self.factor(d))):
            if values.shape != (d,) or not np.isfinite(values).all():
                raise InputError(
                    f"the {name} has shape {values.shape} and must be {d} finite numbers, one for "
                    "each feature; it may belong to another set of features"
                )
        if not (self.factor(d) > 0).all():
            feature = int(np.argmin(self.factor(d)))
            raise InputError(f"the metric of feature {feature} is not positive")


class L2(Regularizer):
    """Squared distance from the prior.

    With the weights of a source model as the prior this learns the delta function of 004
    (Algorithm 1), where each cutting plane is a bound on the penalty and 1/lambda is its C:

        f_target(x, y) = <w0, phi(x, y)> + <w - w0, phi(x, y)>,    min  lambda/2 |w - w0|^2 + risk
    """

    def value(self, w: Array) -> Array:
        """Value at weights (d,), or at each of several, (k, d)."""
        d = w.shape[-1]
        step = w - self.centre(d)
        return np.asarray(0.5 * self.weight * (step * (self.factor(d) * step)).sum(axis=-1))

    def whitened(self, slopes: Array) -> Array:
        """Slopes (m, d) in coordinates ``z = sqrt(lambda M) (w - w0)``."""
        scaled: Array = slopes / np.sqrt(self.factor(slopes.shape[1])) / np.sqrt(self.weight)
        return scaled

    def unwhitened(self, z: Array) -> Array:
        """Weights of coordinates z, shape (d,)."""
        return self.centre(len(z)) + self.whitened(z[None])[0]

    def least(self, slope: Array) -> Array:
        """Where the regulariser plus ``<slope, w - w0>`` is least, less w0."""
        return np.asarray(-(1.0 / self.factor(len(slope)) / self.weight) * slope)


class L1(Regularizer):
    """Absolute distance from the prior: few weights leave it."""

    def value(self, w: Array) -> Array:
        """Value at weights (d,), or at each of several, (k, d)."""
        d = w.shape[-1]
        return np.asarray(self.weight * (np.abs(w - self.centre(d)) * self.factor(d)).sum(axis=-1))
