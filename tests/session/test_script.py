"""A session in a script: asked, answered, undone, trained, saved and opened again, no window."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tifffile

import bridgetrack as bt
from bridgetrack.annotations.annotation import Kind
from bridgetrack.cli.main import main
from bridgetrack.pipeline.inputs import RunInputs
from bridgetrack.session.movie import MovieAndCells

LENGTH, PART = 5, slice(64, 328)


@pytest.fixture(scope="module")
def arrays():
    """Labels and image of a short movie."""
    folder, part = bt.sample_folder(), (slice(LENGTH), 0, PART, PART)
    labels = bt.open_labels(folder / "01_GT" / "TRA").array[part].compute()
    return labels, bt.open_movie(folder / "01").array[part].compute()


def test_neither_qt_nor_napari_is_imported():
    script = (
        "import sys, bridgetrack as bt\n"
        "folder = bt.sample_folder()\n"
        "labels = bt.open_labels(folder / '01_GT' / 'TRA').array[:3, 0].compute()\n"
        "session = bt.Session(labels)\n"
        "question = session.ask()\n"
        "slow = {'scipy.stats', 'sklearn', 'qpsolvers', 'matplotlib'} & set(sys.modules)\n"
        "assert not slow, f'the first question waits for {slow}'\n"
        "session.answer(question, 'yes')\n"
        "assert len(session.annotations) == 1\n"
        "found = {m.split('.')[0] for m in sys.modules}\n"
        "assert not found & {'qtpy', 'napari', 'PyQt6', 'superqt', 'magicgui'}, found\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_model_asks_and_the_tracks_honour_the_answers(arrays):
    session = bt.Session(*arrays)
    first = session.ask()
    assert session.ask() is first, "it is asked until it is answered"
    session.answer(first, True)
    assert [a.events[0].key for a in session.annotations] == [first.event.key]
    second = session.ask()
    assert second.slot != first.slot
    session.answer(second, False)
    assert [str(a.kind) for a in session.annotations] == ["confirm", "reject"]
    chosen = session.tracking.scene.hypotheses
    assert session.tracking.scene.anchored.annotations == session.annotations
    assert len(chosen) == len(session.tracking.solution.chosen)


def test_no_such_answer(arrays):
    session = bt.Session(*arrays)
    asked = session.ask()
    for wrong in ("perhaps", 99, -1):
        with pytest.raises(bt.BridgetrackError, match="not an answer to this question"):
            session.answer(asked, wrong)
    assert len(session.annotations) == 0
    with pytest.raises(bt.BridgetrackError, match="no question"):
        session.answer(None, "yes")


def test_trained_tracked_exported_saved_and_opened_again(arrays, tmp_path):
    session = bt.Session(*arrays)
    with pytest.raises(bt.BridgetrackError, match="no answers"):
        session.train()
    for _ in range(12):
        session.answer(session.ask(), "yes")
    the_model_is_used_before_it_is_known_how_accurate_it_is(session)
    folder = session.save(tmp_path / "movie")
    assert session.save(folder) == folder, "nobody went on in it"
    assert {path.name for path in folder.iterdir()} == {
        "answers.json", "cells.zarr", "image.npy", "project.json",
    }  # fmt: skip
    what_is_exported_is_what_the_project_repeats(session, folder, tmp_path)
    again = bt.Session.from_project(folder)
    assert again.annotations == session.annotations
    assert np.array_equal(again.model.weights, session.model.weights)
    assert again.tracking.solution.value == pytest.approx(session.tracking.solution.value)
    again.answer(again.ask(), "yes")
    assert len(again.questions.active.counted) == 13, "it is known what was a question"
    # What the one answered is lost neither by saving over it nor by answers of another.
    theirs = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(bt.BridgetrackError, match="changed since"):
        session.save(folder)
    third = bt.Session.from_project(folder)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == theirs
    again.answer(again.ask(), "yes")
    with pytest.raises(bt.BridgetrackError, match="changed by another program"):
        third.answer(third.ask(), "yes")
    (tmp_path / "mine").write_text("mine")
    session.save(tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "mine"
    (tmp_path / "other.bridgetrack").mkdir()
    (tmp_path / "other.bridgetrack" / "notes.txt").write_text("mine")
    with pytest.raises(bt.BridgetrackError, match="not saved from here"):
        session.save(tmp_path / "other")


def the_model_is_used_before_it_is_known_how_accurate_it_is(session):
    seen = []
    session.model_changed.connect(lambda: seen.append(session.model.estimate))
    training = session.train()
    assert seen == [{}]
    assert training.estimate is not None and training.words
    assert session.model is training.model is session.tracking.model
    assert session.model.estimate == training.estimate.to_json()
    (said,) = (words for words in session.trainer.results() if "held-out" in words)
    assert said.startswith("Errors on 12 held-out answers: trained model ")
    trained, started = training.errors
    better = None if trained == started else trained < started
    assert session.trainer.outcome.better is better


def what_is_exported_is_what_the_project_repeats(session, project, tmp_path):
    session.questions.check_sample(1)
    session.questions.show()
    session.questions.reply(session.questions.current, Kind.CONFIRM)
    out, steps = tmp_path / "out", []
    assert session.export(out, progress=steps.append) == ()
    assert {step.stage for step in steps} >= {"Choosing events", "Writing"}
    told = " ".join((out / "methods.txt").read_text(encoding="utf-8").split())
    for words in (
        "learned from 12 annotations, starting",
        "masks described below",
        "drawn at random",
    ):
        assert words in told, told
    notes = session.export(out, ["csv", "geff"])
    assert notes == ("The earlier result in this folder was replaced.",)
    assert main(["run", str(project), "--out", str(tmp_path / "headless")]) == 0
    for file in (*out.glob("*.csv"), out / "units.json"):
        assert file.read_bytes() == (tmp_path / "headless" / file.name).read_bytes()
    with pytest.raises(bt.BridgetrackError, match="no format"):
        session.export(out, ["docx"])
    with pytest.raises(bt.BridgetrackError, match="no tracks to export"):
        bt.Session().export(out)


def test_a_project_is_not_replaced_by_itself_or_by_a_copy_that_shows_its_movie(arrays, tmp_path):
    folder = bt.Session(*arrays).save(tmp_path / "movie")
    tifffile.imwrite(tmp_path / "cells.tif", arrays[0].astype(np.uint16))
    other = bt.Session(tmp_path / "cells.tif", folder / "image.npy")
    assert other.save(folder) == folder
    assert (folder / "image.npy").exists(), "it is shown"
    again = bt.Session.from_project(folder)
    with pytest.raises(
        bt.BridgetrackError, match=r"movie\.bridgetrack is the project that is open"
    ):
        again.save(folder)
    again.answer(again.ask(), "yes")
    for no_name in ("", "..", "/"):
        with pytest.raises(bt.BridgetrackError, match="ends in no name"):
            again.save(no_name)
    assert len(bt.Session.from_project(folder).annotations) == 1


def test_a_project_is_found_from_its_own_folder(arrays, tmp_path, monkeypatch):
    labels, _ = arrays
    (tmp_path / "a.annotations.json").write_text("of another movie")
    monkeypatch.chdir(tmp_path)
    session = bt.Session(labels, project="a.1")
    monkeypatch.chdir("/")
    session.answer(session.ask(), "yes")
    assert (tmp_path / "a.1" / "answers.json").exists(), "the place is known from the beginning"
    monkeypatch.chdir(session.save(tmp_path / "b"))
    for name in ("project.json", "answers.json", "."):
        assert len(bt.Session.from_project(name).annotations) == 1
        assert len(bt.load_annotations(name)) == 1
    assert len(bt.Session.from_project(tmp_path / "b").annotations) == 1, "by its name alone"


def test_a_project_beside_its_movie_repeats_what_answers_made(arrays, tmp_path):
    labels, image = arrays
    files = tmp_path / "labels.tif", tmp_path / "image.tif"
    for file, pixels in zip(files, (labels.astype(np.uint16), image), strict=True):
        tifffile.imwrite(file, pixels, photometric="minisblack", metadata={"axes": "TYX"})
    folder = tmp_path / "image.bridgetrack"
    session = bt.Session(*files, project=folder)
    assert not folder.exists(), "nothing is known yet"
    session.answer(session.ask(), "yes")
    assert bt.load_annotations(folder / "answers.json") == session.annotations, "on disk at once"
    gone = int(labels[1].max())
    session.mend("remove", 1, tuple(np.argwhere(labels[1] == gone).mean(axis=0)))
    assert {path.name for path in folder.iterdir()} == {"answers.json", "project.json"}
    assert gone in tifffile.imread(files[0])[1], "the file of the masks stays as it is"
    for path in (folder, session.save(tmp_path / "copy")):
        again = bt.run(RunInputs.of_project(path).open().tracked())
        np.testing.assert_array_equal(again.scene.detections.label, session.scene.detections.label)
        assert again.solution.value == pytest.approx(session.tracking.solution.value)
        assert len(bt.load_annotations(path)) == 1
    resumed = bt.Session.from_project(folder)
    assert resumed.annotations == session.annotations
    assert resumed.project.path == folder
    resumed.train()
    assert resumed.model.provenance["movies"] == ["image.tif"], "by its file, not as an array"


def test_a_checked_sample_goes_with_the_project(arrays, tmp_path):
    session = bt.Session(*arrays, project=tmp_path / "a.bridgetrack")
    session.questions.check_sample(5)
    session.questions.show()
    session.questions.reply(session.questions.current, Kind.CONFIRM)
    verdicts = session.questions.check.sample.verdicts
    again = bt.Session.from_project(session.save(tmp_path / "movie"))
    assert again.questions.check.sample.verdicts == verdicts
    assert again.questions.check.path != session.questions.check.path
    # an earlier version kept it beside the movie, also where nothing was answered
    session.questions.check.path.rename(tmp_path / "b.check.csv")
    taken = bt.Session(*arrays, project=tmp_path / "b.bridgetrack")
    assert taken.questions.check.sample.verdicts == verdicts


def test_what_does_not_fit_is_refused(arrays, tmp_path):
    labels, image = arrays
    with pytest.raises(bt.BridgetrackError, match="must be the same"):
        bt.Session(labels, image[:2])
    window, heard = bt.Session(), []
    window.message.connect(lambda *said: heard.append(said))
    wrong = MovieAndCells(bt.open_labels(labels), bt.open_movie(image[:2]))
    assert not window.open(wrong, tmp_path / "a.json") and window.movie is None
    assert heard[-1][0] == "error" and "must be the same" in heard[-1][1]
