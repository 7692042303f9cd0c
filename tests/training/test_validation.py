"""Cross-validation: folds that do not leak, and a choice that does not trust chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

from bridgetrack.learning import L1, L2, loss_values
from bridgetrack.progress import run
from bridgetrack.training import fit
from bridgetrack.training.components import build_training_set
from bridgetrack.training.fit import Movies, cross_validate, regularizer_of
from bridgetrack.training.options import TrainingOptions, default_strength
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet
from bridgetrack.training.validation import (
    HeldOut,
    best_strength,
    clearly_larger,
    folds_of,
    judge,
    together,
)
from training.training_cases import bad_prior, confirmed, plain_scene, some_true, tiny_set


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 2))
def test_folds_respect_samples_and_frame_pairs(seed: int, folds: int, movies: int) -> None:
    rng = np.random.default_rng(seed)
    data = tiny_set(rng, 12)
    n = data.n_annotations
    pair = np.sort(rng.integers(0, 9, 12))[data.annotation_sample]
    scene = (np.arange(12) % movies)[data.annotation_sample]
    data = replace(data, pair=pair, scene=scene)
    fold = folds_of(data, folds)
    if n < 10:
        assert fold is None
        return
    places = {(int(s), int(p)) for s, p in zip(scene, pair, strict=True)}
    if len(places) < 2:
        assert fold is None
        return
    assert fold is not None
    assert fold.shape == (12,)
    assert set(fold.tolist()) == set(range(min(folds, len(places))))
    # a frame pair of a movie has one fold
    for place in places:
        here = (scene == place[0]) & (pair == place[1])
        assert len(set(fold[data.annotation_sample[here]].tolist())) == 1


def test_frame_pairs_of_two_movies_are_told_apart() -> None:
    data, sample = tiny_set(np.random.default_rng(0), 12), np.arange(12)
    of = data.annotation_sample
    data = replace(data, pair=(sample // 2 % 3)[of], scene=(sample // 6)[of])
    np.testing.assert_array_equal(folds_of(data, 6), sample // 2)


def test_neighbouring_frame_pairs_are_in_blocks() -> None:
    data = tiny_set(np.random.default_rng(0), 60)
    data = replace(data, pair=data.annotation_sample.copy())
    fold = folds_of(data, 5)
    assert fold is not None
    changes = np.count_nonzero(np.diff(fold))
    assert changes == 14  # 5 folds of three blocks of four frame pairs
    np.testing.assert_array_equal(np.bincount(fold), [12] * 5)


def test_too_little_to_divide() -> None:
    scene = plain_scene()
    few = build_training_set([confirmed(scene, some_true(9))])
    assert folds_of(few, 5) is None
    enough = build_training_set([confirmed(scene, some_true(12))])
    assert folds_of(enough, 5) is not None
    assert folds_of(replace(enough, pair=np.zeros(12, dtype=np.int64)), 5) is None


def test_judging() -> None:
    data = tiny_set(np.random.default_rng(4), 5)
    model = TrackingModel(data, exact=True)
    w = np.random.default_rng(5).normal(size=4)
    found = judge(model, w)
    small = 0
    for some in np.random.default_rng(6).normal(size=(8, 4)):
        hinge = loss_values(model, data.samples, some, "hinge")
        assert judge(model, some).loss.sum() == pytest.approx(hinge.sum(), abs=1e-6)
        small += np.count_nonzero(hinge < 0.5)
    assert small > 0
    for sample in data.samples:
        chosen = model.inference(sample.x, w).output
        missed = 1 - data.sets[list(sample.y_star)][:, model.columns(sample.x)] @ chosen
        np.testing.assert_allclose(found.wrong[list(sample.y_star)], missed)
    assert found.error == found.wrong.mean()
    assert found.risk >= found.error - 1e-9  # the hinge is never below the task loss


@pytest.mark.parametrize("errors", [2.0, 3.0])
def test_losses_differ_clearly_from_so_many_standard_errors_on(errors: float) -> None:
    """Of parts of one, two and three answers, by hand and by Student's distribution."""
    part, loss = np.repeat([0, 1, 2, 3], [1, 2, 3, 2]), np.array([3.0, 1, 0, 2, 5, 1, 1, 4])
    loss -= loss.mean()
    spread = sum(loss[part == c].sum() ** 2 for c in range(4))
    error = np.sqrt(4 / 3 * spread) / 8
    least = t(3).ppf(norm.cdf(errors)) * error
    other = np.arange(8.0) ** 2
    assert not clearly_larger(other + loss + 0.999 * least, other, part, errors)
    assert clearly_larger(other + loss + 1.001 * least, other, part, errors)
    assert not clearly_larger(other, other, part, errors)


def test_every_annotation_is_judged_by_the_model_of_its_fold() -> None:
    fold, each = np.array([0, 1, 0, 1, 2, 2]), np.ones(6)
    plain = [HeldOut(k * each, (10 + k) * each) for k in range(3)]
    found = together(plain, fold)
    np.testing.assert_array_equal(found.wrong, fold)
    np.testing.assert_array_equal(found.loss, 10 + fold)
    assert (found.halfway, found.learned, found.unfinished) == (None, None, 0)
    more = [
        replace(one, halfway=HeldOut(5 + one.wrong, one.loss), learned=np.full((1, 4), k))
        for k, one in enumerate(plain)
    ]
    found = together([replace(one, unfinished=1) for one in more], fold)
    assert found.halfway is not None
    assert found.learned is not None
    np.testing.assert_array_equal(found.halfway.wrong, 5 + fold)
    np.testing.assert_array_equal(found.learned, np.repeat([[0], [1], [2]], 4, axis=1))
    assert found.unfinished == 3


