"""Input that cannot be used, or hardly: one clear line, or a sensible result."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.store import save_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry
from cli.conftest import Outcome, Run, one_line


def stack(path: Path, frames: Any) -> Path:
    """Write a TIFF stack."""
    tifffile.imwrite(path, np.asarray(frames), photometric="minisblack", metadata={"axes": "TYX"})
    return path


def squares(n_frames: int = 3, side: int = 40) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """Two still squares."""
    labels = np.zeros((n_frames, side, side), dtype=np.uint16)
    labels[:, 5:12, 5:12] = 1
    labels[:, 25:32, 25:32] = 2
    return labels


def refused(shown: Outcome, out: Path, *words: str) -> None:
    """A failure with one line that has these words, and no output."""
    assert shown.status == 1
    assert shown.out == ""
    assert one_line(shown.err)
    assert shown.err.startswith("error: ")
    for word in words:
        assert word in shown.err
    assert not out.exists()


def test_shapes_differ(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares(3, 40))
    image = stack(tmp_path / "image.tif", squares(3, 48))
    shown = run("track", labels, "--image", image, "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "labels.tif", "image.tif", "40", "48")


def test_frames_differ(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares(3))
    image = stack(tmp_path / "image.tif", squares(4))
    shown = run("track", labels, "--image", image, "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "labels.tif", "image.tif")


def test_one_frame_gives_tracks_of_one_cell(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares(1))
    shown = run("track", labels, "--out", tmp_path / "out", "--axes", "TYX", "--json")
    assert shown.status == 0, shown.err
    counts = json.loads(shown.out)["counts"]
    assert (counts["frames"], counts["cells"], counts["tracks"]) == (1, 2, 2)


def test_empty_frames(run: Run, tmp_path: Path) -> None:
    labels = squares(5)
    labels[2] = 0
    shown = run("track", stack(tmp_path / "l.tif", labels), "--out", tmp_path / "out", "--json")
    assert shown.status == 0, shown.err
    assert json.loads(shown.out)["counts"]["cells"] == 8


def test_no_cells_at_all(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "l.tif", np.zeros((3, 20, 20), dtype=np.uint8))
    refused(run("track", labels, "--out", tmp_path / "out"), tmp_path / "out", "no cell")


def test_a_label_in_two_places_and_nan_pixels(run: Run, tmp_path: Path) -> None:
    labels = squares()
    labels[1, 30:34, 5:9] = 1
    pixels = np.random.default_rng(0).random(labels.shape)
    pixels[:, 6, 6] = np.nan
    image = stack(tmp_path / "image.tif", pixels.astype(np.float32))
    words = ("track", stack(tmp_path / "l.tif", labels), "--image", image)
    shown = run(*words, "--out", tmp_path / "out", "--json")
    assert shown.status == 0, shown.err
    assert json.loads(shown.out)["counts"]["cells"] == 6


@pytest.mark.parametrize("minutes", ["nan", "inf", "-1", "0", "1e300"])
def test_times_between_frames_that_are_none(run: Run, tmp_path: Path, minutes: str) -> None:
    table, out = tmp_path / "cells.csv", tmp_path / "out"
    table.write_text("t,y,x\n0,5,5\n1,5,6\n")
    for labels in (table, stack(tmp_path / "l.tif", squares())):
        shown = run("track", labels, "--out", out, "--frame-interval", minutes)
        refused(shown, out, "frame interval", f"not {minutes.replace('e', 'e+')}")


def test_an_image_in_place_of_labels(run: Run, tmp_path: Path) -> None:
    image = stack(tmp_path / "image.tif", np.random.default_rng(0).random((3, 20, 20)))
    refused(
        run("track", image, "--out", tmp_path / "out"), tmp_path / "out", "image.tif", "frame 0"
    )


@pytest.mark.parametrize("name", ["movie.docx", "movie.avi", "movie"])
def test_unknown_types(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"this is no movie")
    refused(run("track", path, "--out", tmp_path / "out"), tmp_path / "out", str(path))


@pytest.mark.parametrize("command", ["track", "segment"])
def test_missing_files(run: Run, tmp_path: Path, command: str) -> None:
    shown = run(command, tmp_path / "nowhere", "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "nowhere")


def test_links_that_lead_to_each_other_and_names_that_are_too_long(
    run: Run, tmp_path: Path
) -> None:
    labels, loop = stack(tmp_path / "l.tif", squares()), tmp_path / "a"
    loop.symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(loop)
    refused(run("track", labels, "--out", loop), loop, "lead to each other", "another name")
    out = tmp_path / "out"
    for words in (("track", loop, "--out", out), ("batch", loop, "--out", out), ("run", loop)):
        shown = run(*words, *(() if "--out" in words else ("--out", out)))
        refused(shown, out, f"error: {loop}", "lead to each other")
    long = tmp_path / ("n" * 300)
    for words in ((labels, "--out", long), (long, "--out", tmp_path / "out")):
        shown = run("track", *words)
        assert shown.status == 1
        assert one_line(shown.err)
        assert "a shorter name" in shown.err
        assert "unexpected" not in shown.err


def test_a_link_to_nothing(run: Run, tmp_path: Path) -> None:
    for name in ("cells.csv", "labels.tif"):
        link, out = tmp_path / name, tmp_path / "out"
        link.symlink_to("moved")
        refused(run("track", link, "--out", out), out, f"{link}: a link to moved", "put the file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_pipes_are_not_waited_for(run: Run, tmp_path: Path) -> None:
    labels, out = stack(tmp_path / "l.tif", squares()), tmp_path / "out"
    pipes = [tmp_path / name for name in ("a.csv", "a.tif", "a.json", "frames/t0.tif")]
    (tmp_path / "frames").mkdir()
    for pipe in pipes:
        os.mkfifo(pipe)
    table, movie, answers, frame = pipes
    said = "a pipe or a device, not a file"
    for given in (table, movie):
        refused(run("track", given, "--out", out), out, f"{given}: {said}")
    refused(run("track", frame.parent, "--out", out), out, f"{frame}: {said}")
    refused(run("track", labels, "--annotations", answers, "--out", out), out, f"{answers}: {said}")


def test_empty_names(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = stack(tmp_path / "l.tif", squares())
    monkeypatch.chdir(tmp_path)
    for words in (
        (labels, "--out", ""),
        ("", "--out", "out"),
        (labels, "--out", "o", "--image", ""),
    ):
        shown = run("track", *words)
        assert shown.status == 2
        assert one_line(shown.err)
        assert "the name is empty" in shown.err
    assert list(tmp_path.iterdir()) == [labels]


def test_an_empty_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(run("track", tmp_path / "empty", "--out", tmp_path / "out"), tmp_path / "out", "empty")


@pytest.mark.parametrize("command", ["track", "segment"])
def test_truncated_tiff(run: Run, tmp_path: Path, command: str) -> None:
    whole = stack(tmp_path / "whole.tif", squares(6)).read_bytes()
    cut = tmp_path / "cut.tif"
    cut.write_bytes(whole[: len(whole) // 2])
    refused(run(command, cut, "--out", tmp_path / "out"), tmp_path / "out", "cut.tif")


def test_the_output_folder_is_a_file(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares())
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        shown = run("track", labels, "--out", out)
        assert shown.status == 1
        assert one_line(shown.err)
        assert "file" in shown.err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_no_permission(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares())
    (tmp_path / "locked").mkdir(mode=0o500)
    out = tmp_path / "locked" / "out"
    refused(run("track", labels, "--out", out), out, "permission")


@pytest.mark.parametrize("formats", ["csv", "ctc", "geff"])
def test_a_full_disk_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, formats: str
) -> None:
    labels = stack(tmp_path / "labels.tif", squares())

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pathlib.Path.replace", full)
    monkeypatch.setattr("pathlib.Path.rename", full)
    shown = run("track", labels, "--out", tmp_path / "out", "--format", formats)
    refused(shown, tmp_path / "out", "No space left")


def test_a_full_disk_leaves_the_older_result(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = stack(tmp_path / "labels.tif", squares())
    out = tmp_path / "out"
    assert run("track", labels, "--out", out).status == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("bridgetrack.export.csv._values", full)
    shown = run("track", labels, "--out", out)
    assert shown.status == 1
    assert "No space left" in shown.err
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before


def test_contradictory_annotations(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares())
    cells = [CellRef(t, 1, (8.0, 8.0)) for t in (0, 1)]
    move = EventRef(Event.MOVE, (cells[0],), (cells[1],))
    leave = EventRef(Event.DISAPPEAR, (cells[0],))
    listed = [Annotation("a1", Kind.CONFIRM, (move,)), Annotation("a2", Kind.CONFIRM, (leave,))]
    geometry = Geometry(3, (40, 40), (1.0, 1.0))
    save_annotations(AnnotationSet(geometry, listed), tmp_path / "a.json")
    shown = run("track", labels, "--annotations", tmp_path / "a.json", "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "cell 1 in frame 0", "moves on", "leaves")


def test_lost_annotations_are_told(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares())
    gone = EventRef(Event.DISAPPEAR, (CellRef(0, 9, (39.0, 2.0)),))
    listed = [Annotation("a1", Kind.CONFIRM, (gone,))]
    geometry = Geometry(3, (40, 40), (1.0, 1.0))
    save_annotations(AnnotationSet(geometry, listed), tmp_path / "a.json")
    shown = run("track", labels, "--annotations", tmp_path / "a.json", "--out", tmp_path / "out")
    assert shown.status == 0, shown.err
    assert "0 of 1 annotation used" in shown.out
    assert "a1 (cell 9 in frame 0" in shown.out


@pytest.mark.parametrize("option", ["--annotations", "--model"])
@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff\xfe", b'{"format": "other"}'])
def test_damaged_json(run: Run, tmp_path: Path, option: str, content: bytes | None) -> None:
    labels = stack(tmp_path / "labels.tif", squares())
    file = tmp_path / "file.json"
    if content is not None:
        file.write_bytes(content)
    shown = run("track", labels, option, file, "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "file.json")


def test_a_table_without_frames(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text("a,b\n1,2\n")
    refused(run("track", table, "--out", tmp_path / "out"), tmp_path / "out", "points.csv", "frame")


def test_scale_with_another_number_of_axes(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares())
    shown = run("track", labels, "--scale", "1,1,1", "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "scale", "axes")
