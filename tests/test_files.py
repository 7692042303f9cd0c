"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridgetrack.errors import BridgetrackError, OutputError
from bridgetrack.files import (
    replacing,
    staged,
    staged_files,
    temporary_name,
    write_text,
)
from bridgetrack.io.read import read_tracks


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


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = write_text(tmp_path / "real.txt", "old", "the note")
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    write_text(link, "new", "the note")
    assert link.is_symlink()
    assert real.read_text() == "new"


def content(folder: Path) -> dict[str, str]:
    """Names and texts of the files of a folder."""
    return {p.name: p.read_text() for p in sorted(folder.iterdir()) if p.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of an earlier run and one of somebody else."""
    made = tmp_path / "out"
    made.mkdir()
    for name in ("run.json", "a", "c"):
        (made / name).write_text("old")
    (made / "mine").write_text("mine")
    return made


def write_run(folder: Path, text: str) -> None:
    """Write what a run leaves."""
    with staged_files(folder, lambda: ["c"]) as staging:
        for name in ("run.json", "a", "b"):
            (staging / name).write_text(text)


def test_files_of_others_stay(folder: Path) -> None:
    write_run(folder, "new")
    assert content(folder) == {"a": "new", "b": "new", "mine": "mine", "run.json": "new"}
    assert len(list(folder.iterdir())) == 4


@pytest.mark.parametrize("linked", [False, True])
def test_a_plan_that_came_with_a_folder_is_not_carried_out(tmp_path: Path, linked: bool) -> None:
    """A downloaded folder must not write outside itself, whether it is read or written to."""
    came, home = tmp_path / "came", tmp_path / "home"
    came.mkdir()
    home.mkdir()
    (home / "theirs").write_text("theirs")
    temporary = temporary_name(came / "bridgetrack")
    temporary = temporary.with_name(temporary.name.replace(f".{os.getpid()}.", ".9999999999."))
    if linked:
        temporary.mkdir()
        (temporary / "new").symlink_to(home)
    else:
        (temporary / "new").mkdir(parents=True)
        (temporary / "home").mkdir()
        (temporary / "home" / "autostart").write_text("bad")
    plan = {"names": ["../home/autostart"], "gone": [], "swap": linked, "before": {}}
    (temporary / "bridgetrack.plan").write_text(json.dumps(plan))
    (came / "run.json").write_text("{}")
    before = sorted(p.name for p in came.iterdir())
    with pytest.raises(BridgetrackError):
        read_tracks(came)
    assert sorted(p.name for p in came.iterdir()) == before, "a folder that is read is not touched"
    write_run(came, "new")
    assert content(home) == {"theirs": "theirs"}


def test_a_failure_puts_everything_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, rename = content(folder), os.rename

    def full(source: Path, target: Path) -> None:
        if Path(target) == folder / "b":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(source, target)

    monkeypatch.setattr("os.rename", full)
    with pytest.raises(OutputError, match="make room"):
        write_run(folder, "new")
    assert content(folder) == before
    assert len(list(folder.iterdir())) == len(before)


KILLED = """
import os, sys
from pathlib import Path
from bridgetrack.files import staged_files

count = 0

def heard(event, args):
    global count
    count += event in ("os.rename", "os.remove", "os.rmdir", "ctypes.dlsym")
    if count == int(sys.argv[2]):
        os._exit(9)

with staged_files(Path(sys.argv[1])) as staging:
    for name in ("run.json", "a"):
        (staging / name).write_text("new")
    sys.addaudithook(heard)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not exchanged in one step")
def test_a_killed_program_leaves_the_earlier_results_or_the_new_ones(tmp_path: Path) -> None:
    out, seen = tmp_path / "out", set()
    for step in range(1, 20):
        with staged_files(out) as staging:
            for name in ("run.json", "a"):
                (staging / name).write_text("old")
        done = subprocess.run([sys.executable, "-c", KILLED, out, str(step)], check=False)
        found = content(out)
        assert found["a"] == found["run.json"] and len(found) == 2
        seen.add(found["a"])
        if done.returncode == 0:
            break
    assert seen == {"old", "new"} and done.returncode == 0
    assert [p.name for p in tmp_path.iterdir()] == ["out"], "leftovers are removed"


def test_leftovers_of_the_living_and_of_other_computers_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    living = temporary_name(path)
    left = living.with_name(living.name.replace(f".{os.getpid()}.", ".9999999999."))
    elsewhere = living.with_name(".a.txt.12345678.1.00000000.part")
    other = tmp_path / ".b.txt.part"
    for temporary in (left, living, elsewhere, other):
        temporary.write_text("?")
    write_text(path, "new", "the note")
    assert sorted(tmp_path.iterdir()) == sorted([path, living, elsewhere, other])


def test_a_folder_keeps_its_rights(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_run(out, "old")
    out.chmod(0o710)
    write_run(out, "new")
    assert out.stat().st_mode & 0o777 == 0o710
    assert content(out) == {"a": "new", "b": "new", "run.json": "new"}


def test_the_working_folder_is_not_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    write_run(Path(), "new")
    assert content(Path()) == {"a": "new", "b": "new", "run.json": "new"}
    assert tmp_path.stat().st_ino == before


BOTH = """
import sys
from pathlib import Path
from bridgetrack.files import staged_files

for _ in range(30):
    with staged_files(Path(sys.argv[1])) as staging:
        for name in ("run.json", "a", "b"):
            (staging / name).write_text(sys.argv[2])
"""


def test_two_programs_in_one_folder_take_turns(folder: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", BOTH, str(folder), text]) for text in ("1", "2")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = content(folder)
    assert found["a"] == found["b"] == found["run.json"] != "old"
    assert (found["c"], found["mine"], len(found)) == ("old", "mine", 5)
    assert [p.name for p in folder.parent.iterdir()] == ["out"]


def test_a_folder_of_masks_is_replaced_in_one_step(tmp_path: Path) -> None:
    target = tmp_path / "masks"
    for text in ("old", "new"):
        with staged(target) as temporary:
            temporary.mkdir()
            (temporary / text).write_text(text)
    assert content(target) == {"new": "new"}
    assert list(tmp_path.iterdir()) == [target]
