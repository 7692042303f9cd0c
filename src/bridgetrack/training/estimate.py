"""An unbiased estimate of accuracy from annotations alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import Note, NoteKind, plural
from bridgetrack.evaluation.sample import exact_interval
from bridgetrack.hypotheses.events import Event

UNKNOWN = "unknown"
"""Kind of event of answers that allow several events, such as rejections."""

HARDER = 0.02
"""Difference in accuracy between movie and answers above which it is explained."""


@dataclass(frozen=True)
class ErrorEstimate:
    """Estimated share of correctly explained events."""

    # estimate and its 95 % interval, 0 to 1
    accuracy: float
    low: float
    high: float
    n_annotations: int  # annotations it is based on
    random: bool  # whether they were drawn at random, which makes the estimate unbiased
    # for each kind of event: name, how many, how many right; `UNKNOWN` for answers that do not say
    # which event is right
    per_event: tuple[tuple[str, int, float], ...]
    # number of independent parts: regions of the movie, or single annotations if they were drawn
    # one by one; 0 if not known
    parts: int = 0

    @property
    def words(self) -> str:
        """The estimate as a sentence."""
        scope = "" if self.random else ", provided the cells you annotated are representative"
        if all(right > n - 1e-9 for _, n, right in self.per_event):
            return (
                f"at least {100 * self.low:.1f} % of all events of the movie are correct{scope} "
                f"(95 % confidence interval up to 100 %: {self._all_right})"
            )
        return (
            f"about {100 * self.accuracy:.1f} % of all events of the movie are correct{scope} "
            f"(95 % confidence interval {100 * self.low:.1f}-{100 * self.high:.1f} %, from "
            f"{plural(self.n_annotations, 'held-out answer')}{self._where}){self._harder}"
        )

    @property
    def warnings(self) -> tuple[Note, ...]:
        """A warning where the model is wrong more often than not."""
        if self._right >= 0.5:
            return ()
        words = (
            f"on held-out annotations the model is wrong in {100 * (1 - self._right):.0f} % of the "
            "cases: do not use it; check that the annotations belong to these labels, and that "
            "most labels are single cells"
        )
        return (Note(NoteKind.WARNING, words),)

    @property
    def _right(self) -> float:
        """Share of right answers."""
        return sum(share for *_, share in self.per_event) / max(self.n_annotations, 1)

    @property
    def _where(self) -> str:
        if not 1 < self.parts < self.n_annotations:
            return ""
        return f" in {self.parts} independent regions of the movie"

    @property
    def _harder(self) -> str:
        if self.random or self.accuracy < self._right + HARDER:
            return ""
        return (
            "; the answers are about difficult events, and the model is correct less often on them"
        )

    @property
    def _all_right(self) -> str:
        if self.n_annotations == 1:
            return "the only held-out answer was predicted correctly"
        return f"all {self.n_annotations} held-out answers{self._where} were predicted correctly"

    def to_json(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        return {
            "accuracy": self.accuracy,
            "low": self.low,
            "high": self.high,
            "annotations": self.n_annotations,
            "random": self.random,
            "parts": self.parts,
            "per_event": [
                {"event": name, "annotations": n, "right": right}
                for name, n, right in self.per_event
            ],
        }


def estimate_accuracy(
    wrong: Array,
    event: NDArray[np.int8],
    population: Array,
    random: bool,
    part: Index | None = None,
    seen: Array | None = None,
    chance: Index | None = None,
) -> ErrorEstimate:
    """Estimate the share of right events of a movie from errors (A,) on held-out annotations.

    Annotations rarely occur in the proportions of the movie: rare events are sought out. So
    every annotation of a kind weighs what the tracked movie has of that kind (``population``, shape
    (len(Event),)) divided by the annotations of it; drawn at random all weigh alike, or in inverse
    proportion to their ``chance`` (A,) of being drawn. Kinds without
    any annotation are taken to err as the others do, and annotations whose ``event`` (A,) is -1, as
    they leave several, weigh what the others do on average. ``part`` (A,) says which annotations
    are not independent: for those that people chose, the component of each, since they answer about
    cells side by side, where errors hang together; for those drawn one by one, nothing. ``seen``
    (A,) are the errors of the final model, which has learned from them. See `right_share`.
    """
    weight = np.ones(len(wrong)) if chance is None else 1.0 / chance
    known = event >= 0
    if not random and known.any():
        counts = np.bincount(event[known], minlength=len(population))
        # a kind that was annotated, and that the tracked movie does not have, still counts
        weight[known] = np.maximum(population, 0.5)[event[known]] / counts[event[known]]
        weight[~known] = weight[known].mean()
    part = np.arange(len(wrong)) if part is None else part
    accuracy, low, high = right_share(weight, wrong, part, seen)
    names = {**{int(kind): kind.key for kind in Event}, -1: UNKNOWN}
    per_event = tuple(
        (name, int((event == kind).sum()), float((1.0 - wrong)[event == kind].sum()))
        for kind, name in names.items()
        if (event == kind).any()
    )
    parts = len(np.unique(part))
    return ErrorEstimate(accuracy, low, high, len(wrong), random, per_event, parts)


def right_share(
    weight: Array, wrong: Array, part: Index, seen: Array | None = None
) -> tuple[float, float, float]:
    """Share that is right and its 95 % interval, from errors (A,) of a sample.

    Assumes that the sample is drawn with probabilities in inverse proportion to ``weight`` (A,),
    and that different parts are drawn independently; within a part errors may hang together at
    will. How errors lie together in the movie does not matter where each answer was drawn by
    itself: then each is a part.

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
    rather less; on what it has ``seen`` it errs rather too little. Where these errors are given,
    the upper end is the larger of both, so that it holds whichever the truth is nearer to.
    """
    error, low, high = _errors(weight, wrong, part)
    if seen is not None:
        low = min(low, _errors(weight, np.minimum(seen, wrong), part)[1])
    return 1.0 - error, 1.0 - high, 1.0 - low


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
