"""A search for the cells of a movie, whose frames are kept where it is cancelled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.models.model import Model
from bridgetrack.movie import Movie
from bridgetrack.pipeline.finding import Finding
from bridgetrack.progress import Kept, Progress, Steps


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
        finding = yield from self.finding.taught(self.movie, answers, weights)
        left = [t for t in range(self.movie.n_frames) if t not in set(self.done)]
        work = Kept(finding.steps(self.movie, answers, weights, frames=left))
        for step in work:
            if isinstance(step, Progress):
                yield step
            else:
                self.labels[step.frame] = step.labels
                self.done.append(step.frame)
        return self.labels, work.result or finding
