"""Clicks from ground truth, tracks held to them, scores, a sample to judge, and suggestions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bridgetrack.annotations.files import load_annotations
from cli.conftest import Run

pytestmark = pytest.mark.usefixtures("quick_scores")


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


def test_from_a_result_to_a_sentence(run: Run, truth: Path, tmp_path: Path) -> None:
    out, table = tmp_path / "out", tmp_path / "sample.csv"
    words = ("track", truth, "--out", out)
    assert run(*words).status == 0
    assert "Accuracy: not measured" in (out / "methods.txt").read_text(encoding="utf-8")
    drawn = run("check", out, "--count", 6, "--out", table)
    assert drawn.status == 0, drawn.err
    assert f"--judged {table}" in drawn.out
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    assert (len(rows), head.split(",")[-1]) == (6, "right")
    before = (out / "methods.txt").read_bytes()
    nothing = run("check", out, "--judged", table)
    assert (nothing.status, nothing.out) == (1, "")
    assert "no event is judged yet" in nothing.err
    answers = ["yes"] * 4 + ["no", ""]
    filled = [row + said for row, said in zip(rows, answers, strict=True)]
    table.write_text("\n".join([head, *filled]) + "\n", encoding="utf-8")
    partly = run("check", out, "--judged", table)
    assert "1 of 6 events are not judged yet, so this estimate is not valid" in partly.out
    assert (out / "methods.txt").read_bytes() == before
    table.write_text("\n".join([head, *filled]) + "?\n", encoding="utf-8")
    shown = run("check", out, "--judged", table, "--json")
    said = json.loads(shown.out)
    assert (said["right"], said["judged"], said["unsure"]) == (4, 5, 1)
    assert said["words"].startswith("80.0 % of the links are correct (95 % confidence interval 28")
    methods = " ".join((out / "methods.txt").read_text(encoding="utf-8").split())
    assert f"Accuracy: {said['words']}." in methods
    assert "not measured" not in methods
    assert json.loads((out / "run.json").read_text())["checked"]["right"] == 4
    assert run("check", out, "--judged", table).status == 0, "a second time, with the same result"
    assert run(*words).status == 0, "still a result of ours"
    assert "not measured" in (out / "methods.txt").read_text(encoding="utf-8")
    other = tmp_path / "other"
    shutil.copytree(out, other)
    edges = (other / "edges.csv").read_text().splitlines(keepends=True)
    (other / "edges.csv").write_text("".join(e for e in edges if ",move," not in e))
    wrong = run("check", other, "--judged", table)
    assert wrong.status == 1
    assert "not the events that were drawn from this result" in wrong.err


def test_suggestions_for_people_and_machines(run: Run, truth: Path) -> None:
    shown = run("suggest", truth, "--count", 4)
    assert shown.status == 0, shown.err
    assert shown.out.count("Is this right") == 4
    again = run("suggest", truth, "--count", 4, "--json")
    found = json.loads(again.out)["suggestions"]
    assert [s["question"] in shown.out for s in found] == [True] * 4
    assert {"event", "alternatives", "beliefs", "reason", "position", "frame"} <= set(found[0])
    assert all(f"margin at least {int(s['margin_at_least'])}." in shown.out for s in found)
    assert not any("margin" in s for s in found)


def test_answers_are_not_asked_again(run: Run, truth: Path, clicks: Path) -> None:
    asked = run("suggest", truth, "--annotations", clicks, "--count", 30, "--json")
    answered = {e.key for a in load_annotations(clicks) for e in a.events}
    for s in json.loads(asked.out)["suggestions"]:
        cells = [tuple(tuple(c) for c in s["event"][end]) for end in ("sources", "targets")]
        assert (s["event"]["event"], *cells) not in {(k[0].key, k[1], k[2]) for k in answered}
