"""``track --repair`` and ``segment --choose`` on a movie drawn by hand."""

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tifffile

from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.annotations.annotation import Annotation, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import save_annotations
from bridgetrack.cli.main import main
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import open_labels, save_labels
from bridgetrack.pipeline.runs import given_run
from bridgetrack.pipeline.scene import measure
from bridgetrack.progress import run as run_steps
from cli.conftest import write_tiff
from drawn_movie import GEOMETRY, answered, drawn

pytestmark = pytest.mark.usefixtures("quick_scores")


def damaged(folder):
    """Images, and labels in which two cells are one, one is missed and one is made up."""
    images, labels = drawn()
    labels[1][labels[1] == 2] = 1
    labels[2][labels[2] == 3] = 0
    labels[3][80:88, 40:48] = 9
    write_tiff(folder / "images.tif", images.astype(np.float32))
    write_tiff(folder / "labels.tif", labels.astype(np.uint16))
    return folder


@pytest.fixture
def movie(tmp_path):
    return damaged(tmp_path)


def changes_in(result):
    """Frame and kind of the changes that a result lists."""
    listed = pd.read_csv(result / "repairs.csv")
    return set(zip(listed["frame"].tolist(), listed["change"], strict=True))


def test_labels_are_mended_and_every_change_is_listed(run, movie):
    labels, out = movie / "labels.tif", movie / "out"
    before = labels.read_bytes()
    track = ("track", labels, "--image", movie / "images.tif", "--out", out, "--repair")
    run(*track)
    assert labels.read_bytes() == before
    assert {(1, "cut"), (2, "added"), (3, "dropped")} <= changes_in(out)
    mended = sorted((out / "repaired").glob("*.tif"))
    assert len(mended) == 4
    first = tifffile.imread(labels)[0]
    assert np.array_equal(tifffile.imread(mended[0]) > 0, first > 0), "cells that stay keep theirs"
    record = json.loads((out / "run.json").read_text())
    assert record["repair"]["cut"] == 1
    assert {"repaired", "repairs.csv"} <= set(record["files"])
    assert record["counts"]["cells"] == 4 * 5
    # Into the same folder without the repair: nothing of it stays.
    run(*track[:-1])
    assert not (out / "repairs.csv").exists()
    assert not (out / "repaired").exists()


@pytest.fixture(scope="module")
def repaired(tmp_path_factory):
    """A result with repaired labels, moved since; the order of axes of what was given is odd."""
    folder = damaged(tmp_path_factory.mktemp("moved"))
    np.save(folder / "labels.npy", np.moveaxis(tifffile.imread(folder / "labels.tif"), 0, -1))
    words = ("--axes", "YXT", "--scale", "0.5,0.5", "--unit", "micrometer", "--repair")
    given = ("track", folder / "labels.npy", "--image", folder / "images.tif")
    assert main([str(word) for word in (*given, *words, "--out", folder / "made")]) == 0
    return (folder / "made").rename(folder / "elsewhere")


def test_a_cell_that_was_added_is_explained(run, repaired):
    row = pd.read_csv(repaired / "repairs.csv").query("change == 'added'").iloc[0]
    shown = run("explain", repaired, "--frame", row["frame"], "--cell", row["after"])
    assert f"cell {row['after']}" in shown.out


def test_a_repaired_result_is_tracked_again_as_it_was(repaired):
    again = run_steps(given_run(repaired).open().tracked())
    record = json.loads((repaired / "run.json").read_text())
    assert again.solution.value == pytest.approx(record["inference"]["objective"])
    known = again.tracks.geometry
    assert (known.scale, known.unit) == ((0.5, 0.5), "micrometer")


def test_what_reads_the_labels_of_a_result_reads_the_repaired_ones(run, repaired):
    truth = repaired.parent / "truth"
    save_labels(open_labels(drawn()[1]), truth)
    cells = "\n".join(f"{k} 0 3 0" for k in range(1, 6))
    (truth / "man_track.txt").write_text(cells + "\n")
    shown = run("evaluate", repaired, "--ground-truth", truth, "--json")
    assert shown.json["edge_f1"] == 1.0


