"""Forms made from dataclasses of settings."""

from __future__ import annotations

from dataclasses import replace

import pytest
from qtpy.QtWidgets import QSlider

from bridgetrack.segmentation import SegmentationSettings
from bridgetrack.segmentation.settings import Appearance
from bridgetrack.training.options import TrainingOptions
from bridgetrack.ui.forms import SettingsForm


@pytest.fixture
def form(qtbot):
    made = SettingsForm(
        TrainingOptions,
        {"loss": "Loss", "lambda_": "Strength", "curriculum": "Order"},
    )
    qtbot.addWidget(made.native)
    return made


def test_an_untouched_form_gives_the_defaults(qtbot):
    names = list(SegmentationSettings.__dataclass_fields__)
    form = SettingsForm(SegmentationSettings, {name: name for name in names})
    qtbot.addWidget(form.native)
    assert form.applied_to(SegmentationSettings()) == SegmentationSettings()


def test_a_field_may_be_left_open_again(form):
    form.show(replace(TrainingOptions(), lambda_=0.5, curriculum="slack"))
    chosen = form.applied_to(TrainingOptions())
    assert (chosen.lambda_, chosen.curriculum) == (0.5, "slack")
    form["lambda_"].value = form["lambda_"].min
    form["curriculum"].value = "automatic"
    chosen = form.applied_to(TrainingOptions())
    assert (chosen.lambda_, chosen.curriculum) == (None, None)


def test_only_changes_by_a_person_are_told(form):
    told = []
    form.listen(lambda: told.append(1))
    form.show(replace(TrainingOptions(), loss="ramp"))
    assert form["loss"].value == "ramp"
    assert not told
    form["loss"].value = "max"
    assert told


def test_wide_ranges_are_set_by_ratios_or_as_a_number(qtbot):
    form = SettingsForm(Appearance, {"diameter": "Size", "faint": "Faint"}, sliders=("diameter",))
    qtbot.addWidget(form.native)
    box, slider, told = form["diameter"], form.native.findChild(QSlider), []
    form.listen(lambda: told.append(box.value))
    assert (box.value, box.min, box.max) == (20, 4, 1000)
    form.show(Appearance(diameter=300.0))
    there = slider.value()
    assert form.applied_to(Appearance()).diameter == 300 and not told
    form.show(Appearance(diameter=20.0))
    share = (slider.value() - slider.minimum()) / (slider.maximum() - slider.minimum())
    assert 0.2 < share < 0.4 and there > slider.value(), "small cells have room on it"
    slider.setValue(there)
    assert told == [box.value] and box.value == pytest.approx(300, rel=0.03)
    # Each press of an arrow key goes on, also among small cells, and both ends are reached.
    form.show(Appearance(diameter=4.0))
    for _ in range(slider.maximum()):
        before = box.value
        slider.triggerAction(QSlider.SliderAction.SliderSingleStepAdd)
        assert before < box.value < before * 1.06
    assert box.value == 1000
    slider.setValue(slider.minimum())
    assert box.value == 4
    box.value = 12.5
    assert form.applied_to(Appearance()).diameter == 12.5
