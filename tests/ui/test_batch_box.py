"""Many movies from the window: a folder is tracked with the model in use."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import bridgetrack as bt
from bridgetrack.ui.state import state_of

pytestmark = pytest.mark.filterwarnings("ignore")


def unfolded(viewer, qtbot):
    """What tracks many movies, with its section unfolded."""
    from qtpy.QtCore import Qt
    from superqt import QCollapsible

    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    widget.open_step(3)
    sections = widget.track.findChildren(QCollapsible)
    title = next(s for s in sections if s.text() == "Many movies").toggleButton()
    qtbot.mouseClick(title, Qt.MouseButton.LeftButton)
    box = widget.track.batch
    qtbot.waitUntil(box.go.isVisible, timeout=20_000)
    return widget, box


def test_a_folder_in_the_window(viewer, qtbot, tmp_path, pace):
    from qtpy.QtCore import Qt

    many, out = tmp_path / "many", tmp_path / "out"
    many.mkdir()
    for name, step in (("slow", 1.0), ("fast", 4.0)):
        rows = [(t, 20.0 * k + step * t, 30.0 * k) for t in range(4) for k in range(1, 8)]
        pd.DataFrame(rows, columns=["t", "y", "x"]).to_csv(many / f"{name}.csv", index=False)
    (many / "broken.npy").write_bytes(b"nothing")
    _, box = unfolded(viewer, qtbot)

    def go():
        """Press the button once the section that holds it is laid out."""
        qtbot.waitUntil(lambda: box.go.isEnabled() and box.go.height() > 10, timeout=20_000)
        qtbot.mouseClick(box.go, Qt.MouseButton.LeftButton)

    go()
    assert box.words.text().startswith("Choose the folder")
    box.folder.value, box.out.value = many, out
    pace.held = True
    go()
    qtbot.waitUntil(box.work.isVisible, timeout=20_000)
    # Another movie may be opened meanwhile; closing asks.
    state = state_of(viewer)
    labels = np.zeros((3, 40, 40), dtype=np.uint8)
    labels[:, 10:20, 10:20] = 1
    viewer.add_labels(labels)
    qtbot.waitUntil(lambda: state.session.movie is not None, timeout=20_000)
    assert state.guard.losses == [
        "Many movies are being tracked; those that are not done yet would be left out."
    ]
    box.work.stop.click()
    assert box.words.text().startswith("Cancelled: the movies that are done have their results")
    pace.held = False
    state.session.kinds = bt.EventKinds.without(["gaps"])  # what is unticked is left out
    go()
    qtbot.waitUntil(lambda: "28 cells" in box.words.text(), timeout=30_000)
    record = json.loads((out / "slow" / "run.json").read_text())
    assert record["settings"]["without"] == ["gaps"]
    assert all(f"{name}: 28 cells, 7 tracks" in box.words.text() for name in ("slow", "fast"))
    assert "broken failed: " in box.words.text()
    table = pd.read_csv(out / "batch.csv")
    assert list(table["cells"].dropna()) == [28, 28]
    assert np.isfinite(table["certainty"].iloc[:2]).all()
