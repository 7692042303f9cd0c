"""Cells brought along, repaired by the image; every change listed, and taken back on demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.mask_changes import MaskChange
from bridgetrack.pipeline.repair import repair_masks
from bridgetrack.progress import Steps
from bridgetrack.regions.mend import Mend, MendKind
from bridgetrack.session.movie import MovieAndCells


@dataclass(frozen=True)
class Repaired:
    """Masks after a repair.

    Parameters
    ----------
    given
        The movie with its masks before.
    labels
        The masks after, shape (time, [z,] y, x).
    changes
        What was cut, joined, added, dropped and outlined anew, in order of time.
    gap
        By how much the score of what was chosen may fall short of the best choice.
    """

    given: MovieAndCells
    labels: NDArray[np.uint32]
    changes: tuple[MaskChange, ...]
    gap: float = 0.0

    @property
    def finding(self) -> Finding:
        """How these masks were found."""
        return Finding(given=self.given.labels, gap=self.gap)

    def all_back(self, changes: Iterable[MaskChange], present: Movie) -> dict[MaskChange, Mend]:
        """What takes several changes back, one after the other, those that can be.

        Parameters
        ----------
        changes
            Some of `changes`.
        present
            The masks as they are now.

        Raises
        ------
        InputError
            Where none can be, since their cells are not there any more.
        """
        frames: dict[int, NDArray[Any]] = {}
        found: dict[MaskChange, Mend] = {}
        problem: InputError | None = None
        for change in changes:
            t = change.frame
            frame = frames[t] if t in frames else label_frame(present, t)
            try:
                mend = self.back(change, frame)
            except InputError as error:
                problem = error
                continue
            frames[t] = mend.applied(frame)
            found[change] = mend
        if problem is not None and not found:
            raise problem
        return found

    def back(self, change: MaskChange, present: NDArray[Any]) -> Mend:
        """What takes one change back: the masks there are as they were given.

        Parameters
        ----------
        change
            One of `changes`.
        present
            Labels of its frame as they are now.

        Raises
        ------
        InputError
            Where its cells are not there any more.
        """
        assert self.given.labels is not None
        t, gone = change.frame, np.isin(present, change.after) & (present > 0)
        if change.after and not gone.any():
            raise InputError(f"frame {t}: these masks have changed since; paint what is wrong")
        old = label_frame(self.given.labels, t)
        free = gone | (present == 0)
        after = np.where(gone, 0, present.astype(np.int64))
        restored = np.isin(old, change.before) & free
        after[restored] = old[restored]
        flat, before = after.reshape(-1), present.reshape(-1).astype(np.int64)
        pixels = np.flatnonzero(flat != before)
        right = tuple(np.flatnonzero(flat == k) for k in change.before)
        wrong = tuple(np.flatnonzero(before == k) for k in change.after)
        return Mend(
            MendKind.PAINT, t, (), pixels, before[pixels], flat[pixels], change.before,
            tuple(p for p in right if len(p)), tuple(p for p in wrong if len(p)),
        )  # fmt: skip


def repair(
    movie: MovieAndCells,
    model: Model,
    answers: MaskAnswers | None = None,
    *,
    outlines: bool = False,
) -> Steps[Repaired]:
    """Repair the masks of a movie by its image; they stay where the image does not object.

    With `outlines` cells that stay may be outlined anew as well.

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

    mended = yield from repair_masks(
        movie.labels,
        movie.image,
        keep,
        model,
        answers,
        channel=movie.channel,
        outlines=outlines,
    )
    return Repaired(movie, masks, mended.changes, mended.gap)
