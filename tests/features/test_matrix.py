"""The matrix of features: scores, joint features, and a user's own feature."""

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import Feature, FeatureMatrix
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import shipped_model
from gallery import BY_NAME
from scenes import situation_scene

FEATURES = default_features()


@pytest.fixture(scope="module")
def scene():
    return situation_scene(BY_NAME["two divisions in a row"])


def test_scores_are_products(scene):
    phi = scene.matrix.sparse()
    assert phi.shape == (len(scene.hypotheses), len(FEATURES))
    weights = np.random.default_rng(0).normal(size=len(FEATURES))
    np.testing.assert_allclose(scene.matrix.scores(weights), phi @ weights)
    np.testing.assert_array_equal(scene.matrix.row(7), phi[7].toarray().ravel())


def test_a_feature_of_ones_own(scene):
    def wide(v):
        return v.offset * 2

    own = FEATURES.with_feature(Feature(Event.DIVIDE, "twice", "2 d", "diameters", wide))
    assert len(own) == len(FEATURES) + 1
    assert own.of(Event.DIVIDE)[-1].key == "divide.twice"
    matrix = FeatureMatrix(scene.evidence, scene.hypotheses, own)
    rows = scene.hypotheses.of(Event.DIVIDE)
    source, target = scene.hypotheses.sources[rows, 0], scene.hypotheses.targets[rows, 0]
    shift = scene.evidence.detections.position[target] - scene.evidence.predicted[source]
    distance = np.minimum(np.linalg.norm(shift, axis=1) / scene.evidence.motion.diameter, 5)
    np.testing.assert_allclose(matrix.values(Event.DIVIDE)[:, -1], 2 * distance)
    assert matrix.values(Event.DIVIDE)[:, -1].max() > 0
    for event in set(Event) - {Event.DIVIDE}:
        np.testing.assert_array_equal(matrix.values(event), scene.matrix.values(event))


def test_a_name_that_is_taken():
    twin = Feature(Event.MOVE, "distance", "d", "1", lambda v: v.offset)
    with pytest.raises(InputError, match=r"move\.distance.*more than once"):
        FEATURES.with_feature(twin)
    other = Feature(Event.SPLIT, "distance", "d", "1", lambda v: v.offset)
    assert "split.distance" in FEATURES.with_feature(other).keys


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda v: np.ones((len(v.source), 2)), r"move\.own returned shape"),
        (lambda v: v.offset * np.nan, r"move\.own is not a number for the event at cell row"),
        (lambda v: v.offset + 1e39, r"move\.own is not a number"),  # too large to be held
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_feature_that_fails(scene, values, message):
    own = FEATURES.with_feature(Feature(Event.MOVE, "own", "?", "1", values))
    with pytest.raises(InputError, match=message):
        FeatureMatrix(scene.evidence, scene.hypotheses, own).values(Event.MOVE)


def test_a_feature_that_needs_what_is_not_there_is_not_computed(scene):
    def never(v):
        raise AssertionError("computed without an image")

    own = FEATURES.with_feature(Feature(Event.MOVE, "own", "?", "1", never, "image"))
    matrix = FeatureMatrix(scene.evidence, scene.hypotheses, own)
    assert not matrix.values(Event.MOVE)[:, -1].any()


def test_weights_are_brought_into_order():
    keys = FEATURES.keys[::-1]
    weights = np.arange(float(len(FEATURES)))
    np.testing.assert_array_equal(FEATURES.align(keys, weights), weights[::-1])


def test_models_made_before_a_feature_have_its_starting_weight():
    later = (".wavering", ".lonely", ".late")
    older = tuple(key for key in FEATURES.keys if not key.endswith(later))
    weights = FEATURES.align(older, np.ones(len(older)))
    start = dict(zip(FEATURES.keys, shipped_model().aligned(FEATURES), strict=True))
    for key, weight in zip(FEATURES.keys, weights, strict=True):
        assert weight == (start[key] if key.endswith(later) else 1.0)
    assert start["split.wavering"] > 0 > start["appear.lonely"]
