"""Answers that are about another movie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Run, draw_answers, one_line


@pytest.fixture
def clicks(run: Run, truth: Path, tmp_path: Path) -> Path:
    """Answers about the small movie."""
    return draw_answers(run, truth, tmp_path / "a.json", 12)


def moved(clicks: Path, away: int) -> Path:
    """The same with this many annotations at places where no cell can be."""
    content = json.loads(clicks.read_text())
    content.pop("history", None)
    for entry in content["annotations"][:away]:
        for event in entry["events"]:
            for cell in (*event["sources"], *event["targets"]):
                cell["position"] = [5000.0 + cell["label"], 5000.0]
    other = clicks.with_name("other.json")
    other.write_text(json.dumps(content))
    return other


@pytest.mark.parametrize("command", ["train", "suggest"])
def test_none_is_about_this_movie(run: Run, truth: Path, clicks: Path, command: str) -> None:
    n = len(json.loads(clicks.read_text())["annotations"])
    out = clicks.with_name("m.json")
    more = ("--out", out) if command == "train" else ()
    shown = run(command, truth, "--annotations", moved(clicks, n), *more)
    assert shown.status == 1
    assert one_line(shown.err)
    for words in (f"{n} of {n} annotations", "other.json", "another movie", "another segmentation"):
        assert words in shown.err
    assert not out.exists()


@pytest.mark.parametrize("command", ["train", "suggest", "track"])
def test_most_are_not(run: Run, truth: Path, clicks: Path, command: str) -> None:
    n = len(json.loads(clicks.read_text())["annotations"])
    more = () if command == "suggest" else ("--out", clicks.with_name("out.json"))
    words = (command, truth, "--annotations")
    assert "another movie" not in run(*words, clicks, *more).out
    shown = run(*words, moved(clicks, n - 3), *more)
    assert shown.status == 0, shown.err
    assert f"warning: {clicks.with_name('other.json')}: {n - 3} of {n} annotations" in shown.out
    assert "another movie" in shown.out
    if command == "train":
        assert shown.out.count("was not used: ") == 5
        assert shown.out.index("warning: ") < shown.out.index("note: ")


def test_the_extents_are_told_where_they_differ(run: Run, truth: Path, clicks: Path) -> None:
    content = json.loads(clicks.read_text())
    content["movie"]["n_frames"] = 40
    clicks.write_text(json.dumps(content))
    n = len(content["annotations"])
    shown = run("suggest", truth, "--annotations", moved(clicks, n))
    assert "made on 40 frames of 160 x 160 pixels, this movie has 10 frames" in shown.err
