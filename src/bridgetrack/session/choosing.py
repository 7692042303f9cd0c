"""Masks chosen once more, after answers about some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import label_frame
from bridgetrack.pipeline.finding import chosen_as
from bridgetrack.pipeline.mask_changes import check_some_left, keep_numbers, with_outlines_of
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.mend import Mend, MendKind
from bridgetrack.regions.taught import MovieScore
from bridgetrack.session.movie import MovieAndCells


def chosen_again(
    movie: MovieAndCells,
    answers: MaskAnswers,
    weights: Model,
    named: Mapping[int, int] | None = None,
    learned: MovieScore | None = None,
) -> Steps[tuple[list[Mend], MovieScore | None]]:
    """What changes where the masks of a movie are chosen anew with the answers about them.

    They are chosen as they were found. Masks of another origin stay where neither the image nor
    an answer objects. Cells keep their numbers.

    Parameters
    ----------
    movie
        Image and masks.
    answers
        They hold, and the score of masks learns from them.
    weights
        Of events.
    named
        Highest number by frame that something was said of, so that no new cell takes it.
    learned
        What was learned of these masks last.

    Returns
    -------
    changes, learned
        What changes, frame by frame, and what was learned.

    Raises
    ------
    InputError
        Where there are no masks, or no image, or no cell would be left.
    """
    if movie.labels is None or movie.image is None:
        raise InputError(
            "to choose masks again, both the masks and the movie that they were made from are "
            "needed; choose both layers"
        )
    finding, channel = chosen_as(movie.labels, movie.found), movie.channel
    changes: list[Mend] = []
    had = left = False
    finding = replace(finding, learned=learned or finding.learned)
    finding = yield from finding.taught(movie.image, answers, weights, channel=channel)
    for step in finding.steps(movie.image, answers, weights, channel=channel):
        if isinstance(step, Progress):
            yield step
            continue
        before, masks = label_frame(movie.labels, step.frame), step.labels
        if finding.given is not None:  # what was brought along stays as it was drawn
            masks = with_outlines_of(before, masks)
        had, left = had or bool(before.any()), left or bool(masks.any())
        after = _numbered(before, masks, (named or {}).get(step.frame, 0))
        pixels = np.flatnonzero(before.reshape(-1) != after.reshape(-1))
        if len(pixels):
            old, new = (each.reshape(-1)[pixels].astype(np.int64) for each in (before, after))
            changes.append(Mend(MendKind.PAINT, step.frame, (), pixels, old, new, (), (), ()))
    check_some_left(movie.labels, had, left)
    return changes, finding.learned


def highest_named(answers: MaskAnswers, annotations: Iterable[Annotation]) -> dict[int, int]:
    """The highest number by frame that answers speak of."""
    named = [(a.frame, a.highest) for a in answers]
    named += [(c.frame, c.label) for a in annotations for c in a.cells]
    highest: dict[int, int] = {}
    for frame, label in named:
        highest[frame] = max(label, highest.get(frame, 0))
    return highest


def _numbered(before: NDArray[Any], after: NDArray[np.int32], highest: int) -> NDArray[np.int64]:
    """Numbers as before where cells stay; new ones above all that were ever named."""
    kept = keep_numbers(before, after).astype(np.int64)
    last = int(before.max(initial=0))
    return np.where(kept > last, kept + max(0, highest - last), kept)
