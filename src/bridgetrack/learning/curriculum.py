"""Self-paced learning: from easy samples to hard ones (002, after Kumar et al. 2010).

Samples with a difficulty below 1/K take part; weights and selection alternate, and 1/K grows by mu
until all are in. What is returned is CCCP on all samples, which begins where the easy ones led:
its objective is that of plain training, and only the local optimum differs.

A sample is difficult by its ``slack``: its loss; by its ``entropy``: how undecided its hidden part
is; or by its ``novelty`` (002, eq. 4): how far the weights would have to move to learn it,

    min_delta 1/2 delta' M delta
    s.t. <w + delta, phi(x, y*, h) - phi(x, y)> >= Delta(y)     for all outputs y

with the completion h that is best at w. This program is solved by cutting planes: outputs enter it
when loss-augmented inference at ``w + delta`` finds them violated. With the best h of all, novelty
could only be smaller; with the outputs that a limit of rounds leaves out, larger.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.learning.model import FloatArray, InferredBatch
from bridgetrack.learning.options import Criterion, Curriculum, LearningOptions
from bridgetrack.learning.qp import call_backend
from bridgetrack.learning.regularizers import L2, Regularizer, unwhiten, whiten
from bridgetrack.learning.result import Stage, TrainingResult, TrainingStep
from bridgetrack.learning.risk import Risk, checked_batch
from bridgetrack.progress import relayed


def difficulties(
    criterion: Criterion, risk: Risk, regularizer: Regularizer, w: FloatArray
) -> FloatArray:
    """Difficulty of every sample, not negative, shape (n,).

    Slack and entropy are divided by the size of the sample: a large one is not difficult because
    it is large. Entropy is what the model's ``hidden_entropies(samples, w)`` says, shape (n,): that
    of the compatible outputs under ``p(y) ~ exp(f(x, y; w))``.
    """
    if criterion == "novelty":
        return novelties(risk, regularizer, w)
    if criterion == "slack":
        above = risk.penalty(w).values(w, 1) - risk.reward(w).values(w, risk.loss.reward_sign)
        return np.asarray(np.maximum(above, 0.0) / sizes_of(risk))
    measure = getattr(risk.model, "hidden_entropies", None)
    if measure is None:
        raise InputError(
            "this model cannot say how undecided the hidden part is; choose slack or novelty"
        )
    return np.asarray(np.maximum(measure(risk.samples, w), 0.0) / sizes_of(risk))


def sizes_of(risk: Risk) -> FloatArray:
    """Size of every sample, shape (n,), such as its annotations: the model's ``sizes``, else 1."""
    measure = getattr(risk.model, "sizes", None)
    found = np.ones(len(risk.samples)) if measure is None else measure(risk.samples)
    return np.asarray(found, dtype=float)


def kinds_of(risk: Risk) -> NDArray[np.bool_]:
    """Which kinds occur in each sample, shape (n, k): the model's ``kinds(samples)``, else none."""
    measure = getattr(risk.model, "kinds", None)
    n = len(risk.samples)
    return np.zeros((n, 0), dtype=bool) if measure is None else np.asarray(measure(risk.samples))


Training = Generator[TrainingStep, None, TrainingResult]


