"""Long work on the masks of a movie: finding cells, repairing them, choosing them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.arrays import Index
from bridgetrack.errors import InputError
from bridgetrack.models.model import Model
from bridgetrack.movie import Movie
from bridgetrack.movie.movie import label_frame
from bridgetrack.pipeline.finding import Finding, chosen_as, repair_masks
from bridgetrack.pipeline.mask_changes import (
    MaskChange,
    check_some_left,
    keep_numbers,
    with_outlines_of,
)
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.mend import Mend, MendKind
from bridgetrack.regions.taught import MovieScore
from bridgetrack.session.movie import MovieAndCells


@dataclass
class CellSearch:
    """A search and the frames that it has found so far.

    Parameters
    ----------
    movie, finding
        Where it looks, and how.
    labels
        Cells found, shape (T, [Z,] Y, X); 0 in frames to come.
    done
        Frames found, each after its labels are complete: another thread may read them.
    """

    movie: Movie
    finding: Finding
    labels: NDArray[Any]
    done: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, movie: Movie, finding: Finding, before: CellSearch | None = None) -> CellSearch:
        """A new search, which goes on with one in this movie, where that looked in the same way.

        Masks that are chosen depend on each other through time: their search begins anew.
        """
        if before is not None and not finding.chooses and before.finding == finding:
            done = list(before.done)  # first: its thread may just find another frame
            return cls(movie, finding, before.labels.copy(), done)
        shape = (movie.n_frames, *(movie.geometry.shape or ()))
        return cls(movie, finding, np.zeros(shape, dtype=np.int32))

    @property
    def complete(self) -> bool:
        """Whether all frames are found."""
        return len(self.done) == self.movie.n_frames

    def steps(
        self, answers: MaskAnswers | None, weights: Model
    ) -> Steps[tuple[NDArray[Any], Finding]]:
        """Look at the frames that are left; gives all cells and how they were found."""
        finding = yield from self.finding.taught(self.movie, answers)
        left = [t for t in range(self.movie.n_frames) if t not in set(self.done)]
        for step in finding.steps(self.movie, answers, weights, frames=left):
            if isinstance(step, Progress):
                yield step
            else:
                self.labels[step.frame] = step.labels
                self.done.append(step.frame)
        return self.labels, finding


@dataclass(frozen=True)
class Repaired:
    """Masks after a repair.

    Parameters
    ----------
    labels
        The masks, shape (time, [z,] y, x).
    changes
        What was cut, joined, added and dropped, in order of time.
    finding
        How these masks were found.
    """

    labels: NDArray[np.uint32]
    changes: tuple[MaskChange, ...]
    finding: Finding

    @property
    def words(self) -> str:
        """How many changes of each kind there are."""
        counts = Counter(change.kind.value for change in self.changes)
        told = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
        return f"Cells repaired: {told}." if told else "Nothing was changed."


def repair(
    movie: MovieAndCells, model: Model, answers: MaskAnswers | None = None
) -> Steps[Repaired]:
    """Repair the masks of a movie by its image; they stay where the image does not object.

    Raises
    ------
    InputError
        Where there are no masks, or no image, or no cell would be left.
    """
    if movie.labels is None or movie.image is None:
        raise InputError(
            "to repair cells, both their masks and the movie that they were made from are needed; "
            "choose both layers"
        )
    shape = (movie.labels.n_frames, *(movie.labels.geometry.shape or ()))
    masks = np.zeros(shape, dtype=np.uint32)
    free = iter(masks)

    def keep(frame: NDArray[np.int32]) -> None:
        next(free)[...] = frame

    changes = yield from repair_masks(
        movie.labels, movie.image, keep, model, answers, channel=movie.channel
    )
    return Repaired(masks, changes, Finding(given=movie.labels))


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
    finding = yield from finding.taught(movie.image, answers, channel=channel)
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
