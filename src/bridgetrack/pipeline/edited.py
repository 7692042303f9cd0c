"""Masks with the changes that answers describe, and chosen anew by what answers say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.mask_answers import MaskAnswer, MaskAnswers
from bridgetrack.annotations.mask_targets import honoured
from bridgetrack.arrays import Index
from bridgetrack.detections.labels import checked_labels
from bridgetrack.models.model import Model
from bridgetrack.movie.frames import EditedFrames
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.pipeline.finding import Finding, MaskJob
from bridgetrack.pipeline.mask_changes import check_some_left, keep_numbers
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.mend import Mend, MendKind
from bridgetrack.regions.taught import MovieScore

Changes = dict[int, tuple[Index, Index]]
"""Pixels of flat frames and their new labels, by frame."""


def changes_again(labels: Movie, answers: MaskAnswers, anew: bool = False) -> tuple[Changes, int]:
    """What is to be changed in masks so that they are as answers left them.

    Parameters
    ----------
    labels
        The masks, changed or not.
    answers
        What was said of them.
    anew
        Whether they may have been found once more, which makes others of them.

    Returns
    -------
    changes, lost
        The changes, and in how many other frames the masks are neither those before nor what
        the answers say; these stay as they are.
    """
    by_frame = _by_frame(answers.past)
    chosen = {a.frame for a in answers.past if a.says_nothing}
    fits = [_led(checked_labels(labels, t), by_frame[t]) for t in chosen]
    others = 2 * sum(fits) < len(fits)  # these are other masks than those chosen from
    if others:
        by_frame = _by_frame(answers)
    found: Changes = {}
    lost = len(chosen) if others and not anew else 0
    for t, mine in by_frame.items():
        frame, (pixels, _, after) = checked_labels(labels, t), _composed(mine)
        if np.array_equal(frame.reshape(-1)[pixels], after):
            continue
        if _led(frame, mine):
            found[t] = pixels, after
        elif not (others and t in chosen):
            lost += t in chosen or not honoured(frame, answers, t)
    return found, lost


def mended(labels: Movie, answers: MaskAnswers) -> Movie:
    """Masks as the answers about them left them."""
    changes, _ = changes_again(labels, answers)
    if not changes:
        return labels
    edited = EditedFrames(labels)
    for t, (pixels, after) in changes.items():
        edited.write(t, np.unravel_index(pixels, labels.geometry.shape or ()), after)
    return edited.movie


def _led(frame: NDArray[np.integer], changes: list[MaskAnswer]) -> bool:
    """Whether changes led from the masks of a frame to what they say."""
    pixels, before, after = _composed(changes)
    there = frame.reshape(-1).copy()
    if np.array_equal(there[pixels], before):
        return True
    for mend in (a.mend for a in changes):
        if mend.fits(there):
            there[mend.pixels] = mend.after
    return np.array_equal(there[pixels], after)


def _composed(answers: list[MaskAnswer]) -> tuple[Index, Index, Index]:
    """Pixels that some answers changed, with their first label before and last one after."""
    changes = [a.mend for a in answers]
    pixels = np.concatenate([m.pixels for m in changes])
    before = np.concatenate([m.before for m in changes])
    after = np.concatenate([m.after for m in changes])
    known, first = np.unique(pixels, return_index=True)
    last = len(pixels) - 1 - np.unique(pixels[::-1], return_index=True)[1]
    return known, before[first], after[last]


def _by_frame(changes: Iterable[MaskAnswer]) -> dict[int, list[MaskAnswer]]:
    """Changes of each frame, in their order."""
    found: dict[int, list[MaskAnswer]] = {}
    for change in changes:
        found.setdefault(change.frame, []).append(change)
    return found


def chosen_again(
    labels: Movie,
    image: Movie,
    finding: Finding,
    answers: MaskAnswers,
    named: dict[int, int],
    weights: Model,
    channel: int = 0,
) -> Steps[tuple[list[Mend], MovieScore | None]]:
    """What changes where masks are chosen anew, frame by frame, and what was learned.

    Cells keep their numbers; no new one takes a number up to the highest `named` in its frame.
    """
    changes: list[Mend] = []
    had = left = False
    job = yield from MaskJob.of(finding, image, answers, channel=channel)
    for step in job.frames(weights):
        if isinstance(step, Progress):
            yield step
            continue
        before, masks = label_frame(labels, step.frame), step.labels
        had, left = had or bool(before.any()), left or bool(masks.any())
        after = _numbered(before, masks, named.get(step.frame, 0))
        pixels = np.flatnonzero(before.reshape(-1) != after.reshape(-1))
        if len(pixels):
            old, new = (each.reshape(-1)[pixels].astype(np.int64) for each in (before, after))
            changes.append(Mend(MendKind.PAINT, step.frame, (), pixels, old, new, (), (), ()))
    check_some_left(labels, had, left)
    return changes, job.finding.learned


def highest_named(answers: MaskAnswers, annotations: Iterable[Annotation]) -> dict[int, int]:
    """The highest number by frame that answers speak of."""
    named = [(a.frame, a.highest) for a in answers.past]
    named += [(c.frame, c.label) for a in annotations for c in a.cells]
    highest: dict[int, int] = {}
    for frame, label in named:
        highest[frame] = max(label, highest.get(frame, 0))
    return highest


def _numbered(before: NDArray[Any], after: NDArray[np.int32], highest: int) -> Index:
    """Numbers as before where cells stay; new ones above all that were ever named."""
    kept = keep_numbers(before, after).astype(np.int64)
    last = int(before.max(initial=0))
    return np.where(kept > last, kept + max(0, highest - last), kept)
