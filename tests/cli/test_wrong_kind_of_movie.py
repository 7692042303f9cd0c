"""An image for labels, one frame for a movie, colours for frames: nothing passes without a word."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile

from bridgetrack.movie.opening import open_movie
from cli.conftest import Run, one_line
from cli.test_bad_input import refused, squares, stack

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("command", ["track", "train", "suggest"])
def test_a_camera_image_is_no_label_movie(run: Run, tmp_path: Path, command: str) -> None:
    image = stack(tmp_path / "image.tif", RNG.integers(90, 220, (3, 60, 60)).astype(np.uint16))
    out = tmp_path / "out"
    more = () if command == "suggest" else ("--out", out)
    answers = tmp_path / "a.json"
    movie = {"n_frames": 3, "shape": [60, 60], "scale": [1, 1]}
    content = {"format": "bridgetrack-annotations", "version": 1, "movie": movie}
    answers.write_text(json.dumps({**content, "annotations": []}))
    shown = run(command, image, "--annotations", answers, *more)
    refused(shown, out, "image.tif", "looks like an image", "bridgetrack segment")


def test_the_sample_image_is_no_label_movie(run: Run, movie: Path, tmp_path: Path) -> None:
    shown = run("track", movie / "01", "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "looks like an image", "bridgetrack segment")


def test_every_pixel_its_own_number(run: Run, tmp_path: Path) -> None:
    image = stack(tmp_path / "i.tif", np.arange(1, 3 * 900 + 1).reshape(3, 30, 30).astype("uint16"))
    refused(run("track", image, "--out", tmp_path / "out"), tmp_path / "out", "looks like an image")


def test_fractions_name_the_cure(run: Run, tmp_path: Path) -> None:
    image = stack(tmp_path / "image.tif", RNG.random((3, 20, 20)).astype(np.float32))
    refused(run("track", image, "--out", tmp_path / "out"), tmp_path / "out", "bridgetrack segment")


def test_small_crowded_cells_are_labels(run: Run, tmp_path: Path) -> None:
    cells = np.kron(np.arange(1, 65).reshape(8, 8), np.ones((3, 3), dtype=int)).astype(np.uint16)
    shown = run("track", stack(tmp_path / "l.tif", [cells] * 2), "--out", tmp_path / "out")
    assert shown.status == 0, shown.err


def test_one_frame_is_told(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares(1))
    shown = run("track", labels, "--axes", "TYX", "--out", tmp_path / "out")
    assert shown.status == 0, shown.err
    assert "note: " in shown.out and "only one frame" in shown.out and "--axes" in shown.out
    several = run("track", stack(tmp_path / "m.tif", squares(3)), "--out", tmp_path / "more")
    assert "only one frame" not in several.out


@pytest.mark.parametrize("command", ["track", "segment"])
def test_missing_frames_are_told(run: Run, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for t in (0, 1, 5):
        tifffile.imwrite(folder / f"t{t:03d}.tif", squares(1)[0])
    shown = run(command, folder, "--out", tmp_path / "out")
    assert shown.status == 0, shown.err
    assert "missing after t001.tif" in shown.out


def test_colours_in_a_tiff_are_told(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rgb.tif"
    tifffile.imwrite(file, np.zeros((4, 40, 50, 3), dtype=np.uint8), photometric="rgb")
    shown = run("segment", file, "--out", tmp_path / "labels.tif")
    assert shown.status == 0, shown.err
    for words in ("rgb.tif", "RGB", "--channel", "--axes", "no cell was found"):
        assert words in shown.out


def test_colours_in_an_array_are_not_taken_for_space(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rgb.npy"
    np.save(file, np.zeros((4, 40, 50, 3), dtype=np.uint8))
    shown = run("segment", file, "--out", tmp_path / "labels.tif")
    assert shown.status == 1
    assert one_line(shown.err)
    for words in ("rgb.npy", "RGB", "TYXC", "--axes", "--image-axes"):
        assert words in shown.err
    assert open_movie(file, axes="TYXC").geometry.shape == (40, 50)


def test_errors_of_shape_name_the_options(run: Run, tmp_path: Path) -> None:
    labels = stack(tmp_path / "labels.tif", squares(3, 40))
    image = stack(tmp_path / "image.tif", squares(3, 48))
    shown = run("track", labels, "--image", image, "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "--axes", "--image-axes")
    shown = run("track", labels, "--axes", "TZYX", "--out", tmp_path / "out")
    refused(shown, tmp_path / "out", "--axes")
