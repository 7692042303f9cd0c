"""Suggestions on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from bridgetrack.annotations.files import load_annotations
from cli.conftest import Run, draw_answers


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


def test_answers_are_not_asked_again(run: Run, truth: Path, tmp_path: Path) -> None:
    clicks = tmp_path / "a.json"
    draw_answers(run, truth, clicks, 12)
    asked = run("suggest", truth, "--annotations", clicks, "--count", 30, "--json")
    answered = {e.key for a in load_annotations(clicks) for e in a.events}
    for s in json.loads(asked.out)["suggestions"]:
        cells = [tuple(tuple(c) for c in s["event"][end]) for end in ("sources", "targets")]
        assert (s["event"]["event"], *cells) not in {(k[0].key, k[1], k[2]) for k in answered}
