"""The six losses as one: a penalty space, a reward space and a sign of Delta.

``L(w) = | max_{y in Y^P} [f + Delta] - max_{y in Y^R} [f - c Delta] |_+`` with c = 0 or 1
(001, eq. 6, Table 2 and section 5.3).

Because Delta vanishes exactly on Y*, replacing a loss's P-term by ``max(P-term, R-term)``, which
is what ``| |_+`` asks for, gives ``max_{y in Y} [f + Delta]`` for every row of the table. So the
penalty that is minimised is always a plain loss-augmented inference: if its maximiser contradicts
an annotation it is the maximiser over Y°, and otherwise the loss of the sample is zero. As
functions of w the six losses are three (hinge = bridge, ramp = max, ramp-delta = max-delta).
With the treatment ``exact``, the default, the two losses of a pair are the same training; only
``literal``, which applies to bridge, max and max-delta, tells them apart, see `Treatment`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError
from bridgetrack.learning.structured_model import Sample, StructuredModel

Treatment = Literal["exact", "literal"]
"""How a sample without loss (a margin that is already negative) enters the penalty P.

``exact``: with the subgradient of its best compatible output, so that every bound touches P, which
is one convex function. ``literal`` (for losses with the penalty space Y°: max, bridge, max-delta):
the sample is ignored in the subgradient "as in usual SVM" (001, section 4.4): in a bound it
contributes just what R's tangent takes away again. Such bounds are valid but need not touch P, so
that training can stall at a positive gap, which is reported. (Leaving the sample out of P alone,
with its reward still in R, makes ever larger rewards profitable: the surrogate then falls far
below zero until lambda stops it, and the bounds exceed P.)
"""


@dataclass(frozen=True)
class Loss:
    """A row of 001, Table 2, or one of the two losses of section 5.3."""

    name: str  # as there; ramp-delta is the ramp minus Delta of Table 3
    penalty_space: Literal["all", "incompatible"]  # Y^P: Y or Y°
    reward_space: Literal["all", "compatible"]  # Y^R: Y or Y*
    minus_delta: bool = False  # whether Delta is subtracted in the reward term (001, section 5.3)

    @property
    def reward_sign(self) -> Literal[-1, 0]:
        """Factor of Delta in the reward term."""
        return -1 if self.minus_delta else 0


LossName = Literal["hinge", "ramp", "max", "bridge", "ramp-delta", "max-delta"]

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("hinge", "all", "compatible"),
        Loss("ramp", "all", "all"),
        Loss("max", "incompatible", "all"),
        Loss("bridge", "incompatible", "compatible"),
        Loss("ramp-delta", "all", "all", minus_delta=True),
        Loss("max-delta", "incompatible", "all", minus_delta=True),
    )
}


def find_loss(loss: str | Loss) -> Loss:
    """Loss of a name.

    Raises
    ------
    InputError
        If there is no such loss.
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise InputError(f"there is no loss {loss!r}; choose one of {', '.join(LOSSES)}")
    return LOSSES[loss]


def loss_values(
    model: StructuredModel,
    samples: Iterable[Sample],
    w: Array,
    loss: str | Loss,
) -> Array:
    """Loss of each sample by the definition (001, eq. 6), with a real search over Y°.

    Slower than training, which needs no such search; meant for checks and reports. A sample
    without incompatible outputs has no loss.

    Returns
    -------
    ndarray
        Shape (n,), attained values.
    """
    kind, listed = find_loss(loss), list(samples)
    if kind.penalty_space == "all":
        penalty = model.loss_augmented_inference(listed, w)
    else:
        penalty = model.incompatible_inference(listed, w)
    if kind.reward_space == "compatible":
        reward = model.compatible_inference(listed, w)
    elif kind.minus_delta:
        reward = model.loss_augmented_inference(listed, w, -1)
    else:
        reward = model.inference(listed, w)
    above = penalty.values(w, 1) - reward.values(w, kind.reward_sign)
    return np.where(np.isneginf(penalty.bounds), 0.0, np.maximum(above, 0.0))
