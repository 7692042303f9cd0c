"""Events that the starting model is sure of are held near annotations."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bridgetrack.active.options import TIGHTER, LearnOptions
from bridgetrack.active.update import learn
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.words import describe
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training import sure as module
from bridgetrack.training.components import build_training_set
from bridgetrack.training.options import TrainingOptions, default_strength
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.sure import SURE, VOUCHED, SureEvents, hold_sure, weight_of
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import TrainingSet
from bridgetrack.training.validation import judge
from partition_problems import brute_force, problem_of, random_covers
from training.training_cases import (
    bad_prior,
    confirmed,
    far_apart,
    margin_of,
    middle_set,
    outputs,
    plain_scene,
    problem_in,
    says,
    set_of,
    some_true,
    swapped,
    true_columns,
    with_annotations,
)

SEEDS = st.integers(0, 2**32 - 1)


def held_of(data: TrainingSet, w: np.ndarray) -> np.ndarray:
    """Which columns are held."""
    found = hold_sure(data, w).data.sure
    assert found is not None
    return found


def believed(rng: np.random.Generator) -> tuple[TrainingSet, np.ndarray]:
    """Samples with an annotation each, and weights that are sure of some of their events."""
    sizes = rng.integers(4, 7, 4).tolist()
    problems = [problem_of(random_covers(rng, n, 10), n) for n in sizes]
    return set_of(rng, problems, 4, 0.1), 6 * rng.normal(size=4)


def test_a_sample_has_another_version_where_it_holds_something_else() -> None:
    data, _ = believed(np.random.default_rng(0))
    less = np.zeros(len(data.phi.indptr) - 1, dtype=bool)
    less[data.cut[[0, 2]]] = True
    more = less.copy()
    more[data.cut[3] - 1] = True  # of the third sample, too
    one, two, heavier = (
        [s.version for s in module._holding(data, sure, vouching).samples]
        for sure, vouching in ((less, 1), (more, 1), (less, 0))
    )
    assert [a == b for a, b in zip(one, two, strict=True)] == [True, True, False, True]
    # what nothing is held in does not depend on the weight
    assert [a == b for a, b in zip(one, heavier, strict=True)] == [False, True, False, True]


def test_a_remark_lists_three_annotations_and_counts_the_rest() -> None:
    data, w = believed(np.random.default_rng(0))
    asked = says(plain_scene(), some_true(4))
    for count, tail in ((1, None), (3, None), (4, " and 1 more")):
        (note,) = SureEvents(data, w).notes(asked[:count])
        assert note.words.endswith(tail or f"{asked[count - 1].id} ({describe(asked[count - 1])})")


def test_the_cases_below_hold_events() -> None:
    held = [held_of(*believed(np.random.default_rng(seed))).any() for seed in range(40)]
    assert sum(held) > 15


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_only_events_with_a_wide_margin_are_held(seed: int) -> None:
    data, w = believed(np.random.default_rng(seed))
    held = held_of(data, w)
    for k in range(4):
        problem, part = problem_in(data, k)
        scores, best = data.phi[part] @ w, brute_force(problem, data.phi[part] @ w)
        for column in np.flatnonzero(held[part]).tolist():
            others = np.ones(problem.n_columns, dtype=bool)
            others[column] = False
            assert best - brute_force(problem, scores, others) >= SURE - 1e-6


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_held_events_agree_with_the_annotations_and_with_each_other(seed: int) -> None:
    data, w = believed(np.random.default_rng(seed))
    held = hold_sure(data, w).data
    assert held.sure is not None
    annotated = np.asarray(data.sets.sum(axis=0)).ravel() > 0
    assert not (held.sure & (annotated | ~data.allowed)).any()
    plain = TrackingModel(data, exact=True).compatible_batch(data.samples, w)
    mine = TrackingModel(held, exact=True).compatible_batch(held.samples, w)
    # the best completion of the annotations holds them already
    np.testing.assert_allclose(mine.bounds, plain.bounds, atol=1e-6)
    np.testing.assert_allclose(mine.losses, 0, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_they_count_as_annotations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data, w = believed(rng)
    data = replace(data, importance=rng.random(4) + 0.5)
    held = hold_sure(data, w).data
    assert held.sure is not None
    model, v = TrackingModel(held, exact=True), rng.normal(size=4)
    up = model.loss_augmented_batch(held.samples, v).bounds
    down = model.compatible_batch(held.samples, v).bounds
    for sample in held.samples:
        k, part = sample.x, model.columns(sample.x)
        rows = data.sets[list(sample.y_star)][:, part]
        values, losses = [], []
        for y in outputs(data, k):
            broken = (held.sure[part] & (y == 0)).sum()
            missed = rows.shape[0] - (rows @ y).sum() + held.sure_weight * broken
            losses.append(data.importance[k] * missed)
            values.append(data.importance[k] * float((data.phi[part] @ v) @ y))
            assert model.task_loss(sample.y_star, y) == pytest.approx(losses[-1])
        value, loss = np.array(values), np.array(losses)
        assert up[k] == pytest.approx((value + loss).max(), abs=1e-6)
        assert down[k] == pytest.approx(value[loss < 1e-9].max(), abs=1e-6)
        single = model.loss_augmented_inference(k, sample.y_star, v)
        assert single.bound == pytest.approx(up[k], abs=1e-6)
        wrong = model.incompatible_inference(k, sample.y_star, v)
        if (loss > 1e-9).any():
            assert wrong is not None
            assert wrong.bound == pytest.approx((value + loss)[loss > 1e-9].max(), abs=1e-5)


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_models_are_judged_without_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data, w = believed(rng)
    held = hold_sure(data, w).data
    v = rng.normal(size=4)
    mine, plain = judge(TrackingModel(held), v), judge(TrackingModel(data), v)
    np.testing.assert_allclose(mine.wrong, plain.wrong, atol=1e-9)
    np.testing.assert_allclose(mine.loss, plain.loss, atol=1e-9)
    assert held.n_annotations == data.n_annotations


def test_nothing_is_held_by_weights_that_know_nothing() -> None:
    assert not held_of(middle_set(np.random.default_rng(0)), np.zeros(6)).any()


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Slots of every problem that is solved from now on."""
    sizes: list[int] = []
    solve = module.solve

    def counting(problem, *rest):  # type: ignore[no-untyped-def]
        sizes.append(problem.n_slots)
        return solve(problem, *rest)

    monkeypatch.setattr(module, "solve", counting)
    return sizes


