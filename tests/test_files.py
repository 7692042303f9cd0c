"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pytest

from bridgetrack.errors import NotWrittenError, OutputError
from bridgetrack.files import placed_together, replacing, write_text, writing


def test_text_and_bytes(tmp_path: Path) -> None:
    path = write_text(tmp_path / "new" / "a.txt", "µm\n", "the note")
    assert path.read_bytes() == "µm\n".encode()
    with replacing(tmp_path / "b", "the data", text=False) as file:
        file.write(b"\x00\r\n")
    assert (tmp_path / "b").read_bytes() == b"\x00\r\n"
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_failure_leaves_the_older_file(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", "old", "the note")

    def fail() -> None:
        with replacing(path, "the note") as file:
            file.write("new")
            assert path.read_text() == "old"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = write_text(tmp_path / "file", "x", "the note") / "below"
    with pytest.raises(OutputError, match=r"below: the note cannot be written"):
        write_text(blocked, "x", "the note")


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "disk is full: make room"), (errno.EACCES, "permission.*another folder")],
)
def test_a_cure_is_named_and_no_spare_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / ".a.txt.spare.tmp"))

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OutputError, match=says) as caught:
        write_text(tmp_path / "a.txt", "x", "the note")
    assert "a.txt: the note" in str(caught.value)
    assert ".tmp" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_fails_in_a_spare_folder_is_told_of_the_place_that_is_meant(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def fail(inner: str, error: Exception) -> None:
        with placed_together(out) as spare, writing(spare / inner):
            raise error

    for inner in ("", "ctc", "ctc/mask000.tif"):
        with pytest.raises(NotWrittenError) as caught:
            fail(inner, OSError(errno.ENOSPC, "it is full"))
        assert caught.value.path == out / inner
        assert str(caught.value).startswith(f"{out / inner}: cannot be written (it is full); ")
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(OutputError, match=r"^in words of its own$"):
        fail("", OutputError("in words of its own"))
    assert not list(tmp_path.iterdir())


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = write_text(tmp_path / "real.txt", "old", "the note")
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    write_text(link, "new", "the note")
    assert link.is_symlink()
    assert real.read_text() == "new"
