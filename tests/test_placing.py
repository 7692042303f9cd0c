"""Files that take their places together, and what killed programs leave."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridgetrack.errors import OutputError
from bridgetrack.files import staged, staged_files, write_text
from bridgetrack.leftovers import spare_name
from bridgetrack.placing import recover

DIE = """
import os, sys
from pathlib import Path
from bridgetrack.files import staged_files, write_text

def heard(event, args):
    if event == "os.rename" and sys.argv[2] in str(args[1]):
        os._exit(0)

if len(sys.argv) > 2:
    sys.addaudithook(heard)
with staged_files(Path(sys.argv[1]), lambda: ["run.json", "c"]) as staging:
    for name in ("run.json", "a", "b"):
        (staging / name).write_text("new")
    if len(sys.argv) == 2:
        os._exit(0)
"""


def die(folder: Path, *at: str) -> None:
    """Write a, b and run.json to a folder and end without any cleaning, when a file goes there."""
    subprocess.run([sys.executable, "-c", DIE, str(folder), *at], check=True)


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


def test_what_was_not_complete_is_removed(folder: Path) -> None:
    before = content(folder)
    die(folder)
    assert list(folder.parent.glob(".*.part"))
    recover(folder)
    assert content(folder) == before
    assert [p.name for p in folder.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("at", ["old/run.json", "old/c", "out/a", "out/b", "out/run.json"])
def test_what_was_complete_is_put_in_place(folder: Path, at: str) -> None:
    die(folder, at)
    half = content(folder)
    assert half["mine"] == "mine"
    assert len({text for name, text in half.items() if name != "mine"}) <= 1
    recover(folder)
    assert content(folder) == {"a": "new", "b": "new", "mine": "mine", "run.json": "new"}
    assert len(list(folder.iterdir())) == 4


def test_what_somebody_put_there_since_is_kept(folder: Path) -> None:
    die(folder, "out/a")
    (folder / "a").write_text("theirs")
    with pytest.raises(OutputError, match=r"out/a was put there after a run had been killed"):
        recover(folder)
    assert (folder / "a").read_text() == "theirs"
    (folder / "a").unlink()
    recover(folder)
    assert (folder / "a").read_text() == "new"


def test_a_folder_that_was_moved_meanwhile(folder: Path) -> None:
    die(folder, "out/a")
    moved = folder.rename(folder.with_name("moved"))
    recover(folder)
    assert not folder.exists()
    recover(moved)
    assert content(moved) == {"a": "new", "b": "new", "mine": "mine", "run.json": "new"}


def test_a_failure_puts_everything_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, rename = content(folder), os.rename

    def full(source: Path, target: Path) -> None:
        if Path(target) == folder / "b":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(source, target)

    monkeypatch.setattr("os.rename", full)
    with (
        pytest.raises(OutputError, match="make room"),
        staged_files(folder, lambda: ["c"]) as staging,
    ):
        for name in ("run.json", "a", "b"):
            (staging / name).write_text("new")
    assert content(folder) == before
    assert len(list(folder.iterdir())) == len(before)


def test_a_folder_keeps_its_rights(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for text in ("old", "new"):
        with staged_files(out) as staging:
            (staging / "a").write_text(text)
        out.chmod(0o710)
    with staged_files(out) as staging:
        (staging / "a").write_text("newer")
    assert out.stat().st_mode & 0o777 == 0o710
    assert content(out) == {"a": "newer"}


def test_where_somebody_stands_the_folder_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    with staged_files(Path()) as staging:
        (staging / "a").write_text("new")
    assert content(Path()) == {"a": "new"}
    assert tmp_path.stat().st_ino == before


def test_leftovers_of_the_living_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    living = spare_name(path)
    living.write_text("now")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = living.with_name(living.name.replace(f".{os.getpid()}.", f".{dead.pid}."))
    elsewhere = [living.with_name(f".a.txt.{k}2345678.1.00000000.part") for k in (0, 1)]
    other = tmp_path / ".b.txt.part"
    for spare in (left, *elsewhere, other):
        spare.write_text("?")
    os.utime(elsewhere[1], (0, 0))
    write_text(path, "new", "the note")
    assert sorted(tmp_path.iterdir()) == sorted([path, living, elsewhere[0], other])


BOTH = """
import sys
from pathlib import Path
from bridgetrack.files import staged_files

for _ in range(30):
    with staged_files(Path(sys.argv[1])) as staging:
        for name in ("run.json", "a", "b"):
            (staging / name).write_text(sys.argv[2])
"""


@pytest.mark.parametrize("mine", [True, False])
def test_two_programs_in_one_folder_take_turns(folder: Path, mine: bool) -> None:
    if not mine:  # then the folder is exchanged as a whole
        for name in ("mine", "c"):
            (folder / name).unlink()
    writers = [
        subprocess.Popen([sys.executable, "-c", BOTH, str(folder), text]) for text in ("1", "2")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = content(folder)
    assert found.pop("run.json") in ("1", "2")
    assert found["a"] == found["b"] == (folder / "run.json").read_text()
    assert set(found) == ({"a", "b", "c", "mine"} if mine else {"a", "b"})
    assert [p.name for p in folder.parent.iterdir()] == ["out"]


def test_a_folder_of_masks_is_replaced_in_one_step(tmp_path: Path) -> None:
    target = tmp_path / "masks"
    for text in ("old", "new"):
        with staged(target) as spare:
            spare.mkdir()
            (spare / text).write_text(text)
    assert content(target) == {"new": "new"}
    assert list(tmp_path.iterdir()) == [target]
