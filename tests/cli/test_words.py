"""What commands say: plain words, reasons, and no silence about what got worse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bridgetrack.cli.annotate import session_lines
from bridgetrack.cli.demo import worse
from bridgetrack.cli.main import app
from bridgetrack.cli.train import training_lines
from bridgetrack.notes import Note, NoteKind
from cli.conftest import Run, one_line
from cli.test_bad_input import refused

PYTHON = re.compile(r"\bNone\b|\bTrue\b|\bFalse\b|\bdict\b|list\[|tuple\[")


def helps(command: Any, name: str = "") -> dict[str, str]:
    """The help of every option of every command."""
    inner = getattr(command, "commands", None)
    if inner:
        return {k: v for n, c in inner.items() for k, v in helps(c, f"{name} {n}").items()}
    texts = {f"{name} {p.name}": str(getattr(p, "help", "") or "") for p in command.params}
    return {**texts, name: str(command.help)}


def test_help_is_in_plain_words() -> None:
    texts = helps(get_command(app))
    assert len(texts) > 100
    assert {name: text for name, text in texts.items() if PYTHON.search(text)} == {}


def test_a_missing_column_is_told_in_words_of_the_file(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text("when,y,x\n1,2,3\n")
    shown = run("track", table, "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "no column for frame", "'when'", "Rename", "frame, t, time")
    assert shown.err.index("Rename") < shown.err.index("Python")


def test_no_display_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    started: list[object] = []

    class Launcher:
        launch = staticmethod(lambda *_: started.append(None))

    monkeypatch.setattr("importlib.import_module", lambda _: Launcher)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    shown = run("open")
    assert shown.status == 1
    assert one_line(shown.err)
    for word in ("display", "QT_QPA_PLATFORM", "xvfb"):
        assert word in shown.err
    assert not started
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        with monkeypatch.context() as there:
            there.setenv(name, "x")
            assert run("open").status == 0
    assert len(started) == 3


def test_why_weights_were_kept_is_said() -> None:
    record: dict[str, Any] = {
        "prior": "shipped", "annotations": 3, "held": {"events": 40, "weight": 0.5}, "lambda": 1.0,
        "lambda_chosen_by": "user", "gap": None,
        "reason": "the answers agree with the starting model, which is kept",
        "estimate_words": None, "changes": {}, "seconds": {}, "model": "m.json",
    }  # fmt: skip
    notes = [Note(NoteKind.UNUSED, f"annotation {k} was not used") for k in range(8)]
    notes += [Note(NoteKind.REMARK, "annotation files are old"), Note(NoteKind.WARNING, "mixed up")]
    lines = training_lines(record, notes)
    assert record["reason"] in lines
    assert any(
        "40 events near them held" in line and "as 0.5 of an annotation" in line for line in lines
    )
    assert "warning: mixed up" in lines
    assert "note: annotation files are old" in lines
    assert sum("was not used" in line for line in lines) == 5
    assert any("3 more annotations not used" in line for line in lines)


def test_undecided_answers_are_explained() -> None:
    record: dict[str, Any] = {
        "clicks": 4, "random": 1, "wrong_found": 0, "cannot_tell": 2, "events": {"move": 2},
        "estimate_words": None, "right": 0.5, "verdict": "go on", "notes": [], "out": "a.json",
        "model": None,
    }  # fmt: skip
    assert "the truth does not settle" in "\n".join(session_lines(record, []))
    assert "settle" not in "\n".join(session_lines(record | {"cannot_tell": 0}, []))


def test_figures_that_get_worse_are_named() -> None:
    first = {"events_right": 0.9, "edge_f1": 0.95, "division_f1": None, "tra": 1.0, "ct": 0.5}
    after = {"events_right": 0.95, "edge_f1": 0.94, "division_f1": 1.0, "tra": 1.0, "ct": 0.5}
    (line,) = worse({"untrained": first, "trained": after})
    assert line.startswith("lower than untrained in a row below: edges F1; ")
    assert worse({"untrained": first, "trained": first}) == []
