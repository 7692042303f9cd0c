"""Cellpose as a back end (versions 3 and 4), when it is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import DependencyError
from bridgetrack.segmentation.filters import sampling_of
from bridgetrack.segmentation.settings import SegmentationSettings


def cellpose_segmenter(
    settings: SegmentationSettings, scale: tuple[float, ...] | None, model: str | None
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Load a Cellpose network and return the function that applies it to a frame.

    Version 3 takes the name of a network in its zoo (default ``"nuclei"``); version 4 has one
    network, ``"cpsam"``. Both take the path of one's own. Without a diameter, version 3 takes
    its network's own and version 4 needs none.

    Raises
    ------
    DependencyError
        Where the network cannot be loaded or fails.
    """
    old = _major_version() < 4
    network = _load(old, model)
    options: dict[str, Any] = {"diameter": settings.diameter}
    if old:
        options["channels"] = [0, 0]

    def segment(image: NDArray[Any]) -> NDArray[Any]:
        volume: dict[str, Any] = {}
        if image.ndim == 3:
            depth = sampling_of(scale, image.shape, settings.diameter or 0.0)[0]
            volume = {"do_3D": True, "z_axis": 0, "anisotropy": depth}
        try:
            masks = network.eval(image, **options, **volume)[0]
        except Exception as error:
            raise DependencyError(f"Cellpose failed on a frame: {error}") from error
        return np.asarray(masks).reshape(image.shape)

    return segment


def _load(old: bool, model: str | None) -> Any:
    """The network; on a graphics card where there is one."""
    try:
        from cellpose import core, models

        gpu = bool(core.use_gpu())
        if old:
            return models.CellposeModel(gpu=gpu, model_type=model or "nuclei")
        return models.CellposeModel(gpu=gpu, pretrained_model=model or "cpsam")
    except Exception as error:
        raise DependencyError(
            f"Cellpose could not load its network {model or ''} ({error}); its weights are "
            "fetched at the first use, which needs the internet"
        ) from error


def _major_version() -> int:
    try:
        return int(version("cellpose").split(".")[0])
    except (PackageNotFoundError, ValueError):
        return 4
