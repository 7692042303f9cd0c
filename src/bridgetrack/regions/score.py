"""How likely a candidate region is a cell, as log-odds: the scores that movies start with.

Each is a forest of boosted trees, learned from pictures drawn from masks and simulated ones.

A movie teaches more. Where somebody has looked at all of some areas and said that everything there
is right, the candidates in them are examples of cells and of what is none as they are in this
movie. Trees fitted to them have the more of a say, the more often the starting score is wrong
there, and none where it is seldom wrong. Single answers are about errors, which are no fair sample:
they hold, and teach nothing.

Size is learned without any answer. Specks, tails and pieces of cells that are many in a movie pass
the score, which compares candidates with those around. What is far smaller than the cells that are
surest is seldom one. Where debris is as sure and as frequent, cells are what most of the pixels
belong to: few large ones cover more than many specks beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.regions.describe import FEATURES
from bridgetrack.regions.regions import Regions, exclusions
from bridgetrack.segmentation.cells import weighted_median

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

Targets = NDArray[np.int8]

KINDS = ("cells", "rods")
"""Kinds of cells for which scores are shipped: rods lie side by side in colonies, and look like
pieces of cells to a score that was not trained on rods."""
_ALIKE = 0.8
"""Overlap over union above which one of two candidates is enough."""
_LEAST = -7.0
"""Log-odds below which candidates are dropped."""
MOST_ODDS = 12.0
"""Largest log-odds of a candidate."""


FEW = 25
"""Fewer cells than this in checked areas are not a sample of the movie."""
_ENOUGH = 100
"""Cells in such areas from which the movie's own trees may replace the starting score."""
_OFTEN = 0.5
"""Share of wrong ones among the starting score's cells, from which this score may be replaced."""
_SELDOM = 0.1
"""The same, up to which it is used alone: the movie's own trees would be worse."""
_MENDED = 0.05
"""Corrected cells per checked one, below which the trees count less: if nothing had to be
corrected, candidates may look wrong, but the frames around them made up for it."""
HALF = 0.5
_SUREST = 0.998
"""Averaged trees of few examples cannot be more certain than this, in either direction."""
USUAL_LEVEL = 0.3
"""Share of a cell's brightness down to which people draw it: 0.37 on HeLa, 0.22 on PSC (median)."""
_PER_LEVEL = 10.0
_MOST_DOUBT = 6.0
_LEAST_SPREAD = 0.2
_TENTH = 1.28
"""Standard deviations from the mean of a normal distribution to its first tenth."""
_FREE = 2.5
_SLOPE = 3.0 / 0.35
_FREE_ABOVE = 1.5
_SLOPE_ABOVE = 0.5
_MOST = 12.0
_NONE = 2.0
"""Doubt from which a candidate is no cell if there is debris beside the cells."""
_SPECK = 1 / 3
"""Share of the middle size of its frame below which a sure candidate looks like debris: of those of
HeLa and PSC 3 % are, of HL60 none, of U373, where debris lies beside the cells, 49 %."""
_MANY, _ALL = 0.2, 0.8
"""Shares of such candidates between which they are taken for debris: fewer may be small cells, and
more are the cells themselves, beside something large."""
_CELL = 0.5
"""Share of the middle size of the movie from which candidates are cells in that case."""


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
    kind: str = KINDS[0]  # kind of cells, one of `KINDS`
    # slope and shift for movies known to be of this kind, which allow more certainty; None
    # where they are the same
    own: tuple[float, float] | None = None

    @property
    def of_its_kind(self) -> RegionScore:
        """The score for a movie that is known to be of its kind."""
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


@cache
def starting_score(kind: str = "cells") -> RegionScore:
    """A shipped score, for one of `KINDS`."""
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


# ---------------------------------------------------------------------- what a movie teaches


@dataclass(frozen=True)
class CellSize:
    """Usual size of the cells of a movie; by default it is unknown, and no size is doubted."""

    centre: float = 0.0  # median of the log of the area (in 3D of the volume), in pixels
    spread: float = _LEAST_SPREAD  # standard deviation towards small cells
    above: float = np.inf  # the same towards large cells
    debris: bool = False  # whether there are much smaller objects beside them with scores as high

    def doubt(self, area: Array) -> Array:
        """Reduction of the log-odds of candidates of unusual size, shape (R,).

        Nothing within 2.5 standard deviations; below that 3 for each further factor of 1.4.
        Above 1.5 half for each further standard deviation: two cells drawn as one.
        """
        log = np.log(area)
        below = _SLOPE * (self.centre - _FREE * self.spread - log)
        above = _SLOPE_ABOVE * ((log - self.centre) / self.above - _FREE_ABOVE)
        return np.clip(np.maximum(below, above), 0.0, _MOST)

    def none(self, area: Index) -> Mask:
        """Candidates that are no cells whatever the neighbouring frames look like, shape (R,).

        Debris does not move, and is so well explained over time that no doubt about single frames
        outweighs it. Without debris, a small object may be a newborn cell.
        """
        return np.asarray(self.debris & (self.doubt(area.astype(np.float64)) > _NONE))