def test_what_was_found_before_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    w = untrained_model().weights
    true = some_true(12)
    earlier = hold_sure(build_training_set([confirmed(plain_scene(), true[:11])]), w)
    data = build_training_set([confirmed(plain_scene(), true)])
    sizes = counted(monkeypatch)
    fresh = hold_sure(data, w)
    afresh = sum(sizes)
    sizes.clear()
    again = hold_sure(data, w, earlier)
    assert again.data.sure is not None
    assert again.data.sure.any()
    np.testing.assert_array_equal(again.data.sure, fresh.data.sure)
    assert again.data.samples == fresh.data.samples
    assert sum(sizes) < afresh
    sizes.clear()
    hold_sure(data, w, again)
    assert not sizes


def test_what_other_weights_were_sure_of_is_not_used() -> None:
    data = build_training_set([confirmed(plain_scene(), some_true(12))])
    w = untrained_model().weights
    other = hold_sure(data, bad_prior().weights)
    np.testing.assert_array_equal(hold_sure(data, w, other).data.sure, held_of(data, w))
    assert not np.array_equal(other.data.sure, held_of(data, w))


def test_the_size_of_a_sample_counts_what_its_loss_counts() -> None:
    data = build_training_set([confirmed(plain_scene(), some_true(12))])
    held = hold_sure(data, untrained_model().weights).data
    assert held.sure is not None
    sizes = TrackingModel(held).sizes(held.samples)
    assert sizes.sum() == pytest.approx(data.n_annotations + held.n_held * held.sure_weight)


def test_held_events_weigh_what_annotations_vouch_for() -> None:
    assert weight_of(10, 0) == 0
    for held, vouching in ((10, 1), (16, 1), (40, 3)):
        assert weight_of(held, vouching) == 1
    for held, vouching in ((17, 1), (200, 2), (1000, 50)):
        weight = weight_of(held, vouching)
        assert VOUCHED * vouching / held / 2**0.5 < weight <= VOUCHED * vouching / held


