"""What an update learns from, and by which models answers are judged; without training anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bridgetrack.active import update
from bridgetrack.active.options import LearnOptions
from bridgetrack.active.update import LearnedWeights, judge_unseen
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import run
from bridgetrack.training.components import build_training_set
from bridgetrack.training.fit import Movies
from bridgetrack.training.tracking_model import TrackingModel
from training.training_cases import bad_prior, confirmed, far_apart, plain_scene, some_true

GOOD, BAD = untrained_model().weights, bad_prior().weights


def answered() -> tuple[Scene, Movies]:
    """A movie with fifteen answers, and what is learned from: each frame pair is a sample."""
    scene = confirmed(plain_scene(), some_true(15))
    return scene, Movies(TrackingModel(build_training_set([scene], largest=1)), (), BAD, None)


def errors(movies: Movies, w: np.ndarray) -> np.ndarray:
    assert movies.target is not None
    return np.clip(1 - movies.target.satisfied(w), 0, 1)


@pytest.mark.parametrize("folds", [2, 3, 50])
def test_every_answer_is_judged_by_the_model_that_left_it_out(
    folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, movies = answered()
    assert movies.target is not None
    of, given = movies.target.data.annotation_sample, list[tuple[np.ndarray, np.ndarray]]()

    def stub(seen: Movies, rows: np.ndarray, *_: Any, **named: Any) -> Any:
        assert named == {"anew": True}
        assert seen.target is not movies.target, "what the answers of others tell is left out"
        yield from ()
        given.append((rows, BAD if len(given) % 2 else GOOD))
        return SimpleNamespace(w=given[-1][1])

    monkeypatch.setattr(update, "_fit_part", stub)
    learned = LearnedWeights(GOOD, None, movies)
    ids = scene.constraints.ids[:9]
    found = run(judge_unseen(scene, learned, ids, LearnOptions(), folds))
    asked = np.unique(of[:9])
    every = np.arange(len(movies.target.data.samples))
    assert len(every) > len(asked) > 3
    left_out = [np.setdiff1d(every, rows) for rows, _ in given]
    np.testing.assert_array_equal(np.concatenate(left_out), asked)
    assert len(given) == min(folds, len(asked))
    expected = {}
    for part, (_, w) in zip(left_out, given, strict=True):
        wrong = errors(movies, w)
        expected |= {i: wrong[k] for k, i in enumerate(ids) if of[k] in part}
    assert found.unseen == expected
    assert len(set(expected.values())) > 1
    seen = errors(movies, GOOD)
    assert found.seen == {i: seen[k] for k, i in enumerate(ids)}


def test_nothing_is_judged_where_nothing_can_be_left_out() -> None:
    scene, movies = answered()
    for learned, ids in (
        (LearnedWeights(GOOD, None, None), scene.constraints.ids),
        (LearnedWeights(GOOD, None, movies), []),
        (LearnedWeights(GOOD, None, movies), ["unknown"]),
    ):
        assert run(judge_unseen(scene, learned, ids, LearnOptions())) == update.Judged()
    one = confirmed(plain_scene(), some_true(15)[:1])
    single = Movies(TrackingModel(build_training_set([one], largest=1)), (), BAD, None)
    learned = LearnedWeights(GOOD, None, single)
    assert run(judge_unseen(one, learned, one.constraints.ids, LearnOptions())) == update.Judged()


def test_of_two_parts_each_is_judged_by_the_model_of_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = confirmed(plain_scene(), far_apart(2))
    movies = Movies(TrackingModel(build_training_set([scene], largest=1)), (), BAD, None)
    given: list[list[int]] = []

    def stub(_: Movies, rows: np.ndarray, *more: Any, **named: Any) -> Any:
        given.append(rows.tolist())
        yield from ()
        return SimpleNamespace(w=GOOD)

    monkeypatch.setattr(update, "_fit_part", stub)
    ids = scene.constraints.ids
    found = run(judge_unseen(scene, LearnedWeights(GOOD, None, movies), ids, LearnOptions()))
    assert given == [[1], [0]]
    assert set(found.unseen) == set(ids)


@pytest.mark.parametrize("anew", [False, True])
def test_models_are_held_by_the_answers_that_they_learn_from(
    anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, movies = answered()
    assert movies.target is not None
    given: list[tuple[Any, ...]] = []

    def stub(_: Movies, hold: float, how: Any, **named: Any) -> Any:
        given.append((hold, how, named))
        yield from ()

    monkeypatch.setattr(Movies, "fit", stub)
    of, options, state = movies.target.data.annotation_sample, LearnOptions(), SimpleNamespace()
    rows = np.unique(of)[:-1]
    run(update._fit_part(movies, rows, options, state, anew=anew))  # type: ignore[arg-type]
    run(update._fit_part(movies, rows, options, None, anew=anew))
    (hold, how, named), (_, first, _) = given
    count = int(np.isin(of, rows).sum())
    assert hold == options.strength_for(count)
    assert options.strength_for(15) < hold < options.strength_for(1)
    assert how == options.training(anew=anew)
    assert (named["rows"] is rows, named["states"], named["anew"]) == (True, (state,), anew)
    # where nothing is known yet, training takes as long as one that begins anew
    assert first == options.training(anew=True) != options.training(anew=False)


def test_events_change_that_were_not_chosen_before() -> None:
    h = plain_scene().hypotheses

    def chosen(n: int, *columns: int) -> Any:
        return SimpleNamespace(chosen=np.isin(np.arange(n), columns))

    scene: Any = SimpleNamespace(hypotheses=h)
    assert update._changed(None, scene, chosen(len(h), 1)) == 0
    last: Any = SimpleNamespace(scene=scene, solution=chosen(len(h), 0, 1, 2))
    assert update._changed(last, scene, chosen(len(h), 1, 2, 3, 4)) == 2
    # another table of events, without the first three: the fourth is its first
    fewer = h.take(np.arange(3, len(h)))
    n = len(fewer)
    last = SimpleNamespace(scene=SimpleNamespace(hypotheses=fewer), solution=chosen(n, 0, 1, n - 1))
    assert update._changed(last, scene, chosen(len(h), 2, 3, 4, 5)) == 2
