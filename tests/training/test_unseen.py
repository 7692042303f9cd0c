"""Answers are judged by models that have not seen them, and rules by the limits they state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.active.options import LearnOptions
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.update import judge_unseen, learn
from bridgetrack.annotations.annotation import RANDOM, UNIFORM
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, run
from bridgetrack.training import fit, train
from bridgetrack.training.components import AnnotatedComponents, build_training_set
from bridgetrack.training.fit import TRANSFER, Movies, cross_validate
from bridgetrack.training.keep import Decision, KeepReason
from bridgetrack.training.options import TrainingOptions, default_strength
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.reach import Reached
from bridgetrack.training.sources import Strategy
from bridgetrack.training.sure import SureEvents, as_seen
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import strategy_steps, tracking_model
from bridgetrack.training.training_set import TrainingSet
from bridgetrack.training.validation import HeldOut, best_strength, clearly_larger, folds_of, judge
from training.training_cases import (
    bad_prior,
    confirmed,
    far_apart,
    plain_scene,
    says,
    some_true,
    swapped,
    with_annotations,
)

SCENE = plain_scene()


@pytest.fixture(scope="module")
def data() -> TrainingSet:
    return build_training_set([confirmed(SCENE, some_true(15))])


class Tell:
    """Replaces training and judging: an answer is wrong where the last model has seen it."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.began: list[np.ndarray | None] = []

    def wrong(self, model: TrackingModel) -> np.ndarray:
        return np.isin(model.data.annotation_sample, list(self.seen)).astype(float)


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tell]:
    """What every model saw of the target."""
    tell = Tell()
    alone, joint = fit.train, fit.train_joint

    def watched(model, samples, *more, **named):  # type: ignore[no-untyped-def]
        tell.seen = {s.x for s in samples}
        tell.began.append(named["initial"])
        return alone(model, samples, *more, **named)

    def watched_joint(domains, *more, **named):  # type: ignore[no-untyped-def]
        tell.seen = {s.x for s in domains[0].samples}
        tell.began.extend(named["initial"])
        return joint(domains, *more, **named)

    monkeypatch.setattr(fit, "train", watched)
    monkeypatch.setattr(fit, "train_joint", watched_joint)
    monkeypatch.setattr(fit, "judge", lambda model, w, rows=None: HeldOut(*[tell.wrong(model)] * 2))
    monkeypatch.setattr(TrackingModel, "satisfied", lambda model, w: 1.0 - tell.wrong(model))
    yield tell


@pytest.mark.parametrize("hold", [0.2, TRANSFER[2]], ids=["alone", "tied"])
def test_cross_validation_judges_what_was_left_out(
    data: TrainingSet, tell: Tell, hold: fit.Hold
) -> None:
    target = TrackingModel(data)
    sources = (TrackingModel(data),) if hold != 0.2 else ()
    movies = Movies(target, sources, bad_prior().weights, None)
    fold = folds_of(data, 3)
    assert fold is not None
    holds = (hold, hold if isinstance(hold, fit.Tie) else hold / 3)
    held_out, _ = run(cross_validate(movies, holds, TrainingOptions(), fold))
    # as the fit that is shipped; not where another lambda, or all answers, had led
    assert tell.began
    for began in tell.began:
        np.testing.assert_array_equal(began, movies.prior)
    assert tell.wrong(target).any(), "the last model has seen some"
    assert not held_out[0].wrong.any()
    assert not held_out[0].loss.any()
    halfway = held_out[0].halfway
    assert (halfway is None) == bool(sources)
    assert halfway is None or not halfway.wrong.any()


def test_sessions_judge_answers_that_were_left_out(tell: Tell) -> None:
    scene, prior = confirmed(SCENE, some_true(15)), bad_prior()
    population = population_of([scene], choices([scene], prior.aligned(scene.matrix.features)))
    learned = run(learn(scene, prior, population, LearnOptions()))
    ids = scene.constraints.ids[:8]
    tell.began.clear()
    found = run(judge_unseen(scene, learned, ids, LearnOptions(), folds=4))
    assert set(found.unseen) == set(ids)
    assert not any(found.unseen.values())
    # weights that have seen an answer do not begin a fit without it
    assert len(tell.began) == 4
    for began in tell.began:
        np.testing.assert_array_equal(began, prior.aligned(scene.matrix.features))


