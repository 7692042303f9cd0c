"""The sample movie comes with the package, and simulated movies have a consistent truth."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bridgetrack import sample
from bridgetrack.errors import InputError
from simulator import SimulationSettings, simulate

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
    monkeypatch.setattr(sample, "__file__", str(tmp_path / "a" / "b" / "c" / "sample.py"))
    with pytest.raises(InputError):
        sample.sample_folder()


@pytest.mark.parametrize("more", [{"dim": 3, "depth": 10}, {"density": 0.5, "death_rate": 0.1}])
def test_the_truth_is_consistent(more: dict[str, float]) -> None:
    settings = {"frames": 8, "cells": 25, "division_rate": 0.03, "seed": 5} | more
    movie = simulate(SimulationSettings(**settings))
    present = {(t, k) for t, f in enumerate(movie.labels) for k in np.unique(f).tolist() if k}
    rows = movie.tracks.to_numpy().tolist()
    assert present == {(t, k) for k, first, last, _ in rows for t in range(first, last + 1)}
    ends = {k: last for k, _, last, _ in rows}
    mothers = [parent for _, _, _, parent in rows if parent]
    assert mothers and all(mothers.count(m) == 2 for m in mothers)
    assert all(ends[parent] == first - 1 for _, first, _, parent in rows if parent)
