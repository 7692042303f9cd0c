"""``track --repair`` and ``segment --choose`` on a movie drawn by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tifffile

from bridgetrack.cli.main import main
from bridgetrack.spread import Here
from drawn_movie import drawn


@pytest.fixture
def movie(tmp_path: Path) -> Path:
    """Images, and labels in which two cells are one, one is missed and one is made up."""
    images, labels = drawn()
    labels[1][labels[1] == 2] = 1
    labels[2][labels[2] == 3] = 0
    labels[3][80:88, 40:48] = 9
    as_movie: dict[str, Any] = {"metadata": {"axes": "TYX"}, "photometric": "minisblack"}
    tifffile.imwrite(tmp_path / "images.tif", images.astype(np.float32), **as_movie)
    tifffile.imwrite(tmp_path / "labels.tif", labels.astype(np.uint16), **as_movie)
    return tmp_path


def call(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def test_labels_are_mended_and_every_change_is_listed(movie: Path) -> None:
    labels, out = movie / "labels.tif", movie / "out"
    before = labels.read_bytes()
    track = ("track", labels, "--image", movie / "images.tif", "--out", out, "--repair")
    assert call(*track) == 0
    assert labels.read_bytes() == before
    listed = pd.read_csv(out / "repairs.csv")
    told = {(row.frame, row.change) for row in listed.itertuples()}
    assert {(1, "cut"), (2, "added"), (3, "dropped")} <= told
    mended = sorted((out / "repaired").glob("*.tif"))
    assert len(mended) == 4
    run = json.loads((out / "run.json").read_text())
    assert run["repair"]["cut"] == 1
    assert {"repaired", "repairs.csv"} <= set(run["files"])
    assert run["counts"]["cells"] == 4 * 5
    # Again into the same folder, and without the repair: nothing of it stays.
    assert call(*track) == 0
    assert call(*track[:-1]) == 0
    assert not (out / "repairs.csv").exists()
    assert not (out / "repaired").exists()


def test_workers_look_for_what_else_may_be_a_cell(
    movie: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    lent: set[Path] = set()

    class Others(Here):
        def stream(self, task: Any, shared: Any, parts: Any) -> Any:
            asked.append(task.__name__)
            lent.update(movie.glob(".there.*"))
            return super().stream(task, shared, parts)

    @contextmanager
    def cluster(scheduler: str | None) -> Iterator[Here | None]:
        yield None if scheduler is None else Others()

    monkeypatch.setattr("bridgetrack.cli.track.cluster_at", cluster)
    track = ("track", movie / "labels.tif", "--image", movie / "images.tif", "--repair", "--out")
    assert call(*track, movie / "here") == 0
    assert not asked
    assert call(*track, movie / "there", "--scheduler", "local") == 0
    assert "_frame" in asked
    assert lent, "workers on other computers could not read what was mended"
    assert not list(movie.glob(".there.*"))
    for name in ("repairs.csv", "detections.csv", "events.csv"):
        assert (movie / "here" / name).read_bytes() == (movie / "there" / name).read_bytes()


def test_a_repair_needs_the_image(movie: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("track", movie / "labels.tif", "--out", movie / "out", "--repair") != 0
    assert "--image" in capsys.readouterr().err
    assert not (movie / "out").exists()


def test_what_a_person_put_there_stays(movie: Path) -> None:
    out = movie / "out"
    out.mkdir()
    (out / "repairs.csv").write_text("mine")
    track = ("track", movie / "labels.tif", "--image", movie / "images.tif", "--out", out)
    assert call(*track, "--repair") != 0
    assert (out / "repairs.csv").read_text() == "mine"


@pytest.mark.parametrize("how", ["jointly", "frame", "plain"])
def test_each_way_of_choosing(movie: Path, how: str) -> None:
    out = movie / f"{how}.tif"
    assert call("segment", movie / "images.tif", "--out", out, "--choose", how) == 0
    assert len(tifffile.imread(out)) == 4
    assert json.loads((movie / f"{how}.run.json").read_text())["choose"] == how


def test_a_way_that_is_not_known(movie: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images, out = movie / "images.tif", movie / "labels_new.tif"
    assert call("segment", images, "--out", out, "--choose", "luck") != 0
    assert "jointly" in capsys.readouterr().err
