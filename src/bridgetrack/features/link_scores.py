"""Scores that another program gave to links between cells, as features of moves and divisions.

The value is the logit of the score, within -4 and 4: a calibrated score is a probability, whose
logit is what it adds to the log-odds of a link, so that the weight 1 takes it at its word; training
finds out what it is worth. A division has the mean of its two links. Where nothing was scored the
value is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import LINK_SCORE, Feature, FeatureSet
from bridgetrack.features.view import EventView
from bridgetrack.hypotheses.events import Event

WEIGHT = 1.0
"""Weight of the value in models that have not learned one."""

_LARGEST = 4.0


@dataclass(frozen=True)
class LinkScores:
    """Scores of links from a cell to one of the next frame.

    Parameters
    ----------
    frame
        Of the earlier cell, shape (n,).
    source, target
        Labels of both cells, shape (n,).
    score
        How probable the link is, 0 to 1, shape (n,).
    name
        Where they came from, for messages.

    Raises
    ------
    InputError
        Where a score is out of range or a link is scored twice.
    """

    frame: Index
    source: Index
    target: Index
    score: Array
    name: str = "the link scores"
    _table: pd.Series = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wrong = ~((self.score >= 0) & (self.score <= 1))
        if wrong.any():
            raise InputError(
                f"{self.name}: the score {self.score[wrong][0]:g} is no probability; scores of "
                "links must lie between 0 and 1 (pass others through a logistic function first)"
            )
        index = pd.MultiIndex.from_arrays([self.frame, self.source, self.target])
        if index.has_duplicates:
            frame, source, target = index[index.duplicated()][0]
            raise InputError(
                f"{self.name}: the link of cell {source} in frame {frame} to cell {target} is "
                "scored twice"
            )
        tiny = 1 / (1 + np.exp(_LARGEST))
        odds = np.clip(self.score, tiny, 1 - tiny)
        object.__setattr__(self, "_table", pd.Series(np.log(odds / (1 - odds)), index))

    def __len__(self) -> int:
        return len(self.score)

    def values(self, detections: Detections, i: Index, j: Index) -> Array:
        """Logits of the links from rows `i` to rows `j`, 0 where unknown, shape of i."""
        frame, label = detections.frame, detections.label
        wanted = pd.MultiIndex.from_arrays([frame[i], label[i], label[j]])
        found = self._table.reindex(wanted).fillna(0.0).to_numpy(dtype=np.float64)
        return np.where(frame[j] == frame[i] + 1, found, 0.0)

    def matched(self, detections: Detections) -> int:
        """How many of the links join cells that are there."""
        cells = pd.MultiIndex.from_arrays([detections.frame, detections.label])
        ends = [
            pd.MultiIndex.from_arrays([self.frame + k, labels]).isin(cells)
            for k, labels in enumerate((self.source, self.target))
        ]
        return int((ends[0] & ends[1]).sum())


def with_link_scores(scores: LinkScores, features: FeatureSet | None = None) -> FeatureSet:
    """A set of features (the built-in ones where None) and the scores of links."""
    made = features or default_features()
    for event, what in (
        (Event.MOVE, "logit of the score that was given to the link"),
        (Event.DIVIDE, "mean logit of the scores that were given to its links"),
    ):
        value = partial(_mean_logit, scores)
        made = made.with_feature(Feature(event, LINK_SCORE, what, "1", value, start=WEIGHT))
    return made


def _mean_logit(scores: LinkScores, v: EventView) -> Array:
    links = v.links if v.fans_out else [(v.source, v.target)]
    return np.mean([scores.values(v.evidence.detections, s, t) for s, t in links], axis=0)
