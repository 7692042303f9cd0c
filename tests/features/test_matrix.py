"""The matrix of features: scores, joint features, and a user's own feature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InputError, ModelError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import Feature, FeatureSet, compute_features
from bridgetrack.features.view import EventView, best_other, rank_within
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.shipped import shipped_model
from gallery import BY_NAME
from scenes import Described, situation_scene

FEATURES = default_features()


@pytest.fixture(scope="module")
def scene() -> Described:
    return situation_scene(BY_NAME["two divisions in a row"])


def test_scores_and_joint_features_are_products(scene: Described) -> None:
    rng = np.random.default_rng(0)
    phi = scene.matrix.sparse()
    assert phi.shape == (len(scene.hypotheses), 88)
    weights, chosen = rng.normal(size=88), rng.random(len(scene.hypotheses))
    np.testing.assert_allclose(scene.matrix.scores(weights), phi @ weights)
    np.testing.assert_allclose(scene.matrix.joint(chosen), phi.T @ chosen)
    np.testing.assert_allclose(
        scene.matrix.scores(weights) @ chosen, scene.matrix.joint(chosen) @ weights
    )


def test_rows(scene: Described) -> None:
    sparse = scene.matrix.sparse()
    phi = sparse.toarray()
    assert sparse.has_canonical_format and sparse.nnz == np.count_nonzero(phi)
    for h in range(0, len(scene.hypotheses), 37):
        np.testing.assert_array_equal(scene.matrix.row(h), phi[h])
        block = FEATURES.block(Event(scene.hypotheses.event[h]))
        outside = np.ones(88, bool)
        outside[block] = False
        assert not phi[h, outside].any()


def test_blocks_follow_each_other() -> None:
    stops = [FEATURES.block(event) for event in Event]
    assert stops[0].start == 0 and stops[-1].stop == 88
    assert all(a.stop == b.start for a, b in zip(stops, stops[1:], strict=False))


def test_a_feature_of_ones_own(scene: Described) -> None:
    def wide(v: EventView) -> np.ndarray:
        return v.offset * 2

    own = FEATURES.with_feature(Feature(Event.DIVIDE, "twice", "2 d", "diameters", wide))
    assert len(own) == 89 and len(FEATURES) == 88
    assert own.of(Event.DIVIDE)[-1].key == "divide.twice"
    matrix = compute_features(scene.evidence, scene.hypotheses, own)
    rows = scene.hypotheses.of(Event.DIVIDE)
    source, target = scene.hypotheses.sources[rows, 0], scene.hypotheses.targets[rows, 0]
    shift = scene.evidence.detections.position[target] - scene.evidence.predicted[source]
    distance = np.minimum(np.linalg.norm(shift, axis=1) / scene.evidence.motion.diameter, 5)
    np.testing.assert_allclose(matrix.blocks[Event.DIVIDE][:, -1], 2 * distance)
    assert matrix.blocks[Event.DIVIDE][:, -1].max() > 0
    for event in set(Event) - {Event.DIVIDE}:
        np.testing.assert_array_equal(matrix.blocks[event], scene.matrix.blocks[event])


def test_a_name_that_is_taken() -> None:
    twin = Feature(Event.MOVE, "distance", "d", "1", lambda v: v.offset)
    with pytest.raises(InputError, match=r"move\.distance.*more than once"):
        FEATURES.with_feature(twin)
    other = Feature(Event.SPLIT, "distance", "d", "1", lambda v: v.offset)
    assert "split.distance" in FEATURES.with_feature(other).keys


def test_a_set_out_of_order() -> None:
    with pytest.raises(InputError, match="sorted by event"):
        FeatureSet(FEATURES.features[::-1])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda v: np.ones((len(v.source), 2)), r"move\.own returned shape"),
        (lambda v: 1.0, r"move\.own returned shape \(\)"),
        (lambda v: v.offset * np.nan, r"move\.own is not a number for the event at cell row"),
        (lambda v: v.offset / 0.0, r"move\.own is not a number"),
        (lambda v: v.offset + 1e39, r"move\.own is not a number"),  # too large to be held
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_feature_that_fails(scene: Described, values, message: str) -> None:
    own = FEATURES.with_feature(Feature(Event.MOVE, "own", "?", "1", values))
    with pytest.raises(InputError, match=message):
        compute_features(scene.evidence, scene.hypotheses, own)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells")
def test_features_that_a_movie_does_not_tell_take_no_memory(scene: Described) -> None:
    def never(v: EventView) -> np.ndarray:
        raise AssertionError("computed without an image")

    def taken() -> int:
        return 1024 * int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])

    needy = [Feature(Event.MOVE, f"f{k}", "?", "1", never, "image") for k in range(60)]
    known = Feature(Event.MOVE, "one", "1", "1", lambda v: np.ones(len(v.source)))
    moves, own = scene.hypotheses.of(Event.MOVE), FeatureSet((known, *needy))
    many = scene.hypotheses.take(np.resize(moves, 500_000))
    before = taken()
    matrix = compute_features(scene.evidence, many, own)
    full = sum(block.nbytes for block in matrix.blocks)
    assert full == 500_000 * 61 * 4 and taken() - before < full / 2
    np.testing.assert_allclose(matrix.scores(np.ones(61)), 1.0)


def test_a_feature_that_needs_what_is_not_there_is_not_computed(scene: Described) -> None:
    def never(v: EventView) -> np.ndarray:
        raise AssertionError("computed without an image")

    own = FEATURES.with_feature(Feature(Event.MOVE, "own", "?", "1", never, "image"))
    matrix = compute_features(scene.evidence, scene.hypotheses, own)
    assert not matrix.blocks[Event.MOVE][:, -1].any()


def test_weights_are_brought_into_order() -> None:
    keys = FEATURES.keys[::-1]
    weights = np.arange(88.0)
    np.testing.assert_array_equal(FEATURES.align(keys, weights), weights[::-1])


def test_models_made_before_a_feature_have_its_starting_weight() -> None:
    older = tuple(key for key in FEATURES.keys if not key.endswith(".wavering"))
    weights = FEATURES.align(older, np.ones(len(older)))
    start = dict(zip(FEATURES.keys, shipped_model().aligned(FEATURES), strict=True))
    for key, weight in zip(FEATURES.keys, weights, strict=True):
        assert weight == (start[key] if key.endswith(".wavering") else 1.0)
    assert start["split.wavering"] > 0 > start["divide.wavering"]


def test_models_of_other_features_are_named() -> None:
    keys = ("move.magic", *FEATURES.keys[1:])
    with pytest.raises(ModelError) as caught:
        FEATURES.align(keys, np.zeros(88))
    assert "only in the model: move.magic" in str(caught.value)
    assert "only in the program: move.bias" in str(caught.value)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), max_size=20))
def test_ranks_and_rivals_within_groups(entries: list[tuple[int, int]]) -> None:
    group = np.array([g for g, _ in entries], dtype=np.int64)
    value = np.array([v for _, v in entries], dtype=np.float64)
    ranks, others = rank_within(group, value), best_other(group, value, 2.5)
    for k in range(len(entries)):
        mates = np.flatnonzero(group == group[k])
        below = int((value[mates] < value[k]).sum())
        assert below <= ranks[k] <= below + int((value[mates] == value[k]).sum()) - 1
        rest = [value[m] for m in mates if m != k]
        assert others[k] == min([*rest, 2.5])
    assert len({(g, r) for g, r in zip(group.tolist(), ranks.tolist(), strict=True)}) == len(group)