def test_slips_explain_what_they_bring_in_one_case_of_twenty() -> None:
    for against in range(6):
        for vouching in range(60):
            chance = binom(against + vouching, module.SLIPS).sf(against - 1)
            assert module.explained_by_slips(against, vouching) == (chance >= 0.05)


def said_of(event: list[int], vouches: list[int]) -> TrainingSet:
    """A training set of which only the kinds of its annotations, and what they say, matter."""
    data, _ = believed(np.random.default_rng(0))
    kinds, said = np.array(event, dtype=np.int8), np.array(vouches, dtype=np.int8)
    return replace(data, event=kinds, vouches=said)


def test_a_kind_contradicts_often_where_three_and_more_than_half_of_its_answers_do() -> None:
    M, D, F = Event.MOVE, Event.DIVIDE, Event.FALSE
    said = {M: (3, 5), D: (3, 6), F: (2, 2), -1: (4, 4)}  # how many contradict, of how many
    kinds = [kind for kind, (_, n) in said.items() for _ in range(n)]
    differ = np.array([k < some for some, n in said.values() for k in range(n)])
    data = said_of([*kinds, F], [0] * (len(kinds) + 1))
    asked = np.ones(len(data.event), dtype=bool)
    asked[-1] = False  # what is not about a sure event does not count
    found = module._often(data, asked, np.append(differ, True))
    often = {kind for kind, there in zip(data.event.tolist(), found, strict=True) if there}
    assert often == {M, -1}


def test_kinds_of_masks_that_mostly_contradict_cost_no_trust() -> None:
    M, F = Event.MOVE, Event.FALSE
    # of moves three contradict and two confirm, of specks three and one; one says neither
    data = said_of([M] * 5 + [F] * 4 + [M], [-1, -1, -1, 1, 1, -1, -1, -1, 1, 0])
    seen = np.ones(10, dtype=bool)
    against, vouching, wrong = module._trust(data, seen)
    assert (against, vouching, wrong.tolist()) == (3, 2, [F])
    seen[5] = False  # then two specks are as many as slips
    against, vouching, wrong = module._trust(data, seen)
    assert (against, vouching, wrong.tolist()) == (5, 3, [])
    seen[:2] = False
    assert module._trust(data, seen)[:2] == (3, 3)


def test_answers_contradict_where_the_starting_model_is_sure_of_something_else() -> None:
    """Two columns for each of four slots; of each slot the first one is best."""
    first = np.arange(0, 8, 2)
    margin = np.full(8, -1.0)
    margin[first] = [1, 5, 5, 1]  # sure of the best ones of the second and of the third slot
    said = np.array([1, 3, 4, 6])  # the first two contradict
    allowed = np.isin(np.arange(8), said)
    data: Any = SimpleNamespace(
        sets=sp.csr_matrix(np.eye(8)[said]),
        incidence=sp.csr_matrix(np.repeat(np.eye(4), 2, axis=0)),
        allowed=allowed,
    )
    asked, differ = module._contradicted(data, margin, SURE)
    np.testing.assert_array_equal(asked, [False, True, True, False])
    np.testing.assert_array_equal(differ, [False, True, False, False])
    asked, differ = module._contradicted(data, margin, 1.0)
    assert asked.all()
    np.testing.assert_array_equal(differ, [True, True, False, False])


def test_what_is_held_weighs_by_the_answers_that_are_known() -> None:
    data = said_of([0, 0, 0, 0], [1, 0, 0, 0])
    count = len(data.column_sample)
    data = replace(data, firm=np.ones(count, dtype=bool))
    whole = module._held(data, np.arange(4))
    assert whole.sure_weight == weight_of(count, 1) < 1
    assert whole.n_held == count
    assert module._held(whole, np.arange(4)) is whole
    first = module._held(whole, np.array([0]))
    assert first.sure_weight == weight_of(int(data.cut[1]), 1) > whole.sure_weight
    assert first.n_held == count
    assert module._held(whole, np.array([1])).n_held == 0


