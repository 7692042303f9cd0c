"""Everything that the outputs of a training set are compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.training.training_set import TrainingSet


@dataclass(frozen=True)
class Constrained:
    """The sets of all annotations, and after them those of the events that are held.

    Parameters
    ----------
    sets
        Rows x columns, 1 where a column satisfies the row, shape (R, H).
    sample
        Sample of every row, shape (R,).
    allowed
        Columns that some compatible output may choose, shape (H,).
    """

    sets: sp.csr_matrix
    sample: NDArray[np.int64]
    allowed: NDArray[np.bool_]


def constrained(data: TrainingSet) -> Constrained:
    """Put events that are held below the annotations of a training set."""
    if data.sure is None or not data.sure.any():
        return Constrained(data.sets, data.annotation_sample, data.allowed)
    held = np.flatnonzero(data.sure)
    rows = sp.csr_matrix(
        (np.ones(len(held)), (np.arange(len(held)), held)), shape=(len(held), len(data.sure))
    )
    covered = np.asarray(data.incidence[held].sum(axis=0)).ravel()
    rivals = np.asarray(data.incidence @ covered) > 0
    return Constrained(
        sp.csr_matrix(sp.vstack([data.sets, rows])),
        np.concatenate([data.annotation_sample, data.column_sample[held]]),
        np.asarray(data.allowed & (data.sure | ~rivals)),
    )
