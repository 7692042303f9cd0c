"""One frame of labels, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
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
    if raw.dtype.kind == "f":
        if not np.isfinite(raw).all():
            raise InputError(f"{labels.source}, frame {t}: labels contain NaN or infinity")
        if (raw != np.rint(raw)).any():
            raise InputError(
                f"{labels.source}, frame {t}: labels are fractions (is this the image rather "
                "than the segmentation?)"
            )
    if raw.dtype.kind == "u":
        return raw
    whole = raw.astype(np.int64)
    if whole.size and int(whole.min()) < 0:
        raise InputError(
            f"{labels.source}, frame {t}: there are negative labels (smallest {whole.min()}); "
            "0 is background and cells are numbered from 1"
        )
    return whole