def held(*risks: float, spread: float = 0.0) -> HeldOut:
    loss = np.asarray(risks)
    return HeldOut((loss > 0.5).astype(float), loss + spread)


def test_the_default_lambda_unless_another_is_clearly_better() -> None:
    base = np.full(40, 0.2)
    noise = np.random.default_rng(0).normal(size=40)
    noise -= noise.mean()
    alike = base + 0.01 + noise
    worse = base + 0.5 + 0.1 * noise

    def best(*losses: np.ndarray) -> int:
        found = tuple(held(*loss) for loss in losses)
        usual = default_strength(len(worse))
        strengths = (10 * usual, usual, usual / 10)[: len(found)]
        return best_strength(strengths, found, np.arange(len(worse)))

    assert best(base, alike) == 1, "the default is not clearly worse than the smallest"
    assert best(base, worse) == 0
    assert best(base, alike, alike) == 1
    assert best(worse, worse, base) == 2
    assert best(base, worse, alike) in (0, 2)
    assert best(base, base, base) == 1


@pytest.fixture(scope="module")
def data() -> TrainingSet:
    return build_training_set([confirmed(plain_scene(), some_true(15))])


def test_held_out_annotations_are_not_seen(
    data: TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold = folds_of(data, 3)
    assert fold is not None
    seen, calls = [], fit.train

    def watched(model, samples, *more, **named):  # type: ignore[no-untyped-def]
        seen.append({s.x for s in samples})
        assert named["n_annotations"] == sum(len(s.y_star) for s in samples)
        return calls(model, samples, *more, **named)

    monkeypatch.setattr(fit, "train", watched)
    movies = Movies(TrackingModel(data), (), bad_prior().weights, None)
    told: list[tuple[float, np.ndarray | None]] = []
    steps = cross_validate(movies, (1.0, 0.1), TrainingOptions(), fold)
    held_out, _ = run(steps, told.append)
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert len(seen) == 6
    for k in range(3):
        for inside in (seen[k], seen[k + 3]):
            assert inside == set(np.flatnonzero(fold != k).tolist())
    assert len(held_out) == 2
    assert held_out[1].risk < judge(movies.target, movies.prior).risk


def test_weights_halfway_are_judged_on_what_was_left_out(
    data: TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold, learned, calls = folds_of(data, 3), [], fit.train
    assert fold is not None

    def watched(*given, **named):  # type: ignore[no-untyped-def]
        result = yield from calls(*given, **named)
        learned.append(result.w)
        return result

    monkeypatch.setattr(fit, "train", watched)
    target, start = TrackingModel(data), bad_prior().weights
    movies = Movies(target, (), start, None)
    ((held,), _) = run(cross_validate(movies, (0.1,), TrainingOptions(), fold))
    assert held.halfway is not None
    # of both it is known what was learned, so that more of the way can be gone
    for found in (held, held.halfway):
        np.testing.assert_array_equal(found.learned, np.stack(learned))
    for k, w in enumerate(learned):
        here = fold[data.annotation_sample] == k
        for found, weights in ((held, w), (held.halfway, (start + w) / 2)):
            expected = judge(target, weights)
            np.testing.assert_allclose(found.wrong[here], expected.wrong[here], atol=1e-6)
            np.testing.assert_allclose(found.loss[here], expected.loss[here], atol=1e-5)
    assert not np.allclose(held.loss, held.halfway.loss)


def test_folds_are_fitted_as_precisely_as_what_is_shipped(
    data: TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Along the path, too, so that lambdas are compared by what they lead to."""
    fold = folds_of(data, 3)
    assert fold is not None
    gaps, calls = [], fit.train

    def watched(*given, **named):  # type: ignore[no-untyped-def]
        result = yield from calls(*given, **named)
        gaps.append(result.gap)
        return result

    monkeypatch.setattr(fit, "train", watched)
    options = TrainingOptions()
    movies = Movies(TrackingModel(data), (), bad_prior().weights, None)
    run(cross_validate(movies, (1.0, 0.3, 0.1, 0.03), options, fold))
    assert len(gaps) == 12
    assert max(gaps) <= options.optimiser.precision


def test_regularisers_stay_close_to_the_prior() -> None:
    prior = np.arange(3.0)
    for name, kind in (("l1", L1), ("l2", L2)):
        found = regularizer_of(TrainingOptions(regularizer=name), 0.7, prior)
        assert isinstance(found, kind)
        assert found.value(prior) == 0
        assert found.value(prior + 1) > 0
    tightness = np.array([1.0, 4, 16])
    for name, expected in (("l1", 0.7 * 7), ("l2", 0.7 * 21 / 2)):
        found = regularizer_of(TrainingOptions(regularizer=name), 0.7, prior, tightness)
        assert found.value(prior + 1) == pytest.approx(expected)
