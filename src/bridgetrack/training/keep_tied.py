"""Keep the better of the prior and the weights learned with earlier movies, and say which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.training.choose_tie import Choice
from bridgetrack.training.keep import clearly_worse
from bridgetrack.training.outcome import Training
from bridgetrack.training.tied import Movies
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, Validation, clearly_larger, judge

Array = NDArray[np.float64]

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
