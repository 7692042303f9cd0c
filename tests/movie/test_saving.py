"""Label movies are written whole or not at all."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
import tifffile

from bridgetrack.errors import InputError, OutputError
from bridgetrack.movie import Geometry, label_frame, open_labels, save_labels
from bridgetrack.movie.writers import label_writer

RNG = np.random.default_rng(3)
TYX = RNG.integers(0, 900, (4, 12, 15))
TZYX = RNG.integers(0, 900, (3, 5, 12, 15))


@pytest.mark.parametrize("name", ["labels.tif", "labels", "labels.ome.zarr"])
@pytest.mark.parametrize("frames", [TYX, TZYX], ids=["2D", "3D"])
def test_round_trip_keeps_pixels_scale_and_interval(
    tmp_path: Path, name: str, frames: np.ndarray
) -> None:
    scale = (1.5, 0.3, 0.2)[-frames.ndim + 1 :]
    movie = open_labels(frames, scale=scale, frame_interval=7.5)
    path = save_labels(movie, tmp_path / "new" / name)
    again = open_labels(path)
    assert again.geometry.shape == movie.geometry.shape
    assert again.geometry.scale == pytest.approx(scale, rel=1e-6)
    assert again.geometry.unit == "micrometer"
    assert again.geometry.frame_interval == pytest.approx(7.5)
    for t in range(len(frames)):
        np.testing.assert_array_equal(label_frame(again, t), frames[t])
    assert sorted(p.name for p in path.parent.iterdir()) == [".bridgetrack", name]


def test_ctc_names_and_compression(tmp_path: Path) -> None:
    save_labels(TYX, tmp_path / "01_RES")
    names = sorted(p.name for p in (tmp_path / "01_RES").iterdir())
    assert names == [f"mask{t:03d}.tif" for t in range(4)]
    with tifffile.TiffFile(tmp_path / "01_RES" / "mask002.tif") as file:
        assert file.pages[0].dtype == np.uint16
        assert file.pages[0].compression == tifffile.COMPRESSION.ADOBE_DEFLATE


def test_more_than_a_thousand_frames_get_four_digits(tmp_path: Path) -> None:
    for n_frames, name in ((1000, "mask000.tif"), (1001, "mask0000.tif")):
        folder = tmp_path / str(n_frames)
        many = Geometry(n_frames, (2, 2), (1.0, 1.0))
        with (
            pytest.raises(OutputError, match=f"1 frames were given, expected {n_frames}"),
            label_writer(folder, many) as write,
        ):
            write(np.zeros((2, 2), dtype=np.uint8))
            assert [p.name for p in folder.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.tif", "a", "a.zarr"])
def test_a_failure_leaves_nothing_or_the_older_result(tmp_path: Path, name: str) -> None:
    bad = np.concatenate([TYX[:3], np.full((1, 12, 15), 0.5)])
    with pytest.raises(InputError, match="whole number"):
        save_labels(bad, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    path = save_labels(TYX, tmp_path / name)
    with pytest.raises(InputError, match="whole number"):
        save_labels(bad, path)
    np.testing.assert_array_equal(label_frame(open_labels(path), 0), TYX[0])
    save_labels(TYX[::-1], path)
    np.testing.assert_array_equal(label_frame(open_labels(path), 0), TYX[3])
    assert sorted(p.name for p in tmp_path.iterdir()) == [".bridgetrack", name]


@pytest.mark.parametrize("name", ["a.tif", "a", "a.zarr"])
def test_full_disk(tmp_path: Path, name: str) -> None:
    noise = RNG.integers(0, 60000, (4, 300, 300))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, old[1]))
    try:
        with pytest.raises(OutputError, match="cannot be written"):
            save_labels(noise, tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert list(tmp_path.iterdir()) == []


def test_wrong_targets(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "a.tif", tmp_path / "file" / "a", tmp_path / "file"):
        with pytest.raises(OutputError, match="file"):
            save_labels(TYX, path)
    with pytest.raises(OutputError, match=r"ends in \.tif"):
        save_labels(TYX, tmp_path / "a.png")


@pytest.mark.parametrize("name", ["a.tif", "a.zarr"])
def test_large_labels_need_a_larger_type(tmp_path: Path, name: str) -> None:
    frames = [np.full((3, 3), 70000)]
    with pytest.raises(OutputError, match=r"does not fit.*uint32"):
        save_labels(frames, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    save_labels(frames, tmp_path / name, dtype="uint32")
    assert label_frame(open_labels(tmp_path / name), 0).max() == 70000
