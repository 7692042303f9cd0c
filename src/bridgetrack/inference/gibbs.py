"""How likely the choices of a set-partitioning problem are, and how undecided it is.

With ``p(y)`` proportional to ``exp(<s, y>)`` over all y with ``C y = 1``, the entropy is ``log Z -
E[<s, y>]``. Sums run over the slots in an order of small bandwidth: after k slots, all
partial choices that cover the same later slots are one state. That is enumeration, with what can
be shared computed once; on the way back every step is weighed by what its completions are worth,
which gives the chance of every column, the derivative of log Z. Where
there are more states than the limit, the heaviest go on as they are, and of the light ones a few
drawn at random stand for all of them, so that Z is right on average (resampling after Fearnhead
and Clifford 2003); the result says so. With 100 states the entropy of random problems of 2 x 5 to
2 x 7 cells was off by 1 % typically, by 10 % at worst.

Prices of the slots, the duals of the linear program, are taken off the scores beforehand. That
adds the same to every choice, so that the distribution stays, and it lets partial choices be
compared by what their best completions are worth rather than by how much they have covered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solver import Program

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Step = tuple[int, int, int]

LIMIT = 100
"""States that go on from one slot to the next."""


@dataclass(frozen=True)
class Gibbs:
    """Sums over the choices of a problem.

    Parameters
    ----------
    log_z
        Logarithm of the sum of ``exp(<s, y>)``, an estimate where not exact.
    entropy
        In nats, not negative.
    exact
        Whether no state had to be given up.
    chances
        How probably each column is chosen, shape (H,).
    """

    log_z: float
    entropy: float
    exact: bool
    chances: Array


def gibbs(
    problem: Problem, scores: Array, allowed: Mask | None = None, limit: int = LIMIT
) -> Gibbs:
    """Partition function and entropy of the choices of a problem, and the chances of its columns.

    Parameters
    ----------
    problem
        Slots and columns.
    scores
        Of the columns, already divided by the temperature, shape (H,).
    allowed
        Columns that may be chosen, shape (H,); None: all.
    limit
        States kept at most.

    Raises
    ------
    InfeasibleError
        If the beam finds no choice that covers every slot once.
    """
    keep = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
    rows = sp.csr_matrix(problem.incidence[keep])
    mine = np.asarray(scores, dtype=np.float64)[keep]
    if problem.free is not None:  # a column of score 0 that covers an optional slot leaves it free
        alone = sp.identity(problem.n_slots, format="csr")[problem.free]
        rows = sp.csr_matrix(sp.vstack([rows, alone]))
        mine = np.append(mine, np.zeros(alone.shape[0]))
    linked = sp.csr_matrix(rows.T @ rows)
    # A state is what is covered ahead of the present slot, so slots that columns link must stand
    # close together: the number of states grows with the width of the band. Components are
    # independent, so their log Z and entropies add.
    n, label = connected_components(linked, directed=False)
    order = reverse_cuthill_mckee(linked, symmetric_mode=True)
    place = np.empty(problem.n_slots, dtype=np.int64)
    by_part = order[np.argsort(label[order], kind="stable")]
    place[by_part] = np.arange(problem.n_slots)
    starts = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=n))])
    prices = Program(sp.csr_matrix(rows.T.tocsr())).relax(mine).duals
    dear = mine - rows @ prices
    choices = _choices(rows, place, problem.n_slots)
    log_z, exact, likely = float(prices.sum()), True, np.zeros(len(mine))
    entropy = 0.0
    for k in range(n):
        here = choices[starts[k] : starts[k + 1]]
        z, chance, complete = _sums(here, dear, limit)
        columns = np.fromiter(chance, dtype=np.int64, count=len(chance))
        likely[columns] = np.fromiter(chance.values(), dtype=np.float64, count=len(chance))
        log_z += z
        # An estimated Z may fall below what the mean score says; no entropy is negative.
        entropy += max(z - float(likely[columns] @ dear[columns]), 0.0)
        exact &= complete
    chances = np.zeros(len(scores))
    chances[keep] = likely[: len(keep)]
    return Gibbs(log_z, entropy, exact, chances)


def _choices(
    rows: sp.csr_matrix, place: NDArray[np.int64], n_slots: int
) -> list[list[tuple[int, int]]]:
    """For every place, the columns that begin there: bits of the places covered, and number."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(n_slots)]
    for h in range(rows.shape[0]):
        covered = place[rows.indices[rows.indptr[h] : rows.indptr[h + 1]]].tolist()
        first = min(covered)
        bits = sum(1 << (p - first) for p in covered)
        found[first].append((bits, h))
    return found


