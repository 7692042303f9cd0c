"""Forms made from dataclasses of settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridgetrack.segmentation import SegmentationSettings
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
