"""An end or a beginning of a track is named in one click, and stands in the tables."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtWidgets import QApplication

from bridgetrack.annotations.files import load_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.csv import read_tracks_csv
from bridgetrack.io.results import write_results
from bridgetrack.tracks.cycles import cell_cycles
from bridgetrack.tracks.table import track_table
from session_fixtures import MIDDLE, chosen_event

pytestmark = pytest.mark.filterwarnings("ignore")


def test_an_end_and_a_beginning_are_named(open_short, viewer, hand, qtbot, tmp_path):
    from bridgetrack.ui.state import state_of

    panel = open_short()
    panel.open_step(1)
    state, fates = state_of(viewer), panel.annotate.fates
    session, annotator = state.session, state.annotator

    def named(letter: str) -> None:
        qtbot.wait(QApplication.keyboardInputInterval() + 100)  # letters before it are of no word
        qtbot.keyClicks(fates, letter)

    named("d")  # dies
    assert not len(session.annotations), "no cell is chosen"
    cells, t = session.scene.detections, 2
    state.canvas.show(t, None)
    qtbot.wait(50)
    middle = np.abs(cells.position - MIDDLE).max(axis=1) < 55
    row = next(
        int(row)
        for row in np.flatnonzero((cells.frame == t) & middle)
        if chosen_event(session.tracking, int(row)).event == Event.MOVE
    )
    hand.click(cells.position[row])
    named("d")
    qtbot.waitUntil(lambda: not session.busy("correct"), timeout=20_000)
    [answer] = session.annotations
    assert (answer.named, answer.events[0].event) == ("death", Event.DISAPPEAR)
    listed = panel.annotate.given.listed
    assert listed.words(listed.answers[0]).endswith("dies") and "dies" in panel.notice.text()
    tracks = session.tracking.tracks
    mine = tracks.nodes.loc[tracks.nodes["id"] == row, "track_id"].iloc[0]
    table = track_table(tracks).set_index("track_id")
    assert table.loc[mine, "ends_in"] == "death"
    write_results(tracks, session.scene.labels, tmp_path / "out", ("csv", "ctc", "geff"))
    assert "death" in (tmp_path / "out" / "tracks.csv").read_text()
    assert read_tracks_csv(tmp_path / "out" / "detections.csv").n_tracks == tracks.n_tracks
    assert load_annotations(session.answers.path)[answer.id].named == "death"
    # The same end by another name takes its place; a step takes it back.
    hand.click(cells.position[row])
    named("f")  # fuses
    assert [a.named for a in session.annotations] == ["fusion"]
    annotator.undo()
    assert [a.named for a in session.annotations] == ["death"]
    # What comes after it is born, and lives on.
    after = next(
        r
        for r in np.flatnonzero(cells.frame == t + 1).tolist()
        if chosen_event(session.tracking, r) is not None
    )
    annotator.select(after)
    annotator.name_fate("birth")
    qtbot.waitUntil(lambda: not session.busy("correct"), timeout=20_000)
    tracks = session.tracking.tracks
    born = tracks.nodes.loc[tracks.nodes["id"] == after, "track_id"].iloc[0]
    assert track_table(tracks).set_index("track_id").loc[born, "begins_in"] == "birth"
    assert "die, as somebody saw" not in cell_cycles(tracks).words, "it was born out of view"
