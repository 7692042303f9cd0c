"""Exact inference: relax first, branch only where the relaxation is fractional.

1. Columns that others beat on the same slots are dropped (`Problem.undominated`).
2. What is left falls into connected components; they are packed into linear programs of a few
   thousand columns and solved side by side. A very large component is sifted first (`sifting`).
3. Only columns with a reduced cost below the gap of a rounded choice can change the answer;
   branch and bound sees nothing but the components of those that are fractional.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import InfeasibleError, SolverError
from bridgetrack.inference.branch import branch, greedy_choice
from bridgetrack.inference.problem import Problem, Solution, components, members
from bridgetrack.inference.sifting import clusters, guessed_prices, sifted
from bridgetrack.inference.solver import Program, Relaxed, check_scores
from bridgetrack.progress import give_back, relayed, run

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_INTEGRAL = 1e-5
"""How far from 0 and 1 the simplex method leaves values that are whole."""


@dataclass(frozen=True)
class SolverLimits:
    """When the solver gives up; the defaults prove optimality on every movie seen so far.

    Parameters
    ----------
    max_nodes
        Branch-and-bound nodes per component; decides what comes back, so that results repeat.
    max_seconds
        Wall-clock seconds for large linear programs and all branch and bound together; a safety
        net.
    batch
        Columns per linear program; those of at most twice as many take no time and have no limit.
    workers
        Linear programs solved side by side.
    large
        Columns of a component from which on it is sifted.
    """

    max_nodes: int = 20_000
    max_seconds: float = 600.0
    batch: int = 5_000
    workers: int = 2
    large: int = 50_000


class Hard(float):
    """The share of the work done, where what is left may take up to so many seconds."""

    seconds: float

    @classmethod
    def at(cls, share: float, seconds: float) -> Hard:
        """A share, and the seconds."""
        found = cls(share)
        found.seconds = seconds
        return found


_HARD = 1_000
"""Columns in torn components from which on it is told how long the choice may take."""


def solve(
    problem: Problem, scores: Array, allowed: Mask | None = None, limits: SolverLimits | None = None
) -> Solution:
    """Choose columns that cover every required slot once with the largest total score.

    Parameters
    ----------
    problem
        Slots and columns.
    scores
        Score of every column, shape (H,).
    allowed
        Columns that may be used, shape (H,); all where None.
    limits
        When to give up; the best choice so far is returned with its gap.

    Raises
    ------
    SolverError
        Where scores are not finite.
    InfeasibleError
        Where the allowed columns cannot cover every slot.
    """
    return run(solve_steps(problem, scores, allowed, limits))


def solve_steps(
    problem: Problem, scores: Array, allowed: Mask | None = None, limits: SolverLimits | None = None
) -> Generator[float, None, Solution]:
    """As `solve`, yielding the share of the work done."""
    limits = limits or SolverLimits()
    until = time.monotonic() + limits.max_seconds
    columns, relaxed = yield from _relaxed(problem, scores, allowed, limits, until)
    score = scores[columns]
    x, duals, count = relaxed.x, relaxed.duals, relaxed.count

    # The relaxed choice is made whole, and its distance from the relaxation told per component.
    picked, slack = x > 0.5, np.zeros(problem.n_slots)
    bound = float(score @ x)
    fractional = (x > _INTEGRAL) & (x < 1 - _INTEGRAL)
    if fractional.any():
        torn = np.zeros(count + 1, dtype=bool)  # the last is for columns of no component
        torn[relaxed.column_label[fractional]] = True
        part = np.flatnonzero(torn[relaxed.column_label])
        slots = np.flatnonzero(torn[relaxed.slot_label])
        rows = sp.csr_matrix(problem.incidence[columns[part]][:, slots].T.tocsr())
        free = None if problem.free is None else problem.free[slots]
        start = greedy_choice(rows, score[part], x[part], duals[slots], free)
        nodes, seconds = limits.max_nodes, max(until - time.monotonic(), 0.0)
        if len(part) > _HARD:
            yield Hard.at(0.99, float(np.ceil(seconds)))
        chosen, part_bound = branch(
            rows, score[part], x[part], duals[slots], start, nodes, seconds, free
        )
        picked[part] = chosen
        bound = bound - float(score[part] @ x[part]) + part_bound
        lost = score[part] * (x[part] - chosen)
        short = np.bincount(relaxed.column_label[part], lost, minlength=count)
        slack[slots] = np.maximum(short, 0.0)[relaxed.slot_label[slots]]
    if relaxed.hurried:  # the prices alone tell how good the choice is
        worth = np.bincount(relaxed.slot_label, duals, minlength=count)
        lost = np.maximum(worth - _value_of_each(relaxed, score * picked), 0.0)
        slack, bound = np.asarray(lost[relaxed.slot_label], dtype=np.float64), float(duals.sum())
    whole = np.zeros(problem.n_columns, dtype=bool)
    whole[columns[picked]] = True
    value = float(scores[whole].sum())
    solution = Solution(whole, value, max(bound, value), duals, slack, relaxed.slot_label)
    solution.check(problem, scores)
    return solution


def _value_of_each(relaxed: _Relaxation, values: Array) -> Array:
    """What some columns are worth, added up for each component; shape (count,)."""
    inside = relaxed.column_label >= 0
    labels = relaxed.column_label[inside]
    return np.bincount(labels, values[inside], minlength=relaxed.count).astype(np.float64)


def prices(
    problem: Problem, scores: Array, allowed: Mask | None = None, limits: SolverLimits | None = None
) -> Array:
    """Prices of the slots whose sum no choice exceeds, the least such sum; shape (S,).

    The price of its slots is at least the score of every allowed column. Raises as `solve`.
    """
    limits = limits or SolverLimits()
    until = time.monotonic() + limits.max_seconds
    return run(_relaxed(problem, scores, allowed, limits, until))[1].duals


@dataclass
class _Relaxation:
    """A relaxed problem, and the components in which whole choices are looked for.

    Parameters
    ----------
    x, duals
        Values of the columns and prices of the slots.
    count, slot_label, column_label
        Number of components, and the one of every slot and column, -1 for columns that join
        several and that no better choice needs.
    hurried
        Whether time ran out somewhere: prices are too high then, and values those of some choice.
    """

    x: Array
    duals: Array
    count: int
    slot_label: Index
    column_label: Index
    hurried: bool = False


def _relaxed(
    problem: Problem, scores: Array, allowed: Mask | None, limits: SolverLimits, until: float
) -> Generator[float, None, tuple[Index, _Relaxation]]:
    """Undominated columns, and the relaxation of these."""
    allowed = np.ones(problem.n_columns, dtype=bool) if allowed is None else allowed
    check_scores(scores)
    covered = problem.covered(allowed) > 0
    uncovered = np.flatnonzero(problem.required & ~covered)
    if len(uncovered):
        raise InfeasibleError(f"no allowed event explains slot {int(uncovered[0])}")
    columns = np.flatnonzero(problem.undominated(scores, allowed))
    useful, score = Problem(problem.incidence[columns], problem.free), scores[columns]
    count, slot_label, column_label = components(useful.incidence)
    x, duals = np.zeros(len(columns)), np.zeros(problem.n_slots)
    found = _Relaxation(x, duals, count, slot_label, column_label)
    large = np.bincount(column_label, minlength=count) > limits.large
    if not large.any():
        work = _relax(useful, score, slot_label, column_label, limits, until)
        found.x, found.duals = yield from work
        found.hurried = _hurried(score, found.x, found.duals)
        return columns, found
    done, every = 0.0, max(len(columns), 1)
    turn = np.where(large, np.arange(count), -1)  # the small ones are one part
    # Relaxing a part gives its columns and slots other labels, so all are looked up before.
    turns = [
        (np.flatnonzero(turn[column_label] == k), np.flatnonzero(turn[slot_label] == k))
        for k in np.unique(turn)
    ]
    while turns:
        inside = turns.pop(0)
        part = useful.part(*inside)
        if not turns:
            del useful  # the last part is most of it, and solving takes memory
        give_back()  # the solver takes as much as all before it
        share = partial(_share, done, len(inside[0]) / every)
        yield from relayed(_relax_part(part, score, inside, found, limits, until), share)
        done += len(inside[0]) / every
    return columns, found


def _share(done: float, size: float, share: float) -> float:
    whole = done + size * share
    return Hard.at(whole, share.seconds) if isinstance(share, Hard) else whole


def _hurried(scores: Array, x: Array, duals: Array) -> bool:
    """Whether prices are above what the values are worth, as they are not in an optimum."""
    most = float(duals.sum())
    return most - float(scores @ x) > 1e-6 * (1.0 + float(np.abs(duals).sum()))


def _relax_part(
    part: Problem,
    scores: Array,
    inside: tuple[Index, Index],
    found: _Relaxation,
    limits: SolverLimits,
    until: float,
) -> Generator[float, None, None]:
    """Relax a part of some columns and slots, whole components, and note the result in `found`."""
    columns, slots = inside
    score = scores[columns]
    labels = found.slot_label[slots], found.column_label[columns]
    alone = len(columns) > limits.large and labels[0].min() == labels[0].max()
    values = None
    if alone:
        values = yield from sifted(part, score, partial(_relax, limits=limits, until=until))
    if values is None:
        if alone:  # this may take long
            yield Hard.at(0.0, float(np.ceil(max(until - time.monotonic(), 0.0))))
        values = yield from _relax(part, score, *labels, limits, until)
    found.x[columns], found.duals[slots] = values
    hurried = _hurried(score, *values)
    found.hurried |= hurried
    if alone and not hurried:
        count, of_slots, of_columns = clusters(part, score, *values)
        found.slot_label[slots] = found.count + of_slots
        found.column_label[columns] = np.where(of_columns < 0, -1, found.count + of_columns)
        found.count += count


def _relax(
    problem: Problem,
    scores: Array,
    slot_label: Index,
    column_label: Index,
    limits: SolverLimits,
    until: float,
) -> Generator[float, None, tuple[Array, Array]]:
    """Values of the columns and prices of the slots of a problem of many components.

    Components are packed in order into programs of about as many columns as the limit says. Where
    a large one is not solved in time, the values are those of a choice, and the prices bound it.
    """
    by_slot, optional = problem.by_slot, problem.free
    size = np.bincount(column_label, minlength=int(slot_label.max(initial=-1)) + 1)
    batch = np.cumsum(size) // max(limits.batch, 1)
    count = int(batch.max(initial=-1)) + 1
    columns, slots = members(batch[column_label], count), members(batch[slot_label], count)
    x, duals = np.zeros(len(scores)), np.zeros(problem.n_slots)

    def one(part: tuple[Index, Index]) -> tuple[Index, Index, Relaxed]:
        columns, slots = part
        free = None if optional is None else optional[slots]
        large = len(columns) > 2 * limits.batch
        left = max(until - time.monotonic(), 0.0) if large else np.inf
        program = Program(by_slot[slots][:, columns], free=free)
        relaxed = program.relax(scores[columns], left) if left else None
        if relaxed is not None and relaxed.optimal:
            return columns, slots, relaxed
        if large and time.monotonic() >= until:
            return columns, slots, _at_once(problem.part(columns, slots), scores[columns])
        raise SolverError("the linear solver stopped before the optimum; scale the scores")

    done = 0
    with ThreadPoolExecutor(limits.workers) as pool:
        # A batch number that a large component jumped over has no members.
        parts = [part for part in zip(columns, slots, strict=True) if len(part[0])]
        for part, where, relaxed in pool.map(one, parts):
            x[part], duals[where] = relaxed.x, relaxed.duals
            done += len(part)
            yield done / max(len(scores), 1)
    return x, duals


def _at_once(problem: Problem, scores: Array) -> Relaxed:
    """Some choice, and prices that no choice exceeds, without solving anything."""
    duals = guessed_prices(problem, scores)
    choice = greedy_choice(problem.by_slot, scores, np.zeros(len(scores)), duals, problem.free)
    if choice is None:
        raise SolverError(
            "there was no answer in time; track fewer frames, or annotate some of the cells "
            "where many events are equally good"
        )
    x = choice.astype(np.float64)
    return Relaxed(x, duals, float(scores @ x), optimal=False)
