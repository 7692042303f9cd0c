"""Whether one model is right more often than another, or only by chance.

Both are judged on the same answers, so only those count on which they differ. Answers about one
part of the movie (a component: events that exclude each other) are right or wrong together, so
parts are drawn, not answers. Let ``d_c`` be what the first model is right on more than the second
in part c. Were there no difference between them, every ``d_c`` could as well have been ``-d_c``:

    chance = P( sum_c s_c |d_c|  >=  sum_c d_c ),    s_c = 1 or -1, each with probability 1/2

This is the exact sign-flip test, one-sided; where no part has more than one answer, it is
McNemar's exact test. It is computed over whole numbers and does not hang on the order of answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_GRAIN = 8
"""Errors count in such parts of an answer: relaxed inference may be torn."""


@dataclass(frozen=True)
class Comparison:
    """How a model compares with another on the same answers."""

    gained: int  # answers that it is right on and the other wrong
    lost: int  # answers that it is wrong on and the other right
    net: float  # answers that it is right on more often
    # chance that a model that is no better gains as much, and that one that is no worse loses
    # as much
    chance: float
    chance_lost: float


def compare(wrong: Array, other: Array, part: Index) -> Comparison:
    """Compare errors (A,) of a model with those of another; ``part`` (A,) is where they belong."""
    more = np.rint(_GRAIN * (other - wrong)).astype(np.int64)
    by_part = np.bincount(part, more).astype(np.int64)
    return Comparison(
        int((more > 0).sum()),
        int((more < 0).sum()),
        float(more.sum()) / _GRAIN,
        sign_flip(by_part),
        sign_flip(-by_part),
    )


def sign_flip(differences: Index) -> float:
    """Chance that whole numbers with random signs sum up to theirs or more."""
    sizes = np.abs(differences[differences != 0])
    # distribution of the sum of those that keep their sign
    share = np.ones(1)
    for size in sizes.tolist():
        grown = np.zeros(len(share) + size)
        grown[: len(share)] += share / 2
        grown[size:] += share / 2
        share = grown
    # sum_c s_c |d_c| = 2 (what keeps its sign) - sum_c |d_c|
    least = int(differences.sum() + sizes.sum()) // 2
    return float(min(share[least:].sum(), 1.0))
