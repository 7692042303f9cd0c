"""An honest estimate of accuracy from annotations alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]

_DRAWS = 20_000
_PRIOR = 0.5


@dataclass(frozen=True)
class ErrorEstimate:
    """Estimated share of correctly explained events.

    Parameters
    ----------
    accuracy, low, high
        Estimate and its 95 % interval, 0 to 1.
    n_annotations
        Annotations it rests on.
    random
        Whether they were drawn at random, which makes the estimate unbiased.
    per_event
        For each event annotated: name, how many, how many right.
    """

    accuracy: float
    low: float
    high: float
    n_annotations: int
    random: bool
    per_event: tuple[tuple[str, int, float], ...]

    @property
    def words(self) -> str:
        """The estimate as a sentence."""
        scope = "" if self.random else " on cells like those you annotated"
        if all(right > n - 1e-9 for _, n, right in self.per_event):
            return (
                f"at least {100 * self.low:.1f} % of the events are right{scope} (95 % interval "
                f"up to 100 %: {self._all_right})"
            )
        return (
            f"about {100 * self.accuracy:.1f} % of the events are right{scope} "
            f"(95 % interval {100 * self.low:.1f} to {100 * self.high:.1f} %, from "
            f"{self.n_annotations} annotation{'' if self.n_annotations == 1 else 's'} that the "
            "model had not seen)"
        )

    @property
    def _all_right(self) -> str:
        if self.n_annotations == 1:
            return "the only annotation that the model had not seen was right"
        return f"all {self.n_annotations} annotations that the model had not seen were right"

    def to_json(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        return {
            "accuracy": self.accuracy,
            "low": self.low,
            "high": self.high,
            "annotations": self.n_annotations,
            "random": self.random,
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
    seed: int = 0,
) -> ErrorEstimate:
    """Estimate the share of right events of a movie from errors (A,) on held-out annotations.

    Annotations rarely occur in the proportions of the movie: rare events are sought out. So
    every kind of event is a stratum, weighted by how often the tracked movie has it
    (``population``, shape (len(Event),)), and the estimate and its interval come from the Jeffreys
    posterior of every stratum: with a handful of annotations of a kind, all of them right does not
    mean that all of that kind are. Kinds without any annotation share the posterior of all
    annotations together. Where the annotations were drawn at random there is one stratum.
    """
    rng = np.random.default_rng(seed)
    right = 1.0 - wrong
    if random:
        draws = rng.beta(right.sum() + _PRIOR, wrong.sum() + _PRIOR, _DRAWS)
        accuracy = float(right.mean())
    else:
        weight = population / max(population.sum(), 1.0)
        draws = np.zeros(_DRAWS)
        for kind in Event:
            mine = event == kind
            part = mine if mine.any() else np.ones(len(wrong), dtype=bool)
            share = rng.beta(right[part].sum() + _PRIOR, wrong[part].sum() + _PRIOR, _DRAWS)
            draws += weight[kind] * share
        accuracy = float(draws.mean())
    low, high = np.quantile(draws, [0.025, 0.975])
    per_event = tuple(
        (kind.key, int((event == kind).sum()), float(right[event == kind].sum()))
        for kind in Event
        if (event == kind).any()
    )
    return ErrorEstimate(
        accuracy,
        float(min(low, accuracy)),
        float(min(max(high, accuracy), 1.0)),
        len(wrong),
        random,
        per_event,
    )
