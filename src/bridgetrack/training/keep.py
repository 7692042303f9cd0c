"""Keep the starting or the learned weights, or those halfway, and say why.

All are judged on the same annotations, those that the weights were not learned from, by a paired
test (`paired`). A movie that is alone goes halfway,

    w = (w0 + w_learned) / 2,

unless the annotations set aside speak for one of the ends:

1. The weights halfway are wrong on `LOSES` more, net, than the starting ones: these are kept.
2. The learned weights are right on more than those halfway, and chance alone brings as much in
   `CLEARLY` of cases at most (where the start is far off, half of the way is not enough; answers
   in fewer than four parts of the movie never show as much): these are kept. Where there are enough
   annotations to choose λ by, which says how far to go, they need only be no worse than those
   halfway, and right on more than the starting ones. Where `SEVERAL` or more are lost against the
   starting weights, `EXCESS` times as many have to be gained: learning that is as often wrong as
   right does no good elsewhere.

A tie with the start speaks for neither end, and goes halfway: over development movies that left
less wrong than the end that is more right, with ties to the start
(``docs/evidence/model_choice.md``).

What annotations about doubtful events teach is mostly right in its direction and too large in its
size, and what few of them say of two models is mostly chance: over development movies the mean of
the two errs less on average than either, though not on each (``benchmarks/keep_rule.py``).

Who gives λ has said how far to go: the learned weights are kept, unless they lose as in 2.

Earlier movies are evidence of their own, so what was learned with them is given up only where it
is worse by more than chance (`MISLED`), and a tie keeps it: of six pairs of movies the earlier ones
alone did better than the start on four, and worse on one (``docs/evidence/transfer.md``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bridgetrack.training.fit import HoldChoice, Movies, Tie
from bridgetrack.training.options import HALFWAY
from bridgetrack.training.paired import Comparison, compare
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, Validation, clearly_larger, judge

Array = NDArray[np.float64]
Index = NDArray[np.int64]

CLEARLY = 0.1
"""Chance of the learned weights being right on so many more than those halfway from which on they
are believed to be better."""

LOSES = 2
"""Annotations, net, from which on the weights halfway are given up for the starting ones."""

SEVERAL = 3
"""Annotations lost from which on a gain that is hardly larger is no gain. With fewer there is too
little evidence to say so."""

EXCESS = 1.5
"""How many annotations have to be gained there for every one that is lost."""

MISLED = 0.25
"""Chance from which on what was learned with earlier movies is not believed to be worse."""


class KeepReason(StrEnum):
    """Why the trained weights, the starting weights or those halfway are kept."""

    BETTER = "better where it could be checked"
    HALFWAY = "neither clearly better nor clearly worse where it could be checked"
    AS_GIVEN = "lambda was given, and what comes of it is not clearly worse"
    AS_GOOD = "as good where it could be checked, and earlier movies speak for it"
    BY_CHANCE = "worse by no more than chance, and earlier movies speak for it"
    WORSE = "worse where it could be checked"
    UNCHECKED = "too few annotations to check it"
    NOT_ANNOTATED = "nothing was annotated"
    AGREES = "the annotations agree with the starting model"


@dataclass(frozen=True)
class Decision:
    """Which weights are kept, and why."""

    # reason, words: why, and the same as a sentence without a full stop
    reason: KeepReason
    words: str
    # held, prior: what would be kept of what was learned, and the starting weights, on annotations
    # not learned from; None where they were not compared on such
    held: HeldOut | None = None
    prior: HeldOut | None = None
    # of the way from the starting to the learned weights, what is gone: 0, 1/2 or 1
    share: float = 1.0

    @property
    def kept(self) -> str:
        """``"trained"`` or ``"prior"``."""
        return "trained" if self.share else "prior"

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
    movies: Movies, target: TrackingModel | None, w: Array, choice: HoldChoice
) -> Decision:
    """Keep the best of the starting and the learned weights (d,) on labels they have not seen.

    ``target`` holds the annotations to judge by, None where there are none.
    """
    if target is None:
        return Decision(
            KeepReason.NOT_ANNOTATED,
            "nothing was annotated in this movie: the weights of the earlier movies are taken "
            "over without a check",
        )
    agrees = "the answers agree with the starting model, which is kept"
    if isinstance(choice.hold, Tie):
        return _keep_better_tied(movies, target, w, choice)
    if choice.validation is not None:
        held, prior = choice.validation.held_out[choice.validation.best], choice.validation.prior
        if np.allclose(w, movies.prior):
            return Decision(KeepReason.AGREES, agrees, held, prior, 0.0)
        if choice.by == "user":
            return _compared_as_given(held, prior, target.data.annotation_sample)
        many = len(choice.validation.strengths) > 1
        return compared_alone(held, prior, target.data.annotation_sample, many=many)
    if not judge(target, w).risk < judge(target, movies.prior).risk:
        return Decision(KeepReason.AGREES, agrees, share=0.0)
    unchecked = "there were too few answers to check what was learned on ones that it had not seen"
    if choice.by == "user":
        return Decision(KeepReason.UNCHECKED, f"{unchecked}; it is kept, as lambda was given")
    return Decision(KeepReason.UNCHECKED, f"{unchecked}; the model is {_HALFWAY}", share=HALFWAY)


_HALFWAY = "halfway between the starting model and what was learned"


def hardly_better(found: Comparison) -> bool:
    """Whether several annotations are lost, and not clearly more gained."""
    return found.lost >= SEVERAL and found.gained < EXCESS * found.lost


def compared_alone(held: HeldOut, prior: HeldOut, part: Index, *, many: bool) -> Decision:
    """Keep what lies halfway, or one of the ends where verdicts speak for it.

    Parameters
    ----------
    held, prior
        What the learned weights (with those halfway) and the starting ones do on annotations that
        were set aside.
    part
        Component that each annotation lies in, shape (A,).
    many
        Whether there are enough annotations to choose λ by.

    Returns
    -------
    Decision
        By the rules 1 and 2 of this module.
    """
    halfway = held.halfway
    assert halfway is not None, "a movie that is alone has it judged"
    found, middle = (compare(each.wrong, prior.wrong, part) for each in (held, halfway))
    more = compare(held.wrong, halfway.wrong, part)
    farther = more.net >= 0 if many else more.net > 0 and more.chance <= CLEARLY
    if farther and found.net > 0 and not hardly_better(found):
        words = (
            f"the trained model is better than the starting model ({_rates(held, prior, found)}; "
            f"chance alone brings as much in {100 * found.chance:.0f} % of cases)"
        )
        return Decision(KeepReason.BETTER, words, held, prior)
    rates = _rates(halfway, prior, middle)
    if middle.net <= -LOSES:
        return _start_kept(halfway, prior, rates)
    words = f"the model is {_HALFWAY}, and {_better(middle)} than the starting model ({rates})"
    return Decision(KeepReason.HALFWAY, words, halfway, prior, HALFWAY)


def _compared_as_given(held: HeldOut, prior: HeldOut, part: Index) -> Decision:
    """What was learned with a lambda that somebody gave: it, or the start where it is worse."""
    found = compare(held.wrong, prior.wrong, part)
    rates = _rates(held, prior, found)
    if found.net <= -LOSES:
        return _start_kept(held, prior, rates)
    words = f"the trained model is {_better(found)} than the starting model ({rates})"
    return Decision(KeepReason.AS_GIVEN, words, held, prior)


def _start_kept(held: HeldOut, prior: HeldOut, rates: str) -> Decision:
    """The starting weights, as what would be kept else is clearly worse."""
    words = f"the trained model is worse than the starting model ({rates}), which is kept"
    return Decision(KeepReason.WORSE, words, held, prior, 0.0)


def _better(found: Comparison) -> str:
    """How what is kept compares, where it is not clearly worse."""
    return "better" if found.net > 0 else "no worse" if found.net == 0 else "hardly worse"


def _keep_better_tied(
    movies: Movies, target: TrackingModel, w: Array, choice: HoldChoice
) -> Decision:
    """The same with earlier movies, which are evidence too: clearly better margins decide.

    Where there are too few annotations to hold some out, the earlier movies alone are judged on
    them, and where nothing is learned from the target on all that it has.
    """
    prior = judge(target, movies.prior)
    part = target.data.annotation_sample
    trial = next((t for t in choice.trials if t.tie == choice.hold), None)
    if trial is None:
        w = w if choice.earlier is None else choice.earlier
        held = replace(judge(target, w), learned=w[None])
        few, which = movies.target is not None, "the answers"
        return _compared(held, prior, part, "what the earlier movies say", which, few=few)
    what = "on its own answers alone" if trial.tie.alone else "with the earlier movies"
    return _compared(trial.held_out, prior, part, f"the model trained {what}")


_APART = "the answers set aside"


def _compared(
    held: HeldOut,
    prior: HeldOut,
    part: Index,
    what: str,
    which: str = _APART,
    *,
    few: bool = False,
) -> Decision:
    """What was learned with earlier movies, unless it is worse where it can be checked.

    Where held-out annotations do not clearly tell the two apart what was learned is kept, because
    earlier movies speak for it, unless the margins of the starting weights are clearly better.
    ``few``: on ``which`` annotations that are too few to hold some out; there any loss decides.
    """
    found = compare(held.wrong, prior.wrong, part)
    alike = not clearly_larger(held.loss, prior.loss, part)
    rates = _rates(held, prior, found, which)
    if found.net > 0:
        reason, words = KeepReason.BETTER, "is better than the starting model ({})"
    elif found.net == 0 and alike:
        reason, words = KeepReason.AS_GOOD, "is no worse than the starting model ({})"
    elif not few and alike and found.chance_lost > MISLED:
        reason = KeepReason.BY_CHANCE
        words = (
            "was wrong a little more often than the starting model ({}), no more than chance "
            "explains; it is kept because the earlier movies speak for it"
        )
    else:
        reason, words = KeepReason.WORSE, "is worse than the starting model ({}), which is kept"
    share = 0.0 if reason == KeepReason.WORSE else 1.0
    return Decision(reason, f"{what} {words.format(rates)}", held, prior, share)


def _rates(held: HeldOut, prior: HeldOut, found: Comparison, which: str = _APART) -> str:
    return (
        f"of {which} it has {100 * held.error:.1f} % wrong, the starting model "
        f"{100 * prior.error:.1f} %: {found.gained} gained and {found.lost} lost"
    )
