"""Keep the better of the prior and the learned weights, and say which.

Keep the better of the prior and the weights learned with earlier movies, and say which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.training.joint import Choice, Movies
from bridgetrack.training.outcome import Training
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, Validation, clearly_larger, judge

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


EARLIER = "that it is better than the starting model was checked by an earlier training"


@dataclass(frozen=True)
class Verdict:
    """Which weights are kept, and why.

    Parameters
    ----------
    kept, reason
        ``"trained"`` or ``"prior"``, and a sentence.
    held, prior
        What was learned and the prior on annotations not learned from; None where they were not
        compared on such.
    """

    kept: str
    reason: str
    held: HeldOut | None = None
    prior: HeldOut | None = None

    @property
    def held_out(self) -> HeldOut | None:
        """Of the weights that are kept."""
        return self.held if self.kept == "trained" else self.prior

    def validation(self, strength: float) -> Validation | None:
        """The same as a cross-validation of one strength."""
        if self.held is None or self.prior is None:
            return None
        return Validation((strength,), (self.held,), self.prior)


def keep_better_tied(
    movies: Movies,
    target: TrackingModel | None,
    w: Array,
    choice: Choice,
    settled: Training | None,
) -> Verdict:
    """Keep the better of the prior and the weights learned, ``w``, for the target.

    Where there are too few annotations to hold some out, the earlier movies alone are judged.
    """
    if target is None:
        reason = (
            "nothing was annotated in this movie: the weights of the earlier movies are taken "
            "over without a check"
        )
        return Verdict("trained", reason)
    judged = judge(target, movies.prior)
    if settled is not None:
        after = judge(target, w)
        if after.risk < judged.risk:
            return Verdict("trained", f"the trained model was updated; {EARLIER}")
        return Verdict("prior", "the annotations agree with the starting model, which is kept")
    trial = next((t for t in choice.trials if t.tie == choice.tie), None)
    if trial is not None:
        held = trial.held_out
        what = "on its own annotations alone" if choice.tie.alone else "with the earlier movies"
        return _verdict(held, judged, f"the model trained {what}", unseen=True)
    held = judge(target, w if choice.earlier is None else choice.earlier)
    return _verdict(held, judged, "what the earlier movies say", unseen=False)


def _verdict(held: HeldOut, prior: HeldOut, what: str, *, unseen: bool) -> Verdict:
    """What was learned, unless it is worse where it can be checked.

    Where both are wrong about equally often the earlier movies decide, for they are evidence too,
    unless the starting model's margins are clearly better. ``unseen``: on held-out annotations,
    of which there are enough for chance to be told from a difference.
    """
    which = "held-out" if unseen else "these"
    seen = (
        f"{100 * held.error:.1f} % against {100 * prior.error:.1f} % of {which} annotations wrong"
    )
    alike = not clearly_larger(held.loss, prior.loss)
    if held.error < prior.error - 1e-9:
        reason = f"{what} is better than the starting model ({seen})"
        return Verdict("trained", reason, held, prior)
    if held.error <= prior.error + 1e-9 and alike:
        reason = f"{what} is no worse than the starting model ({seen})"
        return Verdict("trained", reason, held, prior)
    if unseen and alike and not clearly_worse(held, prior):
        reason = f"{what} is hardly worse than the starting model ({seen}), no more than by chance"
        return Verdict("trained", reason, held, prior)
    reason = f"{what} is worse than the starting model ({seen}), which is kept"
    return Verdict("prior", reason, held, prior)
