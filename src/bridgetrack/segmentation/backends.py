"""What segments a frame: the built-in method, or Cellpose or StarDist where they are installed."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bridgetrack.errors import DependencyError, InputError
from bridgetrack.segmentation.builtin import segment_builtin
from bridgetrack.segmentation.cells import Labels, numbered, of_right_size, usual_size
from bridgetrack.segmentation.pixels import PixelModel
from bridgetrack.segmentation.probability import cell_and_edge, segment_taught
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import Image, finite_image, sampling_of

Backend = Literal["builtin", "cellpose", "stardist"]
Segmenter = Callable[[NDArray[Any]], Labels]
Prober = Callable[[NDArray[Any]], Image]


@dataclass(frozen=True)
class Network:
    """From a frame to masks, to the probability that a pixel belongs to a cell, or to both."""

    masks: Segmenter
    probability: Prober
    both: Callable[[NDArray[Any]], tuple[Labels, Image]]


@dataclass(frozen=True)
class NetworkReading:
    """What a network makes of frames; it is loaded at the first one, in the process that looks.

    Parameters
    ----------
    backend, model, settings
        See `make_segmenter`.
    """

    backend: str
    model: str | None = None
    settings: SegmentationSettings | None = None
    _loaded: list[Network] = field(default_factory=list, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[NetworkReading], tuple[Any, ...]]:
        # A network may hold a device, and does not go to another process.
        return type(self), (self.backend, self.model, self.settings)

    def of(self, image: NDArray[Any], scale: tuple[float, ...] | None) -> tuple[Labels, Image]:
        """Cells of a frame ([Z,] Y, X), and how probable each pixel belongs to one.

        Raises
        ------
        DependencyError, InputError
            See `make_segmenter`.
        """
        settings = self.settings or SegmentationSettings()
        if not self._loaded:
            self._loaded.append(_network(self.backend, settings, scale, self.model))
        labels, probable = self._loaded[0].both(finite_image(image)[0])
        return _finished(labels, image, settings, scale), probable


_STARDIST_NETWORKS = {2: "2D_versatile_fluo", 3: "3D_demo"}


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
    model: PixelModel | str | None = None,
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
        Name of a pretrained network or path of one's own; the back end's default where None. Or,
        for the built-in method, a model of pixels learned from strokes, see `learn_pixels`.

    Raises
    ------
    DependencyError
        Where the back end is not installed or its weights cannot be loaded.
    InputError
        Where there is no such back end.
    """
    settings = settings or SegmentationSettings()
    if isinstance(model, PixelModel):
        taught = _taught(model, backend)
        return lambda image: segment_taught(image, taught, settings, scale)
    if backend == "builtin":
        return lambda image: segment_builtin(image, settings, scale)
    network = _network(backend, settings, scale, model)
    return lambda image: _finished(network.masks(finite_image(image)[0]), image, settings, scale)


def make_probability(
    settings: SegmentationSettings | None = None,
    *,
    scale: tuple[float, ...] | None = None,
    backend: str = "builtin",
    model: PixelModel | str | None = None,
) -> tuple[tuple[str, ...], Prober]:
    """What a function tells of every pixel of a frame, and that function.

    Parameters
    ----------
    settings, scale, backend, model
        See `make_segmenter`; the built-in method needs a model of pixels.

    Returns
    -------
    tuple[tuple[str, ...], Prober]
        ``"cell"`` and where it is known ``"edge"``; and a function from a frame to their
        probabilities, shape (kinds, [Z,] Y, X).

    Raises
    ------
    DependencyError
        Where the back end is not installed or its weights cannot be loaded.
    InputError
        Where there is no such back end, or it gives no probability.
    """
    settings = settings or SegmentationSettings()
    if isinstance(model, PixelModel):
        taught = _taught(model, backend)
        taught.check_finds_cells()
        kinds = ("cell", "edge") if "edge" in taught.classes else ("cell",)

        def told(image: NDArray[Any]) -> Image:
            found = cell_and_edge(image, taught)
            return np.stack([each for each in found if each is not None])

        return kinds, told
    if backend == "builtin":
        raise InputError(
            "the built-in segmentation gives no probability of its own; teach it by strokes "
            "(learn_pixels), or take cellpose or stardist"
        )
    network = _network(backend, settings, scale, model)
    return ("cell",), lambda image: network.probability(finite_image(image)[0])[np.newaxis]


def _taught(model: PixelModel, backend: str) -> PixelModel:
    if backend != "builtin":
        raise InputError(
            f"a model of pixels is for the built-in segmentation; {backend} has networks of its own"
        )
    return model


def _network(
    backend: str,
    settings: SegmentationSettings,
    scale: tuple[float, ...] | None,
    model: str | None,
) -> Network:
    """The network of a back end."""
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
        return _cellpose_network(settings, scale, model)
    return _stardist_frames(model)


