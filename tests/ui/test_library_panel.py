"""Start from and Keep in the real Train panel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridgetrack.models.entry import new_card
from bridgetrack.models.library import Library
from bridgetrack.models.preview import preview_png
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.movie_record import statistics_of

pytestmark = pytest.mark.filterwarnings("ignore")


def test_from_a_similar_model_to_undo(open_short, viewer, qtbot):
    from bridgetrack.ui.panel import state_of

    workflow = open_short("Bridgetrack")
    state = state_of(viewer)
    library, panel = Library(), workflow.train
    start, keep = panel.start, panel.keep
    assert library.names() == ()
    assert [start.choice.itemText(k) for k in range(start.choice.count())] == [
        "the shipped model",
        "my earlier movies…",
    ]
    assert not keep.save.isEnabled() and "train first" in keep.words.text()

    tracking = state.session.tracking
    mine = statistics_of(tracking.scene, tracking.solution.chosen)
    model = shipped_model()
    model = replace(model, loss="bridge", weights=model.weights * 1.1)
    card = new_card(model, "same lab", mine)
    library.save("lab", model, card, preview_png(card))
    workflow.open_step(2)
    qtbot.waitUntil(lambda: start.choice.count() == 3, timeout=20_000)
    assert start.choice.currentText() == "lab – very similar"
    assert "Chosen for you" in start.words.text() and "same lab" in start.words.text()
    assert start.picture.isVisible() and not start.picture.pixmap().isNull()
    assert not panel.go.isEnabled()

    start.choice.setCurrentIndex(2)
    start.choice.activated.emit(2)
    assert start.movies.isVisible() and not start.picture.isVisible()
    assert "Add project files" in start.words.text()

    start.choice.activated.emit(1)
    assert start.remove.isVisible() and not start.undo.isVisible()
    start.use.click()
    qtbot.waitUntil(lambda: state.session.model.name == "lab", timeout=20_000)
    assert "kept already" in keep.words.text()
    start.remove.click()
    qtbot.waitUntil(start.undo.isVisible, timeout=20_000)
    assert library.names() == ()
    qtbot.waitUntil(keep.save.isEnabled, timeout=20_000)
    keep.name.setText("a/b")
    keep.save.click()
    assert "cannot be called" in keep.problem.text() and not start.problem.text()
    keep.name.setText("again")
    keep.description.setText("words")
    keep.save.click()
    qtbot.waitUntil(lambda: library.names() == ("again",), timeout=20_000)
    qtbot.waitUntil(lambda: "kept already" in keep.words.text(), timeout=20_000)
    start.undo.click()
    qtbot.waitUntil(lambda: library.names() == ("again", "lab"), timeout=20_000)
    for widget in (start.choice, start.use, start.remove, start.undo, start.add_movies, start.clear,
                   start.strategy, start.export, keep.name, keep.description, keep.save,
                   keep.take):  # fmt: skip
        assert widget.toolTip()
