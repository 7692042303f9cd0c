"""An unbiased estimate of accuracy from annotations alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import Note, NoteKind, plural
from bridgetrack.evaluation.sample import exact_interval

HARDER = 0.02
"""Difference in accuracy between movie and answers above which it is explained."""

_WIDEST = 0.4
"""Width of the interval up to which an estimate is shown."""

FEWEST = math.ceil(math.log(0.025) / math.log(1.0 - _WIDEST))
"""Answers of which the interval is as narrow where all are right."""


@dataclass(frozen=True)
class ErrorEstimate:
    """Estimated share of correctly explained events."""

    # estimate and its 95 % interval, 0 to 1
    accuracy: float
    low: float
    high: float
    n_annotations: int  # annotations it is based on
    right: float  # how many of these are right; parts of one where it leaves several events
    random: bool  # whether they were drawn at random, which makes the estimate unbiased
    # number of independent parts: regions of the movie, or single annotations if they were drawn
    # one by one
    parts: int

    @property
    def says_something(self) -> bool:
        """Whether it is narrow enough to be shown; estimates from few answers fluctuate."""
        return self.high - self.low <= _WIDEST

    @property
    def words(self) -> str:
        """The estimate as a sentence."""
        n, where = self.n_annotations, ""
        scope = "" if self.random else ", provided the cells you annotated are representative"
        if 1 < self.parts < n:
            where = f" in {self.parts} independent regions of the movie"
        if self.right > n - 1e-9:
            one = "the only held-out answer was"
            found = f"all {n} held-out answers{where} were" if n > 1 else one
            return (
                f"at least {100 * self.low:.1f} % of all events of the movie are correct{scope} "
                f"(95 % confidence interval up to 100 %: {found} predicted correctly)"
            )
        harder = ""
        if not self.random and self.accuracy >= self.right / n + HARDER:
            harder = "; the answers are about difficult events, and the model is correct less "
            harder += "often on them"
        return (
            f"about {100 * self.accuracy:.1f} % of all events of the movie are correct{scope} "
            f"(95 % confidence interval {100 * self.low:.1f}-{100 * self.high:.1f} %, from "
            f"{plural(n, 'held-out answer')}{where}){harder}"
        )

    @property
    def warnings(self) -> tuple[Note, ...]:
        """A warning where the model is wrong more often than not."""
        wrong = 1.0 - self.right / self.n_annotations
        if wrong <= 0.5:
            return ()
        words = (
            f"on held-out annotations the model is wrong in {100 * wrong:.0f} % of the cases: do "
            "not use it; check that the annotations belong to these labels, and that most labels "
            "are single cells"
        )
        return (Note(NoteKind.WARNING, words),)

    def to_json(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        names = {"n_annotations": "annotations"}
        return {names.get(name, name): value for name, value in asdict(self).items()}


def weights_of_kinds(event: NDArray[np.int8], population: Array) -> Array:
    """Weights of annotations that people chose, by the kinds of events that they say hold (A,).

    Annotations are rarely in the proportions of the movie, since people look for rare events. So
    the weight of an annotation is the number of events of its kind in the tracked movie
    (``population``, shape (len(Event),)) divided by the number of annotations of this kind. Kinds
    without annotations are assumed to have the error rate of the others, and annotations whose
    event is -1, as they leave several, get the mean weight.
    """
    weight, known = np.ones(len(event)), event >= 0
    if known.any():
        counts = np.bincount(event[known], minlength=len(population))
        # a kind that was annotated, and that the tracked movie does not have, still counts
        weight[known] = np.maximum(population, 0.5)[event[known]] / counts[event[known]]
        weight[~known] = weight[known].mean()
    return weight


def estimate_accuracy(
    wrong: Array, weight: Array, seen: Array, part: Index | None = None
) -> ErrorEstimate:
    """Share of events that are right and its 95 % interval, from errors (A,) of a sample.

    Assumes that the sample is drawn with probabilities in inverse proportion to ``weight`` (A,),
    and that different parts are drawn independently; within a part errors may be correlated, e.g.
    if people answer about neighbouring cells. Without ``part`` (A,) each was drawn at random by
    itself; then clusters of errors in the movie do not matter.

    The share of errors is the weighted mean ``p``. With ``z_c = sum_{a in c} weight_a (wrong_a -
    p)`` for each of m parts its variance is ``v = m / (m - 1) sum_c z_c**2 / (sum weight)**2``, so
    that it is worth ``p (1 - p) / v`` independent answers, at most what weights alone leave,
    ``(sum weight)**2 / sum weight**2``. A variance seen in m parts is itself uncertain, so that of
    A answers only ``n = (t_{A-1} / t_{m-1})**2`` times as many count, with the 97.5 % quantiles of
    Student's distribution: all of them where each answer is a part. Without any error (or right
    answer) nothing is seen of how errors cluster, and a part counts as one answer. The interval is
    the exact (Clopper and Pearson's) one of ``n p`` errors among n, as Korn and Graubard proposed
    for surveys: without errors it ends at 1 and begins at ``0.025 ** (1 / n)``.

    Held-out errors are those of models that learned from less than the final one, which errs
    rather less; on what it has ``seen`` (A,) it errs rather too little. The upper end is the larger
    of both, so that it holds whichever the truth is nearer to.
    """
    parts = np.arange(len(wrong)) if part is None else part
    error, low, high = _errors(weight, wrong, parts)
    low = min(low, _errors(weight, np.minimum(seen, wrong), parts)[1])
    right, m = float((1.0 - wrong).sum()), len(np.unique(parts))
    return ErrorEstimate(1.0 - error, 1.0 - high, 1.0 - low, len(wrong), right, part is None, m)


def _errors(weight: Array, wrong: Array, part: Index) -> tuple[float, float, float]:
    """Share of errors, and the ends of its interval."""
    total = float(weight.sum())
    share = min(float(weight @ wrong) / total, 1.0)  # rounding may lead a little beyond
    _, part = np.unique(part, return_inverse=True)
    sizes, m = np.bincount(part, weight), int(part.max()) + 1
    n = total**2 / float((sizes**2).sum())
    if 1e-9 < share < 1 - 1e-9 and m > 1:
        z = np.bincount(part, weight * (wrong - share))
        # 0 where all parts err alike; never below what independent answers have
        least = share * (1 - share) * float((weight**2).sum())
        variance = max(m / (m - 1) * float((z**2).sum()), least) / total**2
        known = stdtrit(len(wrong) - 1, 0.975) / stdtrit(m - 1, 0.975)
        n = max(1.0, share * (1 - share) / variance * float(known) ** 2)
    low, high = exact_interval(n * share, n)
    return share, min(low, share), max(high, share)
