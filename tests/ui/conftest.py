"""Fixtures of the plugin's tests: a short movie, controllers without Qt, a viewer with a state."""

import gc
import importlib
import os
import shutil
import sys
import threading
import weakref
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from asking_table import Table
from bridgetrack.hypotheses.events import Event
from bridgetrack.session.cells import proposals
from bridgetrack.ui.annotator import Annotator
from hand import Hand
from kept_viewer import KeptViewer, close, open_window
from pace import Pace
from session_fixtures import *  # noqa: F403
from window import plugin, tracked

# Mesa draws with a thread for each core, which costs more than it brings for small windows.
os.environ.setdefault("LP_NUM_THREADS", "1")


def pytest_itemcollected(item):
    """What napari warns of is its own."""
    item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture
def qtbot(qtbot):
    """It waits long: a test that takes longer on a slow machine is no failure."""
    qtbot.waitUntil = partial(qtbot.waitUntil, timeout=120_000)
    return qtbot


@pytest.fixture
def annotator(session):
    """Turns pointing on the short movie into answers."""
    return Annotator(session)


@pytest.fixture
def at(session):
    """Frame and position in pixels of a row."""

    def place(row):
        table = session.scene.detections.table
        return int(table["frame"][row]), (float(table["y"][row]), float(table["x"][row]))

    return place


@pytest.fixture
def row(session, annotator):
    """Row of a cell that moves on and could do otherwise."""
    # The annotator was made after the movie was opened; tell it.
    session.scene_changed.emit()
    found = [proposals(session.tracking, r) for r in range(len(session.scene.detections))]
    return next(r for r, p in enumerate(found) if len(p) > 2 and p[0].event.event == Event.MOVE)


@pytest.fixture
def table(session):
    """The controllers of the short movie's questions."""
    return Table(session)


@pytest.fixture
def asked(table):
    """As `table`, with a question in view."""
    table.annotator.suggest()
    assert table.questions.current is not None
    return table


def _has_screen():
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or shutil.which("Xvfb"))


@pytest.fixture(scope="session")
def kept():
    """The viewer that tests share one after the other."""
    pytest.importorskip("napari", reason="napari is not installed")
    if not _has_screen():
        pytest.skip("no display: install Xvfb (see .ci/system-packages.sh)")
    made = KeptViewer()
    yield made
    made.end()


@pytest.fixture
def viewer(kept, qtbot):
    """A visible viewer without layers."""
    yield kept.lend(lambda: open_window(qtbot))
    kept.clear()


def _close_all(made):
    for viewer in [each for each in made if hasattr(each, "layers")]:
        close(viewer)


@pytest.fixture
def another_viewer(kept, qtbot):
    """Opens viewers of the test's own; nothing holds on to them once they are closed."""
    made: weakref.WeakSet[Any] = weakref.WeakSet()

    def opened(shown=True):
        viewer = open_window(qtbot, shown)
        made.update((viewer, viewer.window._qt_viewer))
        return viewer

    yield opened
    _close_all(made)
    gc.collect()
    assert not list(made), "something holds on to a window that is closed"


@pytest.fixture(scope="session", autouse=True)
def seldom_collected():
    """Viewers are collected when they close; modules are left out, else it is a seventh of all."""
    if find_spec("napari"):
        importlib.import_module("bridgetrack.ui.workflow")
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    gc.freeze()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.fixture(scope="session", autouse=True)
def all_ended():
    """Work that goes on when the last window has closed is waited for."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("bridgetrack"):
            thread.join(60)


@pytest.fixture(autouse=True)
def closing(request, monkeypatch):
    """Windows close at the end of a test without a question, whatever is under way."""
    if find_spec("napari") and "asks_before_closing" not in request.keywords:
        monkeypatch.setattr("bridgetrack.ui.state.may_close", lambda *_: True)


@pytest.fixture(autouse=True)
def quick_eyes(monkeypatch):
    """Tests answer questions as soon as these are there."""
    monkeypatch.setattr("bridgetrack.ui.annotator.GLANCE", 0.0)


@pytest.fixture
def hand(viewer, qtbot):
    """A hand for the viewer's mouse and keyboard."""
    return Hand(viewer, qtbot)


@pytest.fixture
def stack(viewer):
    """A Labels layer of four cells in three dimensions that move to the right."""
    labels = np.zeros((4, 8, 60, 60), dtype=np.uint16)
    for t in range(4):
        for k, (z, y, x) in enumerate([(2, 15, 15), (5, 15, 40), (3, 45, 20), (6, 45, 45)], 1):
            labels[t, z - 1 : z + 2, y - 5 : y + 6, x - 5 + t : x + 6 + t] = k
    return viewer.add_labels(labels, name="stack", scale=(1, 2, 0.5, 0.5))


@pytest.fixture
def open_short(viewer, qtbot, pixels):
    """Opens the plugin on the short movie and waits until it is tracked."""

    def opened():
        image, labels = pixels
        scale = (1, 0.645, 0.645)
        viewer.add_image(image, name="short", scale=scale)
        viewer.add_labels(labels.copy(), name="cells", scale=scale)
        state, widget = plugin(viewer)
        tracked(state.session, qtbot)
        qtbot.wait(50)
        return widget

    return opened


@pytest.fixture
def pace(qtbot, monkeypatch):
    """Background work that cannot go on unless the event loop beats."""
    from bridgetrack.ui import background

    made, drive = Pace(), background._drive

    def paced(work, *told):
        drive(lambda: made.wrap(work()), *told)

    monkeypatch.setattr(background, "_drive", paced)
    yield made
    made.held = False
