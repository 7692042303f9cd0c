"""Label movies as OME-Zarr say what the specification asks for, and grow frame by frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from bridgetrack.movie import Geometry, label_writer, open_labels, save_labels

RNG = np.random.default_rng(5)
TYX = RNG.integers(0, 900, (3, 12, 15))
TZYX = RNG.integers(0, 900, (3, 5, 12, 15))
SPACE = {"angstrom", "nanometer", "micrometer", "millimeter", "meter"}
TIME = {"millisecond", "second", "minute", "hour", "day"}


def check_specification(path: Path) -> dict[str, Any]:
    """What OME-Zarr 0.5 demands of a label image (sections axes, multiscales and labels)."""
    group = json.loads((path / "zarr.json").read_text())
    assert group["zarr_format"] == 3 and group["node_type"] == "group"
    ome = group["attributes"]["ome"]
    assert ome["version"] == "0.5"
    assert isinstance(ome["image-label"], dict)
    [image] = ome["multiscales"]
    axes = image["axes"]
    assert 2 <= len(axes) <= 5
    kinds = [a["type"] for a in axes]
    assert len({a["name"] for a in axes}) == len(axes)
    assert kinds.count("space") in (2, 3) and kinds.count("time") <= 1
    assert kinds == sorted(kinds, key=["time", "channel", "space"].index)
    for axis in axes:
        assert axis.get("unit") in (SPACE if axis["type"] == "space" else TIME) | {None}
    for dataset in image["datasets"]:
        level = json.loads((path / dataset["path"] / "zarr.json").read_text())
        assert level["node_type"] == "array"
        assert len(level["shape"]) == len(axes)
        assert level["dimension_names"] == [a["name"] for a in axes]
        assert np.dtype(level["data_type"]).kind in "iu", "labels are whole numbers"
        [scale] = dataset["coordinateTransformations"]
        assert scale["type"] == "scale" and len(scale["scale"]) == len(axes)
        assert all(step > 0 for step in scale["scale"])
    return image


@pytest.mark.parametrize("frames", [TYX, TZYX], ids=["2D", "3D"])
def test_it_follows_the_specification(tmp_path: Path, frames: np.ndarray) -> None:
    scale = (1.5, 0.3, 0.2)[-frames.ndim + 1 :]
    movie = open_labels(frames, scale=scale, frame_interval=7.5)
    path = save_labels(movie, tmp_path / "cells.ome.zarr")
    image = check_specification(path)
    assert image["name"] == "cells"
    assert [a["unit"] for a in image["axes"]] == ["minute"] + ["micrometer"] * (frames.ndim - 1)
    assert image["datasets"][0]["coordinateTransformations"][0]["scale"] == [7.5, *scale]
    np.testing.assert_array_equal(zarr.open_group(path, mode="r")["0"][:], frames)


def test_without_units_none_are_made_up(tmp_path: Path) -> None:
    image = check_specification(save_labels(TYX, tmp_path / "a.zarr"))
    assert not any("unit" in a for a in image["axes"])


def test_planes_of_frames_are_read_by_themselves(tmp_path: Path) -> None:
    wide = np.zeros((2, 3, 1500, 40), dtype=np.uint16)
    array = zarr.open_group(save_labels(wide, tmp_path / "a.zarr"), mode="r")["0"]
    assert array.chunks == (1, 1, 1024, 40)


def test_every_frame_is_on_disk_before_the_next_is_asked_for(tmp_path: Path) -> None:
    stored, store = [], tmp_path / "a.ome.zarr"
    with label_writer(store, Geometry(3, (12, 15), (1.0, 1.0))) as write:
        for frame in TYX[:3]:
            stored.append(len([p for p in store.rglob("*") if p.is_file()]))
            write(frame)
    assert stored[1] < stored[2]
