"""Both frames of a question cut out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.progress import run
from bridgetrack.ui.event_looks import LOOKS, rgba
from bridgetrack.ui.finder import shown_diameter
from bridgetrack.ui.question_pictures import picture_steps, window_of


def question(event, slot):
    """A question about an event."""
    return Suggestion(event, (), (0.6,), slot, 0, 0.1, 0.9, 1.0, "why", False)


def coloured(picture, event):
    """How many pixels have the colour of an event."""
    colour = (255 * np.array(rgba(LOOKS[event].colour)[:3])).astype(np.uint8)
    return int((picture.pixels == colour).all(axis=-1).sum())


def test_the_cells_are_outlined_in_both_frames_at_the_same_place(asked):
    asked_about = asked.until(lambda s: s.kind == Event.MOVE)
    size = shown_diameter(asked.session.scene.detections)
    before, after = run(picture_steps(asked.session.movie, asked_about, size))
    assert (before.frame, after.frame) == (asked_about.frame, asked_about.last_frame)
    assert before.pixels.shape == after.pixels.shape
    assert before.pixels.dtype == np.uint8
    for picture in (before, after):
        assert coloured(picture, Event.MOVE) > 50
        assert picture.pixels.min() == 0
        assert picture.pixels.max() > 200, "both are as bright as they can be"


@pytest.mark.parametrize("place", [(0.0, 0.0), (49.0, 59.0), (25.0, 30.0)])
def test_the_window_stays_inside_the_image(place):
    cell = CellRef(0, 1, place)
    rows, columns = window_of(
        question(EventRef(Event.FALSE, (cell,)), ("fate", (0, 1))), (50, 60), 8
    )
    assert 0 <= rows.start < rows.stop <= 50
    assert 0 <= columns.start < columns.stop <= 60
    assert rows.start <= place[0] < rows.stop
    assert columns.start <= place[1] < columns.stop


def test_the_last_frame_has_none_after_it(source):
    labels = np.asarray(source.labels.array[:, 0].compute())
    last = len(labels) - 1
    y, x = np.argwhere(labels[last] == labels[last].max()).mean(axis=0)
    cell = CellRef(last, int(labels[last].max()), (y, x))
    asked = question(EventRef(Event.FALSE, (cell,)), ("fate", cell.cell))
    (only,) = run(picture_steps(source, asked, 10.0))
    assert only.frame == last


def test_without_an_image_the_cells_themselves_are_shown(source):
    stack = np.zeros((2, 6, 30, 30), dtype=np.uint16)
    stack[:, 2:5, 10:18, 10:18] = 3
    cells = [CellRef(t, 3, (3.0, 13.5, 13.5)) for t in (0, 1)]
    asked = question(EventRef(Event.MOVE, (cells[0],), (cells[1],)), ("fate", (0, 3)))
    flat = replace(source, labels=open_labels(stack, axes="TZYX"), image=None)
    for picture in run(picture_steps(flat, asked, 8.0)):
        assert coloured(picture, Event.MOVE) > 0
        assert len(np.unique(picture.pixels.reshape(-1, 3), axis=0)) == 3
    bright = open_movie(np.random.default_rng(0).random(stack.shape), axes="TZYX")
    grey = run(picture_steps(replace(flat, image=bright), asked, 8.0))
    assert len(np.unique(grey[0].pixels)) > 50
