"""How likely a candidate region is a cell, as log-odds: the scores that movies start with.

Each is a forest of boosted trees, learned from pictures drawn from masks and simulated ones. What a
movie and the answers about it teach stands in `taught`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.regions.describe import FEATURES
from bridgetrack.regions.regions import Regions, exclusions

Targets = NDArray[np.int8]

KINDS = ("cells", "rods")
"""What the scores that come with the program are for: rods lie side by side in colonies, and look
like pieces of cells to a score that never saw any."""
_ALIKE = 0.8
"""Overlap over union above which one of two candidates is enough."""
_LEAST = -7.0
"""Log-odds below which no candidate is kept."""
MOST_ODDS = 12.0
"""No candidate is surer than this."""


@dataclass(frozen=True)
class RegionScore:
    """Boosted trees and their calibration."""

    features: tuple[str, ...]  # names of the features, in the order of the columns
    # feature and value that every node of every tree asks for: left where the feature is at most
    # the value, shape (trees, nodes); a leaf has feature -1
    split: Index
    threshold: Array
    # its children, shape (trees, nodes)
    left: Index
    right: Index
    value: Array  # what a leaf adds to the log-odds, shape (trees, nodes)
    start: float  # log-odds before any tree
    # calibration: log-odds are ``slope * sum + shift``
    slope: float
    shift: float
    kind: str = KINDS[0]  # what it is for, one of `KINDS`
    # slope and shift for movies that are known to be of this kind, of which it may be surer; None
    # where they are the same
    own: tuple[float, float] | None = None

    @property
    def of_its_kind(self) -> RegionScore:
        """The same for a movie that is known to be of its kind."""
        if self.own is None:
            return self
        return replace(self, slope=self.own[0], shift=self.own[1], own=None)

    def log_odds(self, features: Array) -> Array:
        """Log-odds that each candidate is a cell, shape (R,); features have shape (R, F)."""
        columns = [list(FEATURES).index(name) for name in self.features]
        known = np.asarray(features, dtype=np.float64)[:, columns]
        total = np.full(len(known), self.start)
        rows = np.arange(len(known))
        for k in range(len(self.split)):
            node = np.zeros(len(known), dtype=np.int64)
            while True:
                split = self.split[k][node]
                if (split < 0).all():
                    break
                goes_left = known[rows, split] <= self.threshold[k][node]
                down = np.where(goes_left, self.left[k][node], self.right[k][node])
                node = np.where(split < 0, node, down)
            total += self.value[k][node]
        return np.clip(self.slope * total + self.shift, -MOST_ODDS, MOST_ODDS)


def starting_score(kind: str = "cells") -> RegionScore:
    """A score that comes with the program; `KINDS` are there."""
    place = resources.files("bridgetrack.regions") / f"{kind}.npz"
    with place.open("rb") as file, np.load(file, allow_pickle=False) as read:
        whole = {n: read[n].astype(np.int64) for n in _WHOLE}
        real = {n: read[n].astype(np.float64) for n in _REAL}
        known = {n: float(read[n]) for n in ("start", "slope", "shift")}
        names = tuple(str(name) for name in read["features"])
        own = tuple(map(float, read["own"])) if "own" in read.files else None
    return RegionScore(names, kind=kind, own=own, **known, **whole, **real)  # type: ignore[arg-type]


_WHOLE = ("split", "left", "right")
_REAL = ("threshold", "value")


def prune(
    regions: Regions,
    score: Array,
    per_cell: float = 4.0,
    *,
    sure: Mask | None = None,
) -> Index:
    """The candidates worth choosing among, about `per_cell` of them per cell.

    Of candidates that are much alike the likeliest stays. Of the rest each place keeps its
    likeliest, so that dim cells keep theirs beside bright ones: candidates are ranked among
    those that they share pixels with, and the best ranked stay.

    Parameters
    ----------
    regions
        Candidates of any frames.
    score
        Log-odds, shape (R,).
    per_cell
        How many to keep for every cell that choosing greedily would find.
    sure
        Candidates to keep in any case, e.g. those that a person painted.

    Returns
    -------
    Index
        Numbers of those kept, ascending.
    """
    shared = regions.overlaps
    sure = np.zeros(len(regions), dtype=bool) if sure is None else sure
    order = np.argsort(-(score + 1e3 * sure), kind="stable")
    begin, end, area = shared.indptr[:-1], shared.indptr[1:], regions.area
    one, other = area[np.repeat(np.arange(len(regions)), end - begin)], area[shared.indices]
    alike = shared.data > _ALIKE * (one + other - shared.data)
    strong = shared.data > 0.3 * np.minimum(one, other)
    rank = np.full(len(regions), -1, dtype=np.int64)
    chosen: list[int] = []
    free = np.ones(len(regions), dtype=bool)
    for r in order[(score[order] >= _LEAST) | sure[order]].tolist():
        part = slice(begin[r], end[r])
        ranked = rank[shared.indices[part]] >= 0
        if not sure[r] and (alike[part] & ranked).any():
            continue
        rank[r] = np.count_nonzero(strong[part] & ranked)
        if free[r]:
            chosen.append(r)
            free[shared.indices[part]] = False
    kept = np.flatnonzero(rank >= 0)
    worth = np.where(sure[kept], -np.inf, rank[kept] - 2 * np.clip(score[kept], -6, 6))
    quota = int(np.ceil(per_cell * len(chosen)))
    return np.sort(kept[np.argsort(worth, kind="stable")[:quota]])


def choose_by_frame(regions: Regions, scores: Array) -> Mask:
    """The regions with the largest total score of which no two share a pixel.

    Parameters
    ----------
    regions
        Candidates.
    scores
        What each adds when it is chosen, shape (R,); those below 0 are never chosen.

    Returns
    -------
    numpy.ndarray
        Which are chosen, shape (R,).
    """
    atoms = exclusions(regions).T.tocsr()
    contested = np.diff(atoms.indptr) > 0
    chosen = ~contested & (scores > 0)
    columns = np.flatnonzero(contested & (scores > 0))
    if len(columns):
        incidence = atoms[columns].astype(np.float64)
        problem = Problem(incidence, np.ones(incidence.shape[1], dtype=bool))
        chosen[columns] = solve(problem, scores[columns]).chosen
    return chosen
