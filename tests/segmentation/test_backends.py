"""Optional back ends: a clear error where they are missing, their labels where they are not."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.errors import DependencyError, InputError
from bridgetrack.segmentation import (
    SegmentationSettings,
    available_backends,
    backends,
    segment_frame,
)
from bridgetrack.segmentation.backends import NetworkReading
from fake_networks import cellpose_that, install_cellpose
from pictures import blobs, found_share, photograph

TRUTH = blobs((100, 120), [(30, 30), (60, 80), (30, 90)], 10)
PICTURE = photograph(TRUTH)


@pytest.mark.parametrize("name", ["cellpose", "stardist"])
def test_missing_package_says_how_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "find_spec", lambda _: None)
    assert available_backends() == ("builtin",)
    with pytest.raises(DependencyError, match=rf"pip install bridgetrack\[{name}\]"):
        segment_frame(PICTURE, backend=name)


def test_unknown_backend() -> None:
    with pytest.raises(InputError, match="builtin, cellpose, stardist"):
        segment_frame(PICTURE, backend="magic")


@pytest.mark.parametrize("name", ["cellpose", "stardist"])
def test_real_backend(name: str) -> None:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    try:
        found = segment_frame(PICTURE, backend=name)
    except DependencyError as error:
        pytest.skip(f"the weights of {name} cannot be fetched here: {error}")
    assert found_share(TRUTH, found) > 0.5


class _Network:
    """Stands for a network: remembers the call and returns the true labels, shifted by 5."""

    calls: list[dict[str, Any]]

    def __init__(self, **options: Any) -> None:
        type(self).calls = [options]

    def eval(self, image: np.ndarray, **options: Any) -> tuple[Any, ...]:
        type(self).calls.append(options)
        labels = TRUTH if image.ndim == 2 else np.stack([TRUTH] * 2)
        logits = np.where(labels > 0, 3.0, -3.0)
        flows = [np.zeros(1), np.zeros(1), logits]
        return np.where(labels > 0, labels + 5, 0).astype(np.uint16), flows, np.zeros(1)


@pytest.fixture
def cellpose_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with the parts of Cellpose's interface that the adapter calls."""
    install_cellpose(monkeypatch, _Network)


@pytest.mark.parametrize("major", [3, 4])
def test_cellpose_is_called_as_its_version_wants(
    major: int, cellpose_package: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "version", lambda _: f"{major}.1.0")
    found = segment_frame(PICTURE, SegmentationSettings(diameter=20), backend="cellpose")
    np.testing.assert_array_equal(found, TRUTH)
    made, called = _Network.calls
    assert made == (
        {"gpu": False, "model_type": "nuclei"}
        if major == 3
        else {"gpu": False, "pretrained_model": "cpsam"}
    )
    assert called["diameter"] == 20
    assert ("channels" in called) == (major == 3)


def test_cellpose_in_3d(cellpose_package: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "version", lambda _: "4.0.4")
    volume = np.stack([PICTURE] * 2)
    found = segment_frame(volume, scale=(2.0, 0.5, 0.5), backend="cellpose", model="mine")
    assert found.shape == volume.shape
    made, called = _Network.calls
    assert made["pretrained_model"] == "mine"
    assert called["do_3D"] is True
    assert called["anisotropy"] == 4.0


def test_failures_of_a_network_do_not_leak(
    cellpose_package: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(_Network, "eval", fail)
    with pytest.raises(DependencyError, match="CUDA out of memory"):
        segment_frame(PICTURE, backend="cellpose")
    monkeypatch.setattr(_Network, "__init__", fail)
    with pytest.raises(DependencyError, match="internet"):
        segment_frame(PICTURE, backend="cellpose")


class _Star:
    """Stands for a StarDist network."""

    @classmethod
    def from_pretrained(cls, name: str) -> _Star | None:
        return cls() if name in ("2D_versatile_fluo", "3D_demo") else None

    def predict_instances(
        self,
        image: np.ndarray,
        n_tiles: tuple[int, ...],
        show_tile_progress: bool,
        return_predict: bool = False,
    ) -> tuple[Any, Any]:
        assert len(n_tiles) == image.ndim
        assert not show_tile_progress
        found = TRUTH.copy(), dict[str, Any]()
        return (found, self.predict(image, n_tiles, False)) if return_predict else found

    def predict(
        self, image: np.ndarray, n_tiles: tuple[int, ...], show_tile_progress: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        return (TRUTH[::2, ::2] > 0) * 0.9, np.zeros(1)


@pytest.fixture
def stardist_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with the parts of StarDist's interface that the adapter calls."""
    names = ("stardist", "stardist.models", "csbdeep", "csbdeep.utils")
    modules = {n: ModuleType(n) for n in names}
    models: Any = modules["stardist.models"]
    models.StarDist2D = models.StarDist3D = _Star
    utils: Any = modules["csbdeep.utils"]
    utils.normalize = lambda image, low, high: image / np.percentile(image, high)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(backends, "find_spec", lambda _: True)


def test_stardist(stardist_package: None) -> None:
    np.testing.assert_array_equal(segment_frame(PICTURE, backend="stardist"), TRUTH)
    with pytest.raises(DependencyError, match="no pretrained network 'cats'"):
        segment_frame(PICTURE, backend="stardist", model="cats")


def test_size_limits_and_bad_pixels_hold_for_networks(stardist_package: None) -> None:
    picture = PICTURE.copy()
    picture[:50, :60] = np.nan
    found = segment_frame(picture, SegmentationSettings(diameter=20), backend="stardist")
    assert not found[:50, :60].any()
    assert found.max() == 2


def test_probabilities_of_networks(stardist_package: None) -> None:
    found = bt.probability_movie(bt.open_movie(PICTURE[np.newaxis]), backend="stardist")
    assert found.channels == ("cell",)
    probable = found.channel_frame(0)
    assert probable.shape == PICTURE.shape
    assert np.mean((probable > 0.5) == (TRUTH > 0)) > 0.97


@pytest.mark.parametrize(
    ("planes", "depth"), [(9, 12.0), (2, 3.0)], ids=["flat voxels", "a thin stack"]
)
def test_size_limits_allow_for_flat_voxels_and_thin_stacks(
    planes: int, depth: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale, middle = (depth, 1.0, 1.0), planes // 2
    centres = [(middle, y, x) for y in (25, 65) for x in (25, 75)]
    truth = blobs((planes, 90, 100), centres, 10, scale)
    truth[0, 85:88, 50:53] = 5  # a speck
    cellpose_that(monkeypatch, lambda _: truth)
    settings = SegmentationSettings(diameter=20, min_size=0.2)
    volume = photograph(truth)
    found = segment_frame(volume, settings, scale=scale, backend="cellpose")
    np.testing.assert_array_equal(found, np.where(truth == 5, 0, truth))
    again, _ = NetworkReading("cellpose", settings=settings).of(volume, scale)
    np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("name", ["cellpose", "stardist"])
def test_masks_and_probabilities_at_once(name: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(f"{name}_package")
    labels, probable = NetworkReading(name).of(PICTURE, None)
    np.testing.assert_array_equal(labels, TRUTH)
    assert np.mean((probable > 0.5) == (TRUTH > 0)) > 0.97


def test_probabilities_of_cellpose(cellpose_package: None) -> None:
    found = bt.probability_movie(bt.open_movie(PICTURE[np.newaxis]), backend="cellpose")
    np.testing.assert_array_equal(found.channel_frame(0) > 0.9, TRUTH > 0)
