"""Movies from the command line."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import tifffile

from bridgetrack.simulation.movie import simulate
from bridgetrack.simulation.settings import SimulationSettings
from cli.conftest import Run


def test_every_setting_is_an_option_with_help(run: Run) -> None:
    text = run("simulate", "--help").out
    for field in fields(SimulationSettings):
        assert f"--{field.name.replace('_', '-')} " in text


def test_options_reach_the_pixels(run: Run, tmp_path: Path) -> None:
    words = ("--frames", 2, "--cells", 3, "--size", 64, "--seed", 9, "--pixel-size", 0.5)
    shown = run("simulate", "--out", tmp_path, *words, "--json")
    assert shown.status == 0, shown.err
    assert shown.err == ""
    result = json.loads(shown.out)
    settings = SimulationSettings(frames=2, cells=3, size=64, seed=9, pixel_size=0.5)
    assert SimulationSettings(**result["settings"]) == settings
    movie = simulate(settings)
    for t in range(2):
        assert (tifffile.imread(tmp_path / "01" / f"t00{t}.tif") == movie.image[t]).all()


def test_no_option_means_the_sample(run: Run, tmp_path: Path) -> None:
    asked: list[SimulationSettings] = []

    def remember(settings: SimulationSettings, out: Path, progress: object = None) -> Path:
        asked.append(settings)
        return out / "01"

    import pytest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bridgetrack.simulation.folder.simulate_to_folder", remember)
        assert run("simulate", "--out", tmp_path).status == 0
    assert asked == [SimulationSettings()]


def test_3d(run: Run, tmp_path: Path) -> None:
    words = ("--dim", 3, "--frames", 2, "--cells", 3, "--size", 48, "--depth", 4)
    assert run("simulate", "--out", tmp_path, *words).status == 0
    assert tifffile.imread(tmp_path / "01" / "t000.tif").shape == (4, 48, 48)


def test_an_older_movie_is_not_replaced(run: Run, tmp_path: Path) -> None:
    words = ("simulate", "--out", tmp_path, "--frames", 1, "--cells", 2, "--size", 48)
    assert run(*words).status == 0
    shown = run(*words)
    assert shown.status == 1
    assert "exists already" in shown.err
