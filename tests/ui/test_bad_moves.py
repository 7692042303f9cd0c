"""What people do by mistake loses nothing, and each is answered with a sentence."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt

from bridgetrack.annotations.annotation import Kind
from bridgetrack.session.proposals import proposals
from bridgetrack.ui.panel import state_of

pytestmark = pytest.mark.filterwarnings("ignore")
LEFT = Qt.MouseButton.LeftButton


def test_an_image_of_another_size_is_told_and_nothing_is_called_ready(open_short, viewer, qtbot):
    widget = open_short()
    state = state_of(viewer)
    assert widget.next_words.text().startswith("Ready")
    assert "see the tracks in step 4" in widget.next_words.text(), "answers are not needed for that"
    viewer.add_image(np.zeros((8, 20, 20)), name="other")
    assert "“other” is there beside the open movie, “short”" in widget.notice.text()
    source = widget.segment.source
    source.image.setFocus()
    qtbot.keyClick(source.image, Qt.Key.Key_Down)
    assert source.image.layer.name == "other"
    qtbot.waitUntil(lambda: state.session.movie is None, timeout=20_000)
    assert source.labels.layer is None
    assert "“cells” are those of “short”" in widget.segment.summary.text()
    qtbot.keyClick(source.labels, Qt.Key.Key_Down)
    words = "and “other” 8 frames of 20 × 20 pixels: these are not the cells of this movie"
    qtbot.waitUntil(lambda: words in source.notice.text(), timeout=20_000)
    assert "Ready" not in widget.next_words.text()
    assert state.session.movie is None, "what was open before is not what is chosen"
    qtbot.keyClick(source.image, Qt.Key.Key_Up)
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=60_000)
    assert widget.next_words.text().startswith("Ready") and not source.notice.isVisible()
    # Channels of one array have the same cells, and none is hidden where another is chosen.
    short, cells = viewer.layers["short"], viewer.layers["cells"]
    where = {"scale": short.scale, "blending": "additive"}
    channel = viewer.add_image(short.data // 2, name="channel", **where)
    source.image.choose(channel)
    opened = (channel, cells)
    qtbot.waitUntil(
        lambda: state.session.movie is not None and state.session.movie.layers == opened,
        timeout=20_000,
    )
    assert all(layer.visible for layer in (short, cells, channel))
    source.image.choose(short)
    qtbot.waitUntil(lambda: state.session.movie.layers == (short, cells), timeout=20_000)
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=60_000)
    assert all(layer.visible for layer in (short, cells, channel))
    # Nor what is no movie at all.
    state.session.message.emit("error", "of something before")
    flat = viewer.add_labels(np.zeros((20, 20), dtype=int), name="flat")
    source.labels.choose(flat)
    qtbot.waitUntil(lambda: state.session.movie is None, timeout=20_000)
    assert "'flat' has 2 axes" in source.notice.text() and not widget.notice.isVisible()
    assert "Ready" not in widget.next_words.text()


def test_deleting_the_cells_during_training_ends_it_and_keeps_the_answers(
    open_short, viewer, qtbot, pace, tmp_path
):
    widget = open_short()
    state = state_of(viewer)
    session = state.session
    rows = [r for r in range(40) if proposals(session.tracking, r)][:10]
    for row in rows:
        session.note(Kind.CONFIRM, proposals(session.tracking, row)[0].event, "click")
    qtbot.waitUntil(lambda: not session.busy("track", "correct"), timeout=20_000)
    given, path = len(session.annotations), session.answers.path
    assert given > 5
    widget.open_step(2)
    widget.train.go.click()
    qtbot.waitUntil(lambda: session.trainer.busy, timeout=20_000)
    pace.held = True
    layer = viewer.layers["cells"]
    viewer.layers.remove(layer)
    qtbot.waitUntil(lambda: session.movie is None, timeout=20_000)
    assert "Training ended before it was done" in widget.notice.text()
    pace.held = False
    qtbot.waitUntil(lambda: not session.trainer.busy, timeout=20_000)
    assert session.trainer.training is None
    assert "step 1" in widget.next_words.text()
    viewer.add_layer(layer)
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    assert session.answers.path == path and len(session.annotations) == given
    # Results go on being written where the movie is left meanwhile, and that is told.
    widget.open_step(3)
    widget.track.go.click()
    export = widget.track.export
    qtbot.waitUntil(export.save.isEnabled, timeout=20_000)
    export.write(tmp_path / "out")
    pace.held = True
    widget.segment.source.labels.choose(None)
    qtbot.waitUntil(lambda: session.movie is None, timeout=20_000)
    assert export.words.text() == "Writing…"
    export.write(tmp_path / "other")
    pace.held = False
    told = f"The results of “short” are written to {tmp_path / 'out'}."
    qtbot.waitUntil(lambda: told in widget.notice.text(), timeout=60_000)
    assert "Written" in export.words.text() and (tmp_path / "out" / "tracks.csv").exists()
    assert not (tmp_path / "other").exists()


def test_of_several_searches_the_last_is_seen(viewer, pixels, qtbot):
    part = viewer.add_image(pixels[0][:2, 100:200, 100:200].copy(), name="part")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    qtbot.wait(50)
    find, source = widget.segment.find, widget.segment.source.labels
    image, session = widget.segment.source.image, state_of(viewer).session
    find.choice["choose"].value = "plain"
    # Found while another movie is chosen, cells are not those of that one; they come with theirs.
    other = viewer.add_image(part.data + 1, name="other")

    def leave(name, _):
        if name == "segment":
            image.choose(other)

    session.progress.connect(leave)
    find.go.click()
    qtbot.waitUntil(lambda: "Found the cells of “part”" in find.words.text(), timeout=120_000)
    qtbot.wait(50)  # until what is chosen would be opened
    assert image.layer is other and source.layer is None and session.movie is None
    session.progress.disconnect(leave)
    image.choose(part)
    qtbot.waitUntil(lambda: source.layer is not None, timeout=20_000)
    qtbot.wait(50)
    made = [source.layer]
    for _ in range(2):
        find.go.click()
        qtbot.waitUntil(lambda: source.layer not in (None, *made), timeout=120_000)
        qtbot.wait(50)  # until they are opened, which ends other work
        made.append(source.layer)
    there = [layer for layer in made if layer in viewer.layers]
    assert there == made[1:], "searches do not pile up"
    assert [layer.visible for layer in there] == [False, True]
