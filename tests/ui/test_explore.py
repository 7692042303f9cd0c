"""The table of tracks, lineage trees, plots and colours, linked with the image."""

import numpy as np
import pyqtgraph as pg
import pytest
from qtpy.QtCore import QPointF, Qt
from qtpy.QtWidgets import QDockWidget

from bridgetrack.tracks.colours import colouring
from bridgetrack.ui.explore_panel import NAME, ExplorePanel
from bridgetrack.ui.layers import find_role
from bridgetrack.ui.state import CloseGuard, state_of
from bridgetrack.ui.widgets import SPACE
from session_fixtures import MIDDLE
from window import settled

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def opened(open_short, viewer, qtbot):
    """State, step 4 and the panel with all tracks, opened by its button."""
    widget, state = open_short(), state_of(viewer)
    assert find_role(viewer.layers, "tracks") is None

    # Other tracks come just when the layer is added, before it is drawn.
    def change(event):
        state.session.tracking_changed.emit()

    viewer.layers.events.inserted.connect(change)
    viewer.window.resize(1366, 768)
    widget.open_step(3)  # shows them, without a button
    assert "are being drawn" in widget.next_words.text()
    qtbot.waitUntil(lambda: find_role(viewer.layers, "tracks") is not None)
    viewer.layers.events.inserted.disconnect(change)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "tracks").visible)
    assert "are being drawn" not in widget.next_words.text()
    widget.track.explore.click()
    [panel] = widget.window().findChildren(ExplorePanel)
    qtbot.waitUntil(lambda: panel.numbers is not None)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "coloured") is not None)
    qtbot.wait(200)
    widget.track.explore.click()
    docks = [d for d in widget.window().findChildren(QDockWidget) if NAME in d.windowTitle()]
    assert len(docks) == len(widget.window().findChildren(ExplorePanel)) == 1
    return state, widget, panel


def click_row(qtbot, panel, k, key=Qt.KeyboardModifier.NoModifier):
    view = panel.list
    place = view.visualRect(panel.list.listed.index(k, 0)).center()
    qtbot.mouseClick(view.viewport(), LEFT, key, pos=place)
    qtbot.wait(30)


def selected(panel):
    rows = panel.list.selectionModel().selectedRows()
    return [panel.list.listed.tracks[i.row()] for i in rows]


def rows_and_cells_are_linked(opened, hand, viewer, qtbot):
    state, _, panel = opened
    tracks = state.session.tracking.tracks
    nodes, model = tracks.nodes, panel.list.listed
    assert model.rowCount() == tracks.n_tracks
    assert model.data(model.index(0, 0)) == "1"
    # Sorted by a click on a column: the longest first.
    column = list(model.table.columns).index("detections")
    panel.list.sortByColumn(column, Qt.SortOrder.DescendingOrder)
    lengths = model.table["detections"].to_numpy()
    assert (np.diff(lengths) <= 0).all() and len(set(lengths)) > 2
    # A click on a row goes to its first sight and outlines the cell.
    state.canvas.show(0, None)
    click_row(qtbot, panel, len(model.tracks) - 1)
    [track] = selected(panel)
    own = nodes[nodes["track_id"] == track]
    assert state.canvas.frame == own["frame"].min() > 0
    assert state.annotator.outlined in own["id"].tolist()
    # A click on a cell chooses its row, and answers nothing.
    state.canvas.show(0, None)
    here = nodes[nodes["frame"] == 0]
    away = np.abs(here[["y", "x"]].to_numpy() * 0.645 - MIDDLE).max(axis=1)
    cell = here.iloc[int(away.argmin())]
    hand.click(np.array([cell["y"], cell["x"]]) * 0.645)
    assert selected(panel) == [int(cell["track_id"])]
    assert not len(state.session.annotations), "nothing was answered"


def drawn_as(layer, tracking, frame):
    """Whether every cell of a frame is drawn as its track."""
    nodes = tracking.tracks.nodes
    here = nodes[nodes["frame"] == frame]
    labels = np.asarray(tracking.scene.labels.channel_frame(frame))
    expected = np.zeros(labels.shape, int)
    for label, track in zip(here["label"], here["track_id"], strict=True):
        expected[labels == label] = track
    return np.array_equal(np.asarray(layer.data[frame]), expected)