def paced(
    learn: Callable[..., Training],
    risk: Risk,
    regularizer: Regularizer,
    w: FloatArray,
    options: LearningOptions,
    curriculum: Curriculum,
    **how: Any,
) -> Training:
    """Train on growing selections by ``learn`` (`cccp.train`), then on everything.

    Lambda means the same throughout: the risk of a selection is divided by the number of all
    annotations. What is told of a selection is its own objective and gap.
    """
    rest = replace(options, curriculum=None)
    loose = replace(
        rest,
        adaptive=False,
        max_cccp_iterations=1,
        precision=max(options.precision, curriculum.precision),
    )
    pace, cost, stages, state = _Pace(curriculum, risk, regularizer), _Cost(), list[Stage](), None

    def steps(selected: NDArray[np.bool_], options: LearningOptions) -> Training:
        mine = [s for s, v in zip(risk.samples, selected, strict=True) if v]
        n, share = risk.n_annotations, float(selected.mean())
        how_now = {"options": options, "initial": w, "state": state, **how}
        return cost.follow(learn(risk.model, mine, regularizer, n_annotations=n, **how_now), share)

    for _ in range(curriculum.max_stages):
        selected = pace.select(w)
        if selected.all():
            break
        for again in range(curriculum.alternations):
            result = yield from steps(selected, loose)
            w, state = result.w, result.state
            before, selected = selected, pace.select(w)
            if again + 1 == curriculum.alternations or selected.all() or (selected == before).all():
                break
        stages.append(Stage(pace.threshold, float(before.mean()), pace.shares(before), w.copy()))
        pace.raise_threshold()
    cost.add(risk.effort.penalty_calls, risk.effort.reward_calls, risk.effort.seconds)
    earlier = replace(cost)
    final = yield from steps(np.ones(len(risk.samples), dtype=bool), rest)
    history = replace(
        final.history,
        n_inferences=final.history.n_inferences + round(earlier.penalty),
        inference_seconds=final.history.inference_seconds + earlier.inference,
        seconds=final.history.seconds + earlier.seconds,
    )
    return replace(
        final,
        history=history,
        stages=tuple(stages),
        n_inferences=round(cost.penalty),
        n_reward_inferences=round(cost.reward),
        inference_seconds=cost.inference,
        seconds=cost.seconds,
    )


class _Pace:
    """The threshold 1/K, and which samples are below it."""

    def __init__(self, curriculum: Curriculum, risk: Risk, regularizer: Regularizer) -> None:
        self.curriculum = curriculum
        self.risk = risk
        self.regularizer = regularizer
        self.threshold = -np.inf
        self._kinds = kinds_of(risk)
        self._last = np.zeros(len(risk.samples))

    def select(self, w: FloatArray) -> NDArray[np.bool_]:
        """Samples that take part at weights ``w``, shape (n,)."""
        found = difficulties(self.curriculum.criterion, self.risk, self.regularizer, w)
        self._last = found
        if self.threshold == -np.inf:
            self.threshold = quantile(found, self.curriculum.first)
        chosen = found <= self.threshold
        for kind in self._kinds.T:
            chosen |= easiest(found, kind, self.curriculum.of_each_kind)
        return chosen

    def raise_threshold(self) -> None:
        """Multiply 1/K by mu, and let at least some more samples in."""
        inside = float((self._last <= self.threshold).mean())
        more = quantile(self._last, min(inside + self.curriculum.at_least, 1.0))
        self.threshold = max(self.curriculum.rate * self.threshold, more)

    def shares(self, chosen: NDArray[np.bool_]) -> tuple[float, ...]:
        """Share of the samples of each kind that take part."""
        count = np.maximum(self._kinds.sum(axis=0), 1)
        inside = self._kinds[chosen].sum(axis=0) / count
        return tuple(float(v) for v in inside)


def quantile(values: FloatArray, share: float) -> float:
    """The smallest value that at least this share of all values does not exceed."""
    order = np.sort(values)
    return float(order[min(max(int(np.ceil(share * len(order))), 1), len(order)) - 1])


def easiest(values: FloatArray, kind: NDArray[np.bool_], share: float) -> NDArray[np.bool_]:
    """At least this share of the samples of a kind, the easiest of them, shape (n,)."""
    members = np.flatnonzero(kind)
    wanted = int(np.ceil(share * len(members)))
    chosen = np.zeros(len(values), dtype=bool)
    chosen[members[np.argsort(values[members], kind="stable")[:wanted]]] = True
    return chosen


