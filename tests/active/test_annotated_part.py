"""The annotated part gives the training set of the whole movie."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.active import annotated_part
from bridgetrack.active.annotated_part import Components
from bridgetrack.annotations.annotation import Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.training import training_set
from bridgetrack.training.training_set import build_training_set
from training.training_cases import plain_scene, says, some_true, with_annotations


@pytest.mark.parametrize("largest", [1500, 40])
@pytest.mark.parametrize("count", [1, 12])
def test_same_training_set(monkeypatch: pytest.MonkeyPatch, largest: int, count: int) -> None:
    scene = plain_scene()
    tying = scene.hypotheses.of(Event.FALSE)[:1]
    noted = says(scene, some_true(count)) + says(scene, tying, Kind.REJECT, prefix="r")
    scene = with_annotations(scene, noted)
    monkeypatch.setattr(annotated_part, "LARGEST", largest)
    components = Components.of(scene)
    assert components.tying.any() == (largest == 40)
    whole = build_training_set([scene], largest)
    part = components.annotated(scene)
    assert len(part.hypotheses) <= len(scene.hypotheses)
    cut = build_training_set([part], largest)
    for name in ("phi", "incidence", "sets"):
        a, b = getattr(whole, name), getattr(cut, name)
        assert a.shape == b.shape
        assert abs(a - b).max() == 0
    for name in ("column_sample", "slot_sample", "annotation_sample", "allowed", "pair", "event"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(cut, name))
    assert [s.key for s in whole.samples] == [s.key for s in cut.samples]
    assert training_set.LARGEST == 1500


def test_a_confirmed_false_detection_ties_what_it_joins() -> None:
    scene = plain_scene()
    tying = scene.hypotheses.of(Event.FALSE)[:1]
    scene = with_annotations(scene, says(scene, tying))
    part = Components.of(scene).annotated(scene)
    assert build_training_set([part]).n_annotations == 1
    assert (part.hypotheses.event == Event.FALSE).any()
