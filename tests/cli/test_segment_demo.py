"""Finding cells, and the whole way on the sample movie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tifffile

from bridgetrack.models.model import load_model
from cli.conftest import Run


def test_segment_a_stack_and_a_folder(run: Run, movie: Path, tmp_path: Path) -> None:
    shown = run("segment", movie / "01", "--out", tmp_path / "labels.tif", "--json")
    assert shown.status == 0, shown.err
    assert shown.err == ""
    result = json.loads(shown.out)
    assert len(result["cells"]) == result["frames"] == 10
    assert min(result["cells"]) >= 8
    labels = tifffile.imread(tmp_path / "labels.tif")
    assert labels.shape == (10, 160, 160)
    assert [int(frame.max()) for frame in labels] == result["cells"]
    folder = run("segment", movie / "01", "--out", tmp_path / "masks", "--diameter", 22)
    assert folder.status == 0, folder.err
    assert str(tmp_path / "masks") in folder.out
    assert len(list((tmp_path / "masks").glob("mask*.tif"))) == 10


def test_settings_matter(run: Run, movie: Path, tmp_path: Path) -> None:
    few = run("segment", movie / "01", "--out", tmp_path / "a", "--min-size", 5, "--json")
    some = run("segment", movie / "01", "--out", tmp_path / "b", "--json")
    assert sum(json.loads(few.out)["cells"]) < sum(json.loads(some.out)["cells"])


@pytest.mark.parametrize(
    ("words", "status"),
    [(("--backend", "magic"), 2), (("--min-size", "-1"), 2), (("--channel", "7"), 1)],
)
def test_what_cannot_be_segmented(
    run: Run, movie: Path, tmp_path: Path, words: tuple[str, str], status: int
) -> None:
    shown = run("segment", movie / "01", "--out", tmp_path / "x", *words)
    assert shown.status == status
    assert words[1] in shown.err
    assert list(tmp_path.iterdir()) == []


def test_demo_goes_the_whole_way(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    shown = run("demo", "--out", out, "--json")
    assert shown.status == 0, shown.err
    assert shown.err == ""
    result = json.loads(shown.out)
    scores = list(result["scores"].values())
    assert len(scores) == 3
    assert all(s["edge_f1"] > 0.8 and s["tra"] > 0.8 for s in scores)
    assert result["run"]["annotations"]["given"] == 80
    assert result["run"]["annotations"]["used"] >= 72
    assert all(s["events_right"] > 0.9 for s in scores)
    picture = Path(result["picture"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert load_model(out / "model.json").keys
    for name in ("labels.tif", "detections.csv", "ctc", "tracks.geff", "run.json"):
        assert (out / name).exists()