def segment_frame(
    image: NDArray[Any],
    settings: SegmentationSettings | None = None,
    *,
    scale: tuple[float, ...] | None = None,
    backend: str = "builtin",
    model: PixelModel | str | None = None,
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


def _finished(
    labels: NDArray[Any],
    image: NDArray[Any],
    settings: SegmentationSettings,
    scale: tuple[float, ...] | None,
) -> Labels:
    """Labels of a network in the form of the built-in ones."""
    labels = np.where(np.isfinite(image), labels, 0).astype(np.int32)
    if settings.diameter is not None:
        sampling = sampling_of(scale, image.shape, settings.diameter)
        unit = usual_size(settings.diameter, image.shape, sampling)
        labels = of_right_size(labels, settings, unit)
    return numbered(labels, settings)


def _cellpose_network(
    settings: SegmentationSettings, scale: tuple[float, ...] | None, model: str | None
) -> Network:
    """A Cellpose network, loaded now, as a function of a frame.

    Version 3 takes the name of a network in its zoo (default ``"nuclei"``); version 4 has one
    network, ``"cpsam"``. Both take the path of one's own. Without a diameter, version 3 takes
    its network's own and version 4 needs none.
    """
    old = _cellpose_version() < 4
    try:
        from cellpose import core, models

        name = {"model_type": model or "nuclei"} if old else {"pretrained_model": model or "cpsam"}
        network = models.CellposeModel(gpu=bool(core.use_gpu()), **name)
    except Exception as error:
        raise DependencyError(
            f"Cellpose could not load its network {model or ''} ({error}); its weights are "
            "fetched at the first use, which needs the internet"
        ) from error
    options: dict[str, Any] = {"diameter": settings.diameter}
    if old:
        options["channels"] = [0, 0]

    def run(image: NDArray[Any]) -> Any:
        volume: dict[str, Any] = {}
        if image.ndim == 3:
            depth = sampling_of(scale, image.shape, settings.diameter or 0.0)[0]
            volume = {"do_3D": True, "z_axis": 0, "anisotropy": depth}
        try:
            return network.eval(image, **options, **volume)
        except Exception as error:
            raise DependencyError(f"Cellpose failed on a frame: {error}") from error

    def both(image: NDArray[Any]) -> tuple[Labels, Image]:
        labels, flows = run(image)[:2]
        logits = np.asarray(flows[2], dtype=np.float32).reshape(image.shape)
        return np.asarray(labels).reshape(image.shape), np.asarray(expit(logits))

    return Network(lambda image: both(image)[0], lambda image: both(image)[1], both)


def _cellpose_version() -> int:
    try:
        return int(version("cellpose").split(".")[0])
    except (PackageNotFoundError, ValueError):
        return 4


def _stardist_frames(model: str | None) -> Network:
    """A StarDist network as a function of a frame, loaded at the first one.

    Whether the network for planes or for volumes is needed shows only then. `model` is the name
    of a pretrained network or the path of a folder with one's own. Frames are normalised between
    their percentiles 1 and 99.8, as those networks were trained.
    """
    loaded: dict[int, Any] = {}

    def run(image: NDArray[Any], method: str, **more: Any) -> Any:
        if image.ndim not in loaded:
            loaded[image.ndim] = _stardist_network(image.ndim, model)
        try:
            from csbdeep.utils import normalize

            pixels = normalize(image.astype(np.float32), 1, 99.8)
            tiles = tuple(max(1, n // 1024) for n in image.shape)
            with redirect_stdout(io.StringIO()):
                predict = getattr(loaded[image.ndim], method)
                return predict(pixels, n_tiles=tiles, show_tile_progress=False, **more)
        except Exception as error:
            raise DependencyError(f"StarDist failed on a frame: {error}") from error

    def masks(image: NDArray[Any]) -> Labels:
        return np.asarray(run(image, "predict_instances")[0])

    def probability(image: NDArray[Any]) -> Image:
        return _refined(np.asarray(run(image, "predict")[0]), image.shape)

    def both(image: NDArray[Any]) -> tuple[Labels, Image]:
        found, predicted = run(image, "predict_instances", return_predict=True)
        return np.asarray(found[0]), _refined(np.asarray(predicted[0]), image.shape)

    return Network(masks, probability, both)


def _refined(coarse: NDArray[Any], shape: tuple[int, ...]) -> Image:
    """Probabilities that a network gives for every few pixels, for all of them."""
    for axis, (n, k) in enumerate(zip(shape, coarse.shape, strict=True)):
        coarse = np.repeat(coarse, -(-n // k), axis=axis)
    return np.asarray(coarse[tuple(map(slice, shape))], dtype=np.float32)


def _stardist_network(ndim: int, model: str | None) -> Any:
    name = model or _STARDIST_NETWORKS[ndim]
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
            f"names, e.g. {_STARDIST_NETWORKS[ndim]}, or the folder of your own"
        )
    return network
