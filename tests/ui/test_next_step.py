"""The line below the steps says what is missing, what comes next, and which model is in use."""

from dataclasses import replace

from bridgetrack.ui.state import state_of
from window import plugin, settled, tracked


def test_the_line_counts_what_says_something_and_names_another_model(open_short, viewer, qtbot):
    widget = open_short()
    state, said = state_of(viewer), widget.next_words
    session, annotator = state.session, state.annotator
    assert said.text().startswith("Ready. Next: ")
    widget.open_step(1)
    for row, answer in enumerate((annotator.accept, annotator.cannot_tell)):
        state.canvas.show(0, None)
        qtbot.wait(50)
        annotator.select(row)
        answer()
        settled(session, qtbot)
    assert len(session.annotations) == 2
    assert said.text().startswith("1 of about 20 answers;")
    widget.open_step(0)
    session.settings.set_model(replace(session.model, name="lab"))
    assert said.text().startswith("Ready. The model in use is “lab”; step 3 changes it.")
    session.undo()
    assert said.text().startswith("Ready. Next: ")


def test_why_layers_do_not_fit_is_said_in_every_step(viewer, qtbot, pixels):
    image, labels = pixels
    viewer.add_labels(labels[:3].copy(), name="cells")
    state, widget = plugin(viewer)
    tracked(state.session, qtbot)
    widget.open_step(3)
    wrong = viewer.add_image(image[:2], name="wrong")
    qtbot.waitUntil(lambda: state.session.movie is None)
    for step in (3, 1, 2):
        widget.open_step(step)
        assert "“wrong”: 2 frames" in widget.next_words.text()
        assert widget.next_words.text().endswith("; see step 1.")
    viewer.layers.remove(wrong)
    tracked(state.session, qtbot)
    assert "wrong" not in widget.next_words.text()
