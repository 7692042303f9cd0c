"""The linear relaxation of a set-partitioning problem, and prices of its slots.

Columns that score no more than others on the same slots are dropped first (`Problem.undominated`).
The rest consists of connected components, which are packed into linear programs of a few thousand
columns and solved side by side.

Cells with several candidate moves tie so many slots together that the undominated columns of a
crowded movie form one component, although hardly any of these ties matter. Such a component is
solved by column generation: prices of the slots are guessed, and a linear program is solved of
those columns alone that cost little more than their slots at these prices; these fall into small
components. Columns that score more than the price of their slots are added, and the components that
they touch are solved again, until there are none: the prices are then feasible for all columns,
which proves that the relaxation is solved.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.problem import Problem, components, members
from bridgetrack.inference.solver import Program, Relaxed, check_scores
from bridgetrack.progress import give_back, relayed, run

Values = tuple[Array, Array]
"""Values of the columns and prices of the slots."""

INTEGRAL = 1e-5
"""Largest deviation of whole values from 0 and 1 by the simplex method."""
_SIDE_BY_SIDE = 2
"""Linear programs that are solved at a time."""
_TOLERANCE = 1e-7
_DESCENTS = 10
_NEAR, _BEST = 0.3, 2
"""Column generation begins with the columns up to this reduced cost at guessed prices, and this
many of the best of every slot."""
_LARGE = 20_000
"""Columns of a component beyond which solving it again and again takes longer than all at once."""


@dataclass(frozen=True)
class SolverLimits:
    """When the solver gives up; the defaults prove optimality on every movie seen so far."""

    # branch-and-bound nodes per component; a limit of nodes keeps results reproducible
    max_nodes: int = 20_000
    # wall-clock seconds for all branch and bound together; a safety net
    max_seconds: float = 600.0
    batch: int = 5_000  # columns per linear program
    # a component of more columns than this is solved by column generation, and a choice in it
    # that is worse than the relaxed score by less than the share `gap` of that is good enough
    large: int = 50_000
    gap: float = 0.0


@dataclass
class Relaxation:
    """A relaxed problem, and the components in which whole choices are sought."""

    columns: Index  # the undominated columns, which the following are about
    # values of the columns and prices of the slots
    x: Array
    duals: Array
    # number of components, and the one of every slot and column, -1 for columns that join several
    # and that no better choice needs
    count: int
    slot_label: Index
    column_label: Index


def prices(problem: Problem, scores: Array, allowed: Mask) -> Array:
    """Prices of the slots whose sum no choice exceeds, the least such sum; shape (S,).

    The price of the slots of every allowed column is at least its score. Raises as `solve.solve`.
    """
    return run(relax(problem, scores, allowed, SolverLimits())).duals


def relax(
    problem: Problem, scores: Array, allowed: Mask | None, limits: SolverLimits
) -> Generator[float, None, Relaxation]:
    """Solve the relaxation of a problem; yields the share of the work done.

    Raises as `solve.solve`.
    """
    allowed = np.ones(problem.n_columns, dtype=bool) if allowed is None else allowed
    check_scores(scores)
    covered = problem.covered(allowed) > 0
    uncovered = np.flatnonzero(problem.required & ~covered)
    if len(uncovered):
        raise InfeasibleError(f"no allowed event explains slot {int(uncovered[0])}")
    columns = np.flatnonzero(problem.undominated(scores, allowed))
    useful, score = Problem(problem.incidence[columns], problem.free), scores[columns]
    count, of_slot, of_column = components(useful.incidence)
    x, duals = np.zeros(len(columns)), np.zeros(problem.n_slots)
    large = np.bincount(of_column, minlength=count) > limits.large
    solved = 0

    def share(more: int) -> float:
        nonlocal solved
        solved += more
        return min(solved / len(columns), 1.0)

    for generated in (False, True):  # the small components in packs, then the large ones
        some = large if generated else ~large
        mine, slots = np.flatnonzero(some[of_column]), np.flatnonzero(some[of_slot])
        if not len(mine):
            continue
        part = useful.part(mine, slots) if large.any() else useful
        values = None
        if generated:
            del useful  # it is a large share of the problem, and solving needs memory
            give_back()
            values = yield from relayed(_generated(part, score[mine], limits), share)
        if values is None:
            labels = of_slot[slots], of_column[mine]
            values = yield from relayed(_packed(part, score[mine], *labels, limits), share)
        x[mine], duals[slots] = values
        if generated:
            more, slots_of, columns_of = _clusters(part, score[mine], *values)
            of_slot[slots] = count + slots_of
            of_column[mine] = np.where(columns_of < 0, -1, count + columns_of)
            count += more
    return Relaxation(columns, x, duals, count, of_slot, of_column)


def _packed(
    problem: Problem, scores: Array, slot_label: Index, column_label: Index, limits: SolverLimits
) -> Generator[int, None, Values]:
    """Relax a problem of many components, packed in order into programs of some columns each."""
    size = np.bincount(column_label, minlength=int(slot_label.max(initial=-1)) + 1)
    batch = np.cumsum(size) // max(limits.batch, 1)
    count = int(batch.max(initial=-1)) + 1
    columns, slots = members(batch[column_label], count), members(batch[slot_label], count)
    x, duals = np.zeros(len(scores)), np.zeros(problem.n_slots)

    def one(part: tuple[Index, Index]) -> tuple[Index, Index, Relaxed]:
        columns, slots = part
        return columns, slots, Program(problem.part(columns, slots)).relax(scores[columns])

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        # A batch number that a large component skipped has no members.
        parts = [part for part in zip(columns, slots, strict=True) if len(part[0])]
        for part, where, relaxed in pool.map(one, parts):
            x[part], duals[where] = relaxed.x, relaxed.duals
            yield len(part)
    return x, duals


def greedy_choice(problem: Problem, scores: Array, x: Array, duals: Array) -> Mask | None:
    """Round a fractional choice x (H,); None if that leaves slots uncovered.

    Columns are taken in the order of their fraction, then of their reduced cost, wherever all their
    slots are still open. If some slots need not be covered, and are used up before all others are
    covered, it starts again with the columns that are whole, and then those that use the fewest of
    these slots for the most of the others.
    """
    by_column, free = problem.incidence, problem.free
    reduced = by_column @ duals - scores
    # Rounded, because fractions that differ by the solver's tolerance are equal.
    share = np.round(x, 6)
    chosen = _taken_in_turn(by_column, np.lexsort((reduced, -share)), free)
    if chosen is None and free is not None:
        spare = by_column @ free.astype(np.float64)
        needed = np.diff(by_column.indptr) - spare
        order = np.lexsort((reduced, -needed, spare, share < 1 - INTEGRAL))
        chosen = _taken_in_turn(by_column, order, free)
    return chosen


def _taken_in_turn(by_column: sp.csr_matrix, order: Index, free: Mask | None) -> Mask | None:
    """Columns taken wherever their slots are open; None if a slot is left that must be covered."""
    n_columns, n_slots = by_column.shape
    still, chosen = np.ones(n_slots, dtype=bool), np.zeros(n_columns, dtype=bool)
    for column in order:
        slots = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        if still[slots].all():
            chosen[column] = True
            still[slots] = False
    return None if (still if free is None else still & ~free).any() else chosen


# --- column generation -----------------------------------------------------------------------


def _generated(
    problem: Problem, scores: Array, limits: SolverLimits
) -> Generator[int, None, Values | None]:
    """Relax a problem by column generation.

    None if this does not help because the relevant columns form large components, too, or cannot
    cover all slots.
    """
    x, duals = np.zeros(problem.n_columns), guessed_prices(problem, scores)
    inside = _promising(problem, problem.incidence @ duals - scores)
    again = np.ones(problem.n_slots, dtype=bool)
    while again.any():
        taken = np.flatnonzero(inside)
        count, slot_label, column_label = components(problem.incidence[taken])
        if np.bincount(column_label, minlength=1).max() > _LARGE:
            return None
        unsolved = np.zeros(count, dtype=bool)
        unsolved[slot_label[again]] = True
        columns, slots = taken[unsolved[column_label]], np.flatnonzero(unsolved[slot_label])
        labels = slot_label[slots], column_label[unsolved[column_label]]
        try:
            part = problem.part(columns, slots)
            solved = yield from _packed(part, scores[columns], *labels, limits)
        except InfeasibleError:
            return None
        x[columns], duals[slots] = solved
        better = ~inside & (problem.incidence @ duals - scores < -_TOLERANCE)
        inside |= better
        again = problem.covered(better) > 0
    return x, duals


def guessed_prices(problem: Problem, scores: Array) -> Array:
    """Low prices of the slots that no column's score exceeds, shape (S,).

    Starting from prices that are high enough, the price of every slot is lowered repeatedly by its
    share of the least slack of its columns.
    """
    width, by_slot = problem.width.astype(np.float64), problem.by_slot
    column, slots = by_slot.indices, np.flatnonzero(np.diff(by_slot.indptr))
    start = by_slot.indptr[slots].astype(np.int64)
    duals = np.zeros(problem.n_slots)
    duals[slots] = np.maximum.reduceat((scores / width)[column], start)
    least = np.where(problem.required, -np.inf, 0.0)
    duals = np.maximum(duals, least)
    for _ in range(_DESCENTS):
        spare = (problem.incidence @ duals - scores) / width
        duals[slots] -= np.maximum(np.minimum.reduceat(spare[column], start), 0.0)
        duals = np.maximum(duals, least)
    return duals


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


def _clusters(problem: Problem, scores: Array, x: Array, duals: Array) -> tuple[int, Index, Index]:
    """Parts of a relaxed problem in which a whole choice can be sought independently.

    If the relaxation of a part is G above some whole choice, another one is better by at most G. A
    column joins at most as many parts as it has slots, W; so columns of a reduced cost above W
    times the largest G cannot improve a choice by joining parts, and parts that only they join are
    separate. Returned as by `components`; the part is -1 for columns that are in none.
    """
    cost = problem.incidence @ duals - scores
    gaps = _rounding_gaps(problem, scores, x, duals)
    widest, limit = int(problem.width.max(initial=1)), 0.0
    while True:
        taken = np.flatnonzero((cost <= limit) | (x > _TOLERANCE))
        count, slot_label, column_label = components(problem.incidence[taken])
        gap = np.zeros(count)
        for slot, short in gaps:
            gap[slot_label[slot]] += short
        enough = widest * float(gap.max(initial=0.0))
        if enough <= limit:
            break
        limit = enough + _TOLERANCE
    label = np.full(problem.n_columns, -1, dtype=np.int64)
    label[taken] = column_label
    return count, slot_label, label


def _rounding_gaps(
    problem: Problem, scores: Array, x: Array, duals: Array
) -> list[tuple[int, float]]:
    """A slot of every component with a fractional value, and the gap of a rounded choice."""
    fractional = (x > INTEGRAL) & (x < 1 - INTEGRAL)
    if not fractional.any():
        return []
    taken = np.flatnonzero((x > _TOLERANCE) | (problem.width == 1))
    count, slot_label, column_label = components(problem.incidence[taken])
    columns_of, slots_of = members(column_label, count), members(slot_label, count)
    found = []
    for k in np.unique(column_label[fractional[taken]]).tolist():
        columns, slots = taken[columns_of[k]], slots_of[k]
        part = problem.part(columns, slots)
        price, score = duals[slots], scores[columns]
        choice = greedy_choice(part, score, x[columns], price)
        short = np.inf if choice is None else float(price.sum() - score[choice].sum())
        found.append((int(slots[0]), max(short, 0.0)))
    return found