def test_sessions_judge_models_that_go_as_far_as_theirs() -> None:
    scene, prior = confirmed(SCENE, some_true(15)), bad_prior()
    start = prior.aligned(scene.matrix.features)
    learned = run(learn(scene, prior, None, LearnOptions()))
    assert learned.movies is not None
    assert learned.movies.target is not None
    assert learned.reached is not None
    ids = scene.constraints.ids
    nowhere = replace(learned, reached=replace(learned.reached, step=0.0, price=None))
    found = run(judge_unseen(scene, nowhere, ids, LearnOptions()))
    wrong = 1 - learned.movies.target.satisfied(start)
    assert wrong.any()
    assert np.mean(list(found.unseen.values())) == pytest.approx(wrong.mean())
    free = run(judge_unseen(scene, learned, ids, LearnOptions()))
    assert np.mean(list(free.unseen.values())) < wrong.mean()


@pytest.mark.parametrize(
    ("strategy", "count"), [("target", 20), ("union", 20), ("union", 8), ("source", 20)]
)
def test_the_estimate_is_of_models_that_go_as_far_as_the_one_kept(
    strategy: Strategy, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, prior = confirmed(SCENE, some_true(count)), bad_prior()
    start = prior.aligned(scene.matrix.features)
    earlier = [] if strategy == "target" else [confirmed(plain_scene(2), some_true(40, 2))]
    whole = run(strategy_steps(strategy, scene, earlier, prior)).estimate

    def hardly(scenes, start, learned, before, *_, **__):  # type: ignore[no-untyped-def]
        yield Progress("Going", 1.0)
        weights = start + (learned - start) / 1024
        return Reached(weights, choices(scenes, weights), (), 1 / 1024)

    monkeypatch.setattr(train, "within_reach", hardly)
    training = run(strategy_steps(strategy, scene, earlier, prior))
    model = TrackingModel(build_training_set([scene]))
    found, begun = training.estimate, judge(model, start)
    assert training.step < 0.01
    assert whole is not None
    assert found is not None
    right = sum(share for *_, share in found.per_event) / found.n_annotations
    assert right == pytest.approx(1 - begun.error)
    assert right < sum(share for *_, share in whole.per_event) / whole.n_annotations


@pytest.mark.parametrize("learned", [1, 2])
def test_models_that_have_not_seen_answers_are_changed_as_the_one_that_is_kept(
    learned: int, data: TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far on half of the way, and at its prices; one alone has seen no answer of any fold."""
    given: list[tuple[np.ndarray, np.ndarray]] = []
    monkeypatch.setattr(train, "judge_folds", lambda _, w, fold: given.append((w, fold)) or held)
    target, options = TrackingModel(data), TrainingOptions(folds=2)
    rng, start = np.random.default_rng(0), bad_prior().weights
    w, price = rng.normal(size=(learned, len(start))), rng.normal(size=len(start))
    held = HeldOut(*np.zeros((2, data.n_annotations)), learned=w)
    decision = Decision(KeepReason.HALFWAY, "", held, held, 0.5)
    movies = Movies(target, (), start, None)
    reached = Reached(start, [], step=0.25, price=price)
    train._as_kept(target, movies, decision, reached, options)
    ((weights, fold),) = given
    np.testing.assert_allclose(weights, start + (w - start) / 8 + price)
    folds = folds_of(data, 2) if learned == 2 else np.zeros(len(data.samples))
    np.testing.assert_array_equal(fold, folds)
    # not where nothing was changed since, or the learned weights are not known
    unknown = replace(decision, held=replace(held, learned=None))
    for one, there in (
        (decision, replace(reached, step=1.0)),
        (unknown, reached),
        (replace(decision, held=None), reached),
    ):
        assert train._as_kept(target, movies, one, there, options) is None
    assert len(given) == 1
    assert train._as_kept(target, movies, decision, replace(reached, rarer=(Event.FALSE,)), options)


def test_answers_that_were_not_all_drawn_are_told_apart_by_parts(
    data: TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[object, ...]] = []
    monkeypatch.setattr(train, "estimate_accuracy", lambda *args, **named: given.append(args))
    w, n = bad_prior().weights, data.n_annotations
    held = HeldOut(*np.ones((2, n)))
    for drawn in (np.zeros(n), np.arange(n)):
        some = replace(data, drawn=drawn.astype(np.int64))
        train._estimated(TrackingModel(some), held, w, KINDS)
        wrong, event, population, random, part, seen = given[-1]
        assert wrong is held.wrong
        assert (event is data.event, population is KINDS, random) == (True, True, False)
        assert part is some.annotation_sample
        np.testing.assert_array_equal(seen, judge(TrackingModel(data), w).wrong)


@pytest.mark.parametrize(("source", "chances"), [(RANDOM, {2, 3}), (UNIFORM, {1})])
def test_answers_that_were_drawn_are_weighed_by_how_they_were(
    source: str, chances: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    given, estimate = [], train.estimate_accuracy

    def watched(*args, chance=None):  # type: ignore[no-untyped-def]
        given.append((args[3], set(chance.tolist())))
        return estimate(*args, chance=chance)

    monkeypatch.setattr(train, "estimate_accuracy", watched)
    run(strategy_steps("target", confirmed(SCENE, some_true(15), source=source), (), bad_prior()))
    assert given == [(True, chances)]


def test_a_session_that_begins_with_answers_weighs_kinds_as_the_movie_has_them() -> None:
    scene, prior = confirmed(SCENE, some_true(15)), bad_prior()
    population = population_of([scene], choices([SCENE], prior.aligned(scene.matrix.features)))
    assert len(set(population)) > 2
    known = run(learn(scene, prior, population, LearnOptions()))
    said = AnnotationSet(SCENE.detections.geometry, says(SCENE, some_true(15)))
    session = ActiveSession(SCENE, prior, AutosavingStore(None, said.geometry, said))
    first = run(session.update())
    np.testing.assert_array_equal(first.weights, known.weights)
    alike = run(learn(scene, prior, np.zeros(len(Event)), LearnOptions()))
    assert not np.allclose(alike.weights, known.weights)


def paired(errors: float, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Losses whose mean differs by so many standard errors."""
    noise = np.random.default_rng(0).normal(size=n)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    return np.ones(n) + noise + errors / np.sqrt(n), np.ones(n)


def test_lambda_leaves_the_default_at_three_standard_errors() -> None:
    usual = default_strength(400)
    for errors, best in ((2.9, 0), (3.1, 1)):
        held = tuple(HeldOut(np.zeros(400), x) for x in paired(errors, 400))
        assert best_strength((usual, usual / 3), held, np.arange(400)) == best


def test_margins_are_clearly_worse_at_two_standard_errors() -> None:
    """Or at what is as rare where so many parts show their spread: 2.02 for a hundred."""
    assert not clearly_larger(*paired(1.9, 100), np.arange(100))
    assert clearly_larger(*paired(2.1, 100), np.arange(100))


@pytest.mark.parametrize(("parts", "answers"), [(50, 1), (10, 5), (5, 20), (3, 30)])
def test_answers_of_one_part_are_one_piece_of_evidence(parts: int, answers: int) -> None:
    """Two models that are equally good; what a part loses is divided among its answers."""
    rng, part, alarms = np.random.default_rng(1), np.repeat(np.arange(parts), answers), 0
    for _ in range(400):
        difference = rng.normal(size=parts)[part]
        alarms += clearly_larger(difference, np.zeros(len(part)), part)
    assert alarms <= 0.05 * 400
    better = -np.ones(parts) + 0.01 * rng.normal(size=parts)
    assert clearly_larger(np.zeros(len(part)), better[part], part)


def test_two_parts_make_nothing_clear() -> None:
    part = np.repeat([0, 1], 20)
    assert not clearly_larger(np.ones(40), np.zeros(40), part)
    assert clearly_larger(np.ones(40), np.zeros(40), np.append(part[:-1], 2))


def with_slips() -> Scene:
    """Moves of which the first three are slips."""
    said = far_apart(6)
    said[:3] = swapped(SCENE, said[:3], untrained_model().weights)
    return confirmed(SCENE, said)


KINDS = np.array([80.0, 6, 1, 1, 0, 0, 0, 0])


def test_what_is_held_and_weighed_hangs_on_the_answers_that_are_known_alone() -> None:
    w, wrong = untrained_model().weights, far_apart(3)
    right = says(SCENE, np.setdiff1d(some_true(12), wrong))
    said = [*says(SCENE, swapped(SCENE, wrong, w), prefix="slip"), *right]

    def learned(scene: Scene, known: SureEvents | None = None) -> SureEvents:
        data = build_training_set([scene], largest=1)
        _, sure = tracking_model(data, KINDS, w, TrainingOptions(), known=known)
        assert sure is not None
        return sure

    scene = with_annotations(SCENE, said)
    sure, slips = learned(scene), [i.startswith("slip") for i in scene.constraints.ids]
    data = sure.data
    known = np.setdiff1d(np.arange(len(data.samples)), data.annotation_sample[slips])
    seen, inside = as_seen(data, known), np.isin(data.annotation_sample, known)
    ids = {i for i, there in zip(scene.constraints.ids, inside, strict=True) if there}
    # margins are bounds, which hang on what they are found together with
    fewer = learned(with_annotations(SCENE, [a for a in said if a.id in ids]), sure).data
    assert data.sure is not None
    assert seen.sure is not None
    assert fewer.sure is not None
    assert fewer.n_held > 0
    assert not np.array_equal(data.importance[known], fewer.importance)
    np.testing.assert_array_equal(seen.importance[known], fewer.importance)
    np.testing.assert_array_equal(seen.sure[np.isin(seen.column_sample, known)], fewer.sure)
    assert seen.sure_weight == fewer.sure_weight != data.sure_weight
    # others are judged as they were
    others = np.setdiff1d(np.arange(len(data.samples)), known)
    np.testing.assert_array_equal(seen.importance[others], data.importance[others])


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[tuple[set[int], int]]:
    """The samples that every model learns from, and how many events are held there."""
    held: list[tuple[set[int], int]] = []
    calls = fit.train

    def watched(model, samples, *more, **named):  # type: ignore[no-untyped-def]
        held.append(({s.x for s in samples}, model.data.n_held))
        return calls(model, samples, *more, **named)

    monkeypatch.setattr(fit, "train", watched)
    return held


def test_slips_that_are_set_aside_do_not_tell_the_others_what_to_hold(
    held: list[tuple[set[int], int]],
) -> None:
    w = untrained_model().weights
    data = build_training_set([with_slips()], largest=1)
    model, sure = tracking_model(data, KINDS, w, TrainingOptions())
    assert sure is not None
    assert not sure.trusted
    assert model.data.n_held == 0
    slips = set(data.annotation_sample[:3].tolist())
    fold = np.isin(np.arange(len(data.samples)), list(slips)).astype(np.int64)
    movies = Movies(model, (), w, None)
    run(cross_validate(movies, (0.1,), TrainingOptions(), fold))
    assert [n > 0 for _, n in held] == [not seen & slips for seen, _ in held] == [False, True]


def test_nor_do_they_in_sessions(held: list[tuple[set[int], int]]) -> None:
    scene, prior = with_slips(), untrained_model()
    pieces = AnnotatedComponents(scene, largest=1)
    learned = run(learn(scene, prior, KINDS, LearnOptions(), components=pieces))
    run(judge_unseen(scene, learned, scene.constraints.ids, LearnOptions(), folds=2))
    assert [n > 0 for _, n in held] == [False, True, False]


def test_models_that_begin_anew_are_fitted_as_those_that_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From a start that is far off, the calls of an update do not lead there at once."""
    results, calls = [], fit.train

    def watched(*given, **named):  # type: ignore[no-untyped-def]
        result = yield from calls(*given, **named)
        results.append(result)
        return result

    monkeypatch.setattr(fit, "train", watched)
    scene, prior = confirmed(SCENE, some_true(15)), bad_prior()
    options = LearnOptions(strength=1e-4, precision=1e-3)
    learned = run(learn(scene, prior, None, options))
    run(judge_unseen(scene, learned, scene.constraints.ids, options))
    assert max(r.n_inferences for r in results) > options.most_calls
    assert all(r.converged for r in results)
    # an update after an answer goes on from the last, and takes no longer
    more = confirmed(SCENE, some_true(20))
    run(learn(more, bad_prior(), None, replace(options, precision=1e-9), learned))
    assert results[-1].n_inferences == options.most_calls
