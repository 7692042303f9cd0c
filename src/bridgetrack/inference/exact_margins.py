"""Exact margins of chosen columns, many at a time: of all, or of those with the smallest.

Let D be the chosen columns that another choice drops and N those that it takes in their place. It
loses at least the reduced costs of N (see `margins`), and the columns of D and N hang together, so
there is a chain of columns of N from the forbidden column to each of D and N. What a choice within
a limit can reach is therefore a ball around the forbidden column, with reduced costs for lengths.
The balls of many columns are solved side by side as the components of one problem: a choice that
loses no more than the limit is the best one; where it loses more, the limit is raised.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.margins import (
    balanced_prices,
    exact_margin,
    margin_bounds,
    nearby_alternative,
    reduced_costs,
)
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.solve import solve

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_FACTOR, _ABOVE = 2.5, 0.5
"""How far above its lower bound a margin is looked for first, and again where it is not there."""
_ROUNDS = 5
_AT_ONCE = 1_000
_TRIED, _WIDE = 200, 2_000
"""Columns that are looked at for the smallest margins, and what one of them may reach."""
_NEARBY, _FEW = 3.0, 30
"""Reduced cost up to which a column may take part where not all can be looked at, and for how many
columns that is done."""
_STEP, _GROWTH = 0.5, 1.5
_PAIRS = 500_000
_NEGLIGIBLE, _TOLERANCE = 1e-12, 1e-6


def exact_margins(
    problem: Problem, scores: Array, solution: Solution, allowed: Mask | None = None
) -> Generator[float, None, Array]:
    """The margins of all chosen columns, yielding the share of the work done.

    Parameters
    ----------
    problem, scores, solution
        The problem and its best choice.
    allowed
        Columns that may be used at all, shape (H,); all where None.

    Returns
    -------
    numpy.ndarray
        Shape (H,); NaN for columns that are not chosen, infinite where nothing else is allowed.
    """
    allowed = np.ones(problem.n_columns, dtype=bool) if allowed is None else allowed
    margins = margin_bounds(problem, scores, solution, allowed)
    solution, margins = _balanced(problem, scores, solution, margins, allowed)
    around = _Around(problem, scores, solution, allowed)
    least, chosen = margins.copy(), np.flatnonzero(np.isfinite(margins))
    for k in range(0, len(chosen), _AT_ONCE):
        yield k / len(chosen)
        todo = chosen[k : k + _AT_ONCE]
        margins[todo], least[todo] = around.margins(todo, least[todo])
        # What only answers hold in place is left, and it may reach far.
        for column in todo[np.isnan(margins[todo])].tolist():
            guess = float(least[column])
            margins[column] = exact_margin(problem, scores, solution, column, allowed, guess)
    return margins


def smallest_first(margins: Array, columns: Index) -> Index:
    """Places of margins from the smallest up; among equal ones the first column comes first."""
    return np.lexsort((columns, np.round(margins, 9)))


def _balanced(
    problem: Problem, scores: Array, solution: Solution, bounds: Array, allowed: Mask
) -> tuple[Solution, Array]:
    """The solution with prices from which less can be reached, and nearer bounds on margins."""
    duals = balanced_prices(problem, scores, solution, allowed)
    solution = replace(solution, duals=duals)
    return solution, np.fmax(bounds, margin_bounds(problem, scores, solution, allowed))


@dataclass(frozen=True)
class Smallest:
    """The chosen columns with the smallest margins, smallest first.

    Parameters
    ----------
    columns, margins
        Which, and their margins, shape (k,).
    exact
        Where these are the margins themselves; others are at most that large, shape (k,).
    overlooked
        Columns of which it is not known that their margins are larger than those.
    """

    columns: Index
    margins: Array
    exact: Mask
    overlooked: int


def smallest_margins(
    problem: Problem,
    scores: Array,
    solution: Solution,
    bounds: Array,
    count: int,
    allowed: Mask | None = None,
    *,
    tried: int = _TRIED,
    wide: int = _WIDE,
) -> Smallest:
    """The chosen columns with the smallest margins.

    The margins of the columns with the smallest bounds are made exact, a few at a time, until no
    other bound is smaller than those found, or so many were tried.

    Parameters
    ----------
    problem, scores, solution, allowed
        See `exact_margins`.
    bounds
        Of `margin_bounds`; columns where they are not finite are left out.
    count
        How many are wanted.
    tried
        How many are looked at at most.
    wide
        Columns that one of them may reach; beyond that, only what is near it is chosen again.
    """
    allowed = np.ones(problem.n_columns, dtype=bool) if allowed is None else allowed
    order = np.flatnonzero(np.isfinite(bounds) & solution.chosen)
    solution, bounds = _balanced(problem, scores, solution, bounds, allowed)
    order = order[np.argsort(bounds[order], kind="stable")]
    around = _Around(problem, scores, solution, allowed, wide)
    margins, exact, k = np.zeros(0), np.zeros(0, dtype=bool), 0
    while k < min(len(order), tried) and (~exact).sum() < _FEW:
        if k >= count and np.sort(margins)[count - 1] < bounds[order[k]] - _TOLERANCE:
            break
        todo = order[k : k + 2 * count]
        found = np.full(len(todo), np.nan)
        if around.spare <= _NEARBY:  # else nearly everything can be reached from everywhere
            found = around.margins(todo, bounds[todo])[0]
        proven = ~np.isnan(found)
        for at in np.flatnonzero(~proven).tolist():
            found[at] = around.nearby(int(todo[at]), float(bounds[todo[at]]))
        margins, exact = np.append(margins, found), np.append(exact, proven)
        k += len(todo)
    best = smallest_first(margins, order[:k])[:count]
    best = best[np.isfinite(margins[best])]
    last = margins[best].max(initial=-np.inf) if len(best) == count else np.inf
    unknown = np.append(bounds[order[:k]][~exact], bounds[order[k:]])
    overlooked = int((unknown < last).sum()) - int((~exact[best]).sum())
    return Smallest(order[best], margins[best], exact[best], max(overlooked, 0))


@dataclass(frozen=True)
class _Net:
    """Which columns that are not chosen join which nodes.

    A *node* is a chosen column, or an optional slot that no chosen column covers.

    Parameters
    ----------
    columns, cost
        Columns that are not chosen and may be of use, and their reduced costs, shape (U,).
    joins, joined
        Columns of use x nodes, and the other way round.
    start, target, length
        For every node, where its neighbours begin; the neighbours, and how far they are.
    """

    columns: Index
    cost: Array
    joins: sp.csr_matrix
    joined: sp.csr_matrix
    start: Index
    target: Index
    length: Array


class _Around:
    """What can take the place of chosen columns."""

    def __init__(
        self,
        problem: Problem,
        scores: Array,
        solution: Solution,
        allowed: Mask,
        wide: float = np.inf,
    ) -> None:
        self.problem, self.scores, self.solution = problem, scores, solution
        self._allowed, self._wide = allowed, wide
        self._known: tuple[float, _Net] | None = None
        self.chosen = np.flatnonzero(solution.chosen)
        cost = np.maximum(reduced_costs(problem, scores, solution), 0.0)
        self._cost = np.where(allowed & ~solution.chosen, cost, np.inf)
        covered = problem.incidence[self.chosen]
        self._node = np.full(problem.n_slots + 1, -1, dtype=np.int64)
        self._node[covered.indices] = np.repeat(
            np.arange(len(self.chosen)), np.diff(covered.indptr)
        )
        spare = np.flatnonzero(self._node[:-1] < 0)
        self._node[spare] = len(self.chosen) + np.arange(len(spare))
        self.n_nodes = len(self.chosen) + len(spare)
        widest = int(problem.width.max(initial=1))
        # One column joins at most as many components as it has slots: no more can be won back.
        self.spare = widest * float(solution.slack.max(initial=0.0)) + 2 * _TOLERANCE
        self.upper = self._alone(covered)

    def margins(self, columns: Index, least: Array) -> tuple[Array, Array]:
        """Margins of chosen columns, NaN where they are not found; and what they are at least."""
        found, least = np.full(len(columns), np.nan), least.copy()
        todo = np.arange(len(columns))
        for _ in range(_ROUNDS):
            drop, limit = self.drops(columns[todo], _FACTOR * least[todo] + _ABOVE)
            known = drop <= limit
            found[todo[known]] = drop[known]
            least[todo] = np.where(known, least[todo], np.maximum(least[todo], limit))
            todo = todo[~known & np.isfinite(limit)]
            if not len(todo):
                break
        return found, least

    def nearby(self, column: int, least: float) -> float:
        """What a margin is at most: only what lies near is chosen again."""
        most = max(_NEARBY, least)
        given = (self.problem, self.scores, self.solution, column, (column,), self._allowed)
        for hops in (2, 1):
            try:
                return nearby_alternative(*given, most, hops)[0]
            except InfeasibleError:
                continue
        return float(self.upper[self._node[self.problem.slots_of(np.array([column]))[0, 0]]])

    def _alone(self, covered: sp.csr_matrix) -> Array:
        """What is lost where columns of one slot take the place of a chosen one, (nodes,)."""
        single = np.full(self.problem.n_slots, -np.inf)
        if self.problem.free is not None:
            single[self.problem.free] = 0.0
        one = np.flatnonzero((self.problem.width == 1) & np.isfinite(self._cost))
        np.maximum.at(single, self.problem.slots_of(one)[:, 0], self.scores[one])
        hopeless = covered @ (single == -np.inf).astype(np.float64) > 0
        worth = covered @ np.where(single == -np.inf, 0.0, single)
        return np.asarray(np.where(hopeless, np.inf, self.scores[self.chosen] - worth))

    def _net(self, most: float) -> _Net:
        """The columns of a reduced cost up to `most` or somewhat more, and all of one slot."""
        if self._known is not None:
            if self._known[0] >= most:  # what costs more is never reached
                return self._known[1]
            most = max(most, _GROWTH * self._known[0])  # as one takes long, few are made
        most = _STEP * np.ceil(most / _STEP)
        problem = self.problem
        single = (problem.width == 1) & np.isfinite(self._cost)
        columns = np.flatnonzero((self._cost <= most) | single)
        slots, width = problem.slots_of(columns), problem.width[columns]
        nodes = np.where(np.arange(slots.shape[1]) < width[:, None], self._node[slots], -1)
        column, place = np.nonzero(nodes >= 0)
        pair = np.unique(column.astype(np.int64) * self.n_nodes + nodes[column, place])
        column, node = np.divmod(pair, self.n_nodes)
        shape = (len(columns), self.n_nodes)
        joins = sp.csr_matrix((np.ones(len(pair)), (column, node)), shape=shape)
        cost, count = self._cost[columns], np.diff(joins.indptr)
        # A part at a time: all pairs of nodes at once would take more memory than all else.
        parts = [(np.zeros(0, dtype=np.int64), np.zeros(0))]
        for k in range(0, len(column), _PAIRS):
            some, mine = column[k : k + _PAIRS], node[k : k + _PAIRS]
            here = _ranges(joins.indptr[some], count[some])
            source, target = np.repeat(mine, count[some]), joins.indices[here].astype(np.int64)
            length = np.repeat(cost[some], count[some])
            parts.append(_smallest(source * self.n_nodes + target, length))
        keys, lengths = zip(*parts, strict=True)
        key, length = _smallest(np.concatenate(keys), np.concatenate(lengths))
        other = key // self.n_nodes != key % self.n_nodes
        source, target = np.divmod(key[other], self.n_nodes)
        start = np.searchsorted(source, np.arange(self.n_nodes + 1))
        joined = sp.csr_matrix(joins.T.tocsr())
        net = _Net(columns, cost, joins, joined, start, target, length[other])
        self._known = (most, net)
        return net

    def _balls(self, net: _Net, nodes: Index, limit: Array) -> tuple[Index, Index, Array, Mask]:
        """What is within the limits of some nodes: number of the ball, node and distance.

        And which balls have become too wide, and were left.
        """
        wide = np.zeros(len(nodes), dtype=bool)
        key = np.arange(len(nodes)) * self.n_nodes + nodes
        distance = np.zeros(len(nodes))
        edge_key, edge = key, distance
        while len(edge_key):
            ball, node = np.divmod(edge_key, self.n_nodes)
            count = net.start[node + 1] - net.start[node]
            step = _ranges(net.start[node], count)
            ball, reached = np.repeat(ball, count), np.repeat(edge, count) + net.length[step]
            within = reached <= limit[ball]
            edge_key, edge = _smallest(
                ball[within] * self.n_nodes + net.target[step[within]], reached[within]
            )
            place = np.minimum(np.searchsorted(key, edge_key), len(key) - 1)
            known = key[place] == edge_key
            closer = ~known | (edge < distance[place] - _NEGLIGIBLE)
            distance[place[closer & known]] = edge[closer & known]
            fresh = ~known
            key = np.concatenate([key, edge_key[fresh]])
            distance = np.concatenate([distance, edge[fresh]])
            order = np.argsort(key, kind="stable")
            key, distance = key[order], distance[order]
            wide |= np.bincount(key // self.n_nodes, minlength=len(nodes)) > self._wide
            closer &= ~wide[edge_key // self.n_nodes]
            edge_key, edge = edge_key[closer], edge[closer]
        ball, node = np.divmod(key, self.n_nodes)
        return ball, node, distance, wide

    def drops(self, columns: Index, limit: Array) -> tuple[Array, Array]:
        """What is lost without each of some chosen columns, and up to where that is proven.

        Only drops up to the limit are right; others are beyond it. Where too much can be reached,
        the limit is minus infinity.
        """
        own, asked = self._node[self.problem.slots_of(columns)[:, 0]], limit
        limit = np.minimum(limit, self.upper[own]) + self.spare
        net = self._net(float(limit.max()))
        ball, node, distance, wide = self._balls(net, own, limit)
        if wide.any():
            drop, proven = np.full((2, len(columns)), np.inf)
            proven[wide] = -np.inf
            if not wide.all():
                drop[~wide], proven[~wide] = self.drops(columns[~wide], asked[~wide])
            return drop, proven
        # Columns all of whose nodes lie in a ball, near enough; those of one slot stand in for it.
        count = np.diff(net.joined.indptr)[node]
        column = net.joined.indices[_ranges(net.joined.indptr[node], count)].astype(np.int64)
        at = np.repeat(ball, count) * len(net.columns) + column
        far = np.repeat(distance, count) + net.cost[column]
        met = np.bincount(np.unique(at, return_inverse=True)[1])
        at, far = _smallest(at, far)
        around, column = np.divmod(at, max(len(net.columns), 1))
        width = np.diff(net.joins.indptr)[column]
        single = (width == 1) & (net.joins.indices[net.joins.indptr[column]] == own[around])
        use = (met == width) & ((far <= limit[around]) | single)
        inside = node < len(self.chosen)
        block = np.concatenate([ball[inside], around[use]])
        picked = np.concatenate([self.chosen[node[inside]], net.columns[column[use]]])
        # Where the relaxation is not whole, a better choice may begin beyond what is lost.
        return self._solved(columns, limit, block, picked), limit - self.spare + _TOLERANCE

    def _solved(self, columns: Index, limit: Array, block: Index, picked: Index) -> Array:
        """Solve all blocks of columns at once: what each loses without its own column."""
        order = np.argsort(block, kind="stable")
        block, picked = block[order], picked[order]
        rows = self.problem.incidence[picked]
        slots = np.repeat(block, np.diff(rows.indptr)) * self.problem.n_slots + rows.indices
        slots, place = np.unique(slots, return_inverse=True)
        shape = (len(picked), len(slots))
        matrix = sp.csr_matrix((np.ones(len(place)), place.astype(np.int32), rows.indptr), shape)
        matrix.sort_indices()
        free = self.problem.free
        part = Problem(matrix, None if free is None else free[slots % self.problem.n_slots])
        score, mine = self.scores[picked].copy(), picked == columns[block]
        # Where nothing may take its place, a column stays, at a price that is beyond the limit.
        stays = np.isinf(self.upper[self._node[self.problem.slots_of(columns)[:, 0]]])
        score[mine] -= 2.0 * limit[block[mine]] + 1.0
        found = solve(part, score, ~mine | stays[block]).chosen
        n = len(columns)
        before = np.bincount(block, self.scores[picked] * self.solution.chosen[picked], n)
        return np.maximum(before - np.bincount(block, score * found, n), 0.0)


def _ranges(start: NDArray[np.integer], count: NDArray[np.integer]) -> Index:
    """The numbers ``start[k] .. start[k] + count[k] - 1``, one run after another."""
    offset = np.cumsum(count) - count
    return np.arange(int(count.sum())) - np.repeat(offset, count) + np.repeat(start, count)


def _smallest(key: Index, value: Array) -> tuple[Index, Array]:
    """Every key once, ascending, with its smallest value."""
    order = np.lexsort((value, key))
    key, value = key[order], value[order]
    first = np.r_[True, key[1:] != key[:-1]][: len(key)]
    return key[first], value[first]
