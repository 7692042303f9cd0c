"""The simulated annotator."""

from __future__ import annotations

from dataclasses import replace

import pytest

from active.active_cases import annotator, session, true_rows
from bridgetrack.active.suggester import slot_name, suggest
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.shipped import untrained_model
from bridgetrack.progress import run
from simulated_annotator import (
    simulate_session,
    true_accuracy,
)
from training.training_cases import plain_scene


def test_wrong_answers_are_about_what_is_asked() -> None:
    someone, scene, wrong = annotator(wrong=1.0), plain_scene(), set()
    (one,) = suggest(scene, untrained_model(), 1)
    for k in range(scene.problem.n_slots):
        asked = replace(one, slot=slot_name(scene, k))
        truth, reply = someone.truth(asked.slot), someone.reply(asked)
        if truth is not None and reply is not None and reply.key != truth.key:
            assert asked.slot in reply.slots
            wrong.add((asked.slot[0], truth.event))
    sides = ("fate", "history")
    assert {(side, kind) for side in sides for kind in (Event.MOVE, Event.DIVIDE)} <= wrong


def test_rates_are_checked() -> None:
    with pytest.raises(InputError, match="rate of wrong"):
        annotator(wrong=1.1)


def test_a_whole_simulated_session() -> None:
    one = session(seed=1)
    assert run(simulate_session(one, annotator(wrong=0.05), 14)) == 14
    assert 12 <= one.effort.clicks <= 14
    assert 0.9 <= true_accuracy(one, true_rows()) <= 1
    two = session(seed=1)
    run(simulate_session(two, annotator(wrong=0.05), 14))
    assert [a.events for a in one.annotations] == [a.events for a in two.annotations]