def _sums(
    choices: list[list[tuple[int, int]]], scores: Array, limit: int
) -> tuple[float, dict[int, float], bool]:
    """Logarithm of Z, chances of columns, and whether all choices were summed, of a component."""
    # Bit k of a state says whether the k-th slot from here is covered; Python's integers have as
    # many bits as the band is wide. Its value: the log of its mass.
    states: dict[int, float] = {0: 0.0}
    # The seed is fixed, so that the same scores have the same entropy.
    exact, rng = True, np.random.default_rng(0)
    walked: list[tuple[dict[int, float], list[Step], dict[int, float]]] = []
    for here in choices:
        new: dict[int, float] = {}
        steps: list[Step] = []
        for bits, weight in states.items():
            if bits & 1:  # covered by a column that began at an earlier slot
                steps.append((bits, bits >> 1, -1))
                _add(new, bits >> 1, weight)
                continue
            for covered, column in here:
                if not covered & bits:
                    after = (covered | bits) >> 1
                    steps.append((bits, after, column))
                    _add(new, after, weight + float(scores[column]))
        if not new:
            raise InfeasibleError("no choice covers every slot once, as far as was searched")
        kept = new
        if len(new) > limit:
            kept, exact = _resampled(new, limit, rng), False
        # what a state that goes on stands for beyond itself
        walked.append((states, steps, {bits: kept[bits] - new[bits] for bits in kept}))
        states = kept
    log_z = states[0]
    ahead: dict[int, float] = {0: 0.0}  # the log of the mass of all completions of a state
    chances: dict[int, float] = {}
    for before, steps, gained in reversed(walked):
        behind: dict[int, float] = {}
        for bits, after, column in steps:
            if after not in gained or after not in ahead:
                continue
            rest = ahead[after] + gained[after]
            if column >= 0:
                rest += float(scores[column])
                chance = math.exp(before[bits] + rest - log_z)
                chances[column] = chances.get(column, 0.0) + chance
            _add(behind, bits, rest)
        ahead = behind
    return log_z, chances, exact


def _resampled(states: dict[int, float], limit: int, rng: np.random.Generator) -> dict[int, float]:
    """At most ``limit`` states: the heavy ones, and some light ones that take a weight c each.

    With ``sum_i min(m_i / c, 1) = limit`` a light state of mass m_i survives with probability
    m_i / c, so that the expected mass of every state stays.
    """
    items = sorted(states.items(), key=lambda s: -s[1])
    logs = np.array([weight for _, weight in items])
    mass = np.exp(logs - logs[0])  # of the heaviest, which keeps the exponentials within range
    rest = np.cumsum(mass[::-1])[::-1]
    free = limit - np.arange(limit)
    # The h heaviest stay where each is worth more than an equal share c of what is left.
    heavy = int(np.argmax(mass[:limit] * free < rest[:limit]))
    level = float(rest[heavy]) / (limit - heavy)
    # One random start and equal steps (systematic sampling) vary less than independent draws.
    marks = (np.arange(limit - heavy) + rng.random()) * level
    drawn = heavy + np.searchsorted(np.cumsum(mass[heavy:]), marks)
    kept = dict(items[:heavy])
    weight = math.log(level) + float(logs[0])
    for k in np.minimum(drawn, len(items) - 1).tolist():
        kept[items[k][0]] = weight
    return kept


def _add(states: dict[int, float], bits: int, weight: float) -> None:
    """Add the mass of partial choices to a state."""
    other = states.get(bits)
    if other is None:
        states[bits] = weight
        return
    high, low = (other, weight) if other >= weight else (weight, other)
    # log(exp(high) + exp(low)) without leaving the range of floating point
    states[bits] = high + math.log1p(math.exp(low - high))
