"""Keep the better of the starting and the learned weights, and say why.

Both are judged on the same annotations, those that the weights were not learned from, by a paired
test (`paired`). For a movie that is alone the starting weights have the benefit of the doubt:

1. More annotations gained than lost: the learned weights are kept; the words say how likely chance
   alone gains as much. Fewer: the starting weights are.
2. Where `SEVERAL` or more are lost, more has to be gained, `CLEARLY` times as many: learning that
   is as often wrong as right where it differs does no good elsewhere.
3. A tie goes to the starting weights. Only where these contradict `CONTRADICTED` annotations or
   more, and the learned ones fewer, are the learned ones kept: too few annotations to learn such a
   thing from some of them and to see it in the others. A single one may be a slip.

Earlier movies are evidence of their own, so what was learned with them is given up only where it
is worse by more than chance (`MISLED`). ``benchmarks/keep_rule.py`` says how often the rule errs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bridgetrack.training.fit import HoldChoice, Movies, Tie
from bridgetrack.training.paired import Comparison, compare
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, Validation, clearly_larger, judge

Array = NDArray[np.float64]

CONTRADICTED = 2
"""Annotations that the starting weights have to contradict to lose a tie."""

SEVERAL = 3
"""Annotations lost from which on a gain that is hardly larger is no gain. With fewer there is too
little evidence to say so."""

CLEARLY = 1.5
"""How many annotations have to be gained there for every one that is lost."""

MISLED = 0.25
"""Chance from which on what was learned with earlier movies is not believed to be worse."""


class KeepReason(StrEnum):
    """Why the trained or the starting weights are kept."""

    BETTER = "better where it could be checked"
    REPAIRS = "as good where it could be checked, and the starting model is contradicted"
    AS_GOOD = "as good where it could be checked, and earlier movies speak for it"
    BY_CHANCE = "worse by no more than chance, and earlier movies speak for it"
    MIXED = "hardly more gained than lost where it could be checked"
    TIE = "no better where it could be checked"
    WORSE = "worse where it could be checked"
    UNCHECKED = "too few annotations to check it"
    NOT_ANNOTATED = "nothing was annotated"
    CHECKED_BEFORE = "checked by an earlier training"
    AGREES = "the annotations agree with the starting model"


_START = (KeepReason.WORSE, KeepReason.MIXED, KeepReason.TIE, KeepReason.AGREES)


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
        return "prior" if self.reason in _START else "trained"

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
    agrees = "the answers agree with the starting model, which is kept"
    if isinstance(choice.hold, Tie) and checked is None:
        return _keep_better_tied(movies, target, w, choice)
    after = judge(target, w)
    if choice.validation is not None:
        held, prior = choice.validation.held_out[choice.validation.best], choice.validation.prior
        if np.allclose(w, movies.prior):
            return Decision(KeepReason.AGREES, agrees, held, prior)
        part = target.data.annotation_sample
        explains = compare(after.wrong, prior.wrong, part).net > 0
        return _compared_alone(held, prior, compare(held.wrong, prior.wrong, part), explains)
    before = judge(target, movies.prior)
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
        "there were too few answers to check the model on ones it had not seen; it explains "
        "the given ones better than the starting model",
    )


def hardly_better(found: Comparison) -> bool:
    """Whether several annotations are lost, and not clearly more gained."""
    return found.lost >= SEVERAL and found.gained < CLEARLY * found.lost


def _compared_alone(held: HeldOut, prior: HeldOut, found: Comparison, explains: bool) -> Decision:
    """What was learned from one movie, where it is better.

    ``explains``: whether it contradicts fewer of all annotations than the starting weights.
    """
    contradicted = int((prior.wrong > 0.5).sum())
    rates = _rates(held, prior, found)
    if found.net < 0:
        reason = KeepReason.WORSE
        words = f"is worse than the starting model ({rates}), which is kept"
    elif hardly_better(found):
        reason = KeepReason.MIXED
        words = (
            f"is right on hardly more answers than the starting model ({rates}); the starting "
            "model is kept, and your answers hold all the same"
        )
    elif found.net > 0:
        reason = KeepReason.BETTER
        words = (
            f"is better than the starting model ({rates}; chance alone brings as much in "
            f"{100 * found.chance:.0f} % of cases)"
        )
    elif explains and contradicted >= CONTRADICTED:
        reason = KeepReason.REPAIRS
        words = (
            f"is right on as many answers set aside as the starting model ({rates}); it "
            f"is kept because the starting model contradicts {contradicted} answers, and it "
            "fewer"
        )
    else:
        reason = KeepReason.TIE
        words = (
            f"is no better than the starting model ({rates}); the starting model is kept, "
            "and your answers hold all the same"
        )
    return Decision(reason, f"the trained model {words}", held, prior)


def _keep_better_tied(
    movies: Movies, target: TrackingModel, w: Array, choice: HoldChoice
) -> Decision:
    """The same with earlier movies, which are evidence too: clearly better margins decide.

    Where there are too few annotations to hold some out, the earlier movies alone are judged.
    """
    prior = judge(target, movies.prior)
    part = target.data.annotation_sample
    trial = next((t for t in choice.trials if t.tie == choice.hold), None)
    if trial is None:
        held = judge(target, w if choice.earlier is None else choice.earlier)
        found = compare(held.wrong, prior.wrong, part)
        return _compared(held, prior, found, "what the earlier movies say", seen=True)
    what = "on its own answers alone" if trial.tie.alone else "with the earlier movies"
    found = compare(trial.held_out.wrong, prior.wrong, part)
    return _compared(trial.held_out, prior, found, f"the model trained {what}")


def _compared(
    held: HeldOut, prior: HeldOut, found: Comparison, what: str, *, seen: bool = False
) -> Decision:
    """What was learned with earlier movies, unless it is worse where it can be checked.

    Where held-out annotations do not clearly tell the two apart what was learned is kept, because
    earlier movies speak for it, unless the margins of the starting weights are clearly better.
    ``seen``: on annotations too few to hold some out; there any loss decides.
    """
    alike = not clearly_larger(held.loss, prior.loss)
    rates = _rates(held, prior, found, "the answers" if seen else _APART)
    if found.net > 0:
        reason, words = KeepReason.BETTER, "is better than the starting model ({})"
    elif found.net == 0 and alike:
        reason, words = KeepReason.AS_GOOD, "is no worse than the starting model ({})"
    elif not seen and alike and found.chance_lost > MISLED:
        reason = KeepReason.BY_CHANCE
        words = (
            "was wrong a little more often than the starting model ({}), no more than chance "
            "explains; it is kept because the earlier movies speak for it"
        )
    else:
        reason, words = KeepReason.WORSE, "is worse than the starting model ({}), which is kept"
    return Decision(reason, f"{what} {words.format(rates)}", held, prior)


_APART = "the answers set aside"


def _rates(held: HeldOut, prior: HeldOut, found: Comparison, which: str = _APART) -> str:
    return (
        f"of {which} it has {100 * held.error:.1f} % wrong, the starting model "
        f"{100 * prior.error:.1f} %: {found.gained} gained and {found.lost} lost"
    )
