"""The learners: ways of minimising one convex surrogate, all behind one boundary (003).

    J~(w) = lambda/2 (w - w0)' M (w - w0) + 1/N sum_i max_y [ <phi(x_i, y), w> + Delta_i(y) ]
            + <v, w> + c

CCCP is a short loop around any of them. All leave what they learn about P (bounds, points,
outputs) in the same `Bundle`, so that a later training may go on with another learner.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Protocol

from bridgetrack.errors import InputError
from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.frank_wolfe import FrankWolfe
from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.n_slack import NSlack
from bridgetrack.learning.regularizers import L2, Regularizer
from bridgetrack.learning.subgradient import Subgradient
from bridgetrack.learning.surrogate import Outcome, Step, Surrogate


class Learner(Protocol):
    """Minimises surrogates of one objective, one after the other."""

    def minimise(
        self, surrogate: Surrogate, w: FloatArray, precision: float
    ) -> Generator[Step, None, Outcome]:
        """Minimise to a given duality gap, starting from ``w``.

        Yields
        ------
        Step
            After each inference over all samples.

        Returns
        -------
        Outcome
            The best point, with a true lower bound on the minimum.
        """
        ...

    def forget(self) -> None:
        """Drop everything learned about P (training from scratch)."""
        ...


MADE_BY: dict[str, Callable[[Bundle, L2], Learner]] = {
    "n-slack": NSlack,
    "frank-wolfe": FrankWolfe,
    "subgradient": Subgradient,
}


def learner_for(bundle: Bundle, regularizer: Regularizer) -> Learner:
    """The learner that the options of a bundle name.

    Raises
    ------
    InputError
        If it cannot minimise this objective.
    """
    name = bundle.options.learner
    if name == "bundle":
        return bundle
    if not isinstance(regularizer, L2):
        raise InputError(f"the learner {name!r} needs the l2 regulariser; choose bundle for l1")
    if bundle.risk.literal:
        raise InputError(
            f"the learner {name!r} cannot leave satisfied samples out; choose the treatment "
            "'exact', or the learner bundle"
        )
    return MADE_BY[name](bundle, regularizer)
