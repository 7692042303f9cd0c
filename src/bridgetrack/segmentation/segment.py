"""Segment frames: by the built-in method, or by Cellpose where it is installed."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import DependencyError, InputError
from bridgetrack.segmentation.builtin import FrameView, segment_builtin
from bridgetrack.segmentation.cells import Labels, numbered, of_right_size, usual_size
from bridgetrack.segmentation.settings import Backend, SegmentationSettings
from bridgetrack.segmentation.signal import finite_image, sampling_of


def available_backends() -> tuple[str, ...]:
    """Names of the back ends that are installed; none is imported."""
    return tuple(
        name for name in get_args(Backend) if name == "builtin" or find_spec(name) is not None
    )


def check_backend(backend: str) -> None:
    """Refuse a back end that is not known by an `InputError`."""
    if backend not in get_args(Backend):
        raise InputError(
            f"there is no segmentation back end {backend!r}; choose from "
            f"{', '.join(get_args(Backend))}, or open the labels of another program"
        )


def segment_frame(
    image: NDArray[Any],
    settings: SegmentationSettings | None = None,
    *,
    scale: tuple[float, ...] | None = None,
    backend: str = "builtin",
    network: str | None = None,
) -> Labels:
    """Segment one frame.

    Parameters
    ----------
    image
        One channel of one frame, shape ([Z,] Y, X). NaN and infinite pixels are background.
    settings
        All are used by the built-in method. Cellpose takes the diameter where it is given, the
        size limits where that is known, and `clear_border`.
    scale
        Pixel size per axis; only ratios matter.
    backend
        ``"builtin"`` or ``"cellpose"``.
    network
        Name of a network of Cellpose, or path of one's own; ``"cpsam"`` where None.

    Returns
    -------
    NDArray[np.int32]
        Labels 1 to n, 0 for background, shape of the image.

    Raises
    ------
    DependencyError
        Where the back end is not installed, or fails.
    InputError
        Where there is no such back end.
    """
    check_backend(backend)
    settings = settings or SegmentationSettings()
    if backend == "cellpose":
        return _by_cellpose(image, settings, scale, network)
    return segment_builtin(FrameView(image, settings, scale))


def _by_cellpose(
    image: NDArray[Any],
    settings: SegmentationSettings,
    scale: tuple[float, ...] | None,
    network: str | None,
) -> Labels:
    """Segment a frame by Cellpose; see `segment_frame`."""
    if find_spec("cellpose") is None:
        raise DependencyError(
            'Cellpose is not installed; install it with: pip install "bridgetrack[cellpose]"'
        )
    loaded = cellpose_network(network)
    volume: dict[str, Any] = {}
    if image.ndim == 3:
        depth = sampling_of(scale, image.shape, settings.diameter or 0.0)[0]
        volume = {"do_3D": True, "z_axis": 0, "anisotropy": depth}
    try:
        found = loaded.eval(finite_image(image)[0], diameter=settings.diameter, **volume)[0]
    except Exception as error:
        raise DependencyError(f"Cellpose failed on a frame: {error}") from error
    labels = np.where(np.isfinite(image), np.asarray(found).reshape(image.shape), 0)
    labels = labels.astype(np.int32)
    if settings.diameter is not None:
        sampling = sampling_of(scale, image.shape, settings.diameter)
        unit = usual_size(settings.diameter, image.shape, sampling)
        labels = of_right_size(labels, settings, unit)
    return numbered(labels, settings)


@lru_cache(maxsize=1)
def cellpose_network(name: str | None) -> Any:
    """A network of Cellpose 4; every process loads its own, once."""
    try:
        from cellpose import core, models

        gpu = bool(core.use_gpu())
        return models.CellposeModel(gpu=gpu, pretrained_model=name or "cpsam")
    except Exception as error:
        raise DependencyError(
            f"Cellpose could not load its network {name or ''} ({error}); its weights are "
            "fetched at the first use, which needs the internet"
        ) from error
