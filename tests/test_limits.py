"""What the shell and control groups leave a process is known, and too little is refused."""

from __future__ import annotations

import math
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from bridgetrack.freed import give_back
from bridgetrack.limits import TO_BEGIN, address_space, left_in_groups

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
from bridgetrack.__main__ import main
sys.exit(main())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others do not keep the limit")
@pytest.mark.parametrize("limit", [2e8, 5e8, 7.4e8])
def test_a_limit_below_what_libraries_take_is_refused_before_they_are_loaded(limit: float) -> None:
    words = [sys.executable, "-c", LIMITED, str(int(limit)), "track", "a.tif", "--out", "b"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert f"limits a program to {limit / 1e6:,.0f} MB" in done.stderr
    assert f"needs {TO_BEGIN / 1e6:,.0f} MB" in done.stderr and "ulimit" in done.stderr


SIDE_BY_SIDE = """
import os, resource, sys, threading
resource.setrlimit(resource.RLIMIT_AS, (1 << 40, resource.RLIM_INFINITY))
import bridgetrack.__main__ as program
if sys.argv[1] == "not together":
    program.keep_together = lambda: None
program._has_room()
threading.stack_size(1 << 18)
done, held = threading.Event(), []

def allocate():
    held.append(b"x" * 10_000 + os.urandom(1))
    done.wait()

def addresses():
    return int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

before, threads = addresses(), [threading.Thread(target=allocate) for _ in range(6)]
for one in threads:
    one.start()
while len(held) < 6:
    pass
print(addresses() - before)
done.set()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of the C library of Linux")
def test_threads_share_their_freed_memory_where_addresses_are_few() -> None:
    def taken(how: str) -> int:
        words = [sys.executable, "-c", SIDE_BY_SIDE, how]
        return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    assert taken("together") < 2e7
    if platform.libc_ver()[0] == "glibc":
        assert taken("not together") > 6 * 6e7


def test_text_that_pandas_let_go_goes_back_to_the_system() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pool = pyarrow.default_memory_pool()
    if pool.backend_name == "system" or not Path("/proc/self/status").exists():
        pytest.skip("it keeps nothing, or the system does not say what is held")

    def held() -> int:
        text = Path("/proc/self/status").read_text()
        return 1024 * int(text.split("RssAnon:")[1].split()[0])

    give_back()
    before = held()
    tables = [pyarrow.array(["a cell that is a row of a table"] * 50_000) for _ in range(40)]
    highest = held()
    assert highest > before + 6e7
    del tables
    give_back()
    assert held() < (before + highest) / 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others do not keep the limit")
def test_a_limit_above_what_libraries_take_is_enough_for_a_few_cells(tmp_path: Path) -> None:
    table = tmp_path / "cells.csv"
    rows = (f"{t},{10 * k},{10 * k + t}" for t in range(4) for k in range(20))
    table.write_text("\n".join(["t,y,x", *rows]) + "\n")
    words = [sys.executable, "-c", LIMITED, str(int(1.55e9)), "track", str(table)]
    done = subprocess.run(
        [*words, "--out", str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "run.json").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_limit_of_the_shell_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (3_000_000_000, -1))
    assert address_space() == 3e9
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, -1))
    assert address_space() == math.inf


def group(folder: Path, limit: str, used: int, stat: str = "") -> None:
    """What the system tells of a control group."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(stat)


def test_the_narrowest_group_counts_and_files_that_were_read_do_not(tmp_path: Path) -> None:
    own, root = tmp_path / "own", tmp_path / "groups"
    assert left_in_groups(own, root) == math.inf
    own.write_text("0::/slurm/job_7/step_0\n")
    group(root / "slurm", "8000", 1000)
    group(root / "slurm/job_7", "4000", 3500, "anon 500\ninactive_file 3000\n")
    group(root / "slurm/job_7/step_0", "max", 3500)
    group(root / "slurm/job_8", "10", 9)  # another's
    assert left_in_groups(own, root) == 3500
    group(root, "2000", 500)  # as a container sees its own
    assert left_in_groups(own, root) == 1500


def test_the_older_kind_of_groups(tmp_path: Path) -> None:
    own, root = tmp_path / "own", tmp_path / "groups"
    own.write_text("12:cpu:/else\n4:memory:/job\n")
    for folder, limit in ((root / "memory", "9000"), (root / "memory/job", "5000")):
        folder.mkdir(parents=True)
        (folder / "memory.limit_in_bytes").write_text(limit)
        (folder / "memory.usage_in_bytes").write_text("4000")
        (folder / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 2500\n")
    assert left_in_groups(own, root) == 3500
