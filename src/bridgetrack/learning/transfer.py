"""Transfer between domains as one training of stacked features (000, section 1.6.2, eq. 1.9).

    lambda/2 (w - w0)' M (w - w0)  +  rho/2 sum_d (w^d - w)' M (w^d - w)  +  sum_d risk^d(w^d)

ties the weights w^d of every domain to shared ones w. With ``t^d = sqrt(rho/lambda) (w^d - w)`` the
regulariser is ``lambda/2`` times the squared length of the stacked (w - w0, t^1, ..., t^D), and the
joint feature of domain d is ``phi`` at w and ``sqrt(lambda/rho) phi`` at t^d. So any learner can be
used. For rho = inf there is only w: training on the union.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.learning.regularizers import L2
from bridgetrack.learning.structured_model import Inferred, Sample, Sign, StructuredModel


@dataclass(frozen=True)
class Domain:
    """One of several annotated data sets."""

    model: StructuredModel  # its structured model; all domains have the same features
    samples: Sequence[Sample]  # its inputs with their annotations
    # the domain's risk, a sum over its samples, is divided by this. None: the number of its
    # samples, so that every domain counts alike. The same number for all domains makes every
    # annotation count alike, whichever domain it is in, as in eq. 1.9
    n_annotations: float | None = None


class Stacked(StructuredModel):
    """All domains as one structured model over stacked features.

    Train it as any other model::

        stacked = Stacked(domains, weight=0.1, tie=1.0)
        n = stacked.n_annotations
        result = fit(stacked, stacked.samples, stacked.regularizer, n_annotations=n)
        shared, each = stacked.shared(result.w), stacked.weights(result.w)

    Parameters
    ----------
    domains
        Data sets with partial or full annotations.
    weight
        lambda > 0.
    tie
        rho > 0; inf makes all domains equal.
    prior
        w0, shape (d,); None: zero.
    metric
        M, a positive diagonal of shape (d,); None: the identity.

    Attributes
    ----------
    samples
        Samples of all domains.
    regularizer
        Regulariser of the stacked weights.
    n_annotations
        Divisor of the risk of the first domain. Joint features and losses of a domain with another
        number are multiplied by the ratio, so that dividing by this one is right.

    Raises
    ------
    InputError
        If there are no domains, their features differ, or lambda or rho are not valid.
    """

    def __init__(
        self,
        domains: Sequence[Domain],
        weight: float,
        tie: float,
        prior: Array | None = None,
        metric: Array | None = None,
    ) -> None:
        _check(domains, weight, tie)
        self.domains = tuple(domains)
        self._d = domains[0].model.n_features
        self._scale = float(np.sqrt(weight / tie))  # 0 where rho is infinite
        n_blocks = 1 + len(domains) if self._scale else 1
        blocks = np.tile(np.ones(self._d) if metric is None else metric, n_blocks)
        self._n = len(blocks)
        w0 = self.stacked(np.zeros(self._d) if prior is None else prior)
        self.regularizer = L2(weight, w0, blocks)
        each = [len(x.samples) if x.n_annotations is None else x.n_annotations for x in domains]
        self.n_annotations = float(each[0])
        self._factor = [self.n_annotations / n for n in each]
        self.samples = tuple(
            Sample((k, s), s.y_star, None if s.key is None else (k, self._scale, factor, s.key))
            for k, (domain, factor) in enumerate(zip(domains, self._factor, strict=True))
            for s in domain.samples
        )

    def shared(self, w: Array) -> Array:
        """The shared weights, shape (d,)."""
        return w[: self._d]

    def weights(self, w: Array) -> Array:
        """The weights of every domain, shape (D, d)."""
        return np.array([self._of(w, k) for k in range(len(self.domains))])

    def stacked(self, shared: Array) -> Array:
        """Stacked weights at which every domain has the shared ones (d,)."""
        return np.concatenate([shared, np.zeros(self._n - self._d)])

    @property
    def n_features(self) -> int:
        """Length of the stacked weights."""
        return self._n

    def inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        """Maximise f over all outputs."""
        return self._each(samples, w, lambda model, mine, w_d: model.inference(mine, w_d))

    def loss_augmented_inference(
        self, samples: Sequence[Sample], w: Array, sign: Sign = 1
    ) -> Inferred:
        """Maximise f + sign * Delta over all outputs."""
        return self._each(
            samples, w, lambda model, mine, w_d: model.loss_augmented_inference(mine, w_d, sign)
        )

    def compatible_inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        """Maximise f over the compatible outputs."""
        return self._each(
            samples, w, lambda model, mine, w_d: model.compatible_inference(mine, w_d)
        )

    def blocks(self, samples: Sequence[Sample]) -> Sequence[Index]:
        """Samples that one inference in their domain solves together."""
        return [
            rows[block]
            for k, rows, mine in self._by_domain(samples)
            for block in self.domains[k].model.blocks(mine)
        ]

    def sizes(self, samples: Sequence[Sample]) -> Array:
        """Size of every sample in its domain, shape (n,)."""
        sizes = np.zeros(len(samples))
        for k, rows, mine in self._by_domain(samples):
            sizes[rows] = self.domains[k].model.sizes(mine)
        return sizes

    def _each(
        self,
        samples: Sequence[Sample],
        w: Array,
        ask: Callable[[StructuredModel, list[Sample], Array], Inferred],
    ) -> Inferred:
        features = np.zeros((len(samples), self.n_features))
        losses, bounds = np.zeros((2, len(samples)))
        for k, rows, mine in self._by_domain(samples):
            factor = self._factor[k]
            found = ask(self.domains[k].model, mine, self._of(w if w.ndim == 1 else w[rows], k))
            features[rows] = self._placed(found.features, k)
            losses[rows], bounds[rows] = factor * found.losses, factor * found.bounds
        return Inferred(features, losses, bounds)

    def _by_domain(self, samples: Sequence[Sample]) -> Iterator[tuple[int, Index, list[Sample]]]:
        """Every domain of some samples, their positions, and the domain's own samples."""
        home = np.array([s.x[0] for s in samples])
        for k in np.unique(home).tolist():
            rows = np.flatnonzero(home == k)
            yield k, rows, [samples[i].x[1] for i in rows.tolist()]

    def _of(self, w: Array, k: int) -> Array:
        """The weights of a domain, (d,) or (n, d)."""
        if not self._scale:
            return w
        own: Array = w[..., : self._d] + self._scale * w[..., self._block(k)]
        return own

    def _placed(self, features: Array, k: int) -> Array:
        """Features (n, d) of a domain among the stacked ones, weighted as its risk is."""
        placed = np.zeros((len(features), self.n_features))
        placed[:, : self._d] = self._factor[k] * features
        if self._scale:
            placed[:, self._block(k)] = self._factor[k] * self._scale * features
        return placed

    def _block(self, k: int) -> slice:
        return slice((k + 1) * self._d, (k + 2) * self._d)


def _check(domains: Sequence[Domain], weight: float, tie: float) -> None:
    if not domains or not all(len(domain.samples) for domain in domains):
        raise InputError("there is nothing to learn from: no domain, or one without samples")
    sizes = [domain.model.n_features for domain in domains]
    if len(set(sizes)) > 1:
        raise InputError(
            f"the domains have {', '.join(map(str, sizes))} features; transfer needs the same "
            "features in all of them"
        )
    if not (0 < weight < np.inf and tie > 0):
        raise InputError(f"lambda and rho must be positive, not {weight} and {tie}")