def cells_have_the_colours_of_their_lineages(opened, viewer, qtbot):
    state, widget, panel = opened
    layer, tracking = find_role(viewer.layers, "coloured"), state.session.tracking
    assert all(drawn_as(layer, tracking, t) for t in (0, 5))
    nodes = tracking.tracks.nodes
    lineages = dict(zip(nodes["track_id"], nodes["lineage_id"], strict=True))
    colour = {k: tuple(layer.colormap.map(np.array([k]))[0].round(3)) for k in lineages}
    for track, lineage in lineages.items():
        relatives = [k for k, f in lineages.items() if f == lineage]
        assert {colour[k] for k in relatives} == {colour[track]}
    assert len(set(colour.values())) > 0.5 * len(set(lineages.values()))
    assert layer.colormap.map(np.array([0]))[0][3] == 0
    # It lies below the lines and what one points at, and is no cells to choose.
    order = [viewer.layers.index(find_role(viewer.layers, r)) for r in ("coloured", "events")]
    assert order == sorted(order)
    box = widget.segment.source.labels
    assert layer.name not in [box.itemText(k) for k in range(box.count())]
    # The colours follow mended masks.
    session = state.session
    labels = viewer.layers["cells"].data
    cell = int(labels[3][labels[3] > 0][2000])
    inside = np.argwhere(labels[3] == cell)
    there = tuple(inside[len(inside) // 2].tolist())
    assert layer.data[3][there] > 0

    session.mend("remove", 3, tuple(map(float, there)))
    settled(session, qtbot)
    qtbot.waitUntil(lambda: int(layer.data[3][there]) == 0)
    assert drawn_as(layer, session.tracking, 3)
    # The colours go and come.
    widget.open_step(1)
    assert not find_role(viewer.layers, "coloured").visible, "colours would hide the question"
    widget.open_step(3)
    assert find_role(viewer.layers, "coloured").visible
    viewer.layers.remove(find_role(viewer.layers, "coloured"))
    state.session.tracker.track()
    qtbot.waitUntil(lambda: not state.session.busy("track"))
    assert find_role(viewer.layers, "coloured") is None, "who deletes it does not want it back"
    widget.open_step(0)
    widget.open_step(3)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "coloured") is not None)
    session.undo()
    settled(session, qtbot)
    qtbot.waitUntil(lambda: panel.numbers.tracks is session.tracking.tracks)


def trees_plots_and_colours(opened, viewer, qtbot):
    state, widget, panel = opened
    step, tracks = widget.track, state.session.tracking.tracks
    nodes = tracks.nodes
    panel.tabs.setCurrentIndex(1)
    assert len(panel.tree.drawn.branches) == tracks.n_tracks
    # A click on a branch chooses the track and goes there.
    table = panel.tree.drawn.branches
    branch = table[table["end"] - table["start"] > 3].iloc[0]
    frame = int(branch["start"]) + 2
    track = int(branch["track_id"])

    def chosen_by_a_click():
        qtbot.wait(600)  # the layout; and else it is a double click
        spot = panel.tree.plotItem.vb.mapViewToScene(QPointF(branch["x"], frame))
        qtbot.mouseClick(panel.tree.viewport(), LEFT, pos=panel.tree.mapFromScene(spot))
        return state.looks.chosen == (track,)

    qtbot.waitUntil(chosen_by_a_click)
    assert state.canvas.frame == frame and selected(panel) == [track]
    # One choice of colours for lines, cells and trees; along the tracks where it changes.
    layer, cells = find_role(viewer.layers, "tracks"), find_role(viewer.layers, "coloured")
    for by in ("certainty", "generation", "area"):
        before = cells.colormap
        step.colour.setCurrentIndex(step.colour.findData(by))
        qtbot.waitUntil(lambda before=before: cells.colormap is not before)
        found = colouring(tracks, by)
        assert np.allclose(layer.track_colors[:, :3], found.colours, atol=1e-3)
        here = nodes[nodes["frame"] == 3]
        places = here[["y", "x"]].round().astype(int).to_numpy()
        pixels = np.asarray(cells.data[3])[tuple(places.T)]
        wanted = found.colours[found.at(here["track_id"].to_numpy(), here["frame"].to_numpy())]
        inside = pixels > 0
        assert inside.sum() > 0.8 * len(here)
        shown = cells.colormap.map(pixels)[inside, :3]
        assert np.allclose(shown, wanted[inside], atol=0.02), by
    assert panel.tree._legend is not None
    # Curves of the chosen, distributions of all.
    panel.tabs.setCurrentIndex(2)
    assert panel.feature.itemText(panel.feature.findData("area")) == "area [µm²]"
    panel.feature.setCurrentIndex(panel.feature.findData("speed"))
    assert panel.plot.plotItem.vb.height() > 100, "on a small screen, too"
    words = [step.colour.itemText(k) for k in range(step.colour.count())]
    longest = max(map(step.colour.fontMetrics().horizontalAdvance, words))
    assert step.colour.width() - 30 > longest, "no words are cut"
    [curve] = panel.plot.plotItem.listDataItems()
    assert curve.name() == str(track)
    state.looks.choose([])
    [bars] = [x for x in panel.plot.plotItem.items if isinstance(x, pg.BarGraphItem)]
    assert bars.opts["height"].sum() == len(nodes) - tracks.n_tracks
    panel.tabs.setCurrentIndex(3)
    assert "born by an observed division" in panel.cycle_words.toPlainText()
    assert len(panel.survival.plotItem.listDataItems()) > 0
    assert panel.survival.plotItem.getAxis("bottom").labelText.startswith("time since birth")
    another_theme_is_followed_at_once(panel, step, viewer, qtbot)
    panel.tabs.setCurrentIndex(0)
    model = panel.list.listed
    click_row(qtbot, panel, 0)
    assert selected(panel) == [model.tracks[0]] == list(state.looks.chosen)
    # It follows answers, and forgets a movie that is closed.
    session, before, lines = state.session, panel.numbers, layer.data.copy()
    event = session.tracking.tracks.events.query("event == 'divide'").iloc[0]
    mother = int(event["sources"][0])
    state.annotator.select(mother)
    state.annotator.reject()
    qtbot.waitUntil(lambda: panel.numbers is not before)
    qtbot.waitUntil(lambda: not np.array_equal(layer.data, lines))
    assert panel.numbers.tracks is session.tracking.tracks
    assert panel.list.listed.rowCount() == session.tracking.tracks.n_tracks
    viewer.layers.remove("cells")
    qtbot.waitUntil(lambda: panel.numbers is None)
    assert panel.list.listed.rowCount() == 0 and not panel.tabs.isEnabled()
    assert find_role(viewer.layers, "coloured") is None
    assert "no tracks" in panel.hint.text()


