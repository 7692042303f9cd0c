"""Random set-partitioning problems, and a reference that enumerates every choice."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.inference.problem import Problem


def problem_of(covers: list[tuple[int, ...]], n_slots: int) -> Problem:
    """A problem from the slots of every column."""
    rows = [h for h, cover in enumerate(covers) for _ in cover]
    slots = [s for cover in covers for s in cover]
    shape = (len(covers), n_slots)
    return Problem(sp.csr_matrix((np.ones(len(rows)), (rows, slots)), shape=shape))


def random_covers(rng: np.random.Generator, n_slots: int, n_wide: int) -> list[tuple[int, ...]]:
    """Most single columns, many pairs and triples, some of them twice; always feasible."""
    covers = [(s,) for s in range(n_slots) if rng.random() < 0.8]
    shuffled = rng.permutation(n_slots).tolist()
    while shuffled:  # a planted cover, so that there is a choice without the missing singles
        k = int(rng.integers(1, 4))
        covers.append(tuple(sorted(shuffled[:k])))
        shuffled = shuffled[k:]
    for _ in range(n_wide):
        k = min(int(rng.integers(2, 4)), n_slots)
        covers.append(tuple(sorted(rng.choice(n_slots, k, replace=False).tolist())))
    return covers


def interval_covers(rng: np.random.Generator, n_slots: int, n_wide: int) -> list[tuple[int, ...]]:
    """Columns of consecutive slots: the matrix is totally unimodular, and relaxations are whole."""
    covers = [(s,) for s in range(n_slots) if rng.random() < 0.8]
    cuts = [0, *np.flatnonzero(rng.random(n_slots) < 0.5).tolist(), n_slots]  # a planted cover
    wide = [(int(a), int(a + rng.integers(2, 4))) for a in rng.integers(0, n_slots, n_wide)]
    for begin, end in (*pairwise(cuts), *wide):
        if begin < end:
            covers.append(tuple(range(begin, min(end, n_slots))))
    return covers


def random_scores(rng: np.random.Generator, n_columns: int) -> Array:
    """Good, poor, tied, all equal or all zero scores."""
    kind = int(rng.integers(5))
    if kind == 0:
        return np.zeros(n_columns)
    if kind == 1:
        return np.full(n_columns, float(rng.normal()))
    if kind == 2:
        return rng.integers(-2, 3, n_columns).astype(np.float64)
    return rng.normal(size=n_columns) * (1.0 if kind == 3 else 100.0)


def tracking_problem(
    rng: np.random.Generator, n_cells: int, frames: int = 2, radius: float = 1.5
) -> tuple[Problem, Array]:
    """Cells on a plane through a few frames, the scores by distance with much noise.

    Returns
    -------
    problem, scores
        Moves, divisions, merges, skips, false detections and single-slot events.
    """
    side = np.sqrt(n_cells)
    where = [rng.uniform(0, side, (n_cells, 2)) for _ in range(frames)]
    covers: list[tuple[int, ...]] = []
    scores: list[float] = []

    def fate(t: int, i: int) -> int:
        return 2 * (t * n_cells + i)

    def add(score: float, *cover: int) -> None:
        covers.append(tuple(sorted(cover)))
        scores.append(score + float(rng.normal()) * 0.7)

    for t in range(frames):
        for i in range(n_cells):
            add(-1.5, fate(t, i))
            add(-1.5, fate(t, i) + 1)
            add(-3.5, fate(t, i), fate(t, i) + 1)
    for gap in (1, 2):
        for t in range(frames - gap):
            distance = np.linalg.norm(where[t][:, None] - where[t + gap][None], axis=2)
            for i, j in np.argwhere(distance < (radius if gap == 1 else 0.3 * radius)).tolist():
                add(2.0 - 2 * distance[i, j] - gap, fate(t, i), fate(t + gap, j) + 1)
            if gap > 1:
                continue
            for i in range(n_cells):
                near = np.flatnonzero(distance[i] < radius).tolist()
                for a, b in ((a, b) for a in near for b in near if a < b):
                    add(1.0 - distance[i, a], fate(t, i), fate(t + 1, a) + 1, fate(t + 1, b) + 1)
                near = np.flatnonzero(distance[:, i] < 0.7 * radius).tolist()
                for a, b in ((a, b) for a in near for b in near if a < b):
                    add(0.0 - distance[a, i], fate(t, a), fate(t, b), fate(t + 1, i) + 1)
    return problem_of(covers, 2 * n_cells * frames), np.asarray(scores)


def brute_force(problem: Problem, scores: Array, allowed: Mask | None = None) -> float:
    """Best value over all choices, -inf where there is none; for up to about 12 slots."""
    return max((float(scores[c].sum()) for c in all_choices(problem, allowed)), default=-np.inf)


def all_choices(problem: Problem, allowed: Mask | None = None) -> list[Index]:
    """Columns of every choice, by trying all columns of the first open slot."""
    covers = [set(row[row < problem.n_slots].tolist()) for row in problem.slots_of(slice(None))]
    usable = range(problem.n_columns) if allowed is None else np.flatnonzero(allowed).tolist()
    found: list[Index] = []

    def extend(picked: list[int], still: set[int]) -> None:
        if not still:
            found.append(np.array(picked, dtype=int))
            return
        first = min(still)
        for h in usable:
            if first in covers[h] and covers[h] <= still:
                extend([*picked, h], still - covers[h])

    extend([], set(range(problem.n_slots)))
    return found
