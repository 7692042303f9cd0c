"""What the shell and control groups leave a process is known, and too little is refused."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from bridgetrack.limits import TO_BEGIN, address_space, left_in_groups

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
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
