"""Accuracy of a tracking from answers to randomly drawn questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.questions import slot_numbers, within
from bridgetrack.active.random_order import random_order
from bridgetrack.annotations.annotation import Slot
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.estimate import Estimate

Array = NDArray[np.float64]

_JEFFREYS = 0.5


@dataclass(frozen=True)
class Outcome:
    """What is known of one slot that was asked.

    Parameters
    ----------
    id
        The annotation; slots of one event share it.
    wrong
        Error of the prediction there, 0 to 1; None where nobody could tell.
    width
        Slots that the event covers: it is met that much more often.
    least
        Error of the present model, which has learned from the answer; None: as ``wrong``.
    """

    id: str
    wrong: float | None
    width: int
    least: float | None = None


def fair_sample(
    scene: Scene,
    outcomes: Mapping[int, Outcome],
    seed: int,
    passed: frozenset[int] = frozenset(),
    frames: tuple[int, int] | None = None,
) -> list[Outcome]:
    """Outcomes at the beginning of the random order, up to the first slot nobody answered.

    Whatever else was answered, for whatever reason, does not make this sample unfair: its slots
    were drawn before anything was known. Slots that happened to be answered as chosen questions
    count too.

    Parameters
    ----------
    scene
        The movie.
    outcomes
        By number of the slot in the problem.
    seed
        Of the random order.
    passed
        Slots that the annotator passed over; they are left out.
    frames
        First and last frame that are asked about.
    """
    found: dict[str, Outcome] = {}
    order = random_order(scene, seed)
    for slot in order[within(scene, frames)[order]].tolist():
        if slot in passed:
            continue
        outcome = outcomes.get(slot)
        if outcome is None:
            break
        if outcome.wrong is not None:
            found.setdefault(outcome.id, outcome)
    return list(found.values())


def estimate_from(sample: list[Outcome]) -> Estimate | None:
    """Accuracy with its 95 % interval; None without any answer.

    Every event counts ``1 / width`` since it is drawn in proportion to the slots it covers (a ratio
    estimate); the interval is Jeffreys' for the effective number of answers,
    ``(sum v)**2 / sum v**2``. Its lower end goes by the errors of models that had not seen the
    answers, which learned from less and err more often than the present one; its upper end by the
    errors of the present model, which errs less often on what it learned from: the truth lies
    between. Weighting strata of the model's own doubt was tried and covered the truth less often,
    because the model doubts more than it errs.
    """
    if not sample:
        return None
    weight = np.asarray([1.0 / o.width for o in sample])
    wrong = np.asarray([o.wrong for o in sample], dtype=np.float64)
    least = np.asarray([o.wrong if o.least is None else o.least for o in sample], dtype=np.float64)
    low, high = _ends(weight, wrong)[0], _ends(weight, least)[1]
    accuracy = 1.0 - float((weight * wrong).sum() / weight.sum())
    return Estimate(accuracy, min(low, accuracy), max(high, accuracy), len(sample), True, ())


def _ends(weight: Array, wrong: Array) -> tuple[float, float]:
    """Jeffreys' 95 % interval of the share that is right."""
    from scipy.stats import beta

    error = float((weight * wrong).sum() / weight.sum())
    n = float(weight.sum() ** 2 / (weight**2).sum())
    low, high = beta.ppf(
        [0.025, 0.975], n * (1 - error) + _JEFFREYS, n * error + _JEFFREYS
    ).tolist()
    return 0.0 if error >= 1 else low, 1.0 if error <= 0 else high


def numbered(scene: Scene, by_name: Mapping[Slot, Outcome]) -> dict[int, Outcome]:
    """Outcomes by number of the slot instead of its name; slots that are gone are left out."""
    numbers = slot_numbers(scene, list(by_name)).tolist()
    found = dict(zip(numbers, by_name.values(), strict=True))
    found.pop(-1, None)
    return found
