"""Fit weights to annotated movies.

With n annotations in the movie of interest (the target), every movie's risk is its sum over
annotations divided by n, so every annotation counts alike, in whichever movie it is, and lambda
and rho are on the scale of training the target alone (as by the sums of 000, eq. 1.9).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning import (
    L1,
    L2,
    Coupling,
    Domain,
    Regularizer,
    TrainingResult,
    TrainingState,
    TrainingStep,
    train,
    train_joint,
)
from bridgetrack.progress import relayed
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.tracking_model import TrackingModel

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Fit = Generator[TrainingStep, None, TrainingResult]


@dataclass(frozen=True)
class Movies:
    """Annotated movies to learn from.

    Parameters
    ----------
    target
        The movie of interest; None where nothing is annotated there.
    sources
        The others.
    prior, metric
        Weights to stay close to, shape (d,), and the diagonal of the metric, or None.
    """

    target: TrackingModel | None
    sources: tuple[TrackingModel, ...]
    prior: Array
    metric: Array | None

    @property
    def n(self) -> float:
        """Annotations of the target; of all sources where it has none."""
        models = self.sources if self.target is None else (self.target,)
        return float(sum(model.data.n_annotations for model in models))

    @property
    def n_all(self) -> float:
        """Annotations of all movies."""
        models = (*self.sources, *(() if self.target is None else (self.target,)))
        return float(sum(model.data.n_annotations for model in models))

    def fit(
        self,
        lambda_: float,
        rho: float,
        options: TrainingOptions,
        *,
        rows: Index | None = None,
        state: TrainingState | None = None,
    ) -> Fit:
        """Fit some of the target's samples (None: all) and all of the sources.

        Parameters
        ----------
        lambda_
            How close weights stay to the prior.
        rho
            How close the weights of different movies stay to each other; infinite: they are equal.
        options
            Other choices.
        rows
            Samples of the target.
        state
            Of an earlier fit of a single movie, to go on from.

        Yields
        ------
        TrainingStep
            ``weights`` are those of the target.

        Returns
        -------
        TrainingResult
            ``w`` are the weights of the target, without one the shared ones.
        """
        domains, n = [], self.n
        if self.target is not None:
            data = self.target.data
            rows = np.arange(len(data.samples)) if rows is None else rows
            n = float(np.isin(data.annotation_sample, rows).sum())
            domains.append(Domain(self.target, [data.samples[i] for i in rows.tolist()], n))
        how = {"loss": options.loss, "treatment": options.treatment, "options": options.learning}
        if not self.sources:
            (mine,) = domains
            result = yield from train(
                mine.model,
                mine.samples,
                regularizer_of(options, lambda_, self.prior, self.metric),
                n_annotations=n,
                state=state,
                initial=self.prior if state is None else None,
                **how,  # type: ignore[arg-type]
            )
            return result
        domains += [Domain(model, model.data.samples, n) for model in self.sources]
        coupling = Coupling(lambda_, rho, self.prior, self.metric)
        initial = np.tile(self.prior, (len(domains), 1))
        steps = train_joint(domains, coupling, initial=initial, **how)  # type: ignore[arg-type]

        def of_target(weights: Array) -> Array:
            return coupling.shared(weights) if self.target is None else weights[0]

        result = yield from relayed(
            steps, lambda step: replace(step, weights=of_target(step.weights))
        )
        return replace(result, w=of_target(result.weights))


def regularizer_of(
    options: TrainingOptions, lambda_: float, prior: Array, metric: Array | None = None
) -> Regularizer:
    """The chosen regulariser around a prior."""
    if options.regularizer == "l2":
        return L2(lambda_, prior=prior, metric=metric)
    return L1(lambda_, prior=prior, metric=None if metric is None else np.sqrt(metric))
