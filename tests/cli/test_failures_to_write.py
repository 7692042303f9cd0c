"""Commands that write one file: what cannot be written is named, with a cure, before the work."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Outcome, Run, one_line


def words_of(command: str, movie: Path, truth: Path, out: Path, clicks: Path) -> tuple[Any, ...]:
    """A command that writes one file."""
    given = ("--ground-truth", movie / "01_GT", "--out", out)
    return {
        "train": (truth, "--annotations", clicks, "--out", out, "--lambda", 1),
        "annotate": (truth, *given, "--count", 12),
    }[command]


@pytest.fixture
def clicks(run: Run, movie: Path, truth: Path, tmp_path: Path) -> Path:
    """A few answers about the small movie."""
    out = tmp_path / "a.json"
    assert run("annotate", *words_of("annotate", movie, truth, out, out)).status == 0
    return out


def told(shown: Outcome, *words: str) -> None:
    """One line that has these words and no spare name."""
    assert shown.status == 1
    assert one_line(shown.err)
    for word in words:
        assert word in shown.err
    assert ".tmp" not in shown.err


COMMANDS = ("train", "annotate")


@pytest.mark.parametrize("command", COMMANDS)
def test_no_permission_is_told_before_the_work(
    run: Run, movie: Path, truth: Path, clicks: Path, tmp_path: Path, command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    locked = tmp_path / "locked"
    locked.mkdir()
    allowed = os.access
    monkeypatch.setattr("os.access", lambda p, how: Path(p) != locked and allowed(p, how))
    monkeypatch.setattr("bridgetrack.movie.opening.open_labels", None)
    shown = run(command, *words_of(command, movie, truth, locked / "o.json", clicks))
    told(shown, "locked/o.json", "permission", "another folder")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_of_that_name(
    run: Run, movie: Path, truth: Path, clicks: Path, tmp_path: Path, command: str
) -> None:
    shown = run(command, *words_of(command, movie, truth, tmp_path, clicks))
    told(shown, str(tmp_path), "this is a folder")
    shown = run(command, *words_of(command, movie, truth, clicks / "o.json", clicks))
    told(shown, "a.json is a file")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(
    run: Run, movie: Path, truth: Path, clicks: Path, tmp_path: Path, command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), ".spare.tmp")

    monkeypatch.setattr("os.fsync", full)
    out = tmp_path / "o.json"
    shown = run(command, *words_of(command, movie, truth, out, clicks))
    told(shown, "o.json", "No space left", "make room")
    assert not out.exists()


def test_a_full_disk_is_told_of_results_by_their_own_names(
    run: Run, truth: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Path.open

    def full(path: Path, *how: Any, **more: Any) -> Any:
        if path.name == "events.csv":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return written(path, *how, **more)

    out = tmp_path / "out"
    monkeypatch.setattr(Path, "open", full)
    shown = run("track", truth, "--out", out)
    told(shown, f"error: {out}: cannot be written", "No space left", "make room")
    assert ".part" not in shown.err
    assert not list(tmp_path.iterdir())


def test_any_other_full_disk_has_a_cure(
    run: Run, truth: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/scratch/x")

    monkeypatch.setattr("bridgetrack.pipeline.windows.track_movie", full)
    shown = run("track", truth, "--out", tmp_path / "out")
    told(shown, "/scratch/x", "No space left", "make room")
    assert "unexpected" not in shown.err
