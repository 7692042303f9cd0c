"""``track --repair`` and ``segment --choose`` on a movie drawn by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
from bridgetrack.pipeline.runs import given_run, track_again
from bridgetrack.pipeline.scene import measure
from bridgetrack.progress import run as run_steps
from drawn_movie import GEOMETRY, answered, drawn

pytestmark = pytest.mark.usefixtures("quick_scores")


def damaged(folder: Path) -> Path:
    """Images, and labels in which two cells are one, one is missed and one is made up."""
    images, labels = drawn()
    labels[1][labels[1] == 2] = 1
    labels[2][labels[2] == 3] = 0
    labels[3][80:88, 40:48] = 9
    as_movie: dict[str, Any] = {"metadata": {"axes": "TYX"}, "photometric": "minisblack"}
    tifffile.imwrite(folder / "images.tif", images.astype(np.float32), **as_movie)
    tifffile.imwrite(folder / "labels.tif", labels.astype(np.uint16), **as_movie)
    return folder


@pytest.fixture
def movie(tmp_path: Path) -> Path:
    return damaged(tmp_path)


def call(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def changes_in(result: Path) -> set[tuple[int, str]]:
    """Frame and kind of the changes that a result lists."""
    listed = pd.read_csv(result / "repairs.csv")
    return set(zip(listed["frame"].tolist(), listed["change"], strict=True))


def test_labels_are_mended_and_every_change_is_listed(movie: Path) -> None:
    labels, out = movie / "labels.tif", movie / "out"
    before = labels.read_bytes()
    track = ("track", labels, "--image", movie / "images.tif", "--out", out, "--repair")
    assert call(*track) == 0
    assert labels.read_bytes() == before
    assert {(1, "cut"), (2, "added"), (3, "dropped")} <= changes_in(out)
    mended = sorted((out / "repaired").glob("*.tif"))
    assert len(mended) == 4
    first = tifffile.imread(labels)[0]
    assert np.array_equal(tifffile.imread(mended[0]) > 0, first > 0), "cells that stay keep theirs"
    run = json.loads((out / "run.json").read_text())
    assert run["repair"]["cut"] == 1
    assert {"repaired", "repairs.csv"} <= set(run["files"])
    assert run["counts"]["cells"] == 4 * 5
    # Into the same folder without the repair: nothing of it stays.
    assert call(*track[:-1]) == 0
    assert not (out / "repairs.csv").exists()
    assert not (out / "repaired").exists()


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result with repaired labels, moved since; the order of axes of what was given is odd."""
    folder = damaged(tmp_path_factory.mktemp("moved"))
    np.save(folder / "labels.npy", np.moveaxis(tifffile.imread(folder / "labels.tif"), 0, -1))
    words = ("--axes", "YXT", "--scale", "0.5,0.5", "--unit", "micrometer", "--repair")
    given = ("track", folder / "labels.npy", "--image", folder / "images.tif")
    assert call(*given, *words, "--out", folder / "made") == 0
    return (folder / "made").rename(folder / "elsewhere")


@pytest.fixture(scope="module")
def added(repaired: Path) -> tuple[str, int, str, int]:
    """Frame and label of a cell that the repair added, as words of a command."""
    row = pd.read_csv(repaired / "repairs.csv").query("change == 'added'").iloc[0]
    return "--frame", int(row["frame"]), "--cell", int(row["after"])


