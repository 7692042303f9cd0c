"""The starting model that comes with the program, and the weights set by hand that it rests on.

These say what any biologist would: cells move little, keep their size, shape and brightness;
daughters lie on either side of their mother, are alike and add up to it; cells come and go at
the frame's edge. Features that are not named have weight 0, that of mutual nearest neighbours
among them: where one cell ends and another begins, these are nearest to each other at any distance,
and where cells touch their overlap says more. One unit of score is one unit of the task loss.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import numpy as np

from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureSet
from bridgetrack.models.model import MODEL_FILE, Model

MOVE = {
    "bias": 3.0,
    "distance": -1.5,
    "distance_squared": -0.3,
    "distance_steps": -0.2,
    "rank_forward": -0.5,
    "rank_backward": -0.5,
    "rival_forward": -0.2,
    "rival_backward": -0.2,
    "overlap": 1.3,
    "covered": 0.5,
    "size_change": -0.8,
    "shape_change": -0.5,
    "rotation": -0.5,
    "level_change": -0.5,
    "source_brightness": -0.1,
}
DIVIDE = {
    "bias": 3.5,
    "middle": -2.0,
    "separation": -0.5,
    "far_daughter": -0.5,
    "unevenness": -1.0,
    "angle": -1.5,
    "size_change": -1.0,
    "size_asymmetry": -1.5,
    "daughter_size": -0.5,
    "covered": 1.0,
    "least_covered": 0.5,
    "orphans": 0.5,
    "along_axis": 1.0,
    "mother_brightness": 0.2,
    "daughter_brightness": 0.1,
    "brightness_asymmetry": -0.7,
}
SPLIT = {
    "bias": -1.5,
    "middle": -2.0,
    "separation": -1.0,
    "size_change": -2.0,
    "covered": 1.0,
    "unmatched": 0.5,
    "touching": 1.0,
}
MERGE = {
    "bias": 1.6,
    "middle": -4.0,
    "separation": -1.5,
    "size_change": -6.0,
    "covered": 2.0,
    "unmatched": 0.5,
    "touching": 1.0,
}
APPEAR = {"bias": -2.5, "border": 2.0, "nearest": 0.3, "unmatched": 0.5, "covered": -1.0}
DISAPPEAR = {"bias": -2.1, "border": 2.0, "nearest": 0.3, "unmatched": 0.7, "covered": -1.0}
SKIP = {
    "bias": 0.5,
    "distance": -1.5,
    "distance_steps": -0.3,
    "gap": -0.7,
    "size_change": -0.7,
    "level_change": -0.3,
}
FALSE = {"bias": -3.5, "size": -0.7, "orphan": 0.3, "childless": 0.3}


def untrained_model(features: FeatureSet | None = None) -> Model:
    """The hand-set weights, 0 for features that they do not name.

    Parameters
    ----------
    features
        The features; the built-in ones where None.
    """
    blocks = {
        "move": MOVE,
        "divide": DIVIDE,
        "split": SPLIT,
        "merge": MERGE,
        "appear": APPEAR,
        "disappear": DISAPPEAR,
        "skip": SKIP,
        "false": FALSE,
    }
    features = features or default_features()
    weights = [blocks[f.event.key].get(f.name, f.start or 0.0) for f in features.features]
    return Model(
        features.keys,
        np.asarray(weights),
        tuple(f.unit for f in features.features),
        name="untrained",
        provenance={"origin": "set by hand"},
    )


def shipped_model(features: FeatureSet | None = None) -> Model:
    """Where every user starts: the hand-set weights, and how tightly each is tied.

    The weights are those of `untrained_model`; how much each varies between movies was learned
    from movies of many kinds (``benchmarks/prior.py``), so that training from a few clicks
    changes first what differs between movies.

    Parameters
    ----------
    features
        The features; the built-in ones where None. Those that the shipped model does not know
        have weight 0 and the middle tightness.
    """
    file = resources.files("bridgetrack.models").joinpath("pretrained.json")
    model = MODEL_FILE.parse(file.read_text(encoding="utf-8"), "the shipped model")
    if features is None or features.keys == model.keys or model.tightness is None:
        return model
    plain = untrained_model(features)
    known = dict(zip(model.keys, model.tightness.tolist(), strict=True))
    middle = float(np.median(model.tightness))
    tightness = np.asarray([known.get(key, middle) for key in plain.keys])
    return replace(
        model, keys=plain.keys, weights=plain.weights, units=plain.units, tightness=tightness
    )
