"""The masks in the colours of their tracks, in a real viewer."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.ui.layers import find_role

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def tracked(open_short, viewer, qtbot):
    """Workflow, state and the layer of the short movie, once its tracks are shown."""
    from bridgetrack.ui.state import state_of

    widget = open_short()
    widget.open_step(3)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "coloured") is not None, timeout=20_000)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "coloured").visible, timeout=20_000)
    return widget, state_of(viewer), find_role(viewer.layers, "coloured")


def drawn_as(layer, tracking, frame):
    """Whether every cell of a frame is drawn as its track."""
    nodes = tracking.tracks.nodes
    here = nodes[nodes["frame"] == frame]
    labels = np.asarray(tracking.scene.labels.channel_frame(frame))
    expected = np.zeros(labels.shape, int)
    for label, track in zip(here["label"], here["track_id"], strict=True):
        expected[labels == label] = track
    return np.array_equal(np.asarray(layer.data[frame]), expected)


def test_cells_have_the_colours_of_their_tracks(tracked, viewer, qtbot):
    # Cells have the colours of their families.
    widget, state, layer = tracked
    tracking = state.session.tracking
    assert all(drawn_as(layer, tracking, t) for t in (0, 5))
    nodes = tracking.tracks.nodes
    families = dict(zip(nodes["track_id"], nodes["lineage_id"], strict=True))
    colour = {k: tuple(layer.colormap.map(np.array([k]))[0].round(3)) for k in families}
    for track, family in families.items():
        relatives = [k for k, f in families.items() if f == family]
        assert {colour[k] for k in relatives} == {colour[track]}
    assert len(set(colour.values())) > 0.5 * len(set(families.values()))
    assert layer.colormap.map(np.array([0]))[0][3] == 0
    # It lies below the lines and what one points at, and is no cells to choose.
    order = [viewer.layers.index(find_role(viewer.layers, r)) for r in ("coloured", "events")]
    assert order == sorted(order)
    names = [widget.segment.source.labels.itemText(k)
             for k in range(widget.segment.source.labels.count())]  # fmt: skip
    assert layer.name not in names
    # The colours follow mended masks.
    session = state.session
    labels = viewer.layers["cells"].data
    cell = int(labels[3][labels[3] > 0][2000])
    inside = np.argwhere(labels[3] == cell)
    there = tuple(inside[len(inside) // 2].tolist())
    assert layer.data[3][there] > 0
    session.mend("remove", 3, tuple(map(float, there)))
    qtbot.waitUntil(
        lambda: session.tracking is not None and not session.busy("measure", "track"),
        timeout=60_000,
    )
    qtbot.waitUntil(lambda: int(layer.data[3][there]) == 0, timeout=20_000)
    assert drawn_as(layer, session.tracking, 3)
    # The colours go and come.
    viewer.layers.remove(find_role(viewer.layers, "coloured"))
    state.session.track()
    qtbot.waitUntil(lambda: not state.session.busy("track"), timeout=20_000)
    qtbot.wait(100)
    assert find_role(viewer.layers, "coloured") is None, "who deletes it does not want it back"
    widget.open_step(0)
    widget.open_step(3)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "coloured") is not None, timeout=20_000)
    viewer.layers.remove("cells")
    qtbot.waitUntil(lambda: state.session.movie is None, timeout=20_000)
    assert find_role(viewer.layers, "coloured") is None
