"""One frame of labels, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.labels import as_labels
from bridgetrack.movie.movie import Movie


def checked_labels(labels: Movie, t: int) -> NDArray[np.integer]:
    """Labels of frame `t` as whole numbers, shape ([Z,] Y, X); unsigned ones as they are stored.

    Raises
    ------
    InputError
        Where labels are negative, NaN or not whole numbers.
    """
    raw = labels.channel_frame(t)
    if raw.dtype.kind == "b":
        raise InputError(
            f"{labels.source}, frame {t}: this is a yes/no mask, not a label image; "
            "number the cells first (for example with scikit-image's measure.label)"
        )
    if raw.dtype.kind == "u" and raw.dtype.itemsize <= 4:
        return raw
    return as_labels(raw, f"{labels.source}, frame {t}")
