"""Model files: what is saved comes back, what is damaged is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import ModelError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import Feature
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import (
    MODEL_FILE,
    Model,
    load_model,
    model_text,
    model_to_json,
    save_model,
    untrained_model,
)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(1e-6, 1e6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(min_size=1, max_size=5), JSON, max_size=3)


@st.composite
def models(draw):
    keys = draw(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6, unique=True))
    return Model(
        tuple(keys),
        np.array([draw(NUMBERS) for _ in keys]),
        tuple(draw(st.text(max_size=5)) for _ in keys),
        name=draw(st.text(max_size=10)),
        loss=draw(st.sampled_from([None, "bridge"])),
        strength=draw(st.none() | NUMBERS),
        history=draw(OBJECTS),
        provenance={"program": "1.0", **draw(OBJECTS)},
        estimate=draw(OBJECTS),
        tightness=draw(
            st.none() | st.lists(POSITIVE, min_size=len(keys), max_size=len(keys)).map(np.array)
        ),
    )


@settings(max_examples=25)
@given(models())
def test_what_is_written_is_read(model):
    again = MODEL_FILE.parse(model_text(model), "here")
    np.testing.assert_array_equal(again.weights, model.weights)
    assert (again.tightness is None) == (model.tightness is None)
    if model.tightness is not None:
        np.testing.assert_array_equal(again.tightness, model.tightness)
    for name in ("keys", "units", "name", "loss", "strength", "history", "provenance", "estimate"):
        assert getattr(again, name) == getattr(model, name)


def test_a_file_and_back(tmp_path):
    path = save_model(untrained_model(), tmp_path / "new" / "model.json")
    again = load_model(path)
    assert again.keys == untrained_model().keys
    np.testing.assert_array_equal(again.weights, untrained_model().weights)
    assert again.provenance["program"]
    assert [p.name for p in path.parent.iterdir()] == ["model.json"]
    content = json.loads(path.read_text())
    assert content["features"][0] == {"name": "move.bias", "weight": 3.0, "unit": "1"}


def valid():
    return json.loads(model_text(untrained_model()))


@pytest.mark.parametrize(
    "change",
    [
        {"features": []},
        {"features": [{"name": "move.bias"}]},
        {"features": [{"name": "a", "weight": "3"}]},
        {"features": [{"name": "a", "weight": 10**400}]},
        {"features": [{"name": "a", "weight": 1}] * 2},
    ],
)
def test_damaged_content(change):
    with pytest.raises(ModelError, match=r"^old\.json: "):
        MODEL_FILE.parse(json.dumps(valid() | change), "old.json")


@pytest.mark.parametrize(
    ("weights", "tightness"),
    [
        (np.ones(1), None),
        (np.array([1.0, np.inf]), None),
        (np.ones(2), np.ones(3)),
        (np.ones(2), np.array([1.0, -1.0])),
    ],
)
def test_models_check_themselves(weights, tightness):
    with pytest.raises(ModelError):
        Model(("a", "b"), weights, ("1", "1"), tightness=tightness)


def test_other_features_are_named():
    own = default_features().with_feature(Feature(Event.SKIP, "mine", "?", "1", lambda v: v.offset))
    model = untrained_model()
    np.testing.assert_array_equal(model.aligned(default_features()), model.weights)
    with pytest.raises(ModelError, match=r"only in the program: skip\.mine\. Train a new model"):
        model.aligned(own)
    wider = untrained_model(own)
    assert wider.aligned(own)[own.keys.index("skip.mine")] == 0.0
    assert wider.aligned(own)[0] == model.weights[0]
    assert wider.events == tuple(Event)


@pytest.mark.parametrize("wrong", [-1.0, None])
def test_a_tightness_must_be_positive_and_complete(wrong):
    model = untrained_model()
    content = model_to_json(replace(model, tightness=np.ones(len(model.keys))))
    content["features"][3]["tightness"] = wrong
    with pytest.raises(ModelError):
        MODEL_FILE.parse(json.dumps(content), "here")
