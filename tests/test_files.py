"""Files are written whole or not at all."""

import _thread
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bridgetrack import files
from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import check_folder, in_one_go, replacing, staged, write_text


def test_a_missing_sample_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "__file__", str(tmp_path / "a" / "b" / "c" / "files.py"))
    with pytest.raises(InputError):
        files.sample_folder()


def test_text(tmp_path):
    path = write_text(tmp_path / "new" / "a.txt", "µm\n", "the note")
    assert path.read_bytes() == "µm\n".encode()
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_failure_leaves_the_older_file(tmp_path):
    path = write_text(tmp_path / "a.txt", "old", "the note")

    def fail():
        with replacing(path, "the note") as spare:
            spare.write_text("new")
            assert path.read_text() == "old"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_what_cannot_be_written_is_named(tmp_path):
    blocked = write_text(tmp_path / "file", "x", "the note") / "below"
    with pytest.raises(OutputError, match=r"below: the note cannot be written"):
        write_text(blocked, "x", "the note")


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "No space left.*make room"), (errno.EACCES, "Permission.*allow writing")],
)
def test_a_cure_is_named_and_no_spare_name(tmp_path, monkeypatch, number, says):
    def fail(*_):
        raise OSError(number, os.strerror(number), str(tmp_path / ".a.txt.spare.tmp"))

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OutputError, match=says) as caught:
        write_text(tmp_path / "a.txt", "x", "the note")
    assert "a.txt: the note" in str(caught.value)
    assert ".tmp" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_link_stays_a_link(tmp_path):
    real = write_text(tmp_path / "real.txt", "old", "the note")
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    write_text(link, "new", "the note")
    assert link.is_symlink()
    assert real.read_text() == "new"


def content(folder):
    """Names and texts of the files of a folder."""
    return {p.name: p.read_text() for p in sorted(folder.iterdir()) if p.is_file()}


def write_run(folder, text):
    """Write what a run leaves."""
    with staged(folder) as staging:
        staging.mkdir()
        for name in ("run.json", "a"):
            (staging / name).write_text(text)


def test_a_failure_puts_everything_back(tmp_path, monkeypatch):
    folder, rename = tmp_path / "out", os.rename
    write_run(folder, "old")

    def full(source, target):
        if Path(target) == folder and Path(source).name == "out":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(source, target)

    monkeypatch.setattr("os.rename", full)
    monkeypatch.setattr("bridgetrack.files._exchange", lambda one, other: False)
    with pytest.raises(OutputError, match="make room"):
        write_run(folder, "new")
    assert content(folder) == {"a": "old", "run.json": "old"}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


KILLED = """
import os, sys
from pathlib import Path
from bridgetrack.files import staged

count = 0

def heard(event, args):
    global count
    count += event in ("os.rename", "os.remove", "os.rmdir", "ctypes.dlsym")
    if count == int(sys.argv[2]):
        os._exit(9)

with staged(Path(sys.argv[1])) as staging:
    staging.mkdir()
    for name in ("run.json", "a"):
        (staging / name).write_text("new")
    sys.addaudithook(heard)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not exchanged in one step")
def test_a_killed_program_leaves_the_earlier_results_or_the_new_ones(tmp_path):
    out, seen = tmp_path / "out", set()
    for step in range(1, 20):
        write_run(out, "old")
        done = subprocess.run([sys.executable, "-c", KILLED, out, str(step)], check=False)
        found = content(out)
        assert found["a"] == found["run.json"] and len(found) == 2
        seen.add(found["a"])
        if done.returncode == 0:
            break
    assert seen == {"old", "new"} and done.returncode == 0
    assert [p.name for p in tmp_path.iterdir()] == ["out"], "leftovers are removed"


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked")
def test_leftovers_of_the_living_and_of_others_stay(tmp_path):
    path = tmp_path / "a.txt"
    left, other = tmp_path / ".a.txt.abcdefgh.part", tmp_path / ".b.txt.abcdefgh.part"
    for folder in (left / "new", other / "new"):
        folder.mkdir(parents=True)
    pipe, link, filled, theirs = (tmp_path / f".a.txt.{k:08}.part" for k in range(4))
    os.mkfifo(pipe)
    link.symlink_to(other, target_is_directory=True)
    (filled / "thesis").mkdir(parents=True)
    (theirs / "new").mkdir(parents=True)
    stays = [other, pipe, link, filled]
    if os.getuid() == 0:
        os.chown(theirs, 12345, 12345)
        stays.append(theirs)
    with staged(path) as living:
        write_text(path, "new", "the note")
        living.write_text("newer")
    assert sorted(tmp_path.iterdir()) == sorted([path, *stays])
    assert path.read_text() == "newer" and (other / "new").exists()


def test_a_folder_keeps_its_rights(tmp_path):
    out = tmp_path / "out"
    write_run(out, "old")
    out.chmod(0o710)
    write_run(out, "new")
    assert out.stat().st_mode & 0o777 == 0o710
    assert content(out) == {"a": "new", "run.json": "new"}


BOTH = """
import sys
from pathlib import Path
from bridgetrack.files import staged

for _ in range(30):
    with staged(Path(sys.argv[1])) as staging:
        staging.mkdir()
        for name in ("run.json", "a", "b"):
            (staging / name).write_text(sys.argv[2])
"""


def test_two_programs_in_one_folder_take_turns(tmp_path):
    out = tmp_path / "out"
    writers = [
        subprocess.Popen([sys.executable, "-c", BOTH, str(out), text]) for text in ("1", "2")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = content(out)
    assert found["a"] == found["b"] == found["run.json"] and len(found) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.fixture
def interruptible():
    """Interrupts are raised, also where the tests were begun in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_threads_of_a_library_have_ended_when_an_interrupt_goes_on(tmp_path):
    def fill(spare):
        for k in range(40):
            spare.mkdir(parents=True, exist_ok=True)
            (spare / str(k)).write_text("")
            time.sleep(0.01)
            if k == 10:
                _thread.interrupt_main()

    def write(spare):
        thread = threading.Thread(target=fill, args=(spare,))
        thread.start()
        thread.join()

    with pytest.raises(KeyboardInterrupt), staged(tmp_path / "store") as spare:
        in_one_go(write, spare)
    time.sleep(0.4)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_was_removed_is_named(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(InputError, match="was removed"):
        write_text(Path("a.txt"), "x", "the note")
    with pytest.raises(InputError, match="was removed"):
        check_folder(tmp_path / "out", Path("labels.tif"))
