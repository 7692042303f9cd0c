"""The sample movie comes with the package."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bridgetrack import files
from bridgetrack.errors import InputError

PROJECT = Path(__file__).resolve().parents[1]


def test_an_installed_package_holds_the_sample(tmp_path: Path) -> None:
    if not (PROJECT / "pyproject.toml").is_file():
        pytest.skip("tests run without the project's source")
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    words = [sys.executable, "-c", build, str(tmp_path)]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(tmp_path / done.stdout.split()[-1]) as wheel:
        names = {n for n in wheel.namelist() if n.startswith("bridgetrack/_sample/")}
    ours = [p for p in (PROJECT / "sample_data").rglob("*") if p.is_file()]
    assert names == {
        f"bridgetrack/_sample/{p.relative_to(PROJECT / 'sample_data').as_posix()}" for p in ours
    }


def test_a_missing_sample_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "__file__", str(tmp_path / "a" / "b" / "c" / "files.py"))
    with pytest.raises(InputError):
        files.sample_folder()
