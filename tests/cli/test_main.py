"""Exit statuses, the one line of a failure, and what happens to pipes and Ctrl-C."""

import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import warnings

import pytest
from typer import Abort

from bridgetrack.__main__ import main as program
from bridgetrack.cli.console import Answer
from bridgetrack.errors import BridgetrackWarning, Note, collecting_warnings
from cli.conftest import one_line

PROGRAM = [sys.executable, "-m", "bridgetrack"]


def test_version(run):
    shown = run("--version")
    assert re.fullmatch(r"bridgetrack \d+\.\d+\.\d+\S*\n", shown.out)


WRONG = {
    "": "Missing command",
    "nonsense": "nonsense",
    "track": "LABELS",
    "track x": "--out",
    "track x --out y --nonsense": "--nonsense",
    "track x --out y --format xml": "'xml' is unknown",
    "track x --out y --scale a,b": "a,b",
    "track x --out y --scale 1,-1": "1,-1",
    "track x --out y --without wonders": "'wonders' is not a kind of event",
    "track x --out y --without appearances": "cells may always appear",
    "track x --out y --memory '4 apples'": "not an amount of memory",
    "track x --out ''": "'--out': the name is empty",
    "track '' --out y": "'LABELS': the name is empty",
    "track x --out y --image ''": "'--image': the name is empty",
    "annotate x --ground-truth g --out y": "--count",
    "annotate x --ground-truth g --out y --fraction 1.5": "--fraction",
    "suggest x --count 0": "'--count': should be greater than or equal to 1, not '0'",
    "suggest x --count 1.5": "'--count': should be a valid integer",
    "suggest x --seed -1": "seed: should be greater than or equal to 0",
    "suggest x --random-share 1.5": "random_share: should be less than or equal to 1",
    "train x --annotations a --out y --loss zero": "loss: should be",
    "train x --annotations a --out y --lambda -1": "lambda: should be greater than 0",
    "train x --annotations a --out y --learner perceptron --curriculum slack": "the perceptron",
    "train x --annotations a --out y --learner n-slack --regularizer l1": "'n-slack'",
    "check x": "give either --out",
    "check x --out y --judged z": "give either --out",
    "segment x --out y --backend magic": "'magic' is not one of 'builtin', 'cellpose'; see",
    "segment x --out y --min-size -1": "min_size: should be greater than or equal to 0",
    "explain x --frame 0 --cell 1 --to a": "--to 'a'",
    "explain x --frame 0 --cell 1 --to 1,2,3": "--to '1,2,3'",
    "explain x --frame 0 --cell 1 --event explode": "'explode'",
}
"""Commands that cannot be meant, and what the refusal names."""


@pytest.mark.parametrize("words", WRONG)
def test_wrong_use_is_status_2_and_one_line(tried, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = tried(*shlex.split(words))
    assert shown.status == 2 and shown.out == ""
    assert one_line(shown.err)
    assert "--help" in shown.err and WRONG[words] in shown.err
    assert list(tmp_path.iterdir()) == []


def test_a_window_needs_a_display_and_files_that_are_there(tried, tmp_path, monkeypatch):
    pytest.importorskip("superqt")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    for words in (("none.tif",), (tmp_path, "none.tif")):
        shown = tried("open", *words)
        assert shown.status == 2 and "none.tif: no such file or folder" in shown.err
    shown = tried("open")
    assert shown.status == 1 and "no display was found" in shown.err


def test_names_give_no_commands_to_the_terminal(refused, tmp_path, capsys):
    refused(("track", "no\x1b[31m.tif", "--out", tmp_path / "out"), "no?[31m.tif")
    Answer(None, ["model m\x1b]0;owned\x07"]).show(as_json=False)
    assert capsys.readouterr().out == "model m?]0;owned?\n"


def test_the_unexpected_is_one_line_without_debug_and_a_traceback_with_it(
    tried, movie, tmp_path, monkeypatch
):
    def broken(*_, **__):
        raise ZeroDivisionError("so\nmuch for that")

    monkeypatch.setattr("bridgetrack.pipeline.inputs.track_steps", broken)
    words = ("track", movie / "01_GT" / "TRA", "--out", tmp_path / "out")
    shown = tried(*words)
    assert shown.status == 1
    assert one_line(shown.err)
    assert "unexpected error: ZeroDivisionError: so much for that" in shown.err
    assert "--debug" in shown.err
    for told in (("--debug", *words), (*words, "--debug")):
        shown = tried(*told)
        assert shown.status == 1
        assert "Traceback" in shown.err
        assert "in broken" in shown.err


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (SystemExit(3), 3, ""),
        (SystemExit("no more"), 1, ""),
        (KeyboardInterrupt(), 130, "interrupted"),
        (Abort(), 130, "interrupted"),
        (OSError(errno.ENOSPC, "disk full", "x.csv"), 1, "error: x.csv: disk full; make room"),
        (MemoryError(), 1, "error: not enough memory"),
        (RuntimeError("can't start new thread"), 1, "error: not enough memory"),
    ],
)
def test_however_a_command_ends_it_has_a_status(
    tried, truth, tmp_path, monkeypatch, error, status, words
):
    def ended(*_, **__):
        raise error

    monkeypatch.setattr("bridgetrack.pipeline.inputs.track_steps", ended)
    shown = tried("track", truth, "--out", tmp_path / "x")
    assert shown.status == status and shown.err.startswith(words)
    assert one_line(shown.err) == bool(words)


@pytest.fixture
def signals():
    """Requests to end are taken as in a program of its own, and afterwards as before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the program at once")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("signals")
def test_a_request_to_end_leaves_nothing_behind(truth, tmp_path, capsys, monkeypatch, number):
    def interrupted(tracks, labels, staging, *more):
        (staging / "half.csv").write_text("half")
        os.kill(os.getpid(), number)

    monkeypatch.setattr("bridgetrack.pipeline.runs.stage_results", interrupted)
    words = ["bridgetrack", "track", str(truth), "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", words)
    assert program() == 130
    told = capsys.readouterr().err
    assert one_line(told)
    assert not list(tmp_path.iterdir())
    # also while it starts
    monkeypatch.setattr("bridgetrack.cli.main.main", lambda: os.kill(os.getpid(), number))
    assert program() == 130
    assert capsys.readouterr().err == told


def test_a_reader_that_leaves_is_no_error(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    cells = tmp_path / "cells.csv"
    cells.write_text("t,y,x\n0,5,5\n1,5,6\n")
    words = ["track", str(cells), "--out", str(tmp_path / "out"), "--json"]
    done = subprocess.run(
        [*PROGRAM, *words], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert done.stderr == ""
    assert (tmp_path / "out" / "run.json").is_file()


def test_only_words_of_our_own_become_notes():
    notes: list[Note] = []
    with collecting_warnings(notes):
        warnings.warn("the solver ended with status InsufficientProgress", stacklevel=1)
        warnings.warn("frames seem to be missing", BridgetrackWarning, stacklevel=1)
    assert [str(note) for note in notes] == ["frames seem to be missing"]
