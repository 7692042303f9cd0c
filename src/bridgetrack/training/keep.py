"""Keep the better of the starting and the learned weights, and say why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bridgetrack.training.fit import HoldChoice, Movies, Tie
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import (
    HeldOut,
    Validation,
    clearly_larger,
    clearly_worse,
    judge,
)

Array = NDArray[np.float64]


class KeepReason(StrEnum):
    """Why the trained or the starting weights are kept."""

    BETTER = "better where it could be checked"
    AS_GOOD = "as good where it could be checked"
    BY_CHANCE = "worse by no more than chance"
    WORSE = "worse where it could be checked"
    UNCHECKED = "too few annotations to check it"
    NOT_ANNOTATED = "nothing was annotated"
    CHECKED_BEFORE = "checked by an earlier training"
    AGREES = "the annotations agree with the starting model"


@dataclass(frozen=True)
class Decision:
    """Which weights are kept, and why."""

    # reason, words: why, and the same as a sentence without a full stop
    reason: KeepReason
    words: str
    # held, prior: what was learned and the starting weights on annotations not learned from; None
    # where they were not compared on such
    held: HeldOut | None = None
    prior: HeldOut | None = None

    @property
    def kept(self) -> str:
        """``"trained"`` or ``"prior"``."""
        return "prior" if self.reason in (KeepReason.WORSE, KeepReason.AGREES) else "trained"

    @property
    def held_out(self) -> HeldOut | None:
        """Of the weights that are kept."""
        return self.held if self.kept == "trained" else self.prior

    def validation(self, strength: float) -> Validation | None:
        """The same as a cross-validation of one strength."""
        if self.held is None or self.prior is None:
            return None
        return Validation((strength,), (self.held,), self.prior)


def keep_better(
    movies: Movies,
    target: TrackingModel | None,
    w: Array,
    choice: HoldChoice,
    checked: int | None = None,
) -> Decision:
    """Keep the better of the starting and the learned weights (d,) on labels they have not seen.

    ``target`` holds the annotations to judge by, None where there are none; ``checked`` is the
    number of annotations in the check of an earlier training that still stands, None without one.
    """
    if target is None:
        return Decision(
            KeepReason.NOT_ANNOTATED,
            "nothing was annotated in this movie: the weights of the earlier movies are taken "
            "over without a check",
        )
    agrees = "the annotations agree with the starting model, which is kept"
    if isinstance(choice.hold, Tie) and checked is None:
        return _keep_better_tied(movies, target, w, choice)
    if choice.validation is not None:
        held = choice.validation.held_out[choice.validation.best]
        if np.allclose(w, movies.prior):
            return Decision(KeepReason.AGREES, agrees, held, choice.validation.prior)
        return _compared(held, choice.validation.prior, "the trained model")
    before, after = judge(target, movies.prior), judge(target, w)
    if not after.risk < before.risk:
        return Decision(KeepReason.AGREES, agrees)
    if checked is not None:
        return Decision(
            KeepReason.CHECKED_BEFORE,
            "the trained model was updated; that it is better than the starting model was checked "
            f"by an earlier training, on {checked} annotations",
        )
    return Decision(
        KeepReason.UNCHECKED,
        "there were too few annotations to check the model on ones it had not seen; it explains "
        "the given ones better than the starting model",
    )


def _keep_better_tied(
    movies: Movies, target: TrackingModel, w: Array, choice: HoldChoice
) -> Decision:
    """The same with earlier movies, which are evidence too: clearly better margins decide.

    Where there are too few annotations to hold some out, the earlier movies alone are judged.
    """
    prior = judge(target, movies.prior)
    trial = next((t for t in choice.trials if t.tie == choice.hold), None)
    if trial is None:
        held = judge(target, w if choice.earlier is None else choice.earlier)
        return _compared(held, prior, "what the earlier movies say", seen=True, by_margin=True)
    what = "on its own annotations alone" if trial.tie.alone else "with the earlier movies"
    return _compared(trial.held_out, prior, f"the model trained {what}", by_margin=True)


def _compared(
    held: HeldOut, prior: HeldOut, what: str, *, seen: bool = False, by_margin: bool = False
) -> Decision:
    """What was learned, unless it is worse where it can be checked.

    Where held-out annotations do not clearly tell the two apart what was learned is kept, because
    it has seen the movie. ``seen``: on annotations that are not held out, too few for chance to be
    told from a difference. ``by_margin``: clearly better margins of the starting weights decide
    where they are as often right.
    """
    which = "these" if seen else "held-out"
    rates = (
        f"{100 * held.error:.1f} % against {100 * prior.error:.1f} % of {which} annotations wrong"
    )
    alike = not by_margin or not clearly_larger(held.loss, prior.loss)
    if held.error < prior.error - 1e-9:
        reason, words = KeepReason.BETTER, "is better than the starting model ({})"
    elif held.error <= prior.error + 1e-9 and alike:
        reason, words = KeepReason.AS_GOOD, "is no worse than the starting model ({})"
        if not seen:
            words = (
                "is right on as many held-out annotations as the starting model ({}); it is kept "
                "because it has seen this movie"
            )
    elif not seen and alike and not clearly_worse(held, prior):
        reason = KeepReason.BY_CHANCE
        words = (
            "was wrong a little more often than the starting model ({}), no more than chance "
            "explains; it is kept because it has seen this movie"
        )
    else:
        reason, words = KeepReason.WORSE, "is worse than the starting model ({}), which is kept"
    return Decision(reason, f"{what} {words.format(rates)}", held, prior)
