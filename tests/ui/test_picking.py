"""Picking cells click by click."""

import pytest

from bridgetrack.annotations.annotation import CellRef
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.picking import Mode, Picking


def cell(frame, label):
    return CellRef(frame, label, (float(label), float(label)))


def follow(mode, *cells):
    state, event = Picking(mode), None
    for c in cells:
        event = state.click(c)
    return state, event


@pytest.mark.parametrize(
    ("mode", "cells", "event"),
    [
        (Mode.MOVE, [(0, 1), (1, 2)], Event.MOVE),
        (Mode.MOVE, [(0, 1), (3, 2)], Event.SKIP),
        (Mode.DIVIDE, [(0, 1), (1, 3), (1, 2)], Event.DIVIDE),
        (Mode.DISAPPEAR, [(4, 1)], Event.DISAPPEAR),
        (Mode.APPEAR, [(4, 1)], Event.APPEAR),
        (Mode.FALSE, [(4, 1)], Event.FALSE),
    ],
)
def test_clicks_make_an_event(mode, cells, event):
    state, made = follow(mode, *(cell(*c) for c in cells))
    assert made is not None
    assert made.event == event
    assert {c.cell for c in made.cells} == set(cells)
    assert state == Picking(mode)


def test_a_click_in_the_first_frame_starts_again():
    state, event = follow(Mode.DIVIDE, cell(5, 1), cell(5, 2))
    assert event is None
    assert state.source.label == 2


@pytest.mark.parametrize(
    ("cells", "words"), [([(0, 1), (1, 2), (1, 2)], "already"), ([(0, 1), (2, 2)], "frame 1")]
)
def test_neither_a_daughter_twice_nor_one_after_a_gap_is_taken(cells, words):
    *before, last = (cell(*c) for c in cells)
    state, _ = follow(Mode.DIVIDE, *before)
    with pytest.raises(InputError, match=words):
        state.click(last)
    assert state == follow(Mode.DIVIDE, *before)[0]
