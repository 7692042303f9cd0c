"""Bad input gives an InputError that names the file and says what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tifffile
import zarr

import bridgetrack as bt
from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.movie import open_labels, open_movie, save_labels

TYX = np.random.default_rng(5).integers(0, 4000, (6, 20, 30), dtype=np.uint16)

WRITERS = {
    "plain": {},
    "zlib": {"compression": "zlib"},
    "imagej": {"imagej": True, "metadata": {"axes": "TYX"}},
    "ome": {"ome": True, "metadata": {"axes": "TYX"}},
    "ome zlib": {"ome": True, "compression": "zlib"},
}


@pytest.mark.parametrize("share", [0.0, 0.02, 0.7])
@pytest.mark.parametrize("writer", WRITERS)
def test_truncated_stack(
    tmp_path: Path, writer: str, share: float, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.tif"
    tifffile.imwrite(path, TYX, **WRITERS[writer])
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(InputError, match=r"cut\.tif"):
        open_movie(path)
    assert capfd.readouterr().err == ""


def test_pages_without_a_picture_are_no_emptiness(tmp_path):
    path = tmp_path / "movie.ome.tif"
    tifffile.imwrite(path, TYX, compression="zlib", metadata={"axes": "TYX"})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'SizeT="6"', b'SizeT="8"'))
    with pytest.raises(InputError, match="page 6 is missing"):
        open_movie(path)
    with tifffile.TiffFile(path) as file:
        tag = file.pages[2].tags["StripByteCounts"]
    path.write_bytes(whole[: tag.valueoffset] + bytes(4) + whole[tag.valueoffset + 4 :])
    with pytest.raises(InputError, match="page 2 is missing"):
        open_movie(path)


def test_missing_empty_and_unknown(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder; check the name"):
        open_movie(tmp_path / "nothing")
    with pytest.raises(InputError, match="holds no TIFF"):
        open_movie(tmp_path)
    (tmp_path / "frame.PNG").write_bytes(b"")
    with pytest.raises(InputError, match=r"frame\.PNG are not read: save them as TIFF"):
        open_movie(tmp_path)
    (tmp_path / "01").mkdir()
    tifffile.imwrite(tmp_path / "01" / "t000.tif", TYX[0])
    with pytest.raises(InputError, match="its folders 01 do"):
        open_movie(tmp_path)
    (tmp_path / "movie.docx").write_bytes(b"PK")
    with pytest.raises(InputError, match="unknown kind of file"):
        open_movie(tmp_path / "movie.docx")
    (tmp_path / "text.tif").write_text("this is no TIFF")
    with pytest.raises(InputError, match=r"text\.tif"):
        open_movie(tmp_path / "text.tif")


def test_mixed_frames_are_found_when_opened_and_mixed_depths_when_read(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "t000.tif", TYX[0])
    tifffile.imwrite(tmp_path / "t001.tif", TYX[0, :10])
    with pytest.raises(InputError, match=r"t001\.tif.*\(10, 30\).*\(20, 30\).*move the file out"):
        open_movie(tmp_path)
    (tmp_path / "t001.tif").rename(tmp_path / "overview.tif")
    tifffile.imwrite(tmp_path / "t002.tif", TYX[0])
    with pytest.raises(InputError, match=r"2 movies.*e\.g\. .*t\*\.tif"):
        open_movie(tmp_path)
    (tmp_path / "overview.tif").unlink()
    (tmp_path / "t002.tif").unlink()
    tifffile.imwrite(tmp_path / "t000.tif", TYX)
    tifffile.imwrite(tmp_path / "t001.tif", TYX[:4], photometric="minisblack")
    movie = open_movie(tmp_path)
    with pytest.raises(InputError, match=r"t001\.tif.*\(4, 20, 30\)"):
        movie.frame(1)


@pytest.fixture
def unprivileged(tmp_path: Path) -> Iterator[None]:
    """Act as a user for whom access rights count, in a temporary folder of one's own."""
    if os.geteuid() != 0:
        yield
        return
    parents = [p for p in (tmp_path, *tmp_path.parents) if p.stat().st_mode & 0o055 != 0o055]
    modes = [(p, p.stat().st_mode) for p in parents]
    for path in parents:
        path.chmod(0o755)
    os.chown(tmp_path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for path, mode in modes:
            path.chmod(mode)


def test_no_permission(tmp_path: Path, unprivileged: None) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    tifffile.imwrite(tmp_path / "a.tif", TYX)
    (tmp_path / "a.tif").chmod(0)
    folder.chmod(0)
    for path in (tmp_path / "a.tif", folder):
        with pytest.raises(InputError, match="no permission"):
            open_movie(path)
    folder.chmod(0o700)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"a\.npy"):
        open_movie(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("array", "given", "message"),
    [
        (TYX, {"axes": "TYY"}, "axis order"),
        (TYX, {"axes": "TZYX"}, "axis order"),
        (np.zeros(5), {}, "is not a movie"),
        (np.zeros((0, 5, 5)), {}, "no pixels"),
        (np.zeros((2, 5, 5), dtype=complex), {}, "not numbers"),
        (TYX, {"scale": (1, 1, 1)}, "scale"),
        (TYX, {"scale": (0, 1)}, "positive"),
        (TYX, {"scale": 0.65}, "the scale 0.65 needs a number for each axis"),
        (TYX, {"frame_interval": 0}, "frame interval"),
        (TYX, {"frame_interval": float("nan")}, "frame interval"),
        (TYX, {"unit": "parsec"}, "unit"),
        (TYX, {"channel": 3}, "no channel 3; the movie has 1 channel, counted from 0: channel 0"),
        (pd.DataFrame({"x": [1.5]}), {}, "give the path of its CSV file"),
        (TYX, {"channels": ["a", "b"]}, "channel names"),
    ],
)
def test_what_is_no_movie(array: np.ndarray, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_movie(array, **given)


def test_a_short_last_axis_may_be_time() -> None:
    with pytest.warns(BridgetrackWarning, match=r"40 frames of 50 x 9 pixels.*--axes YXT"):
        open_movie(np.zeros((40, 50, 9)))
    assert open_movie(np.zeros((40, 50, 9)), axes="YXT").n_frames == 9


def test_three_planes_saved_as_colours_are_frames(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "labels.tif", TYX[:3].astype(np.uint8), photometric="rgb")
    assert open_labels(tmp_path / "labels.tif").array.shape == (3, 1, 20, 30)


def test_labels_with_several_channels(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one channel"):
        open_labels(TYX[None], axes="TCYX")
    assert open_labels(TYX[None], axes="TCYX", channel=2).array.shape == (1, 1, 20, 30)


def test_zarr_groups_without_an_image(tmp_path: Path) -> None:
    damaged = zarr.open_group(tmp_path / "damaged.zarr", mode="w", zarr_format=2)
    damaged.attrs.update({"multiscales": [{"datasets": []}]})
    with pytest.raises(InputError, match=r"damaged\.zarr"):
        open_movie(tmp_path / "damaged.zarr")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    with pytest.raises(InputError, match="not an OME-Zarr image"):
        open_movie(tmp_path / "a.zarr")
    group.create_array("raw", data=TYX)
    assert open_movie(tmp_path / "a.zarr").n_frames == 6
    group.create_array("other", data=TYX)
    with pytest.raises(InputError, match="other, raw"):
        open_movie(tmp_path / "a.zarr")
    for name in "01":
        save_labels(open_labels(np.zeros_like(TYX)), tmp_path / "b.zarr" / f"{name}.zarr")
        (tmp_path / "b.zarr" / f"{name}.zarr").rename(tmp_path / "b.zarr" / name)
    zarr.open_group(tmp_path / "b.zarr", mode="a")
    with pytest.raises(InputError, match=r"holds 2 images.*b\.zarr/0"):
        open_movie(tmp_path / "b.zarr")


@pytest.mark.parametrize("kind", ["type", "size", "compression", "appended", "positions"])
def test_a_file_with_a_second_stack_is_refused(tmp_path: Path, kind: str) -> None:
    """Its later pages must not be left out in silence."""
    path = tmp_path / ("two.ome.tif" if kind == "positions" else "two.tif")
    frames = np.arange(5 * 8 * 9, dtype=np.uint16).reshape(5, 8, 9)
    if kind == "appended":
        tifffile.imwrite(path, frames[:3])
        tifffile.imwrite(path, frames[3:], append=True)
    else:
        with tifffile.TiffWriter(path, ome=kind == "positions") as file:
            if kind == "positions":
                for part in (frames[:3], frames[3:]):
                    file.write(part, metadata={"axes": "TYX"})
            else:
                for t, frame in enumerate(frames):
                    late = t >= 3
                    page = frame.astype(np.uint8) if kind == "type" and late else frame
                    page = page[:6] if kind == "size" and late else page
                    how = "zlib" if kind == "compression" and late else None
                    file.write(page, compression=how, metadata=None, contiguous=False)
    with pytest.raises(InputError, match=r"two.*holds 2 "):
        open_movie(path)


@pytest.mark.parametrize(
    ("name", "patterns"),
    [
        ("pos{a}_t{t:03d}", ["pos1_t*"]),
        ("xy{a}_{n:04d}", ["xy1_*"]),
        ("exp_w1DAPI_s{a}_t{t}", ["exp_w1DAPI_s1_t*"]),
        ("run{a}_{t:03d}", ["run*_000", "run1_*"]),
        ("r02c{a:02d}f01p01-ch1sk{t}fk1fl1", ["r02c01f01p01-ch1sk*fk1fl1"]),
        ("VID12_B{a}_1_00d{t:02d}h30m", ["VID12_B1_1_*"]),
        ("VID12_C{a}_1_00d{t:02d}h30m", ["VID12_C1_1_*"]),
    ],
)
def test_several_movies_in_a_folder_are_told_apart(
    tmp_path: Path, name: str, patterns: list[str]
) -> None:
    """Also where frames are counted on from one position to the next."""
    for n in range(8):
        file = tmp_path / f"{name.format(a=n // 4 + 1, t=n % 4, n=n)}.tif"
        tifffile.imwrite(file, np.zeros((8, 9), dtype=np.uint8))
    with pytest.raises(InputError) as caught:
        open_movie(tmp_path)
    for pattern in patterns:
        assert str(tmp_path / f"{pattern}.tif") in str(caught.value)
        assert open_movie(tmp_path / f"{pattern}.tif").n_frames in (2, 4)


@pytest.mark.parametrize(
    "name",
    [
        "s_t{t:02d}_z{z:02d}",
        "img_channel000_position000_time{t:09d}_z{z:03d}",
        "Series001_z{z}_t{t}_ch00",
        "{t:03d}_plane{z}",
        "r02c03f01p{z:02d}-ch1sk{t}fk1fl1",
    ],
)
def test_files_of_planes_make_frames_of_three_dimensions(tmp_path: Path, name: str) -> None:
    for t in range(3):
        for z in range(2):
            pixels = np.full((8, 9), 10 * t + z, dtype=np.uint8)
            tifffile.imwrite(tmp_path / f"{name.format(t=t, z=z)}.tif", pixels)
    movie = open_movie(tmp_path)
    assert (movie.n_frames, movie.geometry.shape) == (3, (2, 8, 9))
    assert movie.frame(2)[0, :, 0, 0].tolist() == [20, 21]


def test_names_with_a_date_or_a_time_beside_the_frame_are_one_movie(tmp_path: Path) -> None:
    for t in range(4):
        for name in ("2024-05-01_t{:03d}_{:02d}h{:02d}", "B3_{}_2024y01m05d_{:02d}h{:02d}m"):
            file = f"plate1_{name.format(t if 't' in name else 1, t // 2, 30 * (t % 2))}.tif"
            tifffile.imwrite(tmp_path / file, np.full((8, 9), t, dtype=np.uint8))
    assert open_movie(tmp_path / "*2024-05*.tif").n_frames == 4
    movie = open_movie(tmp_path / "*2024y*.tif")
    assert [movie.frame(t).max() for t in range(4)] == [0, 1, 2, 3]


def test_missing_chunks_of_a_zarr_are_no_emptiness(tmp_path: Path) -> None:
    """In our own stores every chunk is written; others leave out empty ones."""
    path = save_labels(open_labels(np.zeros_like(TYX)), tmp_path / "own.ome.zarr")
    assert not open_labels(path).frame(0).any()
    (path / "0" / "c" / "2" / "0" / "0").unlink()
    with pytest.raises(InputError, match="1 of 6 chunks"):
        open_labels(path)
    other = tmp_path / "other.zarr"
    zarr.create_array(other, data=TYX, chunks=(1, 20, 30))
    (other / "c" / "2" / "0" / "0").unlink()
    with pytest.warns(BridgetrackWarning, match="1 of 6 chunks"):
        assert open_movie(other).n_frames == 6


def test_pixels_that_are_no_numbers_are_told() -> None:
    pixels = TYX.astype(np.float32)
    pixels[3] = np.nan
    movie = open_movie(pixels)
    with pytest.warns(BridgetrackWarning, match="NaN"):
        movie.frame(3)
    with pytest.warns(BridgetrackWarning, match="NaN"):
        found = bt.find_cells(movie, choose="plain").labels
    assert not found.frame(3).any()
