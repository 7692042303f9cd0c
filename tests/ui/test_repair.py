"""The checkbox that repairs cells, its list, and taking a change back, in a real window."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt
from superqt import QCollapsible

from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.pipeline import masks

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def opened(viewer, qtbot, pixels):
    """The state and panel of a viewer with cells of which one is missing in frame 2."""
    from bridgetrack.ui.panel import state_of

    image, truth = (each[:4, 60:330, 60:330] for each in pixels)
    labels = truth.copy()
    lost = max(np.unique(truth[2][40:230, 40:230])[1:], key=lambda k: (truth[2] == k).sum())
    labels[2][labels[2] == lost] = 0
    viewer.add_image(image, name="short")
    viewer.add_labels(labels, name="cells")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=60_000)
    box = widget.segment.repair
    section = next(s for s in widget.segment.findChildren(QCollapsible) if s.isAncestorOf(box))
    section.expand(animate=False)
    return state, box, truth[2] == lost


def top(box):
    """The rows of the list, folded ones as one."""
    return [box.list.topLevelItem(k) for k in range(box.list.topLevelItemCount())]


def change_of(row):
    """The change that a row stands for."""
    return row.data(0, Qt.ItemDataRole.UserRole)[0]


def click(qtbot, box, row):
    """Click a row of the list with the mouse."""
    box.list.scrollToItem(row)
    place = box.list.visualItemRect(row).center()
    qtbot.mouseClick(box.list.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_cells_are_repaired_listed_and_given_back(opened, viewer, qtbot):
    state, box, lost = opened
    session, given = state.session, viewer.layers["cells"].data.copy()
    assert box.on.isEnabled() and not box.list.isVisibleTo(box)
    assert not box.outlines.isChecked(), "cells that stay are drawn as they were brought"
    box.outlines.click()
    box.on.click()
    qtbot.waitUntil(lambda: "cells repaired" in viewer.layers, timeout=120_000)
    layer = viewer.layers["cells repaired"]
    qtbot.waitUntil(
        lambda: session.tracking is not None and session.movie.layers[1] is layer, timeout=60_000
    )
    np.testing.assert_array_equal(viewer.layers["cells"].data, given)
    assert (layer.data[2][lost] > 0).mean() > 0.6
    assert "added" in box.words.text()
    rows = top(box)
    kinds = [row.text(0) for row in rows]
    assert kinds[-1].endswith("outlines drawn anew") and not rows[-1].isExpanded()
    assert "drawn anew" not in kinds[:-1]
    assert [kinds.index(k) for k in ("cut", "added", "dropped") if k in kinds] == sorted(
        kinds.index(k) for k in ("cut", "added", "dropped") if k in kinds
    )
    row = next(
        r
        for r in rows
        if (r.text(0), r.text(1)) == ("added", "2")
        and np.isin(layer.data[2][lost], change_of(r).after).any()
    )
    click(qtbot, box, row)
    assert state.canvas.frame == 2
    outlined = session.scene.detections.table.iloc[state.annotator.outlined]
    assert (outlined["frame"], outlined["label"]) == (2, *change_of(row).after), "it is seen which"
    # The list calls cells what they are called on the image, and the image says what was there.
    assert row.text(2) == session.names(state.annotator.finder.ref(state.annotator.outlined))
    assert row.text(2).startswith("#")
    written = state.canvas.marks_layer.features["text"].tolist()
    assert "was missing" in written and row.text(2) in written
    group = rows[-1]
    assert not group.child(0).text(2)
    group.setExpanded(True)
    assert group.child(0).text(2).startswith("#")
    group.setExpanded(False)
    repaired = layer.data.copy()
    qtbot.mouseClick(box.back, Qt.MouseButton.LeftButton)
    assert (layer.data[2][lost] > 0).mean() < 0.2
    assert len(top(box)) == len(rows) - 1
    session.undo()
    np.testing.assert_array_equal(layer.data, repaired)
    assert len(top(box)) == len(rows), "the row is back with the change"
    session.redo()
    assert len(top(box)) == len(rows) - 1
    session.undo()
    click(qtbot, box, top(box)[-1])
    qtbot.mouseClick(box.back, Qt.MouseButton.LeftButton)
    assert not any("outline" in r.text(0) for r in top(box))
    there = (given > 0) & (repaired > 0)
    assert (layer.data == given)[there].mean() > (repaired == given)[there].mean() - 1e-9
    assert (layer.data != repaired).any()
    session.undo()
    np.testing.assert_array_equal(layer.data, repaired)
    box.on.click()
    qtbot.waitUntil(lambda: session.movie.layers[1] is viewer.layers["cells"], timeout=20_000)
    assert not box.list.isVisibleTo(box)
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)


def test_outlines_are_drawn_anew_at_once_and_given_back(opened, viewer, qtbot, monkeypatch):
    state, box, _ = opened
    session, given = state.session, viewer.layers["cells"].data.copy()
    chosen = masks.choose_jointly

    def hard(*args, **named):
        return 2.5 + (yield from chosen(*args, **named))

    def used():
        return box._source.labels.layer

    def others(before):
        def there():
            movie = session.movie
            return used() is not before and movie is not None and movie.layers[1] is used()

        qtbot.waitUntil(there, timeout=120_000)
        return used()

    def outlined():
        return any("drawn anew" in row.text(0) for row in top(box))

    monkeypatch.setattr(masks, "choose_jointly", hard)
    brought = used()
    box.on.click()
    first = others(brought)
    assert not outlined() and box.words.text().endswith("within 2.5 of the best score.")
    monkeypatch.setattr(masks, "choose_jointly", chosen)
    # What was said of the masks holds in the next repair.
    added = next(row for row in top(box) if row.text(0) == "added")
    place = change_of(added)
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    click(qtbot, box, added)
    box.back.click()
    qtbot.waitUntil(lambda: not session.busy("measure", "track", "correct"), timeout=60_000)
    table = session.scene.detections
    assert session.edits.verify(
        cell_refs(table, np.array([table.row_of(0, first.data[0].max())]))[0]
    )
    verified = {c.cell for a in session.annotations for c in a.cells}
    box.outlines.click()
    second = others(first)
    for t, k in verified:
        there = first.data[t] == k
        assert len(np.unique(second.data[t][there])) == 1 and second.data[t][there].all()
        np.testing.assert_array_equal(second.data[t] == second.data[t][there][0], there)
    assert box.on.isChecked() and outlined() and "best score" not in box.words.text()
    assert not any(
        (c := change_of(row)).frame == place.frame and np.allclose(c.place, place.place, atol=3)
        for row in top(box)
        if row.text(0) == "added"
    )
    assert first in viewer.layers and not first.visible and not brought.visible
    # What is cancelled leaves all as it was, and the boxes say so.
    box.outlines.click()
    qtbot.waitUntil(lambda: session.busy("repair"), timeout=20_000)
    box.work.stop.click()
    assert box.outlines.isChecked() and box.on.isChecked() and used() is second
    box.outlines.click()
    third = others(second)
    assert not outlined() and first not in viewer.layers and not second.visible
    there = (given > 0) & (third.data > 0)
    assert (third.data == given)[there].mean() > (second.data == given)[there].mean()
    box.on.click()
    assert others(third) is brought
    np.testing.assert_array_equal(brought.data, given)
    box.on.click()
    qtbot.waitUntil(lambda: session.busy("repair"), timeout=20_000)
    box.work.stop.click()
    assert not box.on.isChecked() and used() is brought
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)


def test_other_cells_end_the_repair_and_without_an_image_there_is_none(opened, viewer, qtbot):
    state, box, _ = opened
    viewer.layers.remove("short")
    qtbot.waitUntil(lambda: state.session.movie.image is None, timeout=20_000)
    assert not box.on.isEnabled()
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=60_000)
