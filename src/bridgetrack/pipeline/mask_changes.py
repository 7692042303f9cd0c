"""What changed between two label frames of one movie, and the changes that answers describe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.mask_answers import MaskAnswers, honoured
from bridgetrack.arrays import Index
from bridgetrack.detections.labels import Foreground, foreground
from bridgetrack.errors import InputError
from bridgetrack.movie.movie import EditedFrames, Movie, label_frame
from bridgetrack.regions.mend import MaskAnswer, MendKind

Cells = tuple[int, ...]

_SAME = 0.9
"""Intersection over union from which two regions are taken for the same."""
_MOSTLY = 0.5


class ChangeKind(StrEnum):
    """Kind of a change of given labels."""

    CUT = "cut"
    JOINED = "joined"
    ADDED = "added"
    DROPPED = "dropped"
    OUTLINE = "outline"


@dataclass(frozen=True)
class MaskChange:
    """One difference between two label frames."""

    frame: int  # where
    kind: ChangeKind  # what happened
    # before, after: the labels there before and now
    before: Cells
    after: Cells
    # mean pixel of the labels before, or of those now if there were none, ``([z,] y, x)``
    place: tuple[float, ...]


def keep_numbers(before: NDArray[Any], after: NDArray[np.int32]) -> NDArray[np.int32]:
    """Give cells of a label frame the numbers that they had; new ones get numbers above those.

    A cell keeps its number where most of the old and of the new mask are the same.
    """
    old, new, shared, size_old, size_new = _compare(before, after)
    like = shared / (size_old[old] + size_new[new] - shared)
    same = like > _MOSTLY  # no cell can be so similar to two others
    numbers = np.arange(len(size_new)) + int(before.max(initial=0))
    numbers[0] = 0
    numbers[new[same]] = old[same]
    return np.asarray(numbers[after], dtype=np.int32)


def changes(before: NDArray[Any], after: NDArray[Any], frame: int) -> list[MaskChange]:
    """Cells that were cut, joined, added, dropped or outlined anew between two label frames."""
    old, new, shared, size_old, size_new = _compare(before, after)
    within_old = shared > _MOSTLY * size_new[new]
    within_new = shared > _MOSTLY * size_old[old]
    pieces = _grouped(old[within_old], new[within_old])
    parts = _grouped(new[within_new], old[within_new])
    found: list[tuple[ChangeKind, Cells, Cells]]
    found = [(ChangeKind.CUT, (k,), each) for k, each in pieces.items() if len(each) > 1]
    found += [(ChangeKind.JOINED, each, (k,)) for k, each in parts.items() if len(each) > 1]
    stays = within_old | within_new
    gone = np.setdiff1d(np.flatnonzero(size_old)[1:], old[stays])
    come = np.setdiff1d(np.flatnonzero(size_new)[1:], new[stays])
    found += [(ChangeKind.DROPPED, (k,), ()) for k in gone.tolist()]
    found += [(ChangeKind.ADDED, (), (k,)) for k in come.tolist()]
    named_old = {k for _, labels, _ in found for k in labels}
    named_new = {k for _, _, labels in found for k in labels}
    like = shared / (size_old[old] + size_new[new] - shared)
    other = stays & (like < _SAME)
    for a, b in zip(old[other].tolist(), new[other].tolist(), strict=True):
        if a not in named_old and b not in named_new:
            found.append((ChangeKind.OUTLINE, (a,), (b,)))
    stood, stand = foreground(before), foreground(after)
    return [
        MaskChange(frame, kind, b, a, _middle(stood, b) if b else _middle(stand, a))
        for kind, b, a in found
    ]


def _grouped(owners: Index, labels: Index) -> dict[int, Cells]:
    """The labels of every owner, in order."""
    found: dict[int, Cells] = {}
    for owner, label in sorted(zip(owners.tolist(), labels.tolist(), strict=True)):
        found[owner] = (*found.get(owner, ()), label)
    return found


def with_outlines_of(
    before: NDArray[Any],
    after: NDArray[np.int32],
    sure: Sequence[int] | NDArray[Any] = (),
    *,
    larger: bool = False,
) -> NDArray[np.int32]:
    """The later of two label frames, where cells that stay are drawn as they were.

    Cells stay if most of the old mask is in one new cell, or most of the new one in one old cell,
    and in no other; pixels that another cell has taken stay with that. They have the numbers of
    the later frame. Those of its cells that are `sure`, by their labels, are drawn as there, and
    with `larger` also those that were not larger before.
    """
    old, new, shared, size_old, size_new = _compare(before, after)
    mostly = (shared > _MOSTLY * size_new[new]) | (shared > _MOSTLY * size_old[old])
    old, new = old[mostly], new[mostly]
    stays = (np.bincount(old)[old] == 1) & (np.bincount(new)[new] == 1) & ~np.isin(new, sure)
    if larger:
        stays &= size_old[old] > size_new[new]
    drawn = np.where(np.isin(after, new[stays]), 0, after)
    number = np.zeros(len(size_old), dtype=np.int32)
    number[old[stays]] = new[stays]
    return np.asarray(np.where(drawn == 0, number[before], drawn), dtype=np.int32)


def check_some_left(labels: Movie, had: bool, left: bool) -> None:
    """Refuse a choice of masks that would remove all cells of a movie.

    `had` and `left` say whether any of its frames holds a cell, and would hold one.
    """
    if had and not left:
        raise InputError(
            f"{labels.source}: choosing masks with this image would remove all of its cells, so "
            "they stay as they are; check that it is the image that they were made from, correct "
            "masks by hand, or find the cells again with settings that fit, such as their size"
        )


def _compare(before: NDArray[Any], after: NDArray[Any]) -> tuple[Index, Index, Index, Index, Index]:
    """Pairs of labels that share pixels, how many, and all sizes by label (0 is background)."""
    old, new = before.ravel().astype(np.int64), after.ravel().astype(np.int64)
    size_old, size_new = np.bincount(old, minlength=1), np.bincount(new, minlength=1)
    both = (old > 0) & (new > 0)
    key, shared = np.unique(old[both] * len(size_new) + new[both], return_counts=True)
    size_old[0] = size_new[0] = max(1, int(size_old[0]))
    return key // len(size_new), key % len(size_new), shared, size_old, size_new


def _middle(cells: Foreground, labels: Cells) -> tuple[float, ...]:
    """Mean pixel of some cells of a frame."""
    rows = np.searchsorted(cells.labels, labels)
    middle = np.average(cells.centroid()[rows], axis=0, weights=cells.area()[rows])
    return tuple(middle.tolist())


# ---------------------------------------------------------------------- by answers


Change = tuple[Index, Index]
"""Pixels of a flat frame, and their new labels."""


def changes_again(labels: Movie, answers: MaskAnswers) -> tuple[dict[int, Change], int]:
    """Changes by which masks become those after the answers about them.

    Also returns how many other frames are left, as their masks are neither those before nor after.
    """
    by_frame = _by_frame(answers.past)
    chosen = {a.frame for a in answers.past if a.says_nothing}
    fits = [_made_again(label_frame(labels, t), by_frame[t]) is not None for t in chosen]
    if 2 * sum(fits) < len(fits):  # these are other masks than those that the choice was made from
        by_frame, chosen = _by_frame(answers), set()
    found, lost = dict[int, Change](), 0
    for t, mine in by_frame.items():
        frame = label_frame(labels, t)
        change = _made_again(frame, mine)
        if change is None:
            lost += t in chosen or not honoured(frame, answers, t)
        elif len(change[0]):
            found[t] = change
    return found, lost


def _by_frame(changes: Iterable[MaskAnswer]) -> dict[int, list[MaskAnswer]]:
    """Changes of each frame, in their order."""
    found: dict[int, list[MaskAnswer]] = {}
    for change in changes:
        found.setdefault(change.frame, []).append(change)
    return found


def _made_again(frame: NDArray[np.integer], changes: list[MaskAnswer]) -> Change | None:
    """The rest of some changes in a frame; None if they did not start from it."""
    start = frame.reshape(-1).astype(np.int64)
    led, left = start.copy(), start.copy()
    for pixels, before, after in (change.changed for change in changes):
        if np.array_equal(led[pixels], before):
            led[pixels] = after
        left[pixels] = after
    pixels = np.flatnonzero(left != start)
    return (pixels, left[pixels]) if not len(pixels) or np.array_equal(led, left) else None


def mended(labels: Movie, answers: MaskAnswers) -> Movie:
    """Masks after the answers about them."""
    changes, _ = changes_again(labels, answers)
    if not changes:
        return labels
    edited = EditedFrames(labels)
    for t, (pixels, after) in changes.items():
        edited.write(t, np.unravel_index(pixels, labels.geometry.shape or ()), after)
    return edited.movie


def highest_named(answers: MaskAnswers, annotations: Iterable[Annotation]) -> dict[int, int]:
    """The highest number in answers, by frame."""
    named = [(a.frame, label) for a in answers.past for label in a.labels]
    named += [(c.frame, c.label) for a in annotations for c in a.cells]
    highest: dict[int, int] = {}
    for frame, label in named:
        highest[frame] = max(label, highest.get(frame, 0))
    return highest


def repainted(
    before: NDArray[Any], after: NDArray[np.int32], frame: int, highest: int
) -> list[MaskAnswer]:
    """The change from a label frame to other masks, as one without an answer, if there is any.

    Cells that stay keep their numbers; new ones get numbers above those that were ever named, of
    which `highest` is the highest.
    """
    kept, last = keep_numbers(before, after).astype(np.int64), int(before.max(initial=0))
    flat = np.where(kept > last, kept + max(0, highest - last), kept).reshape(-1)
    pixels = np.flatnonzero(before.reshape(-1) != flat)
    change = pixels, before.reshape(-1)[pixels].astype(np.int64), flat[pixels]
    return [MaskAnswer.of(frame, MendKind.PAINT, change=change)] if len(pixels) else []
