"""Labels brought along, repaired by the image that they were made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.annotations.mask_targets import as_candidates
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.pipeline.mask_candidates import GivenMasks
from bridgetrack.pipeline.mask_changes import (
    MaskChange,
    changes,
    check_some_left,
    with_outlines_of,
)
from bridgetrack.pipeline.masks import segment_by_choice
from bridgetrack.progress import Kept, Progress, Steps
from bridgetrack.spread import Workers


@dataclass(frozen=True)
class MendedMasks:
    """What a repair changed.

    Parameters
    ----------
    changes
        What was cut, joined, added, dropped and outlined anew, in order of time.
    gap
        By how much the score of what was chosen may fall short of the best choice.
    """

    changes: tuple[MaskChange, ...]
    gap: float = 0.0


def repair_masks(
    labels: Movie,
    image: Movie,
    repaired: Callable[[NDArray[np.int32]], Any],
    model: Model,
    answers: MaskAnswers | None = None,
    workers: Workers | None = None,
    *,
    channel: int | str = 0,
    outlines: bool = False,
) -> Steps[MendedMasks]:
    """Repair the masks of a movie; they stay where the image does not object.

    Parameters
    ----------
    labels, image
        The masks, and what they were made from.
    repaired
        Called with the labels of every frame, in order.
    model
        Weights of events.
    answers
        What people said of masks.
    workers
        Who looks for what else may be a cell, and measures it; this process where None. The same
        comes of it.
    channel
        Number or name of the channel that shows the cells.
    outlines
        Whether cells that stay may be outlined anew; else they are drawn as they were given, but
        for those that somebody drew or called right.

    Yields
    ------
    Progress

    Returns
    -------
    MendedMasks
        What was changed, and how far that may be from the best choice.

    Raises
    ------
    InputError
        Where the movies differ in extent, answers exclude each other, or no cell would be left.
    """
    found: list[MaskChange] = []
    had = left = False
    given = GivenMasks(labels=(labels,), answers=answers)
    chosen = Kept(
        segment_by_choice(image, given=given, model=model, channel=channel, workers=workers)
    )
    for step in chosen:
        if isinstance(step, Progress):
            yield step
            continue
        before = label_frame(labels, step.frame)
        masks = step.labels
        if not outlines:
            masks = with_outlines_of(before, masks, _said_right(masks, answers, step.frame))
        repaired(masks)
        found += changes(before, masks, step.frame)
        had, left = had or bool(before.any()), left or bool(masks.any())
    check_some_left(labels, had, left)
    return MendedMasks(tuple(found), chosen.result or 0.0)


def _said_right(masks: NDArray[np.int32], answers: MaskAnswers | None, t: int) -> NDArray[Any]:
    """Labels of the cells of a frame that somebody drew or called right."""
    if answers is None:
        return np.zeros(0, dtype=np.int32)
    said = as_candidates(answers, {t})
    return masks.reshape(-1)[said.pixels[said.starts[:-1]]]
