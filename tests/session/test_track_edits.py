"""Whole tracks are verified, corrected and taken over; each act is one step."""

from __future__ import annotations

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.annotations.annotation import CellRef, EventRef, Kind
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.results import read_tracks
from bridgetrack.tracks.table import track_table, verified_tracks

PLACES = ((10, 10), (10, 40), (40, 20))
FRAMES = 5


@pytest.fixture
def labels():
    """Three cells that stand still, the labels of which are shuffled; the third is missed once."""
    made = np.zeros((FRAMES, 60, 60), dtype=np.uint16)
    for t in range(FRAMES):
        for k, (y, x) in enumerate(PLACES):
            if (t, k) != (2, 2):
                made[t, y - 4 : y + 5, x - 4 : x + 5] = 1 + (k + t) % 3
    return made


@pytest.fixture
def session(labels):
    made = bt.Session(labels)
    made.message.connect(lambda *_: None)  # as a window: errors are told there
    return made


def cell(session, t, k):
    """Reference to the k-th cell in frame t."""
    return CellRef(t, 1 + (k + t) % 3, tuple(map(float, PLACES[k])))


def track(session, t, k):
    return session.names.track(cell(session, t, k))


def cut(session, t, k):
    """Say that the k-th cell of frame t is not that of the next frame."""
    event = EventRef(Event.MOVE, (cell(session, t, k),), (cell(session, t + 1, k),))
    session.edits.note_all([(Kind.REJECT, event)], "click", "Cut.")


def links(tracks):
    nodes = tracks.nodes.set_index("id")
    ends = [(nodes.loc[e.source], nodes.loc[e.target]) for e in tracks.edges.itertuples()]
    return {(a.frame, round(a.x), b.frame, round(b.x)) for a, b in ends}


def test_a_verified_track_is_locked_exported_and_released(session, tmp_path):
    one = cell(session, 1, 0)
    assert session.edits.verify(one)
    assert verified_tracks(session.tracking.tracks) == {track(session, 1, 0)}
    assert session.names(one).endswith("✓")
    table = track_table(session.tracking.tracks).set_index("track_id")
    assert table["verified"].tolist() == [k == track(session, 1, 0) for k in table.index]
    session.tracking.save(tmp_path / "out", ("csv", "geff", "ctc"))
    written = (tmp_path / "out" / "tracks.csv").read_text().splitlines()
    assert "verified" in written[0] and sum("True" in line for line in written) == 1
    assert read_tracks(tmp_path / "out" / "tracks.geff").n_tracks == table.shape[0]
    # Neither single answers nor edits of tracks change it until it is released.
    before = session.annotations
    with pytest.raises(InputError, match="locked"):
        session.edits.delete(one)
    with pytest.raises(InputError, match=r"^cell 77 in frame 0 is in no track"):
        session.edits.verify(CellRef(0, 77, (0.0, 0.0)))
    with pytest.raises(InputError, match="locked"):
        cut(session, 1, 0)
    assert session.annotations == before
    assert not session.edits.verify(one)
    assert not len(session.annotations) and not verified_tracks(session.tracking.tracks)
    session.undo()
    assert session.annotations == before and verified_tracks(session.tracking.tracks)


@pytest.mark.parametrize("name", ["csv", "ctc"])
def test_tracks_from_elsewhere_are_taken_over_as_answers(session, labels, tmp_path, name):
    other = bt.Session(labels)
    other.message.connect(lambda *_: None)
    cut(other, 1, 0)
    wanted = links(other.tracking.tracks)
    out = tmp_path / "other"
    other.tracking.save(out, (name,))
    path = {"csv": out / "detections.csv", "ctc": out / "ctc"}[name]
    assert links(session.tracking.tracks) != wanted
    session.edits.take_over(path)
    assert {a.source for a in session.annotations} == {"import"}
    assert links(session.tracking.tracks) == wanted
    heard = []
    session.message.connect(lambda level, words: heard.append((level, words)))
    session.edits.take_over(path)
    assert heard[-1][0] == "info" and heard[-1][1].endswith("this was known already.")
    session.undo()
    assert not len(session.annotations), "what had nothing new is no step"


def test_single_answers_that_a_verified_track_rests_on_are_locked_as_well(session):
    heard = []
    session.message.connect(lambda level, words: heard.append((level, words)))
    one = cell(session, 1, 0)
    gone = EventRef(Event.DISAPPEAR, (one,))
    on = EventRef(Event.MOVE, (one,), (cell(session, 2, 0),))
    for event in (gone, on):
        session.edits.note(Kind.CONFIRM, event, "click")
    assert [a.events for a in session.annotations] == [(on,)], "nobody has verified the whole yet"
    session.edits.verify(one)
    assert session.names.verified(one)
    assert {a.source for a in session.annotations} == {"click", "verified"}
    before = session.annotations
    session.edits.note(Kind.CONFIRM, gone, "click")
    assert session.annotations == before and heard[-1][0] == "error" and "locked" in heard[-1][1]
    session.edits.remove(session.annotations.at(*one.cell))
    assert not session.names.verified(one)
    session.undo()
    assert session.annotations == before and session.names.verified(one)
