"""Pictures of questions, cut out of their frames."""

from __future__ import annotations

import numpy as np

from bridgetrack.active.pictures import picture_steps
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.detections.table import detections_at
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import Geometry, open_labels, open_movie
from bridgetrack.progress import run
from session_fixtures import *  # noqa: F403

COLOURS = {event: f"#{20 * k:02x}00ff" for k, event in enumerate(Event, 1)}


def question(*alternatives, event, slot):
    """A question about a slot."""
    beliefs = (0.6, *(0.1 for _ in alternatives))
    return Suggestion(event, slot, "why", False, alternatives, beliefs)


def named(cell):
    """What a cell is called."""
    return f"#{cell.label}"


def coloured(picture, event):
    """How many pixels have the colour of an event."""
    colour = list(bytes.fromhex(COLOURS[event][1:]))
    return int((picture.pixels == colour).all(axis=-1).sum())


def test_the_last_frame_has_none_after_it(source):
    labels = np.asarray(source.labels.array[:, 0].compute())
    last = len(labels) - 1
    y, x = np.argwhere(labels[last] == labels[last].max()).mean(axis=0)
    cell = CellRef(last, int(labels[last].max()), (y, x))
    asked = question(event=EventRef(Event.FALSE, (cell,)), slot=("fate", cell.cell))
    (only,) = run(picture_steps(asked, source.cells, None, 10.0, COLOURS))
    assert only.frame == last


def test_pictures_name_the_cells_and_number_the_alternatives():
    labels = np.zeros((2, 60, 60), dtype=np.uint16)
    labels[:, 20:28, 20:28], labels[:, 20:28, 34:42], labels[:, 52:60, 20:28] = 3, 4, 5
    labels[0, 20:28, 20:28] = 7
    three, four = (CellRef(1, k, (23.5, x)) for k, x in ((3, 23.5), (4, 37.5)))
    beyond = CellRef(1, 5, (55.5, 23.5))
    mother = CellRef(0, 7, three.position)
    move = EventRef(Event.MOVE, (mother,), (three,))
    divide = EventRef(Event.DIVIDE, (mother,), (three, four))
    leap = EventRef(Event.MOVE, (mother,), (beyond,))
    asked = question(divide, leap, event=move, slot=("fate", mother.cell))
    faint = np.where(np.isin(labels, (3, 7)), 10.0, np.where(labels == 4, 1000.0, 1.0))
    image = open_movie(faint, axes="TYX")
    before, after = run(picture_steps(asked, open_labels(labels, axes="TYX"), image, 8.0, COLOURS))
    assert [t.words(named) for t in before.tags] == ["#7"]
    assert {t.words(named): t.colour for t in after.tags} == {
        "2": COLOURS[Event.DIVIDE], "#3": "#ffffff", "#4": "#ffffff",
    }  # fmt: skip
    assert coloured(before, Event.DIVIDE) == 0 and coloured(after, Event.DIVIDE) > 50
    assert sorted(np.unique(before.pixels[..., 2]))[-2] > 150, "the faint cell is seen"


def test_a_beginning_is_shown_with_the_frame_before():
    cell = CellRef(5, 3, (23.5, 23.5))
    asked = question(event=EventRef(Event.APPEAR, (), (cell,)), slot=("history", cell.cell))
    assert (asked.frame, asked.last_frame) == (4, 5)


def test_a_late_division_is_shown_in_all_its_frames(source):
    cells = [CellRef(t, k, (20.0, 20.0 + 5 * t)) for t, k in ((1, 1), (2, 2), (3, 3))]
    event = EventRef(Event.DIVIDE, (cells[0],), tuple(cells[1:]))
    asked = question(event=event, slot=("fate", (1, 1)))
    pictures = run(picture_steps(asked, source.cells, None, 10.0, COLOURS))
    assert [p.frame for p in pictures] == [1, 2, 3]


def test_points_are_drawn_with_their_neighbours_in_the_plane():
    place = np.array([(5, 30, 38), (5, 30, 46), (40, 30, 30)] * 2)
    points = detections_at(np.repeat([0, 1], 3), place, Geometry(2, None, (1.0, 1.0, 1.0)))
    one = [CellRef(t, 1, (5.0, 30.0, 38.0)) for t in (0, 1)]
    move = EventRef(Event.MOVE, (one[0],), (one[1],))
    asked = question(event=move, slot=("fate", (0, 1)))
    for picture in run(picture_steps(asked, points, None, 6.0, COLOURS)):
        middle, zoom = len(picture.pixels) // 2, len(picture.pixels) // 24
        mine, beside, above = (picture.pixels[middle, middle + k * zoom].min() for k in (0, 8, -8))
        assert mine == beside > 100 and above == 0
