"""A sample of the tracks is checked with one key an event."""

from __future__ import annotations

from bridgetrack.annotations.annotation import Kind
from bridgetrack.evaluation.sample import Verdict
from bridgetrack.session.session import Session
from bridgetrack.ui.picking import Mode


def test_the_sample_is_kept_and_belongs_to_its_tracks(table, said, source, library):
    questions, session = table.questions, table.session
    questions.check_sample(3)
    for _ in range(2):
        table.annotator.accept()
    third = questions.current
    again = Session(library=library)
    assert again.open(source, session.project.path)
    assert again.questions.check.sample.verdicts == (Verdict.RIGHT, Verdict.RIGHT, Verdict.OPEN)
    again.close()
    table.annotator.accept()
    check = questions.check
    assert check.finished is not None and said[-1] == ("info", check.words)
    assert table.annotator.picking.mode == Mode.REVIEW
    questions.check_sample(1)
    assert questions.current.number == 3, "a longer one goes on where the shorter one ended"
    table.annotator.accept()
    assert check.finished is not None
    session.edits.note(Kind.REJECT, third.event, "click", 1.0)
    assert check.finished is None
    assert "The tracks have changed since" in check.words
