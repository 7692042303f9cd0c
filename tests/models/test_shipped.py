"""The starting model: hand-set weights that know what varies between movies."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.errors import ModelError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import Feature, FeatureSet
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.models.shipped import shipped_model, untrained_model
from bridgetrack.pipeline.scene import Scene
from scenes import label_movie, simulated
from simulator import SimulatedMovie


def test_it_tracks_like_the_hand_set_weights() -> None:
    shipped, plain = shipped_model(), untrained_model()
    assert shipped.keys == plain.keys
    np.testing.assert_array_equal(shipped.weights, plain.weights)


def test_it_belongs_to_the_features_of_this_program() -> None:
    features = default_features()
    tied = shipped_model().tightness_for(features)
    assert tied is not None
    assert tied.shape == (len(features),)
    assert tied.min() > 0
    assert tied.max() > 3 * tied.min(), "what varies between movies is tied more loosely"


def test_unknown_features_start_at_zero_with_the_middle_tightness() -> None:
    plain = default_features()
    new = Feature(Event.MOVE, "glow", "how it glows", "1", lambda view: np.zeros(1))
    features = FeatureSet((*plain.features[:3], new))
    model = shipped_model(features)
    assert model.keys == features.keys
    assert model.weights[list(model.keys).index("move.glow")] == 0
    assert model.tightness is not None
    middle = np.median(np.asarray(shipped_model().tightness))
    assert model.tightness[list(model.keys).index("move.glow")] == middle


def test_a_tightness_follows_the_order_of_the_features() -> None:
    model, features = shipped_model(), default_features()
    turned = replace(
        model,
        keys=model.keys[::-1],
        weights=model.weights[::-1],
        units=model.units[::-1],
        tightness=None if model.tightness is None else model.tightness[::-1],
    )
    np.testing.assert_array_equal(turned.tightness_for(features), model.tightness_for(features))
    with pytest.raises(ModelError):
        replace(model, keys=("x", *model.keys[1:])).tightness_for(features)


def test_fast_dividing_cells_are_followed_by_their_overlap() -> None:
    """What rewards mutual neighbours and short steps as such links 95 cells of these wrongly."""
    astray = 0
    for seed in (1, 2, 3):
        movie = simulated(
            cells=60,
            frames=6,
            seed=seed,
            speed=5.0,
            drift=3.0,
            division_rate=0.05,
            mitosis_frames=1,
        )
        astray += len(_links(bt.track(label_movie(movie)).scene) ^ _true_links(movie))
    assert astray <= 88


def _links(scene: Scene) -> set[tuple[int, int, int]]:
    """Frame, label and next label of every link that the shipped weights choose."""
    scores = scene.matrix.scores(shipped_model().weights)
    chosen = scene.hypotheses.take(np.flatnonzero(solve(scene.problem, scores).chosen))
    frame, label = scene.detections.frame, scene.detections.label
    return {
        (int(frame[i]), int(label[i]), int(label[j]))
        for sources, targets in zip(chosen.sources, chosen.targets, strict=True)
        for i in sources[sources >= 0]
        for j in targets[targets >= 0]
        if i != j
    }


def _true_links(movie: SimulatedMovie) -> set[tuple[int, int, int]]:
    """The same of the truth, whose labels are its tracks."""
    parent = dict(zip(movie.tracks["label"], movie.tracks["parent"], strict=True))
    seen = [set(np.unique(frame)) - {0} for frame in movie.labels]
    return {
        (t, int(k if k in before else parent[k]), int(k))
        for t, (before, after) in enumerate(pairwise(seen))
        for k in after
        if k in before or parent[k] in before
    }
