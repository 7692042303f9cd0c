"""Simulated movies on disk."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import tifffile

from bridgetrack.errors import InputError, OutputError
from bridgetrack.simulation.folder import simulate_to_folder
from bridgetrack.simulation.movie import Simulation, simulate
from bridgetrack.simulation.settings import SimulationSettings

SETTINGS = SimulationSettings(frames=4, cells=10, division_rate=0.05)


def contents(folder: Path) -> dict[str, bytes]:
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


@pytest.mark.parametrize("dim", [2, 3])
def test_files_hold_the_movie_and_its_scale(tmp_path: Path, dim: int) -> None:
    settings, done = replace(SETTINGS, dim=dim, depth=4), []
    movie = simulate(settings)
    images = simulate_to_folder(settings, tmp_path, progress=done.append)
    assert images == tmp_path / "01"
    assert done == [1, 2, 3, 4]
    for t in range(4):
        with tifffile.TiffFile(images / f"t{t:03d}.tif") as tif:
            assert np.array_equal(tif.asarray(), movie.image[t])
            assert tif.pages[0].compression == tifffile.COMPRESSION.ADOBE_DEFLATE
            found = tif.imagej_metadata
            across, length = tif.pages[0].tags["XResolution"].value
        assert found["unit"] == "micron"
        assert found["finterval"] == 600
        assert found.get("spacing") == (pytest.approx(1.935) if dim == 3 else None)
        assert length / across == pytest.approx(0.645)
        mask = tifffile.imread(tmp_path / "01_GT" / "TRA" / f"man_track{t:03d}.tif")
        assert np.array_equal(mask, movie.labels[t])
    table = np.loadtxt(tmp_path / "01_GT" / "TRA" / "man_track.txt", dtype=int, ndmin=2)
    assert np.array_equal(table, movie.man_track)


def test_settings_beside_the_truth_make_the_movie_again(tmp_path: Path) -> None:
    simulate_to_folder(SETTINGS, tmp_path)
    text = (tmp_path / "01_GT" / "simulation.json").read_text()
    assert SimulationSettings(**json.loads(text)) == SETTINGS
    assert json.loads(text) == asdict(SETTINGS)


def test_a_sequence_is_never_overwritten(tmp_path: Path) -> None:
    simulate_to_folder(SETTINGS, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(OutputError, match="01 exists already"):
        simulate_to_folder(replace(SETTINGS, seed=1), tmp_path)
    assert contents(tmp_path) == before
    simulate_to_folder(replace(SETTINGS, seed=1), tmp_path, sequence="02")
    assert set(before) < set(contents(tmp_path))


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = tifffile.imwrite

    def fill(path: Path, *args: object, **kwargs: object) -> None:
        if Path(path).name == "t002.tif":
            raise OSError(28, "No space left on device")
        write(path, *args, **kwargs)

    monkeypatch.setattr(tifffile, "imwrite", fill)
    with pytest.raises(OutputError, match="No space left"):
        simulate_to_folder(SETTINGS, tmp_path / "movie")
    assert list(tmp_path.iterdir()) == []


def test_cancelling_leaves_nothing(tmp_path: Path) -> None:
    def stop(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_to_folder(SETTINGS, tmp_path / "movie", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "movie").write_text("")
    with pytest.raises(OutputError, match="movie: cannot be written"):
        simulate_to_folder(SETTINGS, tmp_path / "movie")


def test_a_thousand_and_one_frames_sort_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)  # which takes nearly all of the time
    settings = SimulationSettings(frames=1001, cells=0, size=16)
    images = simulate_to_folder(settings, tmp_path)
    names = sorted(p.name for p in images.iterdir())
    assert (names[0], names[-1], len(names)) == ("t0000.tif", "t1000.tif", 1001)


def test_too_many_tracks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridgetrack.simulation.movie._MAX_LABEL", 3)
    with pytest.raises(InputError, match="more than 3 tracks"):
        list(Simulation(SETTINGS))
