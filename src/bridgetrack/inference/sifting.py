"""The relaxation of a large problem, with the few columns that matter.

Cells with several candidate moves tie so many slots together that the undominated columns of a
crowded movie form one component, although next to none of the ties count. So prices of the slots
are guessed first, and a linear program is solved of those columns alone that cost little more than
their slots at these prices; these fall into small components. Then the price of every column's
slots is compared with its score. Columns that score more are taken in, and the components that
they touch are solved again, until there are none: the prices are then feasible for all columns,
which proves that the relaxation is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.branch import greedy_choice
from bridgetrack.inference.problem import Problem, components, members

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]
Relax = Callable[[Problem, Array, Index, Index], Generator[float, None, tuple[Array, Array]]]
"""Solves the relaxation of a problem, given its scores and the components of its slots and columns;
returns the values of the columns and the prices of the slots."""

_DESCENTS = 10
_NEAR, _BEST = 0.3, 2
"""Columns that are taken in at first: those of such a reduced cost at guessed prices, and so many
of the best of every slot."""
_LARGE = 20_000
"""Columns of a component beyond which solving it again and again takes longer than all at once."""
_TOLERANCE = 1e-7
_INTEGRAL = 1e-5
"""How far from 0 and 1 the simplex method leaves values that are whole."""


def sifted(
    problem: Problem, scores: Array, relax: Relax
) -> Generator[float, None, tuple[Array, Array] | None]:
    """Relax a problem: values of the columns and prices of the slots.

    None where this does not help: where the columns that matter hang together, too, or cannot
    cover all slots.

    Parameters
    ----------
    problem, scores
        The problem; every slot that must be covered has a column.
    relax
        Solves the relaxation of parts.
    """
    x, prices = np.zeros(problem.n_columns), guessed_prices(problem, scores)
    inside = _promising(problem, problem.incidence @ prices - scores)
    again, done = np.ones(problem.n_slots, dtype=bool), 0.0
    while again.any():
        taken = np.flatnonzero(inside)
        count, slot_label, column_label = components(problem.incidence[taken])
        if np.bincount(column_label, minlength=1).max() > _LARGE:
            return None
        open_ = np.zeros(count, dtype=bool)
        open_[slot_label[again]] = True
        columns, slots = taken[open_[column_label]], np.flatnonzero(open_[slot_label])
        labels = slot_label[slots], column_label[open_[column_label]]
        try:
            work = relax(problem.part(columns, slots), scores[columns], *labels)
            x[columns], prices[slots] = yield from _later(work, done)
        except InfeasibleError:
            return None
        done = 1.0 - 0.3 * (1.0 - done)
        better = ~inside & (problem.incidence @ prices - scores < -_TOLERANCE)
        inside |= better
        again = problem.covered(better) > 0
    return x, prices


def _later(
    work: Generator[float, None, tuple[Array, Array]], done: float
) -> Generator[float, None, tuple[Array, Array]]:
    """The same work, where so much was done before it and as much is left after it."""
    while True:
        try:
            share = next(work)
        except StopIteration as end:
            found: tuple[Array, Array] = end.value
            return found
        yield done + 0.7 * (1.0 - done) * share


def guessed_prices(problem: Problem, scores: Array) -> Array:
    """Low prices of the slots that no column's score exceeds, shape (S,).

    From prices that are surely high enough, every slot goes down by its share of what none of its
    columns needs, again and again.
    """
    width, by_slot = problem.width.astype(np.float64), problem.by_slot
    column, slots = by_slot.indices, np.flatnonzero(np.diff(by_slot.indptr))
    start = by_slot.indptr[slots].astype(np.int64)
    prices = np.zeros(problem.n_slots)
    prices[slots] = np.maximum.reduceat((scores / width)[column], start)
    least = np.where(problem.required, -np.inf, 0.0)
    prices = np.maximum(prices, least)
    for _ in range(_DESCENTS):
        spare = (problem.incidence @ prices - scores) / width
        prices[slots] -= np.maximum(np.minimum.reduceat(spare[column], start), 0.0)
        prices = np.maximum(prices, least)
    return prices


def _promising(problem: Problem, cost: Array) -> Mask:
    """Columns of one slot, of a small reduced cost, and the best of every slot, shape (H,)."""
    by_slot = problem.by_slot
    inside = np.asarray((problem.width == 1) | (cost <= _NEAR))
    count = np.diff(by_slot.indptr)
    start, count = by_slot.indptr[:-1][count > 0], count[count > 0]
    values = cost[by_slot.indices]
    for _ in range(_BEST if len(start) else 0):
        lowest = np.flatnonzero(values == np.repeat(np.minimum.reduceat(values, start), count))
        slot = np.searchsorted(start, lowest, side="right")
        best = lowest[np.unique(slot, return_index=True)[1]]
        inside[by_slot.indices[best]] = True
        values[best] = np.inf
    return inside


def clusters(problem: Problem, scores: Array, x: Array, prices: Array) -> tuple[int, Index, Index]:
    """Parts of a relaxed problem in which a whole choice can be looked for, each by itself.

    Where the relaxation of a part lies G above some whole choice, another one is better by at most
    that. A column joins as many parts as it has slots at most, W; so columns of a reduced cost
    above W times the largest G cannot win by joining parts, and parts that only they join are
    apart.

    Returns
    -------
    count, slots, columns
        How many there are, and the part of every slot, shape (S,), and of every column, shape
        (H,), -1 where it is in none.
    """
    cost = problem.incidence @ prices - scores
    torn = _torn(problem, scores, x, prices)
    widest, limit = int(problem.width.max(initial=1)), 0.0
    while True:
        taken = np.flatnonzero((cost <= limit) | (x > _TOLERANCE))
        count, slot_label, column_label = components(problem.incidence[taken])
        gap = np.zeros(count)
        for slot, short in torn:
            gap[slot_label[slot]] += short
        enough = widest * float(gap.max(initial=0.0))
        if enough <= limit:
            break
        limit = enough + _TOLERANCE
    label = np.full(problem.n_columns, -1, dtype=np.int64)
    label[taken] = column_label
    return count, slot_label, label


def _torn(problem: Problem, scores: Array, x: Array, prices: Array) -> list[tuple[int, float]]:
    """A slot of every component with a fractional value, and how far a rounded choice is below."""
    fractional = (x > _INTEGRAL) & (x < 1 - _INTEGRAL)
    if not fractional.any():
        return []
    taken = np.flatnonzero((x > _TOLERANCE) | (problem.width == 1))
    count, slot_label, column_label = components(problem.incidence[taken])
    columns_of, slots_of = members(column_label, count), members(slot_label, count)
    found = []
    for k in np.unique(column_label[fractional[taken]]).tolist():
        columns, slots = taken[columns_of[k]], slots_of[k]
        part = problem.part(columns, slots)
        duals, score = prices[slots], scores[columns]
        choice = greedy_choice(part.by_slot, score, x[columns], duals, part.free)
        short = np.inf if choice is None else float(duals.sum() - score[choice].sum())
        found.append((int(slots[0]), max(short, 0.0)))
    return found