@dataclass
class _Cost:
    """What all trainings of a curriculum cost together: inferences over all samples, and seconds.

    One over a share of the samples counts as so much.
    """

    penalty: float = 0.0
    reward: float = 0.0
    inference: float = 0.0
    seconds: float = 0.0
    _iteration: int = 0

    def add(self, penalty: float, reward: float, seconds: float) -> None:
        """Count inference that measured difficulties."""
        self.penalty += penalty
        self.reward += reward
        self.inference += seconds
        self.seconds += seconds

    def follow(self, steps: Training, share: float) -> Training:
        """Pass on a training of a share of the samples, with all that was before counted in."""

        def counted(step: TrainingStep) -> TrainingStep:
            self._iteration += 1
            return replace(
                step,
                iteration=self._iteration,
                n_inferences=round(self.penalty + share * step.n_inferences),
                seconds=self.seconds + step.seconds,
                inference_seconds=self.inference + step.inference_seconds,
            )

        result = yield from relayed(steps, counted)
        self.penalty += share * result.n_inferences
        self.reward += share * result.n_reward_inferences
        self.inference += result.inference_seconds
        self.seconds += result.seconds
        return result


ROUNDS = 8
"""Rounds of inference."""

TOLERANCE = 1e-2
"""Violation, in units of the task loss, that is let pass."""

BACKENDS = ("daqp", "piqp", "clarabel")


def novelties(
    risk: Risk, regularizer: Regularizer, w: FloatArray, rounds: int = ROUNDS
) -> FloatArray:
    """Novelty of every sample, shape (n,); inf where no change of the weights is enough.

    The regulariser's metric measures the change (the identity for L1).
    """
    metric = regularizer.metric if isinstance(regularizer, L2) else None
    n = len(risk.samples)
    done = risk.completions(w).features
    slopes: list[list[FloatArray]] = [[] for _ in range(n)]
    offsets: list[list[float]] = [[] for _ in range(n)]
    steps, value = np.zeros((n, len(w))), np.zeros(n)
    for _ in range(rounds):
        found = _each(risk, w + steps)
        rows = found.features - done
        violation = ((w + steps) * rows).sum(axis=1) + found.losses
        fresh = np.flatnonzero((violation > TOLERANCE) & np.isfinite(value))
        if not len(fresh):
            break
        white = np.asarray(whiten(metric, rows[fresh]))
        for i, row, raw in zip(fresh.tolist(), white, rows[fresh], strict=True):
            slopes[i].append(row)
            offsets[i].append(float(raw @ w + found.losses[i]))
            u = nearest(np.array(slopes[i]), np.array(offsets[i]))
            value[i] = np.inf if u is None else 0.5 * float(u @ u)
            steps[i] = 0.0 if u is None else unwhiten(metric, u)
    return value


def nearest(slopes: FloatArray, offsets: FloatArray) -> FloatArray | None:
    """The shortest u (d,) with ``<a_k, u> + b_k <= 0`` for all k; None if there is none."""
    length = np.linalg.norm(slopes, axis=1)
    empty = length <= 1e-9
    if (offsets[empty] > 1e-9).any():
        return None
    rows = slopes[~empty] / length[~empty, None]
    level = offsets[~empty] / length[~empty]
    scale = float(np.abs(level).max(initial=0.0))
    d = slopes.shape[1]
    if scale == 0.0 or (level <= 0).all():
        return np.zeros(d)
    for backend in BACKENDS:
        solved = call_backend(backend, np.eye(d), np.zeros(d), G=rows, h=-level / scale)
        if solved is None:
            continue
        u = solved[0] * scale
        if float((rows @ u + level).max()) <= 1e-5 * scale:
            return np.asarray(u)
    return None


def _each(risk: Risk, weights: FloatArray) -> InferredBatch:
    """Loss-augmented inference of each sample at weights of its own, shape (n, d).

    The model's ``loss_augmented_each(samples, weights)`` finds an `InferredBatch` at once.
    """
    batch = getattr(risk.model, "loss_augmented_each", None)
    risk.effort.penalty_calls += 1
    if batch is not None:
        found: InferredBatch = batch(risk.samples, weights)
    else:
        pairs = zip(risk.samples, weights, strict=True)
        single = [risk.model.loss_augmented_inference(s.x, s.y_star, v) for s, v in pairs]
        found = InferredBatch.stack(single)
    return checked_batch(found, risk.samples, np.zeros(weights.shape[1]), 0)
