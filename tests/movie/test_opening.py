"""Movies open from every kind of source, lazily and with what their files say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import tifffile
import zarr

import bridgetrack as bt
from bridgetrack.errors import InputError
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.movie.tiff import one_frame

RNG = np.random.default_rng(5)
TYX = RNG.integers(0, 4000, (6, 20, 30), dtype=np.uint16)
TZCYX = RNG.integers(0, 4000, (4, 3, 2, 20, 30), dtype=np.uint16)


def _folder(path: Path, frames: np.ndarray, name: str = "t{:03d}.tif") -> Path:
    path.mkdir()
    for t, frame in enumerate(frames):
        tifffile.imwrite(path / name.format(t), frame, compression="zlib")
    return path


@pytest.mark.parametrize("options", [{"compression": "zlib"}, {"bigtiff": True}])
def test_plain_stack(tmp_path: Path, options: dict[str, object]) -> None:
    tifffile.imwrite(tmp_path / "a.tif", TYX, **options)
    movie = open_movie(tmp_path / "a.tif")
    assert movie.array.shape == (6, 1, 20, 30)
    assert movie.array.chunks[0] == (1,) * 6
    assert movie.geometry.unit == "pixel"
    assert movie.geometry.frame_interval is None
    np.testing.assert_array_equal(movie.frame(4)[0], TYX[4])


def test_imagej_hyperstack_tells_axes_scale_and_interval(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(
        path,
        TZCYX,
        imagej=True,
        resolution=(2.0, 4.0),
        metadata={"axes": "TZCYX", "unit": "micron", "spacing": 1.5, "finterval": 90.0},
    )
    movie = open_movie(path)
    assert movie.array.shape == (4, 2, 3, 20, 30)
    assert movie.geometry.scale == pytest.approx((1.5, 0.25, 0.5))
    assert movie.geometry.unit == "micrometer"
    assert movie.geometry.frame_interval == pytest.approx(1.5)
    np.testing.assert_array_equal(movie.channel_frame(2, 1), TZCYX[2, :, 1])


def test_imagej_slices_without_time_are_frames(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, TYX, imagej=True, metadata={"axes": "ZYX"})
    with pytest.warns(UserWarning, match="taken as time"):
        movie = open_movie(path)
    assert movie.array.shape == (6, 1, 20, 30)
    assert open_movie(path, axes="ZYX").array.shape == (1, 1, 6, 20, 30)


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_ome_tiff(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "a.ome.tif"
    metadata = {
        "axes": "TCYX",
        "PhysicalSizeX": 650.0,
        "PhysicalSizeXUnit": "nm",
        "PhysicalSizeY": 0.65,
        "TimeIncrement": 0.5,
        "TimeIncrementUnit": "h",
        "Channel": {"Name": ["H2B", "PCNA"]},
    }
    tifffile.imwrite(path, TZCYX[:, 0], metadata=metadata, compression=compression)
    movie = open_movie(path)
    assert movie.array.shape == (4, 2, 20, 30)
    assert movie.channels == ("H2B", "PCNA")
    assert movie.geometry.scale == pytest.approx((0.65, 0.65))
    assert movie.geometry.frame_interval == pytest.approx(30.0)
    one = open_movie(path, channel="PCNA")
    assert one.channels == ("PCNA",)
    np.testing.assert_array_equal(one.channel_frame(3), TZCYX[3, 0, 1])


def test_of_a_pyramid_the_largest_pictures_are_read(tmp_path: Path) -> None:
    frames = TZCYX[:, 0, 0]
    with tifffile.TiffWriter(tmp_path / "a.ome.tif") as file:
        file.write(frames, subifds=1, metadata={"axes": "TYX"})
        file.write(frames[:, ::2, ::2], subfiletype=1)
    np.testing.assert_array_equal(open_movie(tmp_path / "a.ome.tif").array[:, 0], frames)


@pytest.mark.parametrize(("unit", "minutes"), [(None, 1.0), ("min", 60.0)])
def test_ome_interval_from_plane_times(tmp_path: Path, unit: str | None, minutes: float) -> None:
    path = tmp_path / "a.ome.tif"
    plane: dict[str, Any] = {"DeltaT": [0.0, 60.0, 121.0, 180.0, 240.0, 300.0]}
    plane |= {} if unit is None else {"DeltaTUnit": [unit] * 6}
    tifffile.imwrite(path, TYX, metadata={"axes": "TYX", "Plane": plane})
    assert open_movie(path).geometry.frame_interval == pytest.approx(minutes, rel=0.02)


def test_rgb_samples_are_channels(tmp_path: Path) -> None:
    rgb = RNG.integers(0, 255, (3, 16, 20, 3), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", rgb, photometric="rgb")
    movie = open_movie(tmp_path / "a.tif")
    assert movie.array.shape == (3, 3, 16, 20)
    np.testing.assert_array_equal(movie.channel_frame(1, 2), rgb[1, :, :, 2])
    tifffile.imwrite(tmp_path / "b.tif", rgb[0], photometric="rgb")
    assert one_frame(tmp_path / "b.tif") and not one_frame(tmp_path / "a.tif")


def test_overrides_win(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, TYX, imagej=True, metadata={"axes": "TYX", "finterval": 60})
    movie = open_movie(path, axes="ZYX", scale=(3, 1, 1), frame_interval=5, channels=["DNA"])
    assert movie.geometry.scale == (3.0, 1.0, 1.0)
    assert movie.geometry.unit == "micrometer"
    assert movie.geometry.frame_interval == 5
    assert movie.channels == ("DNA",)
    assert open_movie(path, scale=(1, 2), unit="pixel").geometry.unit == "pixel"


def test_folder_in_natural_order(tmp_path: Path) -> None:
    frames = RNG.integers(0, 255, (12, 8, 9), dtype=np.uint8)
    movie = open_movie(_folder(tmp_path / "f", frames, "t{:d}.tif"))
    assert movie.array.shape == (12, 1, 8, 9)
    np.testing.assert_array_equal(movie.frame(10)[0], frames[10])


@pytest.mark.parametrize("depth", [3, 5])
def test_folder_of_3d_frames(tmp_path: Path, depth: int) -> None:
    """Three planes are saved as if they were colours."""
    frames = RNG.integers(0, 255, (3, depth, 8, 9), dtype=np.uint8)
    folder = _folder(tmp_path / "f", frames, "mask{:03d}.tif")
    (folder / "res_track.txt").write_text("1 0 2 0\n")
    movie = open_labels(folder, scale=(2, 1, 1))
    assert movie.array.shape == open_movie(folder, axes="zyx").array.shape == (3, 1, depth, 8, 9)
    np.testing.assert_array_equal(movie.channel_frame(2), frames[2])


@pytest.mark.parametrize("name", ["img_c{}_t{{:03d}}.tif", "img_C{}_T{{:03d}}.tif"])
def test_folder_with_a_file_per_channel(tmp_path: Path, name: str) -> None:
    folder = _folder(tmp_path / "f", TYX[:3], name.format(0))
    for t in range(3):
        tifffile.imwrite(folder / name.format(1).format(t), TYX[t + 3])
    movie = open_movie(folder)
    assert movie.array.shape == (3, 2, 20, 30)
    np.testing.assert_array_equal(movie.channel_frame(1, 1), TYX[4])


def test_folder_with_a_gap_warns(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    folder = _folder(tmp_path / "f", TYX)
    (folder / "t003.tif").unlink()
    with pytest.warns(UserWarning, match="missing after t002"):
        assert open_movie(folder).n_frames == 5
    for t in (1, 5):
        (folder / f"t{t:03d}.tif").unlink()
    assert open_movie(folder).n_frames == 3  # every second
    assert not recwarn.list


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_ome_zarr(tmp_path: Path, zarr_format: int) -> None:
    path = tmp_path / "a.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    data = np.moveaxis(TZCYX, 2, 1)
    group.create_array("0", data=data, chunks=(1, 1, 3, 10, 30))
    axes = [
        {"name": "t", "type": "time", "unit": "second"},
        {"name": "c", "type": "channel"},
        *({"name": a, "type": "space", "unit": "nanometer"} for a in "zyx"),
    ]
    scale = {"type": "scale", "scale": [300.0, 1, 2000, 500, 500]}
    dataset = {"path": "0", "coordinateTransformations": [scale]}
    attributes = {
        "multiscales": [{"version": "0.4", "axes": axes, "datasets": [dataset]}],
        "omero": {"channels": [{"label": "DNA"}, {"label": "ER"}]},
    }
    group.attrs.update(attributes if zarr_format == 2 else {"ome": attributes})
    movie = open_movie(path)
    assert movie.array.shape == (4, 2, 3, 20, 30)
    assert movie.geometry.scale == pytest.approx((2.0, 0.5, 0.5))
    assert movie.geometry.frame_interval == pytest.approx(5.0)
    assert movie.channels == ("DNA", "ER")
    np.testing.assert_array_equal(movie.channel_frame(1, 1), TZCYX[1, :, 1])


def test_plain_zarr_array_with_names(tmp_path: Path) -> None:
    names = ("time", "channel", "y", "x")
    zarr.create_array(tmp_path / "a.zarr", data=TZCYX[:, 0], dimension_names=names)
    assert open_movie(tmp_path / "a.zarr").array.shape == (4, 2, 20, 30)


def test_npy_and_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", TYX)
    swapped = TYX.astype(TYX.dtype.newbyteorder(">"))  # as bioformats2raw stores it
    lazy = da.from_array(TYX, chunks=(6, 5, 5))
    for source in (tmp_path / "a.npy", TYX, lazy, TYX.tolist(), swapped):
        movie = open_movie(source)
        assert movie.frame(5).dtype.isnative
        assert movie.array.shape == (6, 1, 20, 30)
        assert movie.array.chunks[0] == (1,) * 6
        np.testing.assert_array_equal(movie.frame(5)[0], TYX[5])


def test_only_the_wanted_file_is_read(tmp_path: Path) -> None:
    movie = open_movie(_folder(tmp_path / "f", TYX))
    (tmp_path / "f" / "t003.tif").unlink()
    np.testing.assert_array_equal(movie.frame(2)[0], TYX[2])
    with pytest.raises(InputError, match="t003"):
        movie.frame(3)


def test_only_the_wanted_pages_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, TYX, compression="zlib")
    with tifffile.TiffFile(path) as file:
        start, length = file.pages[3].dataoffsets[0], file.pages[3].databytecounts[0]
    with path.open("r+b") as raw:
        raw.seek(start)
        raw.write(b"\xff" * length)
    movie = open_movie(path)
    np.testing.assert_array_equal(movie.frame(2)[0], TYX[2])
    with pytest.raises(InputError, match=r"a\.tif"):
        movie.frame(3)


def test_a_movie_larger_than_memory_opens(tmp_path: Path) -> None:
    path = tmp_path / "huge.npy"
    shape = (40000, 1024, 1024)
    with path.open("wb") as file:
        header = {"descr": "<u2", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
        try:
            file.truncate(file.tell() + 2 * int(np.prod(shape)))
        except OSError:
            pytest.skip("the disk does not hold sparse files")
    movie = open_movie(path)
    assert movie.array.nbytes > 80e9
    assert movie.frame(39999).max() == 0


def test_without_bioio_it_is_told_what_to_install(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "bioio", None)
    (tmp_path / "a.nd2").write_bytes(b"abc")
    with pytest.raises(bt.BridgetrackError, match=r"a\.nd2: .*pip install bioio bioio-nd2"):
        open_movie(tmp_path / "a.nd2")


def test_bioio_reads_what_we_do_not(tmp_path: Path) -> None:
    pytest.importorskip("bioio_imageio")
    from imageio.v3 import imwrite

    frames = np.zeros((4, 24, 30), dtype=np.uint8)
    for t in range(4):
        frames[t, 5:15, 4 + t : 14 + t] = 200
    imwrite(tmp_path / "cells.gif", frames, loop=0)
    movie = open_movie(tmp_path / "cells.gif")
    assert movie.array.shape == (4, 1, 24, 30) and movie.array.dtype == np.uint8
    assert np.abs(movie.array[:, 0].compute().astype(int) - frames).max() <= 1
