"""What people do by mistake loses nothing, and each is answered with a sentence."""

import numpy as np

from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.state import state_of
from window import press_row, settled, tracked, undone


def test_what_is_done_by_mistake_is_told_and_loses_nothing(
    open_short, viewer, qtbot, pace, tmp_path
):
    widget = open_short()
    state = state_of(viewer)
    results_are_written_where_the_movie_is_left_meanwhile(widget, state, qtbot, pace, tmp_path)
    a_slip_is_shown_and_leads_to_its_cell(widget, state, viewer, qtbot)
    deleting_the_cells_during_training_ends_it(widget, state, viewer, qtbot, pace)


def sure_moves(session):
    """Rows of cells that surely move on, of where they go and of a neighbour's goal."""
    tracking = session.tracking
    h, table = tracking.scene.hypotheses, tracking.scene.detections
    columns = np.flatnonzero(tracking.solution.chosen & (h.event == Event.MOVE))
    columns = columns[(tracking.margins[columns] > 5) & np.isfinite(tracking.margins[columns])]
    found = []
    for column in columns.tolist():
        row, target = int(h.sources[column, 0]), int(h.targets[column, 0])
        rivals = h.targets[(h.event == Event.MOVE) & (h.sources[:, 0] == row), 0]
        others = [int(r) for r in rivals if r != target]
        if others and 0 < table.frame[row] < table.geometry.n_frames - 2:
            found.append((row, target, others[0]))
    return found


def connect(annotator, row, target, at):
    """Say that a cell moves to another."""
    annotator.set_mode(Mode.MOVE)
    annotator.click(*at(row))
    annotator.click(*at(target))


def results_are_written_where_the_movie_is_left_meanwhile(widget, state, qtbot, pace, tmp_path):
    session = state.session
    widget.open_step(3)
    export = widget.track.export
    qtbot.waitUntil(export.save.isEnabled)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("not to be lost")
    export.write(tmp_path / "taken")
    qtbot.waitUntil(lambda: "taken" in widget.notice.text())
    assert not export.words.text(), "it is said once"
    export.write(tmp_path / "out")
    pace.held = True
    widget.segment.source.labels.choose(None)
    qtbot.waitUntil(lambda: session.movie is None)
    export.write(tmp_path / "other")
    pace.held = False
    told = f"Written to {tmp_path / 'out'}"
    qtbot.waitUntil(lambda: told in export.words.text())
    assert (tmp_path / "out" / "tracks.csv").exists()
    assert not (tmp_path / "other").exists()


def a_slip_is_shown_and_leads_to_its_cell(widget, state, viewer, qtbot):
    widget.segment.source.labels.choose(viewer.layers["cells"])
    tracked(state.session, qtbot)
    undone(state.session, qtbot)
    session, panel, answers = state.session, widget.train, widget.annotate.given
    table = session.scene.detections.table

    def at(row):
        return int(table["frame"][row]), (float(table["y"][row]), float(table["x"][row]))

    moves = sure_moves(session)
    (slip, _, wrong), right = moves[0], [m for m in moves[1:] if at(m[0])[0] != at(moves[0][0])[0]]
    connect(state.annotator, slip, wrong, at)
    (answer,) = session.annotations
    for row, target, _ in right[:8]:
        connect(state.annotator, row, target, at)
    state.annotator.set_mode(Mode.REVIEW)
    settled(session, qtbot)
    widget.open_step(2)
    assert not panel.doubt.isVisible()
    panel.go.click()
    qtbot.waitUntil(lambda: state.session.trainer.training is not None)
    assert panel.doubt.text().startswith("1 answer looks unusual") and panel.doubt.isVisible()

    widget.open_step(1)
    viewer.dims.set_current_step(0, 0)
    said = [answers.listed.words(answer) for answer in answers.listed.answers]
    assert [k for k, words in enumerate(said) if "⚠" in words] == [0]
    widget.annotate.tabs.setCurrentIndex(2)
    press_row(qtbot, answers, 0)
    assert viewer.dims.current_step[0] == answer.cells[0].frame
    widget.annotate.remove.click()
    assert answer.id not in session.annotations
    widget.open_step(2)
    assert not panel.doubt.isVisible(), "an answer that was taken back is not shown any more"
    state.annotator.undo()
    assert panel.doubt.isVisible()


def deleting_the_cells_during_training_ends_it(widget, state, viewer, qtbot, pace):
    session, layer = state.session, viewer.layers["cells"]
    settled(session, qtbot)
    given, path, learned = list(session.annotations), session.answers.path, session.model
    pace.held = True
    widget.train.go.click()
    qtbot.waitUntil(lambda: session.trainer.busy)
    viewer.layers.remove(layer)
    qtbot.waitUntil(lambda: session.movie is None)
    assert "Training ended before it was done" in widget.notice.text()
    assert "“cells” was deleted" in widget.notice.text()
    assert "step 1" in widget.next_words.text() and not session.trainer.busy
    pace.held = False
    viewer.add_layer(layer)
    tracked(session, qtbot)
    assert session.answers.path == path and list(session.annotations) == given
    assert session.model.name == learned.name and not session.trainer.busy


def test_where_the_model_does_not_suit_answers_are_no_slips(session, annotator, at):
    trainer = session.trainer
    places: dict[int, tuple[int, int, int]] = {}
    for move in sure_moves(session):
        places.setdefault(at(move[0])[0], move)
    annotator.set_mode(Mode.MOVE)
    session.scene_changed.emit()
    for row, _, other in places.values():
        annotator.click(*at(row))
        annotator.click(*at(other))
    assert len(session.annotations) >= 3
    trainer.train()
    assert trainer.unsuited and trainer.doubtful() == []
    assert "does not fit this movie" in trainer.doubt()
