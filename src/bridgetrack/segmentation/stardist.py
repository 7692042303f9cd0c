"""StarDist as a back end, when it is installed."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import DependencyError
from bridgetrack.segmentation.settings import SegmentationSettings

_DEFAULTS = {2: "2D_versatile_fluo", 3: "3D_demo"}


def stardist_segmenter(
    settings: SegmentationSettings, model: str | None
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function that applies a StarDist network; it is loaded at the first frame.

    Whether the network for planes or for volumes is needed shows only then. `model` is the name
    of a pretrained network (default ``"2D_versatile_fluo"``, in 3D ``"3D_demo"``) or the path of
    a folder with one's own. Frames are normalised between their percentiles 1 and 99.8, as
    those networks were trained.

    Raises
    ------
    DependencyError
        Where the network cannot be loaded or fails.
    """
    loaded: dict[int, Any] = {}

    def segment(image: NDArray[Any]) -> NDArray[Any]:
        if image.ndim not in loaded:
            loaded[image.ndim] = _load(image.ndim, model)
        try:
            with redirect_stdout(io.StringIO()):
                return _predict(loaded[image.ndim], image)
        except Exception as error:
            raise DependencyError(f"StarDist failed on a frame: {error}") from error

    return segment


def _predict(network: Any, image: NDArray[Any]) -> NDArray[Any]:
    from csbdeep.utils import normalize

    pixels = normalize(image.astype(np.float32), 1, 99.8)
    tiles = tuple(max(1, n // 1024) for n in image.shape)
    labels, _ = network.predict_instances(pixels, n_tiles=tiles, show_tile_progress=False)
    return np.asarray(labels)


def _load(ndim: int, model: str | None) -> Any:
    name = model or _DEFAULTS[ndim]
    try:
        with redirect_stdout(io.StringIO()):
            from stardist.models import StarDist2D, StarDist3D

            kind = StarDist2D if ndim == 2 else StarDist3D
            folder = Path(name)
            if folder.is_dir():
                return kind(None, name=folder.name, basedir=str(folder.parent))
            network = kind.from_pretrained(name)
    except Exception as error:
        raise DependencyError(
            f"StarDist could not load its network {name} ({error}); its weights are fetched at "
            "the first use, which needs the internet"
        ) from error
    if network is None:
        raise DependencyError(
            f"StarDist has no pretrained network {name!r} for {ndim}D frames; give one of its "
            f"names, e.g. {_DEFAULTS[ndim]}, or the folder of your own"
        )
    return network
