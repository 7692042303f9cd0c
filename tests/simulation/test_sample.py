"""The sample movie: made by this code, and there wherever the package is."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tifffile

from bridgetrack.errors import InputError
from bridgetrack.simulation import folder as sample
from bridgetrack.simulation.folder import sample_folder
from bridgetrack.simulation.movie import simulate
from bridgetrack.simulation.settings import SimulationSettings

PROJECT = Path(__file__).resolve().parents[2]


def test_sample_is_regenerated_bit_for_bit() -> None:
    folder = sample_folder()
    text = (folder / "01_GT" / "simulation.json").read_text()
    assert SimulationSettings(**json.loads(text)) == SimulationSettings()
    movie = simulate(SimulationSettings())
    names = sorted(p.name for p in (folder / "01").iterdir())
    assert names == [f"t{t:03d}.tif" for t in range(36)]
    for t, name in enumerate(names):
        assert np.array_equal(tifffile.imread(folder / "01" / name), movie.image[t]), name
        mask = tifffile.imread(folder / "01_GT" / "TRA" / f"man_track{t:03d}.tif")
        assert np.array_equal(mask, movie.labels[t]), name
    table = np.loadtxt(folder / "01_GT" / "TRA" / "man_track.txt", dtype=int)
    assert np.array_equal(table, movie.man_track)


def test_sample_is_what_its_description_says() -> None:
    table = np.loadtxt(sample_folder() / "01_GT" / "TRA" / "man_track.txt", dtype=int)
    per_frame = [((table[:, 1] <= t) & (table[:, 2] >= t)).sum() for t in range(36)]
    assert (min(per_frame), max(per_frame)) == (62, 89)
    divisions = np.unique(table[table[:, 3] > 0, 3])
    assert len(divisions) == 24
    total = sum(p.stat().st_size for p in sample_folder().rglob("*") if p.is_file())
    assert total < 3_000_000


def test_installed_package_holds_the_sample(tmp_path: Path) -> None:
    if not (PROJECT / "pyproject.toml").is_file():
        pytest.skip("tests run without the project's source")
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    installed = tmp_path / "installed"
    with zipfile.ZipFile(tmp_path / done.stdout.split()[-1]) as wheel:
        wheel.extractall(installed)
    ask = (
        f"import sys; sys.path.insert(0, {str(installed)!r})\n"
        "from bridgetrack.simulation.folder import sample_folder; print(sample_folder())"
    )
    # -P and a neutral folder, so that nothing but the unpacked wheel can answer.
    asked = subprocess.run(
        [sys.executable, "-P", "-c", ask],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found = Path(asked.stdout.strip())
    assert found == installed / "bridgetrack" / "_sample"
    ours = {p.relative_to(PROJECT / "sample_data") for p in (PROJECT / "sample_data").rglob("*")}
    assert ours == {p.relative_to(found) for p in found.rglob("*")}
    assert (found / "01" / "t000.tif").read_bytes() == (
        PROJECT / "sample_data" / "01" / "t000.tif"
    ).read_bytes()


def test_a_missing_sample_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lonely = tmp_path / "a" / "b" / "c" / "sample.py"
    monkeypatch.setattr(sample, "__file__", str(lonely))
    with pytest.raises(InputError, match="bridgetrack simulate"):
        sample_folder()
