"""Finding the cells of a movie, and repairing them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.models.model import Model
from bridgetrack.movie import Movie
from bridgetrack.pipeline.finding import Finding, repair_masks
from bridgetrack.pipeline.mask_changes import (
    MaskChange,
)
from bridgetrack.progress import Progress, Steps
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
