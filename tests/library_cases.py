"""Models, cards and statistics for the tests of the library."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from bridgetrack.features.default import default_features
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.entry import ModelCard
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import untrained_model
from bridgetrack.models.statistics import FeatureStatistics

KEYS = default_features().keys


def statistics_like(seed: int = 0, **means: float) -> FeatureStatistics:
    """Statistics of an invented movie; a feature's mean by its name with ``__`` for the dot."""
    rng = np.random.default_rng(seed)
    d = len(KEYS)
    mean = np.full(d, 0.5)
    for name, value in means.items():
        mean[KEYS.index(name.replace("__", "."))] = value
    deviation = np.full(d, 0.3) + 0.001 * rng.random(d)
    quantiles = np.stack([mean - deviation, mean, mean + deviation], axis=1)
    events = {event.key: 50 for event in Event}
    return FeatureStatistics(
        KEYS, np.full(d, 50), mean, deviation, quantiles, events, n_cells=1000, ndim=2
    )


@st.composite
def statistics(draw: Any) -> FeatureStatistics:
    """Any statistics of a few features."""
    keys = tuple(draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True)))
    d = len(keys)
    numbers = st.floats(-1e6, 1e6)
    positive = st.floats(0, 1e6)
    whole = st.integers(0, 10**9)
    return FeatureStatistics(
        keys,
        np.asarray(draw(st.lists(whole, min_size=d, max_size=d)), dtype=np.int64),
        np.asarray(draw(st.lists(numbers, min_size=d, max_size=d))),
        np.asarray(draw(st.lists(positive, min_size=d, max_size=d))),
        np.asarray(draw(st.lists(numbers, min_size=3 * d, max_size=3 * d))).reshape(d, 3),
        draw(st.dictionaries(st.sampled_from([e.key for e in Event]), whole)),
        draw(whole),
        draw(st.sampled_from([2, 3])),
    )


@st.composite
def cards(draw: Any) -> ModelCard:
    """Any card."""
    low, middle, high = sorted(draw(st.tuples(*[st.floats(0, 1)] * 3)))
    accuracy = draw(st.sampled_from([None, (middle, low, high)]))
    kinds = st.sampled_from([e.key for e in Event])
    return ModelCard(
        draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=200)),
        draw(st.datetimes()).isoformat(timespec="seconds"),
        draw(st.dictionaries(kinds, st.integers(0, 10**6))),
        accuracy,
        draw(st.none() | statistics()),
    )


@st.composite
def models(draw: Any) -> Model:
    """Any model over the built-in features."""
    plain = untrained_model()
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d = len(plain.keys)
    weights = rng.normal(size=d) * draw(st.sampled_from([0.0, 1.0, 1e-300, 1e300]))
    return Model(
        plain.keys,
        weights,
        plain.units,
        loss=draw(st.sampled_from([None, "bridge"])),
        regularizer="l2",
        strength=draw(st.none() | st.floats(1e-6, 1e3)),
        provenance={"program": "0", "note": draw(st.text(st.characters(codec="utf-8")))},
        tightness=rng.uniform(0.1, 10, d) if draw(st.booleans()) else None,
    )
