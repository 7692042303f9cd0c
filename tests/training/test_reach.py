"""What a few answers taught may not overturn what the starting model is sure of, unasked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from bridgetrack.active import update
from bridgetrack.active.options import LearnOptions
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, run
from bridgetrack.training import reach as module
from bridgetrack.training import train
from bridgetrack.training.components import build_training_set
from bridgetrack.training.keep import Decision, KeepReason
from bridgetrack.training.kinds import ALIKE
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.reach import (
    STEPS,
    UNLIKE,
    Reached,
    brings,
    longest,
    regrets,
    within_reach,
)
from bridgetrack.training.sure import SURE, SureEvents, hold_sure
from bridgetrack.training.train import train_steps
from training.training_cases import (
    bad_prior,
    confirmed,
    far_apart,
    margin_of,
    plain_scene,
    says,
    true_columns,
    with_annotations,
)

START = untrained_model().weights
AWAY = bad_prior().weights
LOOSE = np.array([key in ("appear.bias", "disappear.bias") for key in untrained_model().keys])
BREAKS = START + 3.5 * LOOSE
"""Weights that let some 30 tracks end and begin anew."""


def overturned(scene: Scene, weights: np.ndarray) -> int:
    """Parts that weights overturn although the starting weights are sure of them."""
    before, after = choices([scene], START)[0], choices([scene], weights)[0]
    lost = regrets(scene.problem, scene.matrix.scores(START), before, after)
    return int((lost >= SURE).sum())


def reach(scene: Scene, weights: np.ndarray = AWAY) -> Reached:
    """How far the annotations of the scene let learning go."""
    data = build_training_set([scene])
    sure = hold_sure(data, START)
    return run(within_reach([scene], START, weights, choices([scene], START), sure))


def test_regrets_of_parts_sum_up_to_what_the_choice_loses() -> None:
    scene = plain_scene()
    scores = scene.matrix.scores(START)
    best, other = (solve(scene.problem, scene.matrix.scores(w)).chosen for w in (START, AWAY))
    found = regrets(scene.problem, scores, best, other)
    assert len(found) > 5
    assert found.min() >= -1e-9
    assert found.sum() == pytest.approx(scores @ best - scores @ other)
    assert not len(regrets(scene.problem, scores, best, best))


def test_a_part_is_named_by_what_it_brings() -> None:
    M, E, B, S = Event.MOVE, Event.DISAPPEAR, Event.APPEAR, Event.FALSE
    columns = [(M, 0, 2), (M, 1, 3), (S, 0, 3), (E, 1), (B, 2), (B, 3), (M, 4, 5), (M, 4, 5)]
    event = np.array([kind for kind, *_ in columns], dtype=np.int8)
    problem = Problem(sp.csr_matrix([[float(k in s) for k in range(6)] for _, *s in columns]))

    def names(before: set[int], after: set[int], event: np.ndarray = event) -> list[Event]:
        one, two = (np.isin(np.arange(len(columns)), sorted(k)) for k in (before, after))
        return [Event(kind) for kind in brings(problem, one, two, event)]

    assert names({0, 1, 6}, {2, 3, 4, 7}) == [S, M]
    assert names({2, 3, 4}, {0, 1}) == [M]
    assert names({1}, {3, 5}) == [B]
    assert names({0}, {0}) == []
    swap = np.where(event == S, M, event).astype(np.int8)
    assert names({0, 5}, {2, 4}, swap) == [M]  # some cell begins either way


def test_without_an_answer_that_vouches_nothing_sure_is_overturned() -> None:
    scene = confirmed(plain_scene(), far_apart(3))
    assert overturned(scene, AWAY) > ALIKE
    reached = reach(scene)
    assert 0 < reached.step < 1
    assert reached.weights == pytest.approx(START + reached.step * (AWAY - START))
    assert overturned(scene, reached.weights) == 0
    np.testing.assert_array_equal(reached.chosen[0], choices([scene], reached.weights)[0])
    assert f"in {reached.overturned} places" in reached.notes[0].words
    longer = STEPS[STEPS.index(reached.step) - 1]
    assert overturned(scene, START + longer * (AWAY - START)) > 0


def broken(scene: Scene, count: int) -> np.ndarray:
    """Ends and beginnings in place of so many moves, each in a frame of its own."""
    h, moves = scene.hypotheses, far_apart(count)
    ends = (h.event == Event.DISAPPEAR) & np.isin(h.sources[:, 0], h.sources[moves, 0])
    begins = (h.event == Event.APPEAR) & np.isin(h.targets[:, 0], h.targets[moves, 0])
    return np.flatnonzero(ends | begins)


def test_answers_vouch_for_what_brings_the_same() -> None:
    """Tracks that learning breaks are vouched for by broken tracks, not by specks."""
    scene, some = plain_scene(), 5
    ordinary = np.setdiff1d(true_columns(), far_apart(7))[::9][:12]
    specks = np.flatnonzero(scene.hypotheses.event == Event.FALSE)[:some]
    breaks = confirmed(scene, np.concatenate([broken(scene, some), ordinary]))
    drops = with_annotations(scene, says(scene, specks))
    for said in (breaks, drops):
        assert ALIKE * some > overturned(said, BREAKS) > some
    assert reach(breaks, BREAKS).step == 1
    assert reach(breaks, BREAKS).notes == ()
    assert reach(drops, BREAKS).step < 1


def test_starting_weights_that_are_mostly_wrong_in_a_way_have_no_say_in_it() -> None:
    """Where more answers break tracks than confirm what is sure, any number may break."""
    scene, some = plain_scene(), 2
    against = confirmed(scene, broken(scene, some))
    assert overturned(against, BREAKS) > some * (ALIKE + UNLIKE)
    assert reach(against, BREAKS).step == 1
    divided = np.concatenate([broken(scene, some), far_apart(7)[some:]])
    assert reach(confirmed(scene, divided), BREAKS).step < 1


def test_kinds_that_the_starting_weights_know_too_little_of_are_believed() -> None:
    """What learning overturns of them vouches, too, for half as much of something else."""
    scene = confirmed(plain_scene(), far_apart(3))
    moved = overturned(scene, AWAY)
    before = choices([scene], START)
    said = hold_sure(build_training_set([scene]), START)

    def step(wrong: set[Event]) -> float:
        sure = replace(said, wrong=frozenset(wrong))
        return run(within_reach([scene], START, AWAY, before, sure, priced=False)).step

    (after,) = choices([scene], AWAY)
    kinds = brings(scene.problem, before[0], after, scene.hypotheses.event)
    lost = regrets(scene.problem, scene.matrix.scores(START), before[0], after) >= SURE
    count = Counter(Event(kind) for kind in kinds[lost].tolist())
    assert moved == count.total()
    (one, n), (two, m), *others = count.most_common()
    assert 0 < sum(k for _, k in others) <= UNLIKE * (n + m)
    assert step({one, two}) == 1
    assert m > UNLIKE * n
    assert step({one}) < 1


def test_answers_that_are_probably_slips_vouch_for_nothing() -> None:
    """One broken track among ordinary moves does not let others break, also of another movie."""
    scene = plain_scene()
    ordinary = np.setdiff1d(true_columns(), far_apart(7))[::9][:14]
    scenes = [
        confirmed(scene, ordinary),
        confirmed(scene, np.concatenate([broken(scene, 1), ordinary])),
    ]
    looser = START + 2.4 * LOOSE
    assert 1 < sum(overturned(each, looser) for each in scenes) <= ALIKE
    sure = hold_sure(build_training_set(scenes), START)
    assert [a.events[0].event for a in sure.doubtful(scenes)] == [Event.APPEAR, Event.DISAPPEAR]

    def step(sure: SureEvents) -> float:
        return run(within_reach(scenes, START, looser, choices(scenes, START), sure)).step

    assert step(sure) < 1
    assert step(replace(sure, doubted=())) == 1
    # more than slips explain: it is the starting model that is wrong
    assert step(replace(sure, against=sure.asked // 2)) == 1


M, D, F = Event.MOVE, Event.DIVIDE, Event.FALSE


@pytest.mark.parametrize(
    ("found", "said", "enough"),
    [
        ({}, {}, True),
        ({M: 1}, {}, False),
        ({M: ALIKE}, {M: 1}, True),
        ({M: ALIKE + 1}, {M: 1}, False),
        # where they are many each vouches for more, and two for one of something else
        ({M: 12 * 12 + 6}, {M: 12}, True),
        ({M: 12 * 12 + 7}, {M: 12}, False),
        ({F: 1}, {M: 2}, True),
        ({F: 1}, {M: 1}, False),
        ({F: 1, D: 1}, {M: 3}, False),
        ({F: 1, D: 1}, {M: 4}, True),
        # more than confirm what the starting weights are sure of
        ({M: 1000}, {M: 20}, False),
        ({M: 1000}, {M: 21}, True),
        ({M: 1000, F: 10}, {M: 21}, True),
        ({M: 1000, F: 11}, {M: 21}, False),
    ],
)
def test_what_is_overturned_vouches_for_what_brings_the_same_and_half_of_something_else(
    found: dict[Event, int], said: dict[Event, int], enough: bool
) -> None:
    sure: Any = SimpleNamespace(vouching=20, wrong=frozenset())
    assert module._vouched_for(Counter(found), Counter(said), sure) == enough


def test_what_learning_overturns_of_a_kind_that_is_mostly_wrong_vouches_too() -> None:
    sure: Any = SimpleNamespace(vouching=20, wrong=frozenset({F}))
    for moves, said, enough in ((10, 0, True), (11, 0, False), (11 + ALIKE, 2, True)):
        found = Counter({F: 20, M: moves})
        assert module._vouched_for(found, Counter({M: said} if said else {}), sure) == enough


def test_starting_weights_that_are_sure_of_less_than_half_have_no_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = confirmed(plain_scene(), far_apart(3))
    sure, before = hold_sure(build_training_set([scene]), START), choices([scene], START)
    for share, whole in ((0.49, True), (0.5, False)):
        monkeypatch.setattr(module, "_sure_share", lambda *_, share=share: share)
        reached = run(within_reach([scene], START, AWAY, before, sure, priced=False))
        assert (reached.step == 1) == whole
        assert reached.overturned == overturned(scene, AWAY)


def test_the_share_that_is_sure_is_that_of_the_events_of_all_movies() -> None:
    scenes, weights = [plain_scene(), plain_scene(2)], START
    scores = [scene.matrix.scores(weights) for scene in scenes]
    free = [solve(scene.problem, mine) for scene, mine in zip(scenes, scores, strict=True)]
    margins = [margin_of(s, one.chosen, weights) for s, one in zip(scenes, free, strict=True)]
    expected = (np.concatenate(margins) >= SURE).mean()
    assert 0 < expected < 1
    assert module._sure_share(scenes, scores, free) == expected


def test_other_weights_are_taken_as_far_and_at_the_same_prices() -> None:
    start, learned, price = np.array([1.0, 2]), np.array([5.0, -2]), np.array([0.0, -1])
    reached = Reached(start, [], step=0.25)
    np.testing.assert_array_equal(reached.alike(start, learned), [2, 1])
    np.testing.assert_array_equal(replace(reached, price=price).alike(start, learned), [2, 0])
    assert not reached.as_learned
    assert replace(reached, step=1.0).as_learned
    assert not replace(reached, step=1.0, rarer=(F,)).as_learned


@given(st.sets(st.floats(0.01, 0.99), min_size=1, max_size=20), st.floats(0, 1))
@example(set(STEPS[1:]), 0.3)
def test_the_longest_step_that_is_allowed_is_found_in_few_looks(
    shorter: set[float], most: float
) -> None:
    steps, looks = (1.0, *sorted(shorter, reverse=True)), list[float]()

    def gone(step: float) -> Generator[Progress, None, float]:
        looks.append(step)
        yield Progress("Going", step)
        return step

    found = run(longest(steps, gone, lambda there: there <= most))
    assert found == max((step for step in steps[1:] if step <= most), default=steps[-1])
    assert len(looks) == len(set(looks)) <= len(shorter).bit_length()
    assert len(STEPS) != len(steps) or len(looks) <= 3


def test_training_goes_no_farther(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning that runs away, and is judged well by the answers, is called back."""
    scene = confirmed(plain_scene(), true_columns()[:12])
    found = Decision(KeepReason.UNCHECKED, "was not checked")
    monkeypatch.setattr(train, "keep_better", lambda *_: found)
    real = train._told

    def runs_away(*given: Any) -> Generator[Any, None, Any]:
        return replace((yield from real(*given)), w=AWAY)

    monkeypatch.setattr(train, "_told", runs_away)
    training = run(train_steps(scene, untrained_model()))
    assert training.step < 1
    assert training.model.provenance["step"] == training.step
    assert overturned(scene, training.model.weights) == 0
    assert any("was kept" in note.words for note in training.notes)
    # who gives λ wants the weights that come of it
    asked = run(train_steps(scene, untrained_model(), TrainingOptions(strength=0.1)))
    assert asked.step == 1
    assert asked.model.weights == pytest.approx(AWAY)


