"""What was learned with earlier movies is given up where it is clearly worse, not by chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.training import keep
from bridgetrack.training.fit import ALONE, DEFAULT, HoldChoice, Movies, Tie, Trial
from bridgetrack.training.keep import Decision, KeepReason, keep_better
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, judge
from training.training_cases import tiny_set


def target_and_movies() -> tuple[TrackingModel, Movies]:
    """A small movie and a prior that is right about some of it."""
    target = TrackingModel(tiny_set(np.random.default_rng(7), full=True))
    source = TrackingModel(tiny_set(np.random.default_rng(8), full=True))
    prior = min(some_weights(target), key=lambda w: judge(target, w).error)
    return target, Movies(target, (source,), prior, None)


def some_weights(target: TrackingModel) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=target.n_features) for _ in range(40)]


def verdict(more_wrong: float, more_loss: float, tie: Tie = ALONE[0]) -> KeepReason:
    """Why which weights are kept where so much more is wrong, and lost, on held-out annotations."""
    target, movies = target_and_movies()
    judged = judge(target, movies.prior)
    n = len(judged.wrong)
    wrong = judged.wrong.copy()
    changed = np.flatnonzero(wrong < 0.5)[: round(more_wrong * n)]
    wrong[changed] = 1.0
    loss = judged.loss + more_loss * np.linspace(0.9, 1.1, n)
    choice = HoldChoice(tie, "cross-validation", trials=(Trial(tie, HeldOut(wrong, loss)),))
    return keep_better(movies, target, movies.prior, choice).reason


def test_one_held_out_annotation_does_not_decide() -> None:
    target, movies = target_and_movies()
    one = 1.0 / len(judge(target, movies.prior).wrong)
    assert verdict(one, 0.0) == KeepReason.BY_CHANCE


def test_what_chance_explains_in_one_case_of_four_is_given_up() -> None:
    """Two lost, in parts of their own, and none gained."""
    target, movies = target_and_movies()
    part, wrong = target.data.annotation_sample, judge(target, movies.prior).wrong
    right = np.flatnonzero(wrong < 0.5)
    _, first = np.unique(part[right], return_index=True)
    for lost, reason in ((2, KeepReason.WORSE), (1, KeepReason.BY_CHANCE)):
        held = HeldOut(wrong.copy(), judge(target, movies.prior).loss)
        held.wrong[right[first[:lost]]] = 1
        choice = HoldChoice(ALONE[0], "cross-validation", trials=(Trial(ALONE[0], held),))
        assert keep_better(movies, target, movies.prior, choice).reason == reason


@pytest.mark.parametrize(("more_wrong", "more_loss"), [(0.5, 0.0), (0.0, 1.0)])
def test_what_is_clearly_worse_is_given_up(more_wrong: float, more_loss: float) -> None:
    assert verdict(more_wrong, more_loss) == KeepReason.WORSE


def test_too_few_annotations_to_hold_some_out_are_believed() -> None:
    target, movies = target_and_movies()
    worse = max(some_weights(target), key=lambda w: judge(target, w).error)
    assert judge(target, worse).error > judge(target, movies.prior).error
    choice = HoldChoice(ALONE[0], "default", earlier=worse)
    assert keep_better(movies, target, worse, choice).kept == "prior"


def test_one_of_many_answers_does_not_decide_on_movies_that_have_seen_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is learned from the target (strategy source): each of its answers is unseen."""
    target, movies = target_and_movies()
    good = judge(target, movies.prior)
    worse = HeldOut(good.wrong.copy(), good.loss)
    worse.wrong[np.argmin(good.wrong)] = 1
    learned = movies.prior + 1
    monkeypatch.setattr(keep, "judge", lambda _, w: worse if w is learned else good)
    choice = HoldChoice(Tie(1.0, np.inf), "default")
    found = keep_better(replace(movies, target=None), target, learned, choice)
    assert found.reason == KeepReason.BY_CHANCE
    assert "of the answers it has" in found.words
    few = replace(choice, earlier=learned)
    assert keep_better(movies, target, learned, few).reason == KeepReason.WORSE


def test_the_words_say_whether_earlier_movies_took_part() -> None:
    target, movies = target_and_movies()
    held = judge(target, movies.prior)
    for tie, words in (
        (ALONE[0], "on its own answers alone"),
        (DEFAULT, "with the earlier movies"),
    ):
        choice = HoldChoice(tie, "cross-validation", trials=(Trial(tie, held),))
        found = keep_better(movies, target, movies.prior, choice)
        assert found.words.startswith(f"the model trained {words} is no worse")
        assert (found.reason, found.share) == (KeepReason.AS_GOOD, 1.0)


def test_the_estimate_goes_by_the_weights_that_are_kept() -> None:
    learned, start = (HeldOut(np.full(4, share), np.zeros(4)) for share in (0.25, 0.5))
    for reason, share, errors in (
        (KeepReason.BETTER, 1.0, learned),
        (KeepReason.HALFWAY, 0.5, learned),
        (KeepReason.WORSE, 0.0, start),
    ):
        assert Decision(reason, "", learned, start, share).held_out is errors
