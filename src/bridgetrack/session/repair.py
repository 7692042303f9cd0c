"""Cells brought along, repaired by the image."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.models.model import Model
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.mask_changes import MaskChange
from bridgetrack.pipeline.repair import repair_masks
from bridgetrack.progress import Steps
from bridgetrack.session.movie import MovieAndCells


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
        told = f"Cells repaired: {told}." if told else "Nothing was changed."
        return f"{told} {self.finding.sentence}" if self.finding.short else told


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

    mended = yield from repair_masks(
        movie.labels, movie.image, keep, model, answers, channel=movie.channel
    )
    finding = Finding(given=movie.labels, gap=mended.gap)
    return Repaired(masks, mended.changes, finding)
