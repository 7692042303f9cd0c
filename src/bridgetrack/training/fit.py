"""The objective of training, its minimiser, and how accurate that is on answers it has not seen.

    J(w) = lambda / 2 (w - w0)' M (w - w0) + risk of the answers

With n annotations in the movie of interest (the target), every movie's risk is its sum over
annotations divided by n, so every annotation counts alike, in whichever movie it is, and lambda
and rho are on the scale of training the target alone (as by the sums of 000, eq. 1.9).

Only a share s of the step from the starting weights w0 to the fitted ones is taken,

    w = w0 + s (w_fit - w0),    s = mean of p(s) ~ exp(-n J(w0 + s (w_fit - w0)) / 3),  0 <= s <= 1

the mean of the posterior along the way, where n J is the objective as a sum over the answers. If
the answers hardly tell shares apart, as where the start is nearly right, half of the way is taken;
the more of them the start contradicts, the nearer s comes to 1. People slip: an answer that
contradicts what the start would choose by a wide margin is unusual. It is shown, and learned from,
but does not speak for a longer step. Where more are unusual than slips explain, the start does not
suit the movie.

Folds of the cross-validation are blocks of frame pairs, and a sample is never shared by two folds,
so that neighbouring cells and frames do not leak between training and test.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import betainc

from bridgetrack.annotations.constraints import compile_constraints
from bridgetrack.arrays import Array, Index
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.learning import (
    L1,
    L2,
    Bundle,
    Domain,
    Regularizer,
    Stacked,
    TrainingResult,
    TrainingStep,
    train,
)
from bridgetrack.learning.options import find_loss
from bridgetrack.learning.risk import Risk
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.training.options import ENOUGH_TO_VALIDATE, FOLDS, TrainingOptions
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, balanced, build_training_set

Fit = Generator[TrainingStep, None, TrainingResult]

STAGE = "Testing on held-out answers"

FOLD_PRECISION = 5e-3
"""Duality gap of the fits that are only judged."""

TEMPERATURE = 3.0
"""Answers about cells side by side repeat each other: each counts as a third of an independent one.
On nine movies 2 to 4 do as well."""

SHARES = np.linspace(0.0, 1.0, 5)
"""Shares at which the objective is computed; it is nearly linear in between."""

CONFIDENT = 4.0
"""Margin from which on the starting model is confident, in contradicted answers. On seven real
movies 0.33 % of such events were wrong at most."""

UNUSUAL = 2.0
"""Margin from which on an answer that contradicts the starting model is called unusual."""

SLIPS = 0.1
"""Share of the answers about confident events that may contradict them: people slip."""

_CHANCE = 0.05
"""Chance below which contradictions are not explained by slips."""


@dataclass(frozen=True)
class Objective:
    """The objective: annotated movies to learn from, the starting weights and the regulariser."""

    target: TrackingModel | None  # the movie of interest; None if nothing is annotated there
    sources: tuple[TrackingModel, ...]  # the others
    # weights w0 to stay close to, shape (d,), and the diagonal of the metric M, or None
    prior: Array
    metric: Array | None
    lambda_: float  # how close weights stay to the prior
    # how close the weights of different movies stay to each other; infinite: they are equal
    rho: float = np.inf
    options: TrainingOptions = field(default_factory=TrainingOptions)  # other choices

    @property
    def regularizer(self) -> Regularizer:
        """The chosen regulariser around the prior."""
        if self.options.regularizer == "l2":
            return L2(self.lambda_, self.prior, self.metric)
        return L1(self.lambda_, self.prior, None if self.metric is None else np.sqrt(self.metric))

    def fit(self, *, rows: Index | None = None, state: Bundle | None = None) -> Fit:
        """Fit some of the target's samples (None: all) and all of the sources.

        Parameters
        ----------
        rows
            Samples of the target.
        state
            Of an earlier fit of a single movie, to go on from.

        Yields
        ------
        TrainingStep
            ``w`` are the weights of the target.

        Returns
        -------
        TrainingResult
            ``w`` are the weights of the target, without one the shared ones.
        """
        options = self.options
        how: dict[str, Any] = {"loss": options.loss, "treatment": options.treatment}
        domains, n = [], annotations_of(self.target, self.sources)
        if self.target is not None:
            data = self.target.data
            rows = np.arange(len(data.samples)) if rows is None else rows
            n = float(np.isin(data.annotation_sample, rows).sum())
            domains.append(Domain(self.target, [data.samples[i] for i in rows.tolist()], n))
        if not self.sources:
            (mine,) = domains
            how |= {"n_annotations": n, "state": state, "options": options.learning}
            return (yield from train(mine.model, mine.samples, self.regularizer, **how))
        # the master problem has many more weights, and its time grows steeply with slacks
        how["options"] = replace(options, learner=options.learner or "1-slack").learning
        domains += [Domain(model, model.data.samples, n) for model in self.sources]
        stacked = Stacked(domains, self.lambda_, self.rho, self.prior, self.metric)
        how["n_annotations"] = stacked.n_annotations
        steps = train(stacked, stacked.samples, stacked.regularizer, **how)

        def of_target(w: Array) -> Array:
            return stacked.shared(w) if self.target is None else stacked.weights(w)[0]

        result = yield from relayed(steps, lambda s: replace(s, w=of_target(s.w)))
        return replace(result, w=of_target(result.w))

    def held_out_errors(self, step: float) -> Steps[Array | None]:
        """Errors on the target's annotations, each of a model that has not seen its fold, (A,).

        ``step`` is the share of the step from the starting to the fitted weights: one number,
        chosen by all answers. None if there are too few answers to divide, see `folds_of`.
        """
        assert self.target is not None
        data = self.target.data
        fold = folds_of(data)
        if fold is None:
            return None
        loose = replace(self.options, precision=max(self.options.precision, FOLD_PRECISION))
        folds, of_annotation = int(fold.max()) + 1, fold[data.annotation_sample]
        out = np.zeros(len(of_annotation))
        for k in range(folds):
            told, rows = Progress(STAGE, k / folds), np.flatnonzero(fold != k)
            known = data  # the weights of kinds are as if the fold had no annotations
            if data.population is not None:
                known = balanced(data, data.population, rows)
            # New models, without the state of the judged training: the optimum that CCCP reaches
            # depends on earlier optima and planes.
            target = TrackingModel(known)
            sources = tuple(TrackingModel(model.data) for model in self.sources)
            part = replace(self, target=target, sources=sources, options=loose)
            fitted = yield from relayed(part.fit(rows=rows), lambda _: told)  # noqa: B023
            errors = errors_of(target, self.prior + step * (fitted.w - self.prior))
            out[of_annotation == k] = errors[of_annotation == k]
        return out


@dataclass(frozen=True)
class Learned:
    """The result of `learn`."""

    weights: Array  # shape (d,)
    step: float  # share of the step from the starting to the fitted weights
    result: TrainingResult | None  # of the learner; None if nothing was annotated
    objective: Objective | None  # what was minimised, with the annotated components

    @property
    def state(self) -> Bundle | None:
        """State for a later training."""
        return None if self.result is None else self.result.state


def learn(
    objective: Objective,
    scene: Scene,
    told: Callable[[TrainingStep], Progress],
    state: Bundle | None = None,
) -> Steps[Learned]:
    """Minimise an objective, and take a share of the step to its minimiser.

    Parameters
    ----------
    objective
        The objective.
    scene
        The target's movie with its annotations.
    told
        How steps of the fit are reported.
    state
        Of an earlier fit of a single movie, to go on from.
    """
    fitted = yield from relayed(objective.fit(state=state), told)
    step = yield from share_of_step(objective, scene, fitted.w)
    weights = objective.prior + step * (fitted.w - objective.prior)
    return Learned(weights, step, fitted, objective)


def annotations_of(target: TrackingModel | None, sources: Sequence[TrackingModel]) -> float:
    """Annotations of the target; of all sources where it has none."""
    models = sources if target is None else (target,)
    return float(sum(model.data.n_annotations for model in models))


def share_of_step(objective: Objective, scene: Scene, fitted: Array) -> Steps[float]:
    """Share s of the step from the starting to the fitted weights that is taken.

    Unusual answers, which contradict the start by a wide margin, are not used here, though w_fit is
    learned from them: a single one that is a mistake would otherwise demand the whole step.

    Parameters
    ----------
    objective
        The objective that was minimised; the answers of the target are used, without one those of
        the sources.
    scene
        The target's movie with its annotations.
    fitted
        Fitted weights of the target, shape (d,).

    Yields
    ------
    Progress
    """
    start, options = objective.prior, objective.options
    models = _speaking(objective, scene)
    points = start + SHARES[:, None] * (fitted - start)
    loss, n = find_loss(options.loss), sum(model.data.n_annotations for model in models)
    values = n * objective.regularizer.value(points)
    for model in models:
        risk = Risk(model, model.data.samples, None, loss, options.treatment)
        for k, w in enumerate(points):
            yield Progress("Choosing how far to go", k / len(points))
            values[k] += risk.loss_of_each(w).sum()
    shares = np.linspace(0.0, 1.0, 101)
    energy = np.interp(shares, SHARES, values) / TEMPERATURE
    density = np.exp(energy.min() - energy)
    return float(density @ shares / density.sum())


def _speaking(objective: Objective, scene: Scene) -> tuple[TrackingModel, ...]:
    """Annotated movies without unusual answers."""
    if objective.target is None:
        return objective.sources
    data = objective.target.data
    wide = margins_of_answers(data, objective.prior) <= -UNUSUAL
    if not wide.any():
        return (objective.target,)
    unusual = scene.constraints.annotation[wide]
    kept = np.setdiff1d(np.arange(len(scene.anchored.listed)), unusual)
    anchored = scene.anchored.take(kept)
    constraints = compile_constraints(anchored, scene.hypotheses)
    if not len(constraints):
        return ()
    assert data.population is not None
    usual = build_training_set(replace(scene, anchored=anchored, constraints=constraints))
    return (TrackingModel(balanced(usual, data.population)),)


def margins_of_answers(data: TrainingSet, w: Array) -> Array:
    """Margins by which weights (d,) choose the events that answers confirm, shape (A,).

    Negative if they choose an event that the answer contradicts. 0 if the chosen event has no
    alternative, so that there is nothing to learn. Margins are those within the components as
    training cuts them.
    """
    scores = np.asarray(data.phi @ w)
    problem = Problem(sp.csr_matrix(data.incidence))
    solution = solve(problem, scores)
    margin = np.where(solution.chosen, margin_bounds(problem, scores, solution), 0.0)
    margin[~np.isfinite(margin)] = 0.0
    met = data.sets @ solution.chosen.astype(np.float64) > 0
    confirmed = data.sets.multiply(margin).max(axis=1).toarray().ravel()
    of_slot = data.incidence.multiply(np.where(data.allowed, 0.0, margin)[:, None]).max(axis=0)
    slots = sp.csr_matrix(data.sets @ data.incidence) > 0
    contradicted = slots.multiply(of_slot.toarray()).max(axis=1).toarray().ravel()
    return np.where(met, confirmed, -contradicted)


def explained_by_slips(contradicting: int, confirming: int) -> bool:
    """Whether mistakes explain so many contradictions of confident choices (binomial test)."""
    if not contradicting:
        return True
    return float(betainc(contradicting, confirming + 1, SLIPS)) >= _CHANCE


def folds_of(data: TrainingSet, folds: int = FOLDS) -> Index | None:
    """Fold of every sample, shape (n,); None if there is too little to divide.

    Frame pairs are cut into blocks, three per fold where there are enough, and dealt out in turn.
    """
    if data.n_annotations < ENOUGH_TO_VALIDATE:
        return None
    first = np.full(len(data.samples), -1, dtype=np.int64)
    order = np.lexsort((data.pair, data.annotation_sample))
    sample, where = np.unique(data.annotation_sample[order], return_index=True)
    first[sample] = data.pair[order][where]
    pairs, number = np.unique(first, return_inverse=True)
    count = min(folds, len(pairs))
    if count < 2:
        return None
    block = max(1, len(pairs) // (3 * count))
    return np.asarray((number // block) % count, dtype=np.int64)


def errors_of(model: TrackingModel, w: Array) -> Array:
    """Errors of weights (d,) on all annotations, 0 to 1, shape (A,)."""
    return np.clip(1.0 - model.satisfied(w), 0.0, 1.0)
