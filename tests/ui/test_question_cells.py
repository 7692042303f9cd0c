"""What a click or the key of an event means while a question is in view."""

from __future__ import annotations

from bridgetrack.ui.picking import Mode


def test_only_events_that_can_begin_with_the_cell_begin_with_it(asked):
    question = asked.until(lambda s: s.slot[0] == "fate")
    asked.annotator.start(Mode.APPEAR)
    assert asked.annotator.picking.empty and not asked.answers
    asked.annotator.suggest()
    question = asked.until(lambda s: s.slot[0] == "fate")
    asked.annotator.start(Mode.DIVIDE)
    assert asked.annotator.picking.source.cell == question.slot[1]
    asked.annotator.cancel()
    asked.annotator.suggest()
    question = asked.until(lambda s: s.slot[0] == "history")
    asked.annotator.start(Mode.MOVE)
    assert asked.annotator.picking.empty and not asked.answers
    asked.annotator.suggest()
    question = asked.until(lambda s: s.slot[0] == "history")
    asked.annotator.start(Mode.APPEAR)
    assert not asked.answers
    asked.annotator.accept()
    assert [a.events[0].targets[0].cell for a in asked.answers] == [question.slot[1]]
