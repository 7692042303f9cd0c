"""Judge random answers by models that have not seen them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bridgetrack.active.learner import Learned, LearnOptions, Start, fit_part
from bridgetrack.pipeline.progress import Steps
from bridgetrack.pipeline.scene import Scene

FOLDS = 5


@dataclass(frozen=True)
class Judged:
    """Errors on answers, 0 to 1, by annotation id.

    Parameters
    ----------
    unseen
        Of models that had not seen the answer. They learned from less than the present model did,
        and so err rather more often than it does.
    seen
        Of the present model, which learned from the answer but is not held to it here: it errs
        rather less often on these answers than elsewhere.
    """

    unseen: Mapping[str, float] = field(default_factory=dict)
    seen: Mapping[str, float] = field(default_factory=dict)


def rejudge(
    scene: Scene,
    learned: Learned,
    ids: Sequence[str],
    start: Start,
    options: LearnOptions,
    folds: int = FOLDS,
) -> Steps[Judged]:
    """Error on some answers, each by a model trained on all answers but those of its fold.

    A fold leaves whole samples (connected components) out, so that nothing leaks.

    Parameters
    ----------
    scene
        With its annotations.
    learned
        The model trained on all of them.
    ids
        Annotations to judge.
    start, options
        As in `learner.learn`.
    folds
        How many models are trained at most.

    Returns
    -------
    Judged
        Empty where there is too little to leave some out.
    """
    model = learned.model
    if model is None:
        return Judged()
    data = model.data
    wanted = set(ids)
    rows = np.asarray([k for k, i in enumerate(scene.constraints.ids) if i in wanted], dtype=int)
    samples = np.unique(data.annotation_sample[rows])
    if len(data.samples) < 2 or not len(samples):
        return Judged()
    out: dict[str, float] = {}
    for part in np.array_split(samples, min(folds, len(samples))):
        inside = np.setdiff1d(np.arange(len(data.samples)), part)
        if not len(inside):
            continue
        result = yield from fit_part(model, inside, start, options, learned.state)
        error = np.clip(1.0 - model.satisfied(result.w), 0.0, 1.0)
        for row in rows[np.isin(data.annotation_sample[rows], part)].tolist():
            out[scene.constraints.ids[row]] = float(error[row])
    present = np.clip(1.0 - model.satisfied(learned.weights), 0.0, 1.0)
    return Judged(out, {scene.constraints.ids[row]: float(present[row]) for row in rows.tolist()})