def another_theme_is_followed_at_once(panel, step, viewer, qtbot):
    before, theme = panel.survival.grab().toImage().pixelColor(3, 3), viewer.theme
    viewer.theme = "light" if theme == "dark" else "dark"
    qtbot.wait(300)
    after = panel.survival.grab().toImage().pixelColor(3, 3)
    assert abs(after.lightness() - before.lightness()) > 100, "the background, too"
    axis, title = panel.survival.getAxis("left"), panel.survival.plotItem.titleLabel
    assert title.opts["color"] == axis.textPen().color()
    assert step.minimumSizeHint().width() < 330, "nothing is cut at the right"
    viewer.theme = theme
    qtbot.wait(300)


def steps_that_float_are_those_of_the_window(opened, viewer, qtbot, monkeypatch):
    state, widget, panel = opened
    window, steps = widget.window(), widget
    while not isinstance(steps, QDockWidget):
        steps = steps.parentWidget()
    steps.setFloating(True)
    qtbot.wait(50)
    assert widget.window() is not window
    zoom, viewer.camera.zoom = viewer.camera.zoom, 20 * viewer.camera.zoom
    assert not state.canvas.holds((0.0, 0.0)), "what is beyond the screen is out of view"
    viewer.camera.zoom = zoom
    with monkeypatch.context() as patch:
        patch.setattr(CloseGuard, "losses", ["Something is not done yet."])
        patch.setattr("bridgetrack.ui.state.may_close", lambda *_: False)
        assert not window.close(), "it asks before"
    panel.window().findChild(QDockWidget, NAME).hide()
    widget.track.explore.click()
    assert panel.isVisible() and len(window.findChildren(ExplorePanel)) == 1
    steps.setFloating(False)


def what_comes_of_a_button_is_in_view(opened, qtbot, tmp_path):
    """Although the table leaves the steps little room."""
    _, widget, panel = opened
    widget.open_step(3)
    box, check = widget.track.export, widget.track.check
    box.formats.tick(["csv"])
    widget.stack.setMaximumHeight(200)
    qtbot.wait(50)
    box.write(tmp_path / "out")
    qtbot.waitUntil(lambda: "Written" in box.words.text())
    assert in_view(box.words)
    widget.stack.setMaximumHeight(10_000)
    check.begin()
    qtbot.waitUntil(lambda: bool(widget.annotate.frames.buttons))
    asked = widget.annotate.question
    assert all(map(in_view, (asked, *widget.annotate.actions.values(), widget.annotate.stop)))
    assert not panel.isVisible(), "it tells how certain the tracks are"
    # Beside a bar to scroll down there is room for its width.
    widget.stack.setMaximumSize(widget.sizeHint().width() - 2 * SPACE, 200)
    before = asked.text()
    widget.annotate.actions["accept"].click()
    qtbot.waitUntil(lambda: asked.text() != before)
    assert in_view(asked)
    area = widget.stack.currentWidget()
    assert area.verticalScrollBar().isVisible()
    assert area.widget().width() == area.viewport().width()
    widget.stack.setMaximumSize(10_000, 10_000)
    widget.annotate.stop.click()
    qtbot.waitUntil(lambda: widget.step == 3)
    assert panel.isVisible()


def in_view(widget):
    shown = widget.visibleRegion().boundingRect()
    return shown.left() == 0 and shown.height() == widget.height()


def test_the_explorer(opened, hand, viewer, qtbot, tmp_path, monkeypatch):
    steps_that_float_are_those_of_the_window(opened, viewer, qtbot, monkeypatch)
    what_comes_of_a_button_is_in_view(opened, qtbot, tmp_path)
    rows_and_cells_are_linked(opened, hand, viewer, qtbot)
    cells_have_the_colours_of_their_lineages(opened, viewer, qtbot)
    trees_plots_and_colours(opened, viewer, qtbot)
