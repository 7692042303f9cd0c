"""Step 4: what can happen in a movie, and many movies at once."""

import json

import numpy as np
import pandas as pd
from qtpy.QtWidgets import QFileDialog

import bridgetrack as bt
from bridgetrack.hypotheses.events import Event, EventKinds
from bridgetrack.ui.state import state_of
from doubtful_kind import as_if
from window import plugin, press, settled


def test_kinds_that_are_not_ticked_do_not_happen_and_tracks_follow_the_movie(
    open_short, viewer, qtbot, pixels
):
    widget = open_short()
    panel, session = widget.track, state_of(viewer).session
    box = panel.unclear
    widget.open_step(3)
    assert not box.isVisibleTo(panel), "cells are clear here"

    session.tracking = as_if(session.tracking, [0.2, 0.9, 0.0])
    session.tracking_changed.emit()
    assert box.isVisibleTo(panel) and box.words.text().startswith("3 merges were found")
    box.none.click()
    settled(session, qtbot)
    assert session.kinds == EventKinds(merges=False)
    assert not box.isVisibleTo(panel)

    # What is not ticked is not proposed.
    assert (session.tracking.scene.hypotheses.event == Event.DIVIDE).any()
    assert panel.divide.isChecked()
    panel.divide.click()
    settled(session, qtbot)
    assert not (session.tracking.scene.hypotheses.event == Event.DIVIDE).any()
    assert not panel.divide.isChecked()
    tracks_of_the_next_movie_are_shown_above_it(widget, session, viewer, qtbot, pixels)


def tracks_of_the_next_movie_are_shown_above_it(widget, session, viewer, qtbot, pixels):
    qtbot.waitUntil(lambda: "Tracks" in viewer.layers)
    movie = viewer.add_image(pixels[0][:3] + 1, name="next")
    cells = viewer.add_labels(pixels[1][:3].copy(), name="its cells")
    widget.segment.source.image.choose(movie)
    widget.segment.source.labels.choose(cells)
    qtbot.waitUntil(lambda: session.movie.layers == (movie, cells))
    assert "Tracks" not in viewer.layers, "they were those of the first movie"
    qtbot.waitUntil(lambda: "Tracks" in viewer.layers)
    qtbot.waitUntil(lambda: "Cells by track" in viewer.layers)
    above = [viewer.layers.index(name) for name in ("Cells by track", "Tracks")]
    assert min(above) > max(map(viewer.layers.index, (movie, cells)))

    # Also where all layers were deleted.
    viewer.layers.clear()
    qtbot.waitUntil(lambda: session.movie is None)
    viewer.add_labels(pixels[1][:4].copy(), name="others")
    qtbot.waitUntil(lambda: {"Tracks", "Cells by track"} <= {x.name for x in viewer.layers})


def test_a_folder_in_the_window(viewer, qtbot, tmp_path, pace, monkeypatch):
    many, out = tmp_path / "many", tmp_path / "many_tracks"
    many.mkdir()
    for name, step in (("slow", 1.0), ("fast", 4.0)):
        rows = [(t, 20.0 * k + step * t, 30.0 * k) for t in range(4) for k in range(1, 8)]
        pd.DataFrame(rows, columns=["t", "y", "x"]).to_csv(many / f"{name}.csv", index=False)
    (many / "broken.npy").write_bytes(b"nothing")
    state, widget = plugin(viewer)
    widget.open_step(3)
    box = widget.track.export
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(many))
    pace.held = True
    press(qtbot, box.many)
    qtbot.waitUntil(widget.work.isVisible)
    # Another movie may be opened meanwhile; closing asks.
    labels = np.zeros((3, 40, 40), dtype=np.uint8)
    labels[:, 10:20, 10:20] = 1
    viewer.add_labels(labels)
    qtbot.waitUntil(lambda: state.session.movie is not None)
    assert state.guard.losses == ["Tracking many movies is not done yet."]
    widget.work.stop.click()
    assert "Cancelled" in widget.notice.text()
    pace.held = False
    state.session.kinds = bt.EventKinds.without(["gaps"])  # what is unticked is left out
    press(qtbot, box.many)
    qtbot.waitUntil(lambda: "2 movies tracked" in box.words.text())
    record = json.loads((out / "slow" / "run.json").read_text())
    assert record["settings"]["without"] == ["gaps"]
    assert "broken failed: " in box.words.text()
    table = pd.read_csv(out / "batch.csv")
    assert list(table["cells"].dropna()) == [28, 28]
    assert np.isfinite(table["certainty"].iloc[:2]).all()

    # What may be wrong with a movie is told, too.
    def doubtful(*_):
        yield from ()
        return pd.DataFrame({"movie": ["slow"], "problem": [""], "warnings": ["few are clear"]})

    monkeypatch.setattr("bridgetrack.ui.track_panel.batch_steps", doubtful)
    press(qtbot, box.many)
    qtbot.waitUntil(lambda: "slow: ⚠ few are clear." in box.words.text())
