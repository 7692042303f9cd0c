"""What a click or the key of an event means while a question is in view."""

from __future__ import annotations

from bridgetrack.ui.picking import Mode
from bridgetrack.ui.suggester import number_of, subject_row


def test_a_cell_means_the_first_event_that_it_takes_part_in(asked):
    question = asked.until(lambda s: len(s.alternatives) > 0)
    for number, event in enumerate((question.event, *question.alternatives), 1):
        for cell in event.cells:
            assert number_of(question, cell.cell) <= number
    assert number_of(question, question.event.cells[0].cell) == 1
    assert number_of(question, (10**6, 1)) is None


def test_only_events_that_can_begin_with_the_cell_begin_with_it(asked):
    scene = asked.session.scene
    question = asked.until(lambda s: s.slot[0] == "fate")
    row = scene.detections.row_of(*question.slot[1])
    assert subject_row(scene, question, Mode.DIVIDE) == row
    assert subject_row(scene, question, Mode.APPEAR) == -1
    question = asked.until(lambda s: s.slot[0] == "history")
    row = scene.detections.row_of(*question.slot[1])
    assert subject_row(scene, question, Mode.APPEAR) == row
    assert subject_row(scene, question, Mode.MOVE) == -1
    assert subject_row(scene, question, Mode.FALSE) == row
