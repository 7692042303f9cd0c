"""What the learners that look at one block of samples at a time have in common (003)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bridgetrack.learning.block_dual import BlockDual
from bridgetrack.learning.blocks import IntArray, blocks_of
from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.regularizers import L2


class BlockLearner:
    """Blocks in random order, and the dual that they add to.

    Parameters
    ----------
    bundle
        Evaluates P, and keeps what is learned of it.
    regularizer
        lambda, w0 and M.
    seed
        Of the order of samples.
    """

    def __init__(self, bundle: Bundle, regularizer: L2, seed: int = 0) -> None:
        self.bundle = bundle
        self.regularizer = regularizer
        self._rng = np.random.default_rng(seed)
        self._blocks: Sequence[IntArray] = blocks_of(bundle.risk.model, bundle.risk.samples)
        self._dual: BlockDual | None = None

    def forget(self) -> None:
        """Drop everything learned about P."""
        self.bundle.forget()
        self._dual = None

    def _shuffled(self) -> Iterator[IntArray]:
        """All blocks, in random order."""
        for number in self._rng.permutation(len(self._blocks)):
            yield self._blocks[int(number)]
