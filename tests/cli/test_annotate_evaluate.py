"""Clicks from ground truth, tracks held to them, and the scores."""

from __future__ import annotations

import json
from pathlib import Path

from bridgetrack.annotations.files import load_annotations
from cli.conftest import Run


def test_clicks_are_drawn_and_honoured(run: Run, movie: Path, truth: Path, tmp_path: Path) -> None:
    clicks, out = tmp_path / "a.json", tmp_path / "out"
    words = ("annotate", truth, "--ground-truth", movie / "01_GT", "--out", clicks)
    shown = run(*words, "--count", 20, "--seed", 5)
    assert shown.status == 0, shown.err
    assert "20 annotations" in shown.out
    first = clicks.read_bytes()
    assert len(load_annotations(clicks)) == 20
    assert run(*words, "--count", 20, "--seed", 5).status == 0
    assert clicks.read_bytes() == first
    assert run(*words, "--count", 20, "--seed", 6).status == 0
    assert clicks.read_bytes() != first
    tracked = run("track", truth, "--annotations", clicks, "--out", out, "--json")
    use = json.loads(tracked.out)["annotations"]
    assert (use["given"], use["used"]) == (20, 20)


def test_everything_annotated_gives_the_truth(
    run: Run, movie: Path, truth: Path, tmp_path: Path
) -> None:
    clicks, out = tmp_path / "a.json", tmp_path / "out"
    run("annotate", truth, "--ground-truth", movie / "01_GT", "--fraction", 1, "--out", clicks)
    run("track", truth, "--annotations", clicks, "--out", out, "--format", "ctc")
    shown = run("evaluate", out, "--ground-truth", movie / "01_GT", "--json")
    assert shown.status == 0, shown.err
    scores = json.loads(shown.out)
    assert scores["edge_f1"] == scores["division_f1"] == scores["tra"] == 1


def test_masks_of_the_run_are_found_again(
    run: Run, movie: Path, truth: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run("track", truth, "--out", out, "--format", "csv")
    shown = run("evaluate", out, "--ground-truth", movie / "01_GT", "--json")
    assert shown.status == 0, shown.err
    assert json.loads(shown.out)["matching"] == "overlap"
    (out / "run.json").unlink()
    by_distance = run("evaluate", out, "--ground-truth", movie / "01_GT", "--json")
    assert json.loads(by_distance.out)["matching"] == "distance"
    given = run("evaluate", out, "--ground-truth", movie / "01_GT", "--json", "--labels", truth)
    assert json.loads(given.out) == json.loads(shown.out)
