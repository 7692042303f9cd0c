"""Accuracy of a tracking from answers to randomly drawn questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.questions import Beliefs, asked_slots, slot_numbers, within
from bridgetrack.active.random_order import random_order
from bridgetrack.annotations.annotation import Slot
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.estimate import Estimate

Array = NDArray[np.float64]

_JEFFREYS = 0.5
_DRAWS = 20_000


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
    doubt
        The model's belief, when it asked, that its proposal was wrong, 0 to 1.
    """

    id: str
    wrong: float | None
    width: int
    doubt: float = 0.0


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


@dataclass(frozen=True)
class Strata:
    """The events of a movie, by how sure the model is of them.

    Parameters
    ----------
    settled
        How many events are settled by answers, which the tracking honours.
    rest
        How many of the others lie in each stratum of doubt (`EDGES`), shape (k,).
    doubt
        Mean doubt in each stratum, shape (k,).
    """

    settled: float
    rest: Array
    doubt: Array


EDGES = (0.1, 0.4)
"""Doubts that part the strata: sure, fairly sure, unsure."""


def strata_of(scene: Scene, beliefs: Beliefs, frames: tuple[int, int] | None = None) -> Strata:
    """Count the events of a tracked movie; every slot counts ``1 / width`` of an event."""
    problem = scene.problem
    chosen = np.flatnonzero(beliefs.solution.chosen)
    share = np.zeros(problem.n_slots)
    part = problem.incidence[chosen]
    share[part.indices] = np.repeat(1.0 / problem.width[chosen], problem.width[chosen])
    share *= within(scene, frames)
    asked = asked_slots(scene)
    doubt = 1.0 - 1.0 / np.maximum(beliefs.total, 1.0)
    stratum = np.searchsorted(EDGES, doubt, side="right")
    weight = np.where(asked, 0.0, share)
    rest = np.bincount(stratum, weight, minlength=len(EDGES) + 1).astype(np.float64)
    mean = np.bincount(stratum, weight * doubt, minlength=len(EDGES) + 1)
    return Strata(float(share[asked].sum()), rest, np.asarray(mean / np.maximum(rest, 1e-12)))


def estimate_from(
    sample: list[Outcome], strata: Strata | None = None, seed: int = 0
) -> Estimate | None:
    """Accuracy with its 95 % interval; None without any answer.

    Every event counts ``1 / width`` since it is drawn in proportion to the slots it covers (a ratio
    estimate), and the effective number of answers is ``(sum v)**2 / sum v**2``. Without strata the
    interval is Jeffreys'.

    With strata it is about the tracking as it is now, answers honoured: what was settled is right,
    and of the rest every stratum of doubt has the error of the random answers in it. Suggestions
    have used up the doubtful events, so that a mistake found in one of them says less of the rest
    than its share of the random answers. The interval comes from the strata's Beta posteriors, with
    Jeffreys' prior for the sure ones and, for the others, a prior worth one answer at the model's
    own doubt.

    Parameters
    ----------
    sample
        From `fair_sample`.
    strata
        The movie's events; None: as if nothing were settled and all were alike.
    seed
        Of the draws from the posteriors.
    """
    if not sample:
        return None
    weight = np.asarray([1.0 / o.width for o in sample])
    wrong = np.asarray([o.wrong for o in sample], dtype=np.float64)
    if strata is None:
        strata = Strata(0.0, np.ones(1), np.full(1, 0.5))
        stratum = np.zeros(len(sample), dtype=np.int64)
    else:
        stratum = np.searchsorted(EDGES, [o.doubt for o in sample], side="right")
    rng = np.random.default_rng([seed, 7])
    total = max(strata.settled + float(strata.rest.sum()), 1e-12)
    draws, error = np.zeros(_DRAWS), 0.0
    for k, size in enumerate(strata.rest.tolist()):
        mine = stratum == k
        v, e = weight[mine], wrong[mine]
        n = float(v.sum() ** 2 / (v**2).sum()) if len(v) else 0.0
        mean = float((v * e).sum() / v.sum()) if len(v) else float(strata.doubt[k])
        prior = _JEFFREYS if k == 0 else float(np.clip(strata.doubt[k], 0.05, 0.95))
        draws += size / total * rng.beta(n * mean + prior, n * (1 - mean) + 1 - prior, _DRAWS)
        error += size / total * mean
    low, high = np.quantile(1.0 - draws, [0.025, 0.975]).tolist()
    accuracy = float(np.clip(1.0 - error, 0.0, 1.0))
    return Estimate(accuracy, min(low, accuracy), max(high, accuracy), len(sample), True, ())


def numbered(scene: Scene, by_name: Mapping[Slot, Outcome]) -> dict[int, Outcome]:
    """Outcomes by number of the slot instead of its name; slots that are gone are left out."""
    numbers = slot_numbers(scene, list(by_name)).tolist()
    found = dict(zip(numbers, by_name.values(), strict=True))
    found.pop(-1, None)
    return found