@pytest.mark.parametrize(
    ("strength", "earlier", "asked", "priced"),
    [(None, False, True, True), (0.1, False, False, False), (None, True, False, True)],
)
def test_what_earlier_movies_and_a_given_lambda_overturn_is_taken(
    strength: float | None,
    earlier: bool,
    asked: bool,
    priced: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[tuple[Any, ...]] = []

    def watched(scenes, start, learned, before, sure, **named):  # type: ignore[no-untyped-def]
        given.append((learned, sure, named))
        yield Progress("Going", 1.0)
        return Reached(learned, before)

    monkeypatch.setattr(train, "within_reach", watched)
    half = Decision(KeepReason.HALFWAY, "was not checked", share=0.5)
    monkeypatch.setattr(train, "keep_better", lambda *_: half)
    scene, sources = confirmed(plain_scene(), far_apart(5)), []
    if earlier:
        sources = [confirmed(plain_scene(2), true_columns(2)[:5])]
    options = TrainingOptions(strength=strength)
    strategy: Any = "union" if earlier else "target"
    training = run(train.strategy_steps(strategy, scene, sources, bad_prior(), options))
    ((learned, sure, named),) = given
    assert learned == pytest.approx((AWAY + training.result.w) / 2)
    assert not np.allclose(training.result.w, AWAY)
    assert (sure is not None) == asked
    assert named == {"sources": sources, "priced": priced}
    assert training.step == 0.5


def test_sessions_go_no_farther(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session learns is called back alike, and is what it tracks with."""
    scene = confirmed(plain_scene(), true_columns()[:12])
    real = update._fit_part

    def runs_away(*given: Any) -> Generator[Any, None, Any]:
        return replace((yield from real(*given)), w=AWAY)

    monkeypatch.setattr(update, "_fit_part", runs_away)
    prior, kinds = untrained_model(), population_of([scene], choices([scene], START))
    learned = run(update.learn(scene, prior, kinds, LearnOptions()))
    assert overturned(scene, learned.weights) == 0
    assert learned.solution is not None
    assert learned.free is not None
    expected = solve(scene.problem, scene.matrix.scores(START)).chosen
    np.testing.assert_array_equal(learned.free.chosen, expected)
    np.testing.assert_array_equal(learned.solution.chosen, choices([scene], learned.weights)[0])
    again = run(update.learn(scene, prior, kinds, LearnOptions(), learned))
    assert again.free is learned.free
    assert again.weights == pytest.approx(learned.weights)
