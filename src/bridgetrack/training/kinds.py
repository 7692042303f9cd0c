"""Kinds of events that no answer speaks of do not become more frequent.

Answers about moves, divisions, ends and beginnings change the weights of these, and what then
scores best may be a kind that nobody mentioned: a true cell is called none, or cells are said to
merge, because an end and a beginning cost more than before. So what people say is wrong with masks
(`ODD`) may be chosen, over all movies and under their annotations, at most

    n_k <= n_k(start) + vouched(confirmed_k),    vouched(n) = max(ALIKE, n) n

times, where ``n_k(start)`` is how often the starting weights choose kind k there, and
``confirmed_k`` how many events of this kind the annotations confirm: without any there are no more
than before, and the more agree the more each of them vouches for. A speck that lies there for many
frames counts once, in the movie and among the annotations. The other kinds happen in every movie,
and each takes the place of others of them.

The best choice of events under such limits is found by prices (Lagrange multipliers): every event
of a kind costs ``price_k >= 0`` more, which lowers the weight of its constant feature and so holds
in other movies, too. The smallest price that suffices is taken, in steps of `GRID`; where several
kinds are too many, their prices are halved down side by side, so that the order of kinds does not
matter. Raising a price may bring more of another kind, so this is repeated until none is too many.
Only what surrounds events that are priced is solved again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.feature import FeatureSet
from bridgetrack.hypotheses.events import ODD, Event
from bridgetrack.inference.problem import Solution
from bridgetrack.inference.resolve import resolve
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import allowed_by
from bridgetrack.progress import Progress, Steps
from bridgetrack.training.outcome import common_features, population_of

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ALIKE = 9
"""Events of a kind that may be new for every one that the annotations confirm, at least."""

GRID = 1 / 4
"""Prices are whole multiples of it, in contradicted annotations."""

HIGHEST = 1 << 8
"""Largest price of a round, in steps of `GRID`; no event of the kind is chosen at it that need not
be."""

ROUNDS = 10
"""How often prices are raised, at most."""

STAGE = "Comparing with the starting model"


@dataclass(frozen=True)
class Priced:
    """Weights by which no kind of events is more frequent than it may be."""

    weights: Array  # shape (d,)
    solutions: tuple[Solution, ...]  # what they choose in every movie under its annotations
    kinds: tuple[Event, ...] = ()  # those that cost more than was learned


def most_of_each(
    scenes: Sequence[Scene], before: Sequence[Mask], sources: Sequence[Scene] = ()
) -> Array:
    """How often each kind of event may be chosen, shape (len(Event),); inf: as often as may be.

    ``before`` is what the starting weights choose in every movie under its annotations; those of
    ``sources``, earlier movies, count as well.
    """
    confirmed = np.zeros(len(Event))
    for scene in (*scenes, *sources):
        said = scene.constraints
        one = np.flatnonzero(np.diff(said.indptr) == 1)
        sure = np.zeros(len(scene.hypotheses), dtype=bool)
        sure[said.indices[said.indptr[one]]] = True
        confirmed += _frequency([scene], [sure])
    most = _frequency(scenes, before) + vouched(confirmed)
    most[np.setdiff1d(np.arange(len(Event)), ODD)] = np.inf
    return most


def price_kinds(
    scenes: Sequence[Scene], weights: Array, solutions: tuple[Solution, ...], most: Array
) -> Steps[Priced]:
    """Raise the prices of kinds of events until none is more frequent than it may be.

    Parameters
    ----------
    scenes
        The movies with their annotations.
    weights
        Shape (d,).
    solutions
        What these choose in every movie under its annotations.
    most
        How often each kind of event may be chosen, see `most_of_each`.
    """
    price, constant = np.zeros(len(Event)), _constant(common_features(scenes))
    has_constant = np.isin(np.arange(len(Event)), list(constant))
    allowed = [allowed_by(scene) for scene in scenes]
    scores = [scene.matrix.scores(weights) for scene in scenes]

    def chosen_at(raised: Array) -> tuple[Solution, ...]:
        """What is chosen at prices that are not below the present ones."""
        kinds, found = np.flatnonzero(raised > price), []
        for scene, plain, may, last in zip(scenes, scores, allowed, solutions, strict=True):
            event = scene.hypotheses.event
            kept = last.chosen & ~np.isin(event, kinds)
            found.append(resolve(scene.problem, plain - raised[event], may, kept, last)[0])
        return tuple(found)

    def too_many(found: Sequence[Solution]) -> Mask:
        """Kinds that are chosen more often than they may be."""
        count = _frequency(scenes, [one.chosen for one in found])
        return np.asarray((count > most) & has_constant)

    for _ in range(ROUNDS):
        over = too_many(solutions)
        if not over.any():
            break
        # every kind's price has its own bounds, and all are tried at once
        low, high = np.zeros(len(Event), dtype=np.int64), over.astype(np.int64)
        while (high < HIGHEST).all():
            yield Progress(STAGE, 0.0)
            still = over & too_many(chosen_at(price + GRID * high))
            if not still.any():
                break
            low, high = np.where(still, high, low), np.where(still, 2 * high, high)
        while (high - low > 1).any():
            yield Progress(STAGE, 0.0)
            middle = (low + high + 1) // 2
            still = over & too_many(chosen_at(price + GRID * middle))
            low, high = np.where(still, middle, low), np.where(still, high, middle)
        raised = price + GRID * high
        solutions, price = chosen_at(raised), raised
    priced = weights.copy()
    for kind, place in constant.items():
        priced[place] -= price[kind]
    return Priced(priced, solutions, tuple(kind for kind in constant if price[kind]))


def vouched(count: Array | float) -> Array:
    """How many events so many answers of one kind vouch for; the more agree, the more each does."""
    return np.asarray(np.maximum(ALIKE, count) * count, dtype=np.float64)


def _frequency(scenes: Sequence[Scene], chosen: Sequence[Mask]) -> Array:
    """As `population_of`, but a speck counts once for all the frames that it lies there."""
    count = population_of(scenes, chosen)
    for scene, mine in zip(scenes, chosen, strict=True):
        events, following = scene.hypotheses, scene.evidence.match_next
        speck = np.zeros(len(following) + 1, dtype=bool)  # the last: nothing follows
        rows = events.sources[mine & (events.event == Event.FALSE), 0]
        speck[rows] = True
        count[Event.FALSE] -= speck[following[rows]].sum()
    return count


def _constant(features: FeatureSet) -> dict[Event, int]:
    """Place of the constant feature of every odd kind that has one."""
    place = {key: k for k, key in enumerate(features.keys)}
    return {kind: place[f"{kind.key}.bias"] for kind in ODD if f"{kind.key}.bias" in place}
