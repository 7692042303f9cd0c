"""Input that cannot be used, and places that cannot be written: one line that names the file."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import tifffile

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import save_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry
from cli.conftest import folder, squares, write_tiff


@pytest.fixture
def labels(tmp_path):
    """A usable label movie."""
    return write_tiff(tmp_path / "labels.tif", squares())


def test_links_to_nothing_and_to_each_other(refused, labels, tmp_path):
    out, loop, link = tmp_path / "out", tmp_path / "a", tmp_path / "gone.tif"
    loop.symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(loop)
    link.symlink_to("moved")
    refused(("track", labels, "--out", loop), "links lead in a circle")
    for words in (("track", loop), ("batch", loop), ("run", loop), ("track", link)):
        refused((*words, "--out", out), f"error: {words[1]}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_pipes_are_not_waited_for(refused, labels, tmp_path):
    out = tmp_path / "out"
    frame = folder(tmp_path / "frames") / "t0.tif"
    pipes = [tmp_path / "a.csv", tmp_path / "a.tif", tmp_path / "a.json", frame]
    for pipe in pipes:
        os.mkfifo(pipe)
    table, movie, answers, _ = pipes
    for given, pipe in ((table, table), (movie, movie), (frame.parent, frame)):
        refused(("track", given, "--out", out), f"{pipe}: a pipe")
    refused(("track", labels, "--annotations", answers, "--out", out), f"{answers}: a pipe")


# ------------------------------------------------------------------ hardly usable input


@pytest.mark.parametrize(
    ("frames", "cells"), [(squares(1), 2), (squares(5) * (np.arange(5) != 2)[:, None, None], 8)]
)
def test_one_frame_and_empty_frames(run, tmp_path, frames, cells):
    file = write_tiff(tmp_path / "l.tif", frames.astype(np.uint16))
    record = run("track", file, "--axes", "TYX", "--out", tmp_path / "out", "--json").json
    assert record["counts"]["cells"] == cells
    assert any("only one frame" in note for note in record["notes"]) == (len(frames) == 1)


def test_colours_are_told_or_refused(run, refused, tmp_path):
    pixels = np.zeros((4, 40, 50, 3), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "rgb.tif", pixels, photometric="rgb")
    shown = run("segment", tmp_path / "rgb.tif", "--out", tmp_path / "labels.tif")
    for words in ("rgb.tif", "RGB", "--channel", "no cell was found"):
        assert words in shown.out
    np.save(tmp_path / "rgb.npy", pixels)
    words = ("segment", tmp_path / "rgb.npy", "--out", tmp_path / "other.tif")
    refused(words, "rgb.npy", "TYXC")


# ------------------------------------------------------------------ annotations


def answers_of(path, *events, unsure=()):
    """A file of confirmed events, and of those of which one cannot tell."""
    listed = [Annotation(f"a{k}", Kind.CONFIRM, (e,)) for k, e in enumerate(events)]
    listed += [Annotation(f"u{k}", Kind.CANNOT_TELL, (e,)) for k, e in enumerate(unsure)]
    save_annotations(AnnotationSet(Geometry(3, (40, 40), (1.0, 1.0)), listed), path)
    return path


def test_contradictory_annotations(refused, labels, tmp_path):
    cells = [CellRef(t, 1, (8.0, 8.0)) for t in (0, 1)]
    move = EventRef(Event.MOVE, (cells[0],), (cells[1],))
    answers = answers_of(tmp_path / "a.json", move, EventRef(Event.DISAPPEAR, (cells[0],)))
    words = ("track", labels, "--annotations", answers, "--out", tmp_path / "out")
    refused(words, "cell 1 in frame 0")


def test_other_files_in_place_of_annotations(refused, labels, tmp_path):
    (tmp_path / "tracks.csv").write_text("t,y,x,track_id\n0,8,8,1\n")
    for given in (tmp_path / "tracks.csv", labels):
        words = ("track", labels, "--annotations", given, "--out", tmp_path / "out")
        says = f"{given}: this is not an annotation file", "bridgetrack annotate", "Import tracks"
        refused(words, *says)


def test_lost_annotations_are_told(run, labels, tmp_path):
    cells = [CellRef(t, 1, (8.0, 8.0)) for t in (0, 1, 2)]
    gone = EventRef(Event.DISAPPEAR, (CellRef(0, 9, (39.0, 2.0)),))
    move, later = (EventRef(Event.MOVE, cells[k : k + 1], cells[k + 1 : k + 2]) for k in (0, 1))
    answers = answers_of(tmp_path / "a.json", gone, move, unsure=[later])
    words = (labels, "--annotations", answers, "--out")
    shown = " ".join(run("track", *words, tmp_path / "out").out.split())
    used = "with 1 of 2 annotations of this movie; for 1 more the answer was: cannot tell"
    assert used in shown and "annotation u0" not in shown
    assert "cell 9 in frame 0" in shown
    learned = run("train", *words, tmp_path / "m").out
    assert "note: 1 answered 'cannot tell': nothing is learned" in learned and "u0" not in learned


def moved(clicks, kept, **movie):
    """The same with all but some annotations at places where no cell can be, of such a movie."""
    content = json.loads(clicks.read_text())
    content.pop("history", None)
    content["movie"] |= movie
    entries = content["annotations"]
    for entry in entries[: len(entries) - kept]:
        for event in entry["events"]:
            for cell in (*event["sources"], *event["targets"]):
                cell["position"] = [5000.0 + cell["label"], 5000.0]
    other = clicks.with_name("other.json")
    other.write_text(json.dumps(content))
    return other


@pytest.mark.parametrize("command", ["train", "track"])
def test_answers_about_another_movie(run, refused, truth, clicks, command):
    out = clicks.with_name("out.json")
    more = ("--out", out)
    words = (command, truth, "--annotations", moved(clicks, 0), *more)
    refused(words, "other.json", "another movie")
    assert "another movie" not in run(command, truth, "--annotations", clicks, *more).out
    shown = run(command, truth, "--annotations", moved(clicks, 3), *more)
    assert f"warning: {clicks.with_name('other.json')}: " in shown.out
    # Where the movies differ in size, too, they are refused.
    words = (command, truth, "--annotations", moved(clicks, 3, shape=[9000, 9000]), *more)
    refused(words, "other.json", "another movie", "made on", "9000")


# ------------------------------------------------------------------ places to write


@pytest.fixture(params=["train", "track"])
def writing(request, truth, clicks):
    """A command that writes, but for the place."""
    learned = ("--annotations", clicks, "--lambda", 1) if request.param == "train" else ()
    return (request.param, truth, *learned, "--out")


def test_a_place_without_permission_is_refused_before_the_work(
    refused, writing, tmp_path, monkeypatch
):
    locked, allowed = folder(tmp_path / "locked"), os.access
    monkeypatch.setattr("os.access", lambda p, how: Path(p) != locked and allowed(p, how))
    monkeypatch.setattr("bridgetrack.movie.opening.open_labels", None)
    refused((*writing, locked / "o"), "locked", "permission")


def test_a_file_in_the_place_of_a_folder(refused, writing, clicks):
    for out in (clicks / "o.json", clicks if writing[0] == "track" else clicks.parent):
        refused((*writing, out), clicks.parent)
