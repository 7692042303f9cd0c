"""Baseline: random-forest event classifiers whose log-odds enter the same integer program.

One forest per kind of event tells true hypotheses from false ones (000, Table 1.1). Confirmed
events are positives; everything else at the slots they cover is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.scene import Scene

_FLOOR = 0.01


@dataclass(frozen=True)
class Forest:
    """Fitted classifiers."""

    classifiers: tuple[Any, ...]  # one per kind of event; None where all examples were alike
    constants: Array  # log-odds used where there is no classifier, shape (len(Event),)

    def scores(self, scene: Scene) -> Array:
        """Log-odds of every hypothesis of a movie, shape (H,)."""
        out = np.zeros(len(scene.hypotheses))
        for event in Event:
            rows, block = scene.matrix.rows[event], scene.matrix.values(event)
            classifier = self.classifiers[event]
            if classifier is None or not len(rows):
                out[rows] = self.constants[event]
                continue
            share = classifier.predict_proba(block)[:, 1]
            share = np.clip(share, _FLOOR, 1 - _FLOOR)
            out[rows] = np.log(share / (1 - share))
        return out


def _examples(scene: Scene) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hypotheses known to hold and known not to hold."""
    constraints = scene.constraints
    truly = constraints.forced
    slots = np.unique(scene.problem.incidence[truly].indices)
    rivals = np.unique(scene.problem.by_slot[slots].indices)
    falsely = np.union1d(np.setdiff1d(rivals, truly), np.flatnonzero(~constraints.allowed))
    return truly, np.setdiff1d(falsely, truly)


def train_forest(scenes: Scene | Sequence[Scene], seed: int = 0, trees: int = 200) -> Forest:
    """Fit one random forest per kind of event to prepared movies with annotations."""
    from sklearn.ensemble import RandomForestClassifier

    scenes = [scenes] if isinstance(scenes, Scene) else list(scenes)
    examples = [_examples(scene) for scene in scenes]
    if not sum(len(truly) for truly, _ in examples):
        raise InputError("a classifier needs confirmed events; annotate some")
    classifiers: list[Any] = []
    constants = np.zeros(len(Event))
    for event in Event:
        blocks, answers = [], []
        for scene, (truly, falsely) in zip(scenes, examples, strict=True):
            mine = np.concatenate([truly, falsely])
            answer = np.r_[np.ones(len(truly)), np.zeros(len(falsely))]
            here = scene.hypotheses.event[mine] == event
            place = np.searchsorted(scene.matrix.rows[event], mine[here])
            blocks.append(scene.matrix.values(event)[place])
            answers.append(answer[here])
        block, answer = np.concatenate(blocks), np.concatenate(answers)
        share = float((answer.sum() + 0.5) / (len(answer) + 1.0))
        constants[event] = np.log(share / (1 - share))
        if len(np.unique(answer)) < 2:
            classifiers.append(None)
            continue
        forest = RandomForestClassifier(trees, random_state=seed, min_samples_leaf=2)
        classifiers.append(forest.fit(block, answer))
    return Forest(tuple(classifiers), constants)
