"""The starting model: hand-set weights that know what varies between movies."""

import numpy as np

from bridgetrack.features.default import default_features
from bridgetrack.features.feature import Feature, FeatureSet
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import shipped_model, untrained_model


def test_untrained_weights_are_those_shipped_and_tied_alike():
    shipped, plain = shipped_model(), untrained_model()
    assert shipped.keys == plain.keys == default_features().keys
    np.testing.assert_array_equal(shipped.weights, plain.weights)
    assert plain.tightness is None


def test_it_belongs_to_the_features_of_this_program():
    features = default_features()
    tied = shipped_model().tightness_for(features)
    assert tied is not None
    assert tied.shape == (len(features),)
    assert tied.min() > 0
    assert tied.max() > 3 * tied.min(), "what varies between movies is tied more loosely"


def test_unknown_features_start_at_zero_with_the_middle_tightness():
    plain = default_features()
    new = Feature(Event.MOVE, "glow", "how it glows", "1", lambda view: np.zeros(1))
    features = FeatureSet((*plain.features[:3], new))
    model = shipped_model(features)
    assert model.keys == features.keys
    assert model.weights[list(model.keys).index("move.glow")] == 0
    assert model.tightness is not None
    middle = np.median(np.asarray(shipped_model().tightness))
    assert model.tightness[list(model.keys).index("move.glow")] == middle
