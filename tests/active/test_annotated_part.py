"""Collecting annotated components quickly gives the training set of the whole movie."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.annotations.annotation import Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training import components as annotated_part
from bridgetrack.training.components import Pieces
from bridgetrack.training.training_set import LARGEST, TrainingSet, build_training_set
from training.training_cases import plain_scene, says, some_true, with_annotations


def assert_same(whole: TrainingSet, quick: TrainingSet) -> None:
    for name in ("phi", "incidence", "sets"):
        a, b = getattr(whole, name), getattr(quick, name)
        assert a.shape == b.shape
        assert abs(a - b).max() == 0
    for name in (
        "column_sample",
        "slot_sample",
        "annotation_sample",
        "allowed",
        "pair",
        "event",
        "single",
        "scene",
        "unbiased",
        "importance",
    ):
        np.testing.assert_array_equal(getattr(whole, name), getattr(quick, name))
    assert whole.samples == quick.samples
    assert whole.names == quick.names


@pytest.mark.parametrize("largest", [LARGEST, 40])
@pytest.mark.parametrize("count", [1, 12])
def test_same_training_set(monkeypatch: pytest.MonkeyPatch, largest: int, count: int) -> None:
    scene = plain_scene()
    tying = scene.hypotheses.of(Event.FALSE)[:1]
    noted = says(scene, some_true(count)) + says(scene, tying, Kind.REJECT, prefix="r")
    scene = with_annotations(scene, noted)
    monkeypatch.setattr(annotated_part, "LARGEST", largest)
    pieces = Pieces(scene)
    assert pieces.components.tying.any() == (largest == 40)
    assert_same(build_training_set([scene], largest), pieces.training_set(scene))


@pytest.mark.parametrize("largest", [LARGEST, 40])
def test_a_confirmed_false_detection_ties_what_it_joins(
    monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    plain = plain_scene()
    monkeypatch.setattr(annotated_part, "LARGEST", largest)
    pieces = Pieces(plain)
    false = plain.hypotheses.of(Event.FALSE)
    scene = with_annotations(plain, says(plain, [*some_true(6)[:3], *false[5:7]]))
    assert_same(build_training_set([scene], largest), pieces.training_set(scene))


def test_answers_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = plain_scene()
    monkeypatch.setattr(annotated_part, "LARGEST", 40)
    pieces = Pieces(plain)
    counts = (3, 9, 9, 2, 12)
    for count in counts:
        scene: Scene = with_annotations(plain, says(plain, some_true(count)))
        assert pieces.fit(scene)
        assert_same(build_training_set([scene], 40), pieces.training_set(scene))


def test_another_movie_does_not_fit() -> None:
    assert not Pieces(plain_scene()).fit(plain_scene(2))
