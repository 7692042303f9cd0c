"""Keep the better of the prior and the learned weights, and say which."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.training.outcome import Training
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, Validation, judge

Array = NDArray[np.float64]


def keep_better(
    model: TrackingModel,
    prior: Array,
    w: Array,
    strength: float,
    validation: Validation | None,
    settled: Training | None,
) -> tuple[str, str]:
    """Keep the better of the prior and the learned weights on labels they have not seen.

    Where these do not clearly tell the two apart the learned ones are kept, because they have seen
    the movie.
    """
    if validation is None:
        before, after = judge(model, prior), judge(model, w)
        if settled is not None and after.risk < before.risk:
            return "trained", (
                "the trained model was updated; that it is better than the starting model was "
                f"checked by an earlier training, on {_checked(settled)} annotations"
            )
        if after.risk < before.risk:
            return "trained", (
                "there were too few annotations to check the model on ones it had not seen; it "
                "explains the given ones better than the starting model"
            )
        return "prior", "the annotations agree with the starting model, which is kept"
    if np.allclose(w, prior):
        return "prior", "the annotations agree with the starting model, which is kept"
    learned = validation.held_out[validation.strengths.index(strength)]
    before = validation.prior
    seen = f"{_percent(learned)} against {_percent(before)} of held-out annotations wrong"
    if learned.error < before.error - 1e-9:
        return "trained", f"the trained model is better than the starting model ({seen})"
    if learned.error <= before.error + 1e-9:
        return "trained", (
            "the trained model is right on as many held-out annotations as the starting model "
            f"({seen}); it is kept because it has seen this movie"
        )
    if not clearly_worse(learned, before):
        return "trained", (
            f"the trained model was wrong a little more often than the starting model ({seen}), no "
            "more than chance explains; it is kept because it has seen this movie"
        )
    return "prior", f"the trained model was worse than the starting model ({seen})"


def clearly_worse(learned: HeldOut, before: HeldOut) -> bool:
    """Wrong more often by more than a standard error of the paired difference."""
    difference = learned.wrong - before.wrong
    return float(difference.mean()) > float(difference.std(ddof=1)) / np.sqrt(len(difference))


def _checked(settled: Training) -> int:
    """Annotations of the cross-validation that a training rests on."""
    return 0 if settled.validation is None else len(settled.validation.prior.wrong)


def _percent(held: HeldOut) -> str:
    return f"{100 * held.error:.1f} %"


def held_out_of(validation: Validation | None, strength: float, kept: str) -> HeldOut | None:
    if validation is None:
        return None
    if kept == "prior":
        return validation.prior
    return validation.held_out[validation.strengths.index(strength)]
