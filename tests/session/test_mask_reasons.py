"""Why a cell of the open movie is drawn so: told for masks chosen here and brought along."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.annotations.annotation import CellRef, EventRef, Kind
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.pipeline.explain_masks import explain_mask
from bridgetrack.pipeline.finding import Finding
from bridgetrack.progress import run
from bridgetrack.session.movie import MovieAndCells
from drawn_movie import drawn

T = 1


@pytest.fixture(scope="module")
def movie() -> tuple[np.ndarray, np.ndarray]:
    """Image, and labels in which in one frame two cells are drawn as one."""
    images, labels = drawn()
    labels[T][labels[T] == 2] = 1
    return images, labels


def test_of_masks_brought_along_the_same_is_told_as_on_the_command_line(movie):
    images, labels = movie
    session = bt.Session(labels.copy(), images)
    reasons, heard = session.mask_reasons, []
    reasons.changed.connect(lambda: heard.append(reasons.words))
    reasons.ask(CellRef(T, 1, (20.0, 26.0)))
    why = run(explain_mask(session.movie.image, session.movie.labels, T, 1))
    assert reasons.words == heard[-1] == why.words()
    assert "it is drawn so" in reasons.words
    # Masks that have changed since are not those that it is about.
    session.mend("cut", T, (21.0, 26.0))
    assert reasons.cell is None and reasons.words == heard[-1] == ""
    reasons.ask(CellRef(T, 3, (61.0, 24.5)))
    assert f"cell 3 of frame {T}" in reasons.words
    session.close()
    # What cannot be weighed is said, too.
    labels = labels.copy()
    labels[T][80:82, 80:82] = 40
    session = bt.Session(labels, images)
    with session.hearing() as said:
        session.mask_reasons.ask(CellRef(T, 40, (80.5, 80.5)))
    assert "weighed against nothing" in said[0] and session.mask_reasons.words == said[0]
    assert session.mask_reasons.found is None
    session.close()


def test_of_a_cell_that_an_event_holds_the_same_is_told(movie):
    images, labels = movie
    session = bt.Session(labels.copy(), images)
    table, words = session.scene.detections, []
    one, next_one = cell_refs(table, np.array([table.row_of(t, 1) for t in (T, T + 1)]))
    for _ in range(2):
        session.mask_reasons.ask(one)
        words.append(session.mask_reasons.words)
        session.note(Kind.CONFIRM, EventRef(Event.MOVE, (one,), (next_one,)), "click")
    assert words[0] == words[1] and "2 cells" in words[0]
    session.close()


def test_little_speaks_for_masks_found_here_beyond_the_image(movie):
    images, labels = movie
    session = bt.Session()
    cells = MovieAndCells(open_labels(labels, axes="TYX"), open_movie(images, axes="TYX"))
    told = []
    for found in (Finding(), None):
        session._open(replace(cells, found=found), None)
        session.mask_reasons.ask(CellRef(T, 1, (20.0, 26.0)))
        told.append(session.mask_reasons.found)
    assert told[0].loyalty < told[1].loyalty
    assert not told[0].chosen and "2 cells" in told[0].alternatives[0].words
    session.close()


def test_where_nothing_can_be_told_the_reason_is(movie):
    _, labels = movie
    cell = CellRef(T, 1, (20.0, 26.0))
    session = bt.Session()
    with pytest.raises(InputError, match="no movie"):
        session.mask_reasons.ask(cell)
    with pytest.raises(InputError, match="image that the masks were made from"):
        bt.Session(labels).mask_reasons.ask(cell)
    measured = bt.Session(labels).scene.detections
    table = Detections(measured.table, measured.geometry, has_masks=False)
    with pytest.raises(InputError, match="table of points"):
        bt.Session(table).mask_reasons.ask(cell)