def test_repaired_labels_that_are_gone(refused, repaired, tmp_path):
    result = shutil.copytree(repaired, tmp_path / "result")
    shutil.rmtree(result / "repaired")
    refused(("explain", result, "--frame", 0, "--cell", 1), result / "repaired")


def test_answers_about_events_hold_masks(run, movie):
    labels = open_labels(movie / "labels.tif")
    cells = run_steps(measure(labels))
    rows = [cells.row_of(t, k) for t, k in ((1, 1), (2, 1), (3, 9))]
    one, next_one, made_up = cell_refs(cells, np.array(rows))
    said = [EventRef(Event.MOVE, (one,), (next_one,)), EventRef(Event.FALSE, (made_up,))]
    given = movie / "clicks.json"
    track = ("track", movie / "labels.tif", "--image", movie / "images.tif", "--out", movie / "out")
    answers = [Annotation(f"a{k}", Kind.CONFIRM, (e,)) for k, e in enumerate(said)]
    save_annotations(AnnotationSet(GEOMETRY, answers), given)
    run(*track, "--annotations", given, "--repair")
    told = changes_in(movie / "out")
    assert (1, "cut") not in told, "it moves, so it is one cell"
    assert {(3, "dropped"), (2, "added")} <= told


def test_answers_about_masks_hold(run, refused, movie):
    given = answered(movie / "clicks.masks.json", one=True)
    track = ("track", movie / "labels.tif", "--image", movie / "images.tif", "--out", movie / "out")
    run(*track, "--annotations", given, "--repair")
    told = changes_in(movie / "out")
    assert (1, "cut") not in told and (2, "added") in told
    # what is given holds answers about events, or none
    run("explain", movie / "out", "--frame", 1, "--cell", 1)
    refused((*track, "--annotations", given), "--repair")


def test_answers_about_masks_of_another_movie(refused, movie):
    known, labels = answered(movie / "clicks.masks.json", one=True), movie / "small.npy"
    np.save(labels, tifffile.imread(movie / "labels.tif")[:, :90])
    np.save(movie / "image.npy", tifffile.imread(movie / "images.tif")[:, :90])
    image, said = ("--image", movie / "image.npy"), ("--annotations", known)
    track = ("track", labels, "--repair", "--out", movie / "out", *image, *said)
    refused(track, "of another movie (4 frames of 96 × 96 pixels")
    refused(("segment", image[1], "--out", movie / "new.tif", *said), "of another movie")


def test_the_channel_with_the_cells(run, refused, movie):
    cells, labels = tifffile.imread(movie / "images.tif"), movie / "labels.tif"
    other = np.random.default_rng(1).normal(100, 4, cells.shape).astype(np.float32)
    np.save(movie / "two.npy", np.stack([other, cells], axis=1))
    image = ("--image", movie / "two.npy", "--image-axes", "TCYX")
    words = ("track", labels, *image, "--repair", "--out", movie / "out")
    run(*words, "--channel", 1)
    assert {(1, "cut"), (2, "added"), (3, "dropped")} <= changes_in(movie / "out")
    refused((*words, "--channel", 7), "7")
    refused(("track", labels, "--repair", "--out", movie / "none"), "--image")


def test_workers_look_for_what_else_may_be_a_cell(run, movie, monkeypatch):
    asked: list[str] = []
    lent: set[Path] = set()

    def spread(function, shared, parts, client=None, threads=1):
        if client is not None:
            asked.append(function.__name__)
            lent.update(movie.glob(".there.*"))
        return (function(shared, part) for part in parts)

    @contextmanager
    def cluster(scheduler):
        yield scheduler

    monkeypatch.setattr("bridgetrack.cli.track.cluster_at", cluster)
    for module in ("pipeline.mask_candidates", "detections.measure", "hypotheses.evidence"):
        monkeypatch.setattr(f"bridgetrack.{module}.spread", spread)
    track = ("track", movie / "labels.tif", "--image", movie / "images.tif", "--repair", "--out")
    run(*track, movie / "here")
    assert not asked
    run(*track, movie / "there", "--scheduler", "local")
    assert "frame" in asked
    assert lent, "workers on other computers could not read what was mended"
    assert not list(movie.glob(".there.*"))
    for name in ("repairs.csv", "detections.csv", "events.csv"):
        assert (movie / "here" / name).read_bytes() == (movie / "there" / name).read_bytes()
