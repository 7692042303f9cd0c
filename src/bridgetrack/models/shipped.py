"""The starting model that comes with the program."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import numpy as np

from bridgetrack.features.feature import FeatureSet
from bridgetrack.models.model import Model
from bridgetrack.models.store import from_json
from bridgetrack.models.untrained import untrained_model


def shipped_model(features: FeatureSet | None = None) -> Model:
    """Where every user starts: the hand-set weights, and how tightly each is tied.

    The weights are those of `untrained_model`; how much each varies between movies was learned
    from movies of many kinds (``benchmarks/pretrain.py``), so that training from a few clicks
    changes first what differs between movies.

    Parameters
    ----------
    features
        The features; the built-in ones where None. Those that the shipped model does not know
        have weight 0 and the middle tightness.
    """
    file = resources.files("bridgetrack.models").joinpath("pretrained.json")
    model = from_json(file.read_text(encoding="utf-8"), "the shipped model")
    if features is None or features.keys == model.keys or model.tightness is None:
        return model
    plain = untrained_model(features)
    known = dict(zip(model.keys, model.tightness.tolist(), strict=True))
    middle = float(np.median(model.tightness))
    tightness = np.asarray([known.get(key, middle) for key in plain.keys])
    return replace(
        model, keys=plain.keys, weights=plain.weights, units=plain.units, tightness=tightness
    )
