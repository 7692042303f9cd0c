"""What is drawn of a question, in either of its frames, and cut out of them."""

from dataclasses import replace

import numpy as np

from bridgetrack.active.pictures import Picture, PictureTag
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.annotate_panel import FrameStrip
from bridgetrack.ui.looks import LOOKS, rgba
from bridgetrack.ui.overlay import Drawing, SliceShown, percent

MOTHER = CellRef(3, 1, (50.0, 50.0))
HERE, THERE, FAR = (CellRef(4, k, (50.0, 40.0 + 20 * k)) for k in (1, 2, 3))
OTHER = CellRef(3, 2, (60.0, 60.0))
MOVE = EventRef(Event.MOVE, (MOTHER,), (HERE,))


def question(*alternatives, event=MOVE, slot=("fate", (3, 1))):
    """A question, by default about the mother."""
    beliefs = (0.6, *(0.1 for _ in alternatives))
    return Suggestion(event, slot, "why", False, alternatives, beliefs)


def named(cell):
    """What a cell is called."""
    return f"#{cell.label}"


def drawn(asked, frame, denied=False):
    """A drawing of the question, with a square as every cell's outline."""

    def outline(cell):
        corners = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]])
        return np.asarray(cell.position[-2:]) + corners

    seen = (0.0, 0.0, 200.0, 200.0)
    found = Drawing(SliceShown(frame, None, 10.0, seen, name=named, outline=outline))
    found.question(asked, denied)
    return found


def test_the_cell_asked_about_is_named_where_that_can_be_read():
    def title(frame, row):
        mother = replace(MOTHER, position=(row, 50.0))
        asked = question(event=EventRef(Event.MOVE, (mother,), (HERE,)))
        [found] = [m for m in drawn(asked, frame).marks if "Continues" in m.text]
        assert found.text == f"#1 ● Continues, 60 % (frame {frame} in view)"
        return found.place[0]

    for frame in (3, 4):
        assert title(frame, 50.0) < 49.0, "above the cells"
    assert title(3, 1.0) > 1.0, "below, where it is at the rim of the screen"
    found = drawn(question(MOVE), 4, denied=True)
    [ring] = [m for m in found.marks if m.place == MOTHER.position and not m.text]
    [words] = [m for m in found.marks if "instead?" in m.text]
    assert words.place[0] + 0.8 < ring.place[0] - ring.size / 2, "above the ring of the other frame"


def test_a_division_is_said_of_the_mother_where_a_daughter_is_asked_about():
    born = EventRef(Event.DIVIDE, (MOTHER,), (FAR, THERE))
    for frame in (3, 4):
        found = drawn(question(event=born, slot=("history", THERE.cell)), frame)
        assert [m.text[:4] for m in found.marks if "Divides" in m.text] == ["#1 ★"]


def test_numbers_stand_on_every_cell_of_an_alternative_that_the_proposal_has_not():
    merge = EventRef(Event.MERGE, (MOTHER, OTHER), (THERE,))
    divide = EventRef(Event.DIVIDE, (MOTHER,), (HERE, FAR))
    listed = (EventRef(Event.MOVE, (MOTHER,), (THERE,)), merge, divide)
    found = drawn(question(*listed), 3)
    blue, green, orange = (rgba(LOOKS[e].colour) for e in (Event.MOVE, Event.MERGE, Event.DIVIDE))
    numbers = {m.text: m.place for m in found.marks if m.text[:1].isdigit()}
    assert numbers["3"] == OTHER.position and set(numbers) == {"2, 3", "3", "4"}
    for words, cell in (("2, 3", THERE), ("4", FAR)):
        y, x = numbers[words]
        assert y == cell.position[0] and 2.5 < x - cell.position[1] < 10, "beside its ring"
    shapes = {(m.place, m.border) for m in found.marks if not m.text}
    corner = OTHER.position[0] - 1, OTHER.position[1] - 1
    assert {(THERE.position, blue), (FAR.position, orange), (corner, green)} <= shapes
    assert all(m.size <= 1 for m in found.marks if m.face[3]), "nothing is filled but dots"


def test_words_hide_no_cell_that_they_speak_of():
    above = [CellRef(4, 4 + k, (44.0, 40.0 + 2 * k)) for k in range(10)]
    listed = [EventRef(Event.MOVE, (MOTHER,), (cell,)) for cell in above]
    found = drawn(question(*listed), 4)
    [words] = [m for m in found.marks if "Continues" in m.text]
    assert words.place[0] > 51, "below, as the cells of other answers are above"


def test_names_on_a_small_picture_do_not_cover_each_other(qtbot):
    colours = ("#ff0000", "#00ff00", "#0000ff", "#ffff00", "#ff00ff", "#00ffff")
    strip = FrameStrip(named)
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


def test_no_confidence_is_0_or_100_percent():
    shares = (0.0, 0.009, 0.01, 0.5, 0.99, 0.991, 1.0)
    assert [percent(s) for s in shares] == ["< 1 %"] * 2 + ["1 %", "50 %", "99 %"] + ["> 99 %"] * 2