def test_answers_about_other_events_are_no_trust() -> None:
    """Nothing that was said confirms what the starting model is sure of: nothing is held."""
    scene, w = plain_scene(), untrained_model().weights
    moves = far_apart(6)
    said = says(scene, swapped(scene, moves[:1], w))
    found = hold_sure(build_training_set([with_annotations(scene, said)]), w)
    assert (found.asked, found.against, found.vouching) == (1, 1, 0)
    assert found.data.n_held == found.data.held_weight == 0
    told = hold_sure(build_training_set([confirmed(scene, moves)]), w)
    assert told.vouching > 0
    assert told.data.n_held > 0
    assert 0 < told.data.held_weight <= 1


def test_a_model_that_is_sure_and_wrong_is_not_trusted() -> None:
    scene, w = plain_scene(), untrained_model().weights
    moves = far_apart(6, surest=True)
    for slips in range(4):
        said = moves.copy()
        said[:slips] = swapped(scene, moves[:slips], w)
        data = build_training_set([confirmed(scene, said)])
        held = hold_sure(data, w)
        assert held.against == len(held.doubted) == slips
        assert len(moves) - 1 <= held.asked <= len(moves)
        assert held.trusted == (slips < 3), slips
        assert held_of(data, w).any() == (slips < 3), slips
    training = run(train_steps(confirmed(scene, said), untrained_model()))
    assert {a.id for a in training.doubtful} == {"a1", "a2", "a3"}
    assert not training.suited
    told, consequence = training.notes[-2:]
    assert told.words.startswith("3 annotations contradict what the starting model would choose")
    assert all(f"{a.id} (the move of" in told.words for a in training.doubtful)
    assert consequence.words.startswith(f"3 of {held.asked} annotations")


def test_a_kind_that_mostly_contradicts_is_no_slip() -> None:
    scene, w = plain_scene(), untrained_model().weights
    moves = far_apart(6, surest=True)
    said = np.concatenate([swapped(scene, moves[:4], w), moves[4:]])
    held = hold_sure(build_training_set([confirmed(scene, said)]), w)
    assert held.against == 4
    assert held.doubted == ()


def test_what_is_rejected_again_and_again_is_no_slip() -> None:
    """Four answers that leave several events contradict; of moves, six agree."""
    scene, w = plain_scene(), untrained_model().weights
    moves = some_true(30, divisions=0)
    firm = moves[margin_of(scene, moves, w) >= SURE][:10]
    assert len(firm) == 10
    rejected = says(scene, firm[:4], Kind.REJECT, prefix="n")
    said = with_annotations(scene, [*says(scene, firm[4:]), *rejected])
    held = hold_sure(build_training_set([said]), w)
    assert held.against == 4
    assert held.doubted == ()


def test_a_slip_does_not_turn_a_good_model_round() -> None:
    """One wrong answer among three, about a cell that the starting model is sure of."""
    scene, prior = plain_scene(), untrained_model()
    true, few = true_columns(), far_apart(3)
    wrong = swapped(scene, few[:1], prior.weights)
    lied = with_annotations(scene, says(scene, np.concatenate([wrong, few[1:]])))
    right = {}
    for hold in (True, False):
        training = run(train_steps(lied, prior, TrainingOptions(strength=0.1, hold_sure=hold)))
        assert [a.id for a in training.doubtful] == (["a1"] if hold else [])
        chosen = choices([scene], training.result.w)[0]
        right[hold] = float(chosen[true].mean())
    assert choices([scene], prior.weights)[0][true].all()
    assert right[True] > 0.95
    assert right[False] < 0.7


def test_a_session_learns_what_training_learns() -> None:
    scene, prior = confirmed(plain_scene(), some_true(9)), untrained_model()
    training = run(train_steps(scene, prior))
    start = prior.aligned(scene.matrix.features)
    population = population_of([scene], choices([scene], start))
    options = LearnOptions(precision=1e-4, most_calls=300)
    annotated = annotate(scene, scene.anchored.annotations)
    given = replace(options, strength=training.strength)
    learned = run(learn(annotated, prior, population, given))
    assert training.result.w == pytest.approx(learned.weights, abs=1e-3)
    assert training.held > 0
    assert isinstance(learned.sure, SureEvents)
    assert np.linalg.norm(learned.weights - start) > 0.1

    assert options.strength_for(9) == 10 * training.strength == TIGHTER * default_strength(9)
