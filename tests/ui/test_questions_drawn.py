"""What is drawn of a question, in either of its frames, and cut out of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from bridgetrack.active.pictures import Picture, PictureTag
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.looks import LOOKS, rgba
from bridgetrack.ui.overlay import Drawing, SliceShown
from bridgetrack.ui.pictures import FrameStrip

MOTHER = CellRef(3, 1, (50.0, 50.0))
HERE, THERE, FAR = (CellRef(4, k, (50.0, 40.0 + 20 * k)) for k in (1, 2, 3))
OTHER = CellRef(3, 2, (60.0, 60.0))
MOVE = EventRef(Event.MOVE, (MOTHER,), (HERE,))


def question(*alternatives, event=MOVE, slot=("fate", (3, 1))):
    """A question, by default about the mother."""
    beliefs = (0.6, *(0.1 for _ in alternatives))
    return Suggestion(event, alternatives, beliefs, slot, 0, 0.1, 0.9, "why", False)


def named(cell):
    """What a cell is called."""
    return f"#{cell.label}"


def drawn(asked, frame, letter=0.0, half=1.0):
    """A drawing of the question, with a square as every cell's outline."""

    def outline(cell):
        corners = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]])
        return np.asarray(cell.position[-2:]) + half * corners

    seen = (0.0, 0.0, 200.0, 200.0)
    found = Drawing(SliceShown(frame, None, 10.0, seen, 1.0, letter, named, outline))
    found.question(asked)
    return found


def test_cells_have_the_names_that_the_panel_uses():
    divide = EventRef(Event.DIVIDE, (MOTHER,), (THERE, FAR))
    names = {m.text: m.place for m in drawn(question(divide), 3).marks if m.text.startswith("#")}
    assert set(names) == {"#1", "#2", "#3"}, "number 1 is the cell in both frames"
    assert names["#1"][0] > MOTHER.position[0], "below a cell of the frame in view"
    assert names["#3"][0] < FAR.position[0] and names["#3"][1] == FAR.position[1]
    later = {m.text for m in drawn(question(divide), 4).marks if m.text.startswith("#")}
    assert later == {"#1", "#2", "#3"}


def test_no_words_cover_the_cell_in_view():
    near = CellRef(4, 7, (50.0, 55.0))
    divide = question(event=EventRef(Event.DIVIDE, (MOTHER,), (near, FAR)))
    found = [m for m in drawn(divide, 3, half=15.0).marks if m.text]
    assert len(found) == 4
    for mark in found:
        y, x = np.abs(np.subtract(mark.place, MOTHER.position))
        assert y > 15 or x > 15, mark.text


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
        away = np.abs(np.subtract(one.place, two.place))
        wide = letter * (len(one.text) + len(two.text) + 2) / 2
        assert away[0] >= 2 * letter or away[1] >= wide, (one, two)


def test_numbers_stand_on_every_cell_of_an_alternative_that_the_proposal_has_not():
    merge = EventRef(Event.MERGE, (MOTHER, OTHER), (THERE,))
    divide = EventRef(Event.DIVIDE, (MOTHER,), (HERE, FAR))
    listed = (EventRef(Event.MOVE, (MOTHER,), (THERE,)), merge, divide)
    found = drawn(question(*listed), 3)
    numbers = {m.text: (m.place, m.border) for m in found.marks if m.text[:1].isdigit()}
    blue, green, orange = (rgba(LOOKS[e].colour) for e in (Event.MOVE, Event.MERGE, Event.DIVIDE))
    assert numbers == {
        "2, 3": (THERE.position, blue),
        "3": (OTHER.position, green),
        "4": (FAR.position, orange),
    }


def test_names_of_cells_out_of_view_are_not_drawn_at_the_rim():
    far = replace(HERE, position=(50.0, 260.0))
    asked = question(event=EventRef(Event.MOVE, (MOTHER,), (far,)))
    assert [m.text for m in drawn(asked, 3).marks if m.text.startswith("#")] == ["#1"]
    there = replace(MOTHER, label=7, position=(50.0, -30.0))
    asked = question(event=EventRef(Event.MOVE, (there,), (far,)), slot=("fate", (3, 7)))
    assert not [m.text for m in drawn(asked, 3).marks if m.text.startswith("#")]


def test_names_on_a_small_picture_do_not_cover_each_other(qtbot):
    colours = ("#ff0000", "#00ff00", "#0000ff", "#ffff00", "#ff00ff", "#00ffff")
    strip = FrameStrip(lambda: named)
    qtbot.addWidget(strip)
    for y, x in ((0.98, 0.98), (0.02, 0.02), (0.65, 0.5), (0.75, 0.3)):
        tags = tuple(PictureTag(y, x, "#888", colour) for colour in colours)
        strip.show_pictures((Picture(0, np.zeros((90, 90, 3), np.uint8), tags),))
        [button] = strip.buttons
        shown = button.icon().pixmap(button.iconSize()).toImage()
        pixels = [shown.pixelColor(i, k).name() for i in range(shown.width())
                  for k in range(shown.height())]  # fmt: skip
        seen = [pixels.count(colour) for colour in colours]
        assert min(seen) > 0.8 * max(seen) > 10, seen
