"""Clicks from ground truth, tracks held to them, scores, a sample to judge, and suggestions."""

import json
import shutil

import numpy as np
import pytest

from bridgetrack.annotations.files import load_annotations
from bridgetrack.movie.opening import open_labels
from cli.conftest import project_of
from project_files import write_project

pytestmark = pytest.mark.usefixtures("quick_scores")


def test_clicks_are_drawn_and_honoured(run, movie, truth, tmp_path):
    clicks, out = tmp_path / "a.json", tmp_path / "out"
    words = ("annotate", truth, "--ground-truth", movie / "01_GT", "--out", clicks)
    shown = run(*words, "--count", 4000)
    events = len(load_annotations(clicks))
    assert f"only {events} events can be annotated, not 4000" in shown.out
    run(*words, "--count", 20, "--seed", 5)
    first = clicks.read_bytes()
    assert "20 annotations" in run(*words, "--count", 20, "--seed", 6).out
    assert clicks.read_bytes() != first
    use = run("track", truth, "--annotations", clicks, "--out", out, "--json").json["annotations"]
    assert (use["given"], use["used"]) == (20, 20)


def test_everything_annotated_gives_the_truth(run, movie, truth, tmp_path):
    clicks, out = tmp_path / "a.json", tmp_path / "out"
    run("annotate", truth, "--ground-truth", movie / "01_GT", "--fraction", 1, "--out", clicks)
    run("track", truth, "--annotations", clicks, "--out", out, "--format", "ctc")
    scores = run("evaluate", out, "--ground-truth", movie / "01_GT", "--json").json
    assert scores["edge_f1"] == scores["division_f1"] == scores["tra"] == 1
    swapped = run("evaluate", movie / "01_GT", "--ground-truth", out)
    assert f"note: {out} is a result of Bridgetrack, not a ground truth" in swapped.out


def test_masks_of_the_run_are_found_again(run, movie, truth, clicks, tmp_path):
    out = tmp_path / "out"
    run("track", truth, "--out", out, "--format", "csv")
    shown = run("evaluate", out, "--ground-truth", movie / "01_GT", "--json")
    assert shown.json["matching"] == "overlap"
    (out / "run.json").unlink()
    by_distance = run("evaluate", out, "--ground-truth", movie / "01_GT", "--json")
    assert by_distance.json["matching"] == "distance"
    given = run("evaluate", out, "--ground-truth", movie / "01_GT", "--json", "--labels", truth)
    assert given.json == shown.json
    # opened as by the run, of which the file alone says too little
    turned, by_axes = tmp_path / "turned.npy", ("--ground-truth", movie / "01_GT", "--json")
    np.save(turned, np.moveaxis(np.asarray(open_labels(truth).array[:, 0]), 0, -1))
    run("track", turned, "--axes", "YXT", "--out", out, "--format", "csv")
    assert run("evaluate", out, *by_axes).json == shown.json
    for same in (turned, truth):
        assert run("evaluate", out, *by_axes, "--labels", same).json == shown.json
    project = project_of(truth, clicks, tmp_path / "p.bridgetrack")
    run("run", project, "--out", out)
    assert run("evaluate", out, *by_axes).json["matching"] == "overlap"
    shutil.rmtree(project)
    assert run("evaluate", out, *by_axes).json["matching"] == "overlap"


def test_from_a_result_to_a_sentence(run, refused, truth, tmp_path):
    out, table = tmp_path / "out", tmp_path / "sample.csv"
    words = ("track", truth, "--out", out)
    run(*words)
    assert "Accuracy: not measured" in (out / "methods.txt").read_text(encoding="utf-8")
    drawn = run("check", out, "--count", 6, "--out", table)
    assert f"--judged {table}" in drawn.out
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    assert (len(rows), head.split(",")[-1]) == (6, "right")
    before = (out / "methods.txt").read_bytes()
    refused(("check", out, "--judged", table), "no event is judged yet")
    answers = ["yes"] * 4 + ["no", ""]
    filled = [row + said for row, said in zip(rows, answers, strict=True)]
    table.write_text("\n".join([head, *filled]) + "\n", encoding="utf-8")
    partly = run("check", out, "--judged", table)
    assert "1 of 6 events are not judged yet, so this estimate is not valid" in partly.out
    assert "methods.txt is not changed until all rows are filled in" in partly.out
    assert (out / "methods.txt").read_bytes() == before
    table.write_text("\n".join([head, *filled]) + "?\n", encoding="utf-8")
    said = run("check", out, "--judged", table, "--json").json
    assert (said["right"], said["judged"], said["unsure"]) == (4, 5, 1)
    assert said["words"].startswith("80.0 % of the links are correct (95 % confidence interval 28")
    # so does the run of a project that holds the sample
    project = write_project(tmp_path / "p.bridgetrack", truth)
    shutil.copy(table, project / "check.csv")
    run("run", project, "--out", tmp_path / "again")
    for result in (out, tmp_path / "again"):
        methods = " ".join((result / "methods.txt").read_text(encoding="utf-8").split())
        assert f"Accuracy: {said['words']}." in methods
        assert json.loads((result / "run.json").read_text())["checked"]["right"] == 4
    run("check", out, "--judged", table)  # a second time, with the same result
    run(*words)  # still a result of ours
    assert "not measured" in (out / "methods.txt").read_text(encoding="utf-8")


def test_suggestions_for_people_and_machines(run, truth):
    shown = run("suggest", truth, "--count", 4)
    assert shown.out.count("Is this right") == 4
    found = run("suggest", truth, "--count", 4, "--json").json["suggestions"]
    assert [s["question"] in shown.out for s in found] == [True] * 4
    assert {"event", "alternatives", "beliefs", "reason", "position", "frame"} <= set(found[0])
    assert all(f"margin at least {int(s['margin_at_least'])}." in shown.out for s in found)
    assert not any("margin" in s for s in found)


def test_answers_are_not_asked_again(run, truth, clicks):
    asked = run("suggest", truth, "--annotations", clicks, "--count", 30, "--json")
    answered = {e.key for a in load_annotations(clicks) for e in a.events}
    for s in asked.json["suggestions"]:
        cells = [tuple(tuple(c) for c in s["event"][end]) for end in ("sources", "targets")]
        assert (s["event"]["event"], *cells) not in {(k[0].key, k[1], k[2]) for k in answered}
