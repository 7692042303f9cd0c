"""Self-paced learning: from easy samples to hard ones (002, after Kumar et al. 2010).

Samples with a difficulty below 1/K take part; weights and selection alternate, and 1/K grows by mu
until all are in. What is returned is CCCP on all samples, which begins where the easy ones led:
its objective is that of plain training, and only the local optimum differs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.generators import relayed
from bridgetrack.learning.difficulty import difficulties, kinds_of
from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.options import Curriculum, TrainingOptions
from bridgetrack.learning.regularizers import Regularizer
from bridgetrack.learning.result import History, Progress, Stage, TrainingResult
from bridgetrack.learning.risk import Risk

Training = Generator[Progress, None, TrainingResult]


def paced(
    learn: Callable[..., Training],
    risk: Risk,
    regularizer: Regularizer,
    w: FloatArray,
    options: TrainingOptions,
    curriculum: Curriculum,
    **how: Any,
) -> Training:
    """Train on growing selections, then on everything.

    Parameters
    ----------
    learn
        `cccp.train`.
    risk
        All samples.
    regularizer
        As in `cccp.train`; lambda means the same throughout, since the risk of a selection is
        divided by the number of all annotations.
    w
        Weights to start from.
    options, curriculum
        Switches and limits.
    how
        Passed on to ``learn``.

    Yields
    ------
    Progress
        Of the trainings on selections too: objective and gap are those of the selection.
    """
    loose = replace(
        options,
        curriculum=None,
        adaptive=False,
        max_cccp_iterations=1,
        precision=max(options.precision, curriculum.precision),
    )
    log = _Log()
    pace, stages, state = _Pace(curriculum, risk, regularizer), list[Stage](), None
    for _ in range(curriculum.max_stages):
        selected = pace.select(w)
        if selected.all():
            break
        for again in range(curriculum.alternations):
            mine = [s for s, v in zip(risk.samples, selected, strict=True) if v]
            steps = learn(
                risk.model,
                mine,
                regularizer,
                n_annotations=risk.n_annotations,
                options=loose,
                initial=w,
                state=state,
                **how,
            )
            result = yield from log.follow(steps, selected.mean())
            w, state = result.w, result.state
            before, selected = selected, pace.select(w)
            if again + 1 == curriculum.alternations or selected.all() or (selected == before).all():
                break
        stages.append(Stage(pace.threshold, float(before.mean()), pace.shares(before), w.copy()))
        pace.raise_threshold()
    log.add(risk.effort.penalty_calls, risk.effort.reward_calls, risk.effort.seconds)
    rest = replace(options, curriculum=None)
    steps = learn(
        risk.model,
        risk.samples,
        regularizer,
        n_annotations=risk.n_annotations,
        options=rest,
        initial=w,
        state=state,
        **how,
    )
    before_it = log.calls, log.oracle, log.seconds
    final = yield from log.follow(steps, 1.0)
    history = _later(final.history, *before_it)
    return log.total(replace(final, history=history, stages=tuple(stages)))


def _later(history: History, calls: float, oracle: float, seconds: float) -> History:
    """A history that began after some effort."""
    return replace(
        history,
        n_oracle_calls=history.n_oracle_calls + round(calls),
        oracle_seconds=history.oracle_seconds + oracle,
        seconds=history.seconds + seconds,
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


class _Log:
    """What all trainings of a curriculum cost together."""

    def __init__(self) -> None:
        self.calls = 0.0
        self.rewards = 0.0
        self.oracle = 0.0
        self.seconds = 0.0
        self._iteration = 0

    def add(self, calls: float, rewards: float, oracle: float) -> None:
        """Count inference that measured difficulties."""
        self.calls += calls
        self.rewards += rewards
        self.oracle += oracle
        self.seconds += oracle

    def follow(self, steps: Training, share: float) -> Training:
        """Pass on a training of a share of the samples, with all calls so far counted."""

        def counted(step: Progress) -> Progress:
            self._iteration += 1
            return replace(
                step,
                iteration=self._iteration,
                n_oracle_calls=round(self.calls + share * step.n_oracle_calls),
                seconds=self.seconds + step.seconds,
                oracle_seconds=self.oracle + step.oracle_seconds,
            )

        result = yield from relayed(steps, counted)
        self.calls += share * result.n_oracle_calls
        self.rewards += share * result.n_reward_calls
        self.oracle += result.oracle_seconds
        self.seconds += result.seconds
        return result

    def total(self, final: TrainingResult) -> TrainingResult:
        """The last result, with the cost of all."""
        return replace(
            final,
            n_oracle_calls=round(self.calls),
            n_reward_calls=round(self.rewards),
            oracle_seconds=self.oracle,
            seconds=self.seconds,
        )