def test_a_cell_that_was_added_is_explained(
    repaired: Path, added: tuple[str, int, str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("explain", repaired, *added) == 0
    assert f"cell {added[3]}" in capsys.readouterr().out


def test_a_repaired_result_is_tracked_again_as_it_was(repaired: Path) -> None:
    again = run_steps(track_again(given_run(repaired)))
    record = json.loads((repaired / "run.json").read_text())
    assert again.solution.value == pytest.approx(record["inference"]["objective"])
    known = again.tracks.geometry
    assert (known.scale, known.unit) == ((0.5, 0.5), "micrometer")


def test_what_reads_the_labels_of_a_result_reads_the_repaired_ones(
    repaired: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    truth = repaired.parent / "truth"
    save_labels(open_labels(drawn()[1]), truth)
    cells = "\n".join(f"{k} 0 3 0" for k in range(1, 6))
    (truth / "man_track.txt").write_text(cells + "\n")
    assert call("evaluate", repaired, "--ground-truth", truth, "--json") == 0
    assert json.loads(capsys.readouterr().out)["edge_f1"] == 1.0


def test_repaired_labels_that_are_gone(
    repaired: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = shutil.copytree(repaired, tmp_path / "result")
    shutil.rmtree(result / "repaired")
    assert call("explain", result, "--frame", 0, "--cell", 1) == 1
    assert str(result / "repaired") in capsys.readouterr().err


def test_answers_about_events_hold_masks(movie: Path) -> None:
    labels = open_labels(movie / "labels.tif")
    cells = run_steps(measure(labels))
    rows = [cells.row_of(t, k) for t, k in ((1, 1), (2, 1), (3, 9))]
    one, next_one, made_up = cell_refs(cells, np.array(rows))
    said = [EventRef(Event.MOVE, (one,), (next_one,)), EventRef(Event.FALSE, (made_up,))]
    given = movie / "clicks.json"
    track = ("track", movie / "labels.tif", "--image", movie / "images.tif", "--out", movie / "out")
    answers = [Annotation(f"a{k}", Kind.CONFIRM, (e,)) for k, e in enumerate(said)]
    save_annotations(AnnotationSet(GEOMETRY, answers), given)
    assert call(*track, "--annotations", given, "--repair") == 0
    told = changes_in(movie / "out")
    assert (1, "cut") not in told, "it moves, so it is one cell"
    assert {(3, "dropped"), (2, "added")} <= told


def test_answers_about_masks_hold(movie: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = answered(movie / "clicks.masks.json", one=True)
    track = ("track", movie / "labels.tif", "--image", movie / "images.tif", "--out", movie / "out")
    assert call(*track, "--annotations", given, "--repair") == 0
    told = changes_in(movie / "out")
    assert (1, "cut") not in told and (2, "added") in told
    cell = ("explain", movie / "out", "--frame", 1, "--cell", 1)
    assert call(*cell) == 0  # what is given holds answers about events, or none
    assert call(*track, "--annotations", given) == 2
    assert "--repair" in capsys.readouterr().err


def test_answers_about_masks_of_another_movie(
    movie: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known, labels = answered(movie / "clicks.masks.json", one=True), movie / "small.npy"
    np.save(labels, tifffile.imread(movie / "labels.tif")[:, :90])
    np.save(movie / "image.npy", tifffile.imread(movie / "images.tif")[:, :90])
    words = ("--image", movie / "image.npy", "--annotations", known)
    assert call("track", labels, "--repair", "--out", movie / "out", *words) == 1
    assert "of another movie (4 frames of (96, 96) pixels" in capsys.readouterr().err
    segment = ("segment", movie / "image.npy", "--out", movie / "new.tif", "--annotations", known)
    assert call(*segment) == 1
    assert "of another movie" in capsys.readouterr().err


def test_the_channel_with_the_cells(movie: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells, labels = tifffile.imread(movie / "images.tif"), movie / "labels.tif"
    other = np.random.default_rng(1).normal(100, 4, cells.shape).astype(np.float32)
    np.save(movie / "two.npy", np.stack([other, cells], axis=1))
    image = ("--image", movie / "two.npy", "--image-axes", "TCYX")
    words = ("track", labels, *image, "--repair", "--out", movie / "out")
    assert call(*words, "--channel", 1) == 0
    assert {(1, "cut"), (2, "added"), (3, "dropped")} <= changes_in(movie / "out")
    capsys.readouterr()
    assert call(*words, "--channel", 7) == 1
    assert "7" in capsys.readouterr().err
    assert call("track", labels, "--repair", "--out", movie / "none") == 1
    assert "--image" in capsys.readouterr().err and not (movie / "none").exists()


def test_workers_look_for_what_else_may_be_a_cell(
    movie: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    lent: set[Path] = set()

    def spread(function: Any, shared: Any, parts: Any, client: Any = None, threads: int = 1) -> Any:
        if client is not None:
            asked.append(function.__name__)
            lent.update(movie.glob(".there.*"))
        return (function(shared, part) for part in parts)

    @contextmanager
    def cluster(scheduler: str | None) -> Iterator[str | None]:
        yield scheduler

    monkeypatch.setattr("bridgetrack.cli.track.cluster_at", cluster)
    for module in ("pipeline.mask_candidates", "detections.measure", "hypotheses.evidence"):
        monkeypatch.setattr(f"bridgetrack.{module}.spread", spread)
    track = ("track", movie / "labels.tif", "--image", movie / "images.tif", "--repair", "--out")
    assert call(*track, movie / "here") == 0
    assert not asked
    assert call(*track, movie / "there", "--scheduler", "local") == 0
    assert "frame" in asked
    assert lent, "workers on other computers could not read what was mended"
    assert not list(movie.glob(".there.*"))
    for name in ("repairs.csv", "detections.csv", "events.csv"):
        assert (movie / "here" / name).read_bytes() == (movie / "there" / name).read_bytes()
