"""The accuracy of the tracking by answers to random questions, and whether to go on asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bridgetrack.active.suggester import places, random_order
from bridgetrack.annotations.annotation import SUGGESTED, Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.estimate import ErrorEstimate, estimate_accuracy

ENOUGH = 20
"""Least number of answers before the advice to stop, and the number of latest ones that it uses."""

ENOUGH_RANDOM = 10
"""Least number of random answers for the estimate of accuracy before the advice to stop."""

ENOUGH_DOUBTFUL = 5
"""Least number of answers about doubtful events for a conclusion."""

WRONG = 0.05
"""Share of wrong ones among doubtful events up to which the advice is to stop."""


def estimate_so_far(
    scene: Scene, have: AnnotationSet, seen: Mapping[str, float], seed: int
) -> ErrorEstimate | None:
    """Share of right events by the valid answers of a scene; None without any.

    The slots at the beginning of the random order, up to the first without an answer, are a random
    sample: they were drawn in advance, whatever the reason for the answers. Slots are drawn one by
    one, so that answers are independent even if errors are clustered. Weighting strata of the
    model's doubt covered the truth less often, because it doubts more than it errs.

    The error at an answer is that of the model that asked, which had not seen it; it is not known
    where nobody could tell, or people answered without being asked. `seen` has the errors of the
    present model, which learned from them, by annotation id.
    """
    listed, owner = scene.anchored.listed, scene.anchored.owner
    slots = places(scene, scene.anchored.events)
    event_at = np.full(len(scene.slots), -1)
    for k, a in enumerate(listed[n] for n in owner.tolist()):
        if a.id in have and (a.kind != Kind.REJECT or a.right is not None):
            event_at[slots[k][slots[k] >= 0]] = k
    drawn: dict[int, int] = {}  # events by their annotation
    for k in event_at[random_order(scene, seed)].tolist():
        if k < 0:
            break
        drawn.setdefault(int(owner[k]), k)
    known = [(listed[n], k) for n, k in drawn.items() if listed[n].right is not None]
    if not known:
        return None
    wrong = np.array([not a.right for a, _ in known], dtype=np.float64)
    width = (slots[[k for _, k in known]] >= 0).sum(axis=1)
    least = np.minimum(wrong, [seen.get(a.id, 1.0) for a, _ in known])
    # an event is met in proportion to the slots that it covers
    return estimate_accuracy(wrong, 1.0 / width, least)


def advice(answers: Sequence[Annotation], estimate: ErrorEstimate | None) -> str:
    """Whether to go on, by the latest answers about doubtful events; without a full stop."""
    doubtful = [a.right for a in answers if a.source == SUGGESTED and a.right is not None]
    recent = doubtful[-ENOUGH:]
    wrong = len(recent) - sum(recent)
    if len(answers) < ENOUGH:
        return "it is too early to stop; keep answering"
    known = estimate and estimate.n_annotations >= ENOUGH_RANDOM and estimate.says_something
    if len(recent) < ENOUGH_DOUBTFUL:
        return "you can stop now" if known else "keep answering until the accuracy is known"
    found = f"{wrong} of the last {len(recent)} doubtful events were wrong"
    if wrong > WRONG * len(recent):
        return f"{found}; keep answering"
    if not known:
        return f"{found}; keep answering until the accuracy is known"
    return f"you can stop now: {found}"
