"""What a movie and the answers about it teach the score of regions.

The starting score knows cells in general. Where somebody has looked at all of some areas and said
that everything there is right, the candidates in them are examples of cells and of what is none as
they are in this movie. Trees fitted to them have the more of a say, the more often the starting
score is wrong there, and none where it is seldom wrong.
Single answers are about errors, which are no fair sample. They tell the least that is wrong in
their frames; where that alone is much, trees are fitted to what was chosen at some places together
with the cells' events, with the answers in its place where there are any, and have up to half of
the say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bridgetrack.regions.outlines import doubt_of_tight
from bridgetrack.regions.regions import Array, Index, Mask, Regions, overlaps
from bridgetrack.regions.score import MOST_ODDS, RegionScore, Targets
from bridgetrack.regions.size import CellSize

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

_ALIKE = 0.6
FEW = 25
"""Fewer cells in areas that were checked are no sample of the movie."""
_ENOUGH = 100
"""Cells in such areas after which the movie's own trees may have all of the say."""
_OFTEN = 0.5
"""Share of wrong ones among what the starting score takes for cells, from which it has no say."""
_OFTEN_OF_FEW = 0.2
"""The same with few examples, beside which trees learn from the movie's own choice."""
_SELDOM = 0.1
"""The same, up to which it has all of the say: the movie's own trees know less than it does."""
_MENDED = 0.05
"""Cells mended for each that was checked, below which the trees have less of a say: where nothing
was to be mended, candidates may look wrong, but the frames around them made that good."""
HALF = 0.5
_SUREST = 0.998
"""More than this, or less than the rest, averaged trees of few examples cannot say."""


@dataclass(frozen=True)
class MovieTrees:
    """Trees learned from the candidates of one movie: boosted ones and averaged ones, by halves.

    Few examples leave open where exactly to split. Boosted trees settle that in one way or another,
    averaged random ones leave it open; together they are right more often than either.

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
    """How likely the candidates of one movie are cells.

    Parameters
    ----------
    start
        The score in general.
    size
        How large cells are in this movie; None where that is not known.
    trees
        What was learned from this movie; None where nothing was.
    share
        How much of a say the trees have, 0 to 1.
    answers
        Ids of the answers about masks that it was learned with.
    """

    start: RegionScore
    size: CellSize | None = None
    trees: MovieTrees | None = None
    share: float = 0.0
    answers: frozenset[str] = frozenset()

    @property
    def own(self) -> float:
        """How far the movie's own examples replace rules made for movies without any, 0 to 1."""
        return max(0.0, (self.share - HALF) / (1 - HALF))

    def log_odds(self, regions: Regions, features: Array) -> Array:
        """Log-odds that each candidate is a cell, shape (R,); features have shape (R, F)."""
        return self.looks(features) - self.doubt(regions.area.astype(np.float64))

    def looks(self, features: Array) -> Array:
        """Log-odds by their features alone, shape (R,)."""
        odds = self.start.log_odds(features) - doubt_of_tight(features)
        if self.trees is not None and len(odds):
            trees = self.trees.log_odds(features)
            # Alone they are so sure of cells that the frames around could no longer decide
            # between one cell and two.
            trees = np.where(trees > 0, (1 - HALF * self.own) * trees, trees)
            odds = (1 - self.share) * odds + self.share * trees
        return odds

    def doubt(self, area: Array) -> Array:
        """What smallness takes off the log-odds of candidates with so many pixels, shape (R,)."""
        return np.zeros(len(area)) if self.size is None else self.size.doubt(area)

    def debris(self, area: Index) -> Mask:
        """Which candidates with so many pixels are no cells in any case, shape (R,)."""
        return np.zeros(len(area), dtype=bool) if self.size is None else self.size.none(area)


def choice_targets(regions: Regions, chosen: Mask) -> Targets:
    """What a choice in one frame says of all candidates, shape (R,).

    1 for those chosen, -1 (nothing) for those much like one of them, else 0.
    """
    shared = overlaps(regions).tocoo()
    alike = shared.data / (regions.area[shared.row] + regions.area[shared.col] - shared.data)
    near = shared.row[chosen[shared.col] & (alike > _ALIKE)]
    target = np.zeros(len(regions), dtype=np.int8)
    target[near] = -1
    target[chosen] = 1
    return target


def share_of(checked: int, mended: int, wrong: float) -> float:
    """How much of a say trees of areas that were checked have; none where the start is right.

    Parameters
    ----------
    checked
        Cells in such areas; fewer than `FEW` are no sample.
    mended
        Cells that were mended.
    wrong
        Share of wrong ones among what is taken for cells there without them.
    """
    often = _OFTEN_OF_FEW if checked < FEW else _OFTEN
    needed = min(1.0, max(0.0, (wrong - _SELDOM) / (often - _SELDOM)))
    missed = min(1.0, mended / (_MENDED * checked)) if checked else 1.0
    return needed * missed * (HALF + HALF * min(1.0, checked / _ENOUGH))


def teach(score: MovieScore, features: Array, targets: Targets, share: float = HALF) -> MovieScore:
    """A score that has learned; where only one kind of candidate is known it stays what it is.

    Parameters
    ----------
    score
        The score to begin with; what it learned before is replaced.
    features
        Of candidates, shape (R, F).
    targets
        1 for cells, 0 for what is none, -1 for what is not known.
    share
        How much of a say the trees shall have.
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
