"""Which samples learners that look at some samples at a time should ask for together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.model import Sample, StructuredModel

IntArray = NDArray[np.intp]


class BlockModel(Protocol):
    """Optional addition to `StructuredModel`: samples that cost less together."""

    def blocks(self, samples: Sequence[Sample]) -> Sequence[IntArray]:
        """Positions in ``samples``, divided into parts that one inference solves together."""
        ...


def blocks_of(model: StructuredModel, samples: Sequence[Sample]) -> Sequence[IntArray]:
    """The model's blocks, or one sample each."""
    divide = getattr(model, "blocks", None)
    if divide is None:
        return [np.array([i], dtype=np.intp) for i in range(len(samples))]
    return [np.asarray(rows, dtype=np.intp) for rows in divide(samples)]
