"""What is drawn of a question, in either of its frames."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.looks import LOOKS, rgba
from bridgetrack.ui.overlay import Drawing, SliceShown, draw_question

MOTHER = CellRef(3, 1, (50.0, 50.0))
HERE, THERE, FAR = (CellRef(4, k, (50.0, 40.0 + 20 * k)) for k in (1, 2, 3))
OTHER = CellRef(3, 2, (60.0, 60.0))
MOVE = EventRef(Event.MOVE, (MOTHER,), (HERE,))


def question(*alternatives, event=MOVE):
    """A question about the mother."""
    beliefs = (0.6, *(0.1 for _ in alternatives))
    return Suggestion(event, alternatives, beliefs, ("fate", (3, 1)), 0, 0.1, 0.9, "why", False)


def drawn(asked, frame, plane=None, seen=None, letter=0.0):
    """A drawing of the question, with a square as every cell's outline."""
    found = Drawing()

    def outline(cell):
        return np.asarray(cell.position[-2:]) + np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]])

    draw_question(
        found,
        asked,
        SliceShown(
            frame, plane, 10.0, 200.0, seen=seen, letter=letter, name=lambda c: f"#{c.label}"
        ),
        outline,
    )
    return found


def test_cells_have_the_names_that_the_panel_uses():
    divide = EventRef(Event.DIVIDE, (MOTHER,), (THERE, FAR))
    names = {m.text: m.point for m in drawn(question(divide), 3).marks if m.text.startswith("#")}
    assert set(names) == {"#1", "#2", "#3"}, "number 1 is the cell in both frames"
    assert names["#1"][0] > MOTHER.position[0], "below a cell of the frame in view"
    assert names["#3"] == (pytest.approx(FAR.position[0] - 7.5), FAR.position[1])
    later = {m.text for m in drawn(question(divide), 4).marks if m.text.startswith("#")}
    assert later == {"#1", "#2", "#3"}


@pytest.mark.parametrize(("frame", "letter"), [(3, 1.0), (4, 4.0)])
def test_daughters_close_together_have_names_that_can_be_read(frame, letter):
    daughters = [CellRef(4, k, (50.0 + dy, 50.0 + dx)) for k, dy, dx in ((94, 2, 3), (97, -2, -2))]
    other = CellRef(4, 89, (52.0, 59.0))
    asked = question(
        EventRef(Event.MOVE, (MOTHER,), (other,)),
        event=EventRef(Event.DIVIDE, (MOTHER,), tuple(daughters)),
    )
    names = [m for m in drawn(asked, frame, letter=letter).marks if m.text.startswith("#")]
    assert {m.text for m in names} == {"#1", "#94", "#97", "#89"}
    for one, two in combinations(names, 2):
        away = np.abs(np.subtract(one.point, two.point))
        wide = letter * (len(one.text) + len(two.text) + 2) / 2
        assert away[0] >= 2 * letter or away[1] >= wide, (one, two)


def test_numbers_stand_on_every_cell_of_an_alternative_that_the_proposal_has_not():
    merge = EventRef(Event.MERGE, (MOTHER, OTHER), (THERE,))
    divide = EventRef(Event.DIVIDE, (MOTHER,), (HERE, FAR))
    listed = (EventRef(Event.MOVE, (MOTHER,), (THERE,)), merge, divide)
    found = drawn(question(*listed), 3)
    numbers = {m.text: (m.point, m.border) for m in found.marks if m.text[:1].isdigit()}
    blue, green, orange = (rgba(LOOKS[e].colour) for e in (Event.MOVE, Event.MERGE, Event.DIVIDE))
    assert numbers == {
        "2 3": (THERE.position, blue),
        "3": (OTHER.position, green),
        "4": (FAR.position, orange),
    }
