"""Picking cells click by click."""

from __future__ import annotations

import pytest

from bridgetrack.annotations.annotation import CellRef
from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.picking import Mode, Picking, cancel, click


def cell(frame: int, label: int) -> CellRef:
    return CellRef(frame, label, (float(label), float(label)))


def follow(mode: Mode, *cells: CellRef):
    state, step = Picking(mode), None
    for c in cells:
        step = click(state, c)
        state = step.picking
    return step


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
    step = follow(mode, *(cell(*c) for c in cells))
    assert step.event is not None
    assert step.event.event == event
    assert {c.cell for c in step.event.cells} == set(cells)
    assert step.picking == Picking(mode)


def test_a_click_in_the_first_frame_starts_again():
    waiting = click(Picking(Mode.DIVIDE), cell(5, 1)).picking
    again = click(waiting, cell(5, 2))
    assert again.event is None
    assert again.picking.source.label == 2


def test_the_same_daughter_twice_is_refused():
    state = follow(Mode.DIVIDE, cell(0, 1), cell(1, 2)).picking
    step = click(state, cell(1, 2))
    assert step.event is None
    assert step.problem
    assert step.picking == state


def test_a_division_cannot_span_a_gap():
    state = follow(Mode.DIVIDE, cell(0, 1)).picking
    step = click(state, cell(2, 2))
    assert step.problem
    assert step.frame == 1


def test_escape_forgets_then_goes_back_to_review():
    waiting = click(Picking(Mode.MOVE), cell(5, 1)).picking
    step = cancel(waiting)
    assert step.picking == Picking(Mode.MOVE)
    assert step.frame == 5
    assert cancel(step.picking).picking.mode == Mode.REVIEW
