"""The starting model that comes with the program: weights set by hand, and how each is tied.

The weights (``pretrained.json``) say what any biologist would: cells move little, keep their size,
shape and brightness; daughters lie on either side of their mother, are alike and add up to it;
cells come and go at the frame's edge. That of mutual nearest neighbours is 0: where one cell ends
and another begins, these are nearest to each other at any distance, and where cells touch their
overlap says more. One unit of score is one unit of the task loss.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import numpy as np

from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureSet
from bridgetrack.models.model import MODEL_FILE, Model


def shipped_model(features: FeatureSet | None = None) -> Model:
    """The starting model: hand-set weights, and how tightly each is tied.

    How much each weight varies between movies was learned from movies of many kinds
    (``benchmarks/prior.py``), so that training from a few clicks changes first what differs between
    movies.

    Parameters
    ----------
    features
        The features; the built-in ones where None. Those that the shipped model does not know
        have their `Feature.start` or weight 0, and the middle tightness.
    """
    features = features or default_features()
    file = resources.files("bridgetrack.models").joinpath("pretrained.json")
    model = MODEL_FILE.parse(file.read_text(encoding="utf-8"), "the shipped model")
    if features.keys == model.keys or model.tightness is None:
        return model
    weights = dict(zip(model.keys, model.weights.tolist(), strict=True))
    tightness = dict(zip(model.keys, model.tightness.tolist(), strict=True))
    middle = float(np.median(model.tightness))
    return replace(
        model,
        keys=features.keys,
        weights=np.asarray([weights.get(f.key, f.start or 0.0) for f in features.features]),
        units=tuple(f.unit for f in features.features),
        tightness=np.asarray([tightness.get(key, middle) for key in features.keys]),
    )


def untrained_model(features: FeatureSet | None = None) -> Model:
    """The hand-set weights, all tied alike; `features` as for `shipped_model`."""
    shipped = shipped_model(features)
    return Model(
        shipped.keys,
        shipped.weights,
        shipped.units,
        name="untrained",
        provenance={"origin": "set by hand"},
    )
