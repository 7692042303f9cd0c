"""Optional back ends: a clear error where they are missing, their labels where they are not."""

from typing import Any

import numpy as np
import pytest

from bridgetrack.errors import DependencyError, InputError
from bridgetrack.segmentation import (
    SegmentationSettings,
    available_backends,
    segment,
    segment_frame,
)
from fake_networks import cellpose_that, install_cellpose
from pictures import blobs, photograph

TRUTH = blobs((100, 120), [(30, 30), (60, 80), (30, 90)], 10)
PICTURE = photograph(TRUTH)


class _Network:
    """Stands for a network: remembers the call and returns the true labels, shifted by 5."""

    calls: list[dict[str, Any]]

    def __init__(self, **options):
        type(self).calls = [options]

    def eval(self, image, **options):
        type(self).calls.append(options)
        labels = TRUTH if image.ndim == 2 else np.stack([TRUTH] * 2)
        return np.where(labels > 0, labels + 5, 0).astype(np.uint16), [], np.zeros(1)


@pytest.fixture
def cellpose_package(monkeypatch):
    """A package with the parts of Cellpose's interface that the adapter calls."""
    install_cellpose(monkeypatch, _Network)


def test_failures_of_a_network_do_not_leak(cellpose_package, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(_Network, "eval", fail)
    with pytest.raises(DependencyError, match="CUDA out of memory"):
        segment_frame(PICTURE, backend="cellpose")
    monkeypatch.setattr(_Network, "__init__", fail)
    segment.cellpose_network.cache_clear()
    with pytest.raises(DependencyError, match="internet"):
        segment_frame(PICTURE, backend="cellpose")


@pytest.mark.parametrize(
    ("planes", "depth"), [(9, 12.0), (2, 3.0)], ids=["flat voxels", "a thin stack"]
)
def test_size_limits_allow_for_flat_voxels_and_thin_stacks(planes, depth, monkeypatch):
    scale, middle = (depth, 1.0, 1.0), planes // 2
    centres = [(middle, y, x) for y in (25, 65) for x in (25, 75)]
    truth = blobs((planes, 90, 100), centres, 10, scale)
    truth[0, 85:88, 50:53] = 5  # a speck
    cellpose_that(monkeypatch, lambda _: truth)
    settings = SegmentationSettings(diameter=20, min_size=0.2)
    volume = photograph(truth)
    found = segment_frame(volume, settings, scale=scale, backend="cellpose")
    np.testing.assert_array_equal(found, np.where(truth == 5, 0, truth))


def test_cellpose_that_is_not_there(monkeypatch):
    monkeypatch.setattr(segment, "find_spec", lambda _: None)
    assert available_backends() == ("builtin",)
    with pytest.raises(DependencyError, match=r"pip install \"bridgetrack\[cellpose\]\""):
        segment_frame(PICTURE, backend="cellpose")
    with pytest.raises(InputError, match="builtin, cellpose"):
        segment_frame(PICTURE, backend="stardist")


def test_cellpose_gives_masks(cellpose_package):
    picture = PICTURE.copy()
    picture[:50, :60] = np.nan  # where the first cell is
    labels = segment_frame(picture, SegmentationSettings(diameter=20), backend="cellpose")
    np.testing.assert_array_equal(labels, np.where(TRUTH > 1, TRUTH - 1, 0))
    made, called = _Network.calls
    assert made == {"gpu": False, "pretrained_model": "cpsam"}
    assert called == {"diameter": 20}
    volume = np.stack([PICTURE] * 2)
    found = segment_frame(volume, scale=(2.0, 0.5, 0.5), backend="cellpose", network="mine")
    assert found.shape == volume.shape
    made, called = _Network.calls
    assert made["pretrained_model"] == "mine"
    assert called["do_3D"] is True
    assert called["anisotropy"] == 4.0
