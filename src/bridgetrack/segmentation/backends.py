"""Choose what segments: the built-in method, Cellpose or StarDist."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import DependencyError, InputError
from bridgetrack.segmentation.cells import Labels, numbered, of_right_size
from bridgetrack.segmentation.frame import segment_builtin
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import finite_image

Backend = Literal["builtin", "cellpose", "stardist"]
Segmenter = Callable[[NDArray[Any]], Labels]


def available_backends() -> tuple[str, ...]:
    """Names of the back ends that are installed; none is imported."""
    return tuple(
        name for name in get_args(Backend) if name == "builtin" or find_spec(name) is not None
    )


def make_segmenter(
    settings: SegmentationSettings | None = None,
    *,
    scale: tuple[float, ...] | None = None,
    backend: str = "builtin",
    model: str | None = None,
) -> Segmenter:
    """A function from a frame to labels; a back end's network is loaded once, here.

    Parameters
    ----------
    settings
        All are used by the built-in method; the others use the diameter, the size limits
        where that is known, and `clear_border`.
    scale
        Pixel size per axis; only ratios matter.
    backend
        ``"builtin"``, ``"cellpose"`` or ``"stardist"``.
    model
        Name of a pretrained network or path of one's own; the back end's default where None.

    Raises
    ------
    DependencyError
        Where the back end is not installed or its weights cannot be loaded.
    InputError
        Where there is no such back end.
    """
    settings = settings or SegmentationSettings()
    if backend == "builtin":
        return lambda image: segment_builtin(image, settings, scale)
    if backend not in get_args(Backend):
        raise InputError(
            f"there is no segmentation back end {backend!r}; choose from "
            + ", ".join(get_args(Backend))
        )
    if find_spec(backend) is None:
        title = {"cellpose": "Cellpose", "stardist": "StarDist"}[backend]
        raise DependencyError(
            f"{title} is not installed; install it by: pip install bridgetrack[{backend}]"
        )
    if backend == "cellpose":
        from bridgetrack.segmentation.cellpose import cellpose_segmenter

        network = cellpose_segmenter(settings, scale, model)
    else:
        from bridgetrack.segmentation.stardist import stardist_segmenter

        network = stardist_segmenter(settings, model)
    return lambda image: _finished(network(finite_image(image)[0]), image, settings)


def segment_frame(
    image: NDArray[Any],
    settings: SegmentationSettings | None = None,
    *,
    scale: tuple[float, ...] | None = None,
    backend: str = "builtin",
    model: str | None = None,
) -> Labels:
    """Segment one frame.

    Parameters
    ----------
    image
        One channel of one frame, shape ([Z,] Y, X). NaN and infinite pixels are background.
    settings, scale, backend, model
        See `make_segmenter`; make one of those for many frames.

    Returns
    -------
    NDArray[np.int32]
        Labels 1 to n, 0 for background, shape of the image.

    Raises
    ------
    DependencyError, InputError
        See `make_segmenter`.
    """
    return make_segmenter(settings, scale=scale, backend=backend, model=model)(image)


def _finished(labels: NDArray[Any], image: NDArray[Any], settings: SegmentationSettings) -> Labels:
    """Labels of a network in the form of the built-in ones."""
    labels = np.where(np.isfinite(image), labels, 0).astype(np.int32)
    if settings.diameter is not None:
        unit = np.pi / (4 if image.ndim == 2 else 6) * settings.diameter**image.ndim
        labels = of_right_size(labels, settings, unit)
    return numbered(labels, settings)