def usual_size(
    areas: Sequence[Array], scores: Sequence[Array], cut: Sequence[Mask] | None = None
) -> CellSize:
    """Usual size, from the half of the cells chosen in some frames with the highest scores.

    Parameters
    ----------
    areas, scores
        Pixels and log-odds of the cells of every frame.
    cut
        Which of them the frame's edge cuts; even small ones are no debris.
    """
    if not any(len(a) for a in areas):
        return CellSize()
    least = np.median(np.concatenate(scores))
    sure = [a[score >= least] for a, score in zip(areas, scores, strict=True)]
    area = np.concatenate(sure)
    # Beside larger ones in the same frame: cells that become smaller with time are no debris.
    specks = np.concatenate([a < _SPECK * weighted_median(a, a) for a in sure if len(a)])
    if cut is not None:
        specks &= ~np.concatenate([c[s >= least] for c, s in zip(cut, scores, strict=True)])
    debris = _MANY < specks.mean() < _ALL
    if debris:
        area = area[area >= _CELL * weighted_median(area, area)]
    log = np.log(area)
    centre = float(np.median(log))
    low, high = (float(q) for q in np.quantile(log, [0.1, 0.9]))
    below, above = ((d / _TENTH) for d in (centre - low, high - centre))
    if debris:  # some debris is left among the small ones
        below = min(below, above)
    return CellSize(centre, max(_LEAST_SPREAD, below), max(_LEAST_SPREAD, above), bool(debris))


def doubt_of_tight(features: Array) -> Array:
    """Reduction of the log-odds of candidates with too tight an outline, shape (R,).

    Only where a candidate much like it reaches farther down: cells that touch cannot.

    Parameters
    ----------
    features
        As `describe` gives them, shape (R, F).
    """
    level, least = (features[:, list(FEATURES).index(name)] for name in ("level", "least level"))
    return np.clip(_PER_LEVEL * (level - np.maximum(USUAL_LEVEL, least)), 0.0, _MOST_DOUBT)


@dataclass(frozen=True)
class MovieTrees:
    """Trees learned from the candidates of one movie: the mean of boosted and averaged ones.

    Few examples do not determine where exactly to split. Boosted trees choose one place, averaged
    random ones many; together they are right more often than either.

    Parameters
    ----------
    boosted, averaged
        Fitted to the same examples.
    """

    boosted: HistGradientBoostingClassifier
    averaged: ExtraTreesClassifier

    def log_odds(self, features: Array) -> Array:
        """Log-odds that each candidate is a cell, shape (R,); features have shape (R, F)."""
        likely = self.averaged.predict_proba(features)[:, 1].clip(1 - _SUREST, _SUREST)
        odds = (self.boosted.decision_function(features) + np.log(likely / (1 - likely))) / 2
        return np.asarray(np.clip(odds, -MOST_ODDS, MOST_ODDS))


@dataclass(frozen=True)
class MovieScore:
    """How likely the candidates of one movie are cells."""

    start: RegionScore  # the score in general
    size: CellSize = CellSize()  # usual size of cells in this movie
    trees: MovieTrees | None = None  # trees learned from this movie; None if there are none
    share: float = 0.0  # weight of the trees, 0 to 1
    answers: frozenset[str] = frozenset()  # ids of the answers about masks that it was learned with

    @property
    def own(self) -> float:
        """How far the movie's own examples replace rules made for movies without any, 0 to 1."""
        return max(0.0, (self.share - HALF) / (1 - HALF))

    def log_odds(self, regions: Regions, features: Array) -> Array:
        """Log-odds that each candidate is a cell, shape (R,); features have shape (R, F)."""
        odds = self.start.log_odds(features) - doubt_of_tight(features)
        if self.trees is not None and len(odds):
            trees = self.trees.log_odds(features)
            # Alone they are so sure of cells that the frames around could no longer decide
            # between one cell and two.
            trees = np.where(trees > 0, (1 - HALF * self.own) * trees, trees)
            odds = (1 - self.share) * odds + self.share * trees
        return odds - self.size.doubt(regions.area.astype(np.float64))


def share_of(checked: int, mended: int, wrong: float) -> float:
    """Weight of trees learned from checked areas; 0 if the starting score is right there.

    Parameters
    ----------
    checked
        Cells in such areas; fewer than `FEW` are no sample.
    mended
        Cells that were corrected.
    wrong
        Share of wrong ones among the candidates taken for cells there by the starting score.
    """
    needed = min(1.0, max(0.0, (wrong - _SELDOM) / (_OFTEN - _SELDOM)))
    missed = min(1.0, mended / (_MENDED * checked))
    return needed * missed * (HALF + HALF * min(1.0, checked / _ENOUGH))


def teach(score: MovieScore, features: Array, targets: Targets, share: float = HALF) -> MovieScore:
    """A score that has learned from a movie; unchanged if only one class of candidates is known.

    Parameters
    ----------
    score
        The score to begin with; what it learned before is replaced.
    features
        Of candidates, shape (R, F).
    targets
        1 for cells, 0 for others, -1 if unknown.
    share
        Weight of the trees.
    """
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

    known = targets >= 0
    if len(np.unique(targets[known])) < 2:
        return replace(score, trees=None, share=0.0)
    boosted = HistGradientBoostingClassifier(
        max_iter=100,
        learning_rate=0.08,
        max_leaf_nodes=7,
        min_samples_leaf=10,
        l2_regularization=5.0,
        early_stopping=False,
        random_state=0,
    )
    averaged = ExtraTreesClassifier(
        n_estimators=200, min_samples_leaf=3, max_features=0.4, random_state=0
    )
    seen = features[known], targets[known]
    return replace(score, trees=MovieTrees(boosted.fit(*seen), averaged.fit(*seen)), share=share)


# ---------------------------------------------------------------------- a choice by the score


def prune(regions: Regions, score: Array, per_cell: float, *, sure: Mask | None = None) -> Index:
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
    begin, end, area, pairs = shared.indptr[:-1], shared.indptr[1:], regions.area, regions.pairs
    alike = pairs.iou > _ALIKE
    strong = pairs.shared > 0.3 * np.minimum(area[pairs.row], area[pairs.column])
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
