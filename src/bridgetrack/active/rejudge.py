"""Judge random answers by models that have not seen them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bridgetrack.active.learner import Learned, LearnOptions, Start, fit_part
from bridgetrack.pipeline.progress import Steps
from bridgetrack.pipeline.scene import Scene

FOLDS = 5


def rejudge(
    scene: Scene,
    learned: Learned,
    ids: Sequence[str],
    start: Start,
    options: LearnOptions,
    folds: int = FOLDS,
) -> Steps[dict[str, float]]:
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
    dict
        Error by annotation id, 0 to 1.
    """
    model = learned.model
    if model is None:
        return {}
    data = model.data
    wanted = set(ids)
    rows = np.asarray([k for k, i in enumerate(scene.constraints.ids) if i in wanted], dtype=int)
    samples = np.unique(data.annotation_sample[rows])
    if len(data.samples) < 2 or not len(samples):
        return {}
    out: dict[str, float] = {}
    for part in np.array_split(samples, min(folds, len(samples))):
        inside = np.setdiff1d(np.arange(len(data.samples)), part)
        if not len(inside):
            continue
        result = yield from fit_part(model, inside, start, options, learned.state)
        error = np.clip(1.0 - model.satisfied(result.w), 0.0, 1.0)
        for row in rows[np.isin(data.annotation_sample[rows], part)].tolist():
            out[scene.constraints.ids[row]] = float(error[row])
    return out
