"""Answers are judged by models that have not seen them, and rules by the limits they state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bridgetrack.active.options import LearnOptions
from bridgetrack.active.update import judge_unseen, learn
from bridgetrack.progress import run
from bridgetrack.training import fit
from bridgetrack.training.components import build_training_set
from bridgetrack.training.fit import TRANSFER, Movies, cross_validate
from bridgetrack.training.options import TrainingOptions, default_strength
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet
from bridgetrack.training.validation import HeldOut, Validation, clearly_larger, folds_of
from training.training_cases import bad_prior, confirmed, plain_scene, some_true

SCENE = plain_scene()


@pytest.fixture(scope="module")
def data() -> TrainingSet:
    return build_training_set([confirmed(SCENE, some_true(15))])


class Tell:
    """Replaces training and judging: an answer is wrong where the last model has seen it."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def wrong(self, model: TrackingModel) -> np.ndarray:
        return np.isin(model.data.annotation_sample, list(self.seen)).astype(float)


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tell]:
    """What every model saw of the target."""
    tell = Tell()
    alone, joint = fit.train, fit.train_joint

    def watched(model, samples, *more, **named):  # type: ignore[no-untyped-def]
        tell.seen = {s.x for s in samples}
        return alone(model, samples, *more, **named)

    def watched_joint(domains, *more, **named):  # type: ignore[no-untyped-def]
        tell.seen = {s.x for s in domains[0].samples}
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
    held_out, _ = run(cross_validate(movies, (hold,), TrainingOptions(), fold))
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
    found = run(judge_unseen(scene, learned, ids, LearnOptions(), folds=4))
    assert set(found.unseen) == set(ids)
    assert not any(found.unseen.values())


def paired(errors: float, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Losses whose mean differs by so many standard errors."""
    noise = np.random.default_rng(0).normal(size=n)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    return np.ones(n) + noise + errors / np.sqrt(n), np.ones(n)


def test_lambda_leaves_the_default_at_three_standard_errors() -> None:
    usual = default_strength(40)
    for errors, best in ((2.9, 0), (3.1, 1)):
        loss, smallest = paired(errors)
        held = tuple(HeldOut(np.zeros(40), x) for x in (loss, smallest))
        assert Validation((usual, usual / 3), held, held[0]).best == best


def test_margins_are_clearly_worse_at_two_standard_errors() -> None:
    assert not clearly_larger(*paired(1.9))
    assert clearly_larger(*paired(2.1))
