"""Teach the pixels: a classifier of pixels learned from a few painted strokes.

A forest is grown from the painted pixels alone, within a fraction of a second; therefore a model
is kept as what was painted, and grown again in the same way when its file is read. Nothing in a
file is ever executed, and strokes on further movies are added to those of earlier ones.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bridgetrack.errors import InputError, ModelError
from bridgetrack.files import program_version, write_text
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from bridgetrack.schema import FileFormat, JsonObject, OpenEntry, json_text
from bridgetrack.segmentation.pixel_features import (
    Box,
    feature_count,
    pixel_features,
    tiles,
    views_of,
    with_rim,
)
from bridgetrack.segmentation.signal import Sampling, finite_image, sampling_of

CLASSES = ("background", "cell", "edge")
"""What strokes say of a pixel, by their values 1, 2, 3; an edge lies between cells that touch."""

GUESSED = len(CLASSES)
"""Added to the class of a pixel that nobody painted, but the built-in segmentation is sure of."""

_TREES = 60
_WEIGHTS = (0.6, 0.3, 0.1)
"""Of all pixels of each class; most of a frame is background, and edges are few."""
_TRUST = 0.15
"""Weight of what is guessed; with few strokes it says what nobody painted yet."""
_BELIEVED = 0.2
"""Guesses are left out that are less probable by the strokes alone."""
_MOST = 5000
"""Pixels of a class that are learned from; more make the forest slow, not better."""
_TILE = 2**20
_NEAR = 0.25
"""Of the reach of filters, how far it is looked beyond a part of a frame: about a diameter."""


@dataclass(frozen=True, eq=False)
class PaintedPixels:
    """Features of pixels that were painted, and as what; equal where both are.

    Parameters
    ----------
    features
        Shape (n, features), see `pixel_features`.
    classes
        1 to 3, as in `CLASSES`, and 3 more where it was guessed; shape (n,).
    """

    features: NDArray[np.float32]
    classes: NDArray[np.uint8]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PaintedPixels):
            return NotImplemented
        same = np.array_equal(self.classes, other.classes)
        return same and np.array_equal(self.features, other.features)

    def __hash__(self) -> int:
        return hash(self.classes.tobytes())

    @staticmethod
    def together(parts: Sequence[PaintedPixels]) -> PaintedPixels:
        """Pixels of several frames or movies; of each class evenly chosen ones where many."""
        features = np.concatenate([part.features for part in parts])
        classes = np.concatenate([part.classes for part in parts])
        kept = []
        for each in np.unique(classes):
            rows = np.flatnonzero(classes == each)
            some = np.linspace(0, len(rows) - 1, min(len(rows), _MOST)).round().astype(np.intp)
            kept.append(rows[some])
        rows = np.sort(np.concatenate(kept)) if kept else np.zeros(0, dtype=np.intp)
        return PaintedPixels(features[rows], classes[rows])


@dataclass(frozen=True)
class PixelModel:
    """What tells background, cells and the edges between them apart.

    Parameters
    ----------
    painted
        What it was taught.
    diameter
        Diameter of a typical cell in pixels along x; the filters are scaled by it.
    sampling
        Pixel size per axis in units of that along x.
    pixel
        Micrometres per pixel along x; None where unknown.
    name
        Of the movie.
    provenance
        Where it came from; JSON values only.

    Raises
    ------
    InputError
        Where fewer than two classes are painted.
    """

    painted: PaintedPixels
    diameter: float
    sampling: Sampling
    pixel: float | None = None
    name: str = "unnamed"
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.classes) < 2:
            found = f"only {self.classes[0]} is" if self.classes else "nothing is"
            raise InputError(
                f"{found} painted; paint some pixels of the background (1) and some of cells (2), "
                "and where cells touch also of the edge between them (3)"
            )

    @property
    def ndim(self) -> int:
        """2 for planes, 3 for volumes."""
        return len(self.sampling)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes painted, in the order of `CLASSES`."""
        known = np.unique(self.painted.classes)
        return tuple(CLASSES[k - 1] for k in known[known <= GUESSED])

    def check_finds_cells(self) -> None:
        """Complain where nobody painted a cell.

        Raises
        ------
        InputError
            As above.
        """
        if "cell" not in self.classes:
            raise InputError(
                f"the pixel model {self.name!r} was never shown a cell; paint some pixels of cells "
                "(2)"
            )

    @cached_property
    def _forest(self) -> Any:
        features, classes, guessed = self.painted.features, *_parted(self.painted.classes)
        painted = _grown(features[~guessed], classes[~guessed], guessed[~guessed])
        likely = painted.predict_proba(features)
        column = np.minimum(np.searchsorted(painted.classes_, classes), likely.shape[1] - 1)
        fits = painted.classes_[column] == classes
        fits &= likely[np.arange(len(classes)), column] >= _BELIEVED
        kept = ~guessed | fits
        if kept.sum() == np.count_nonzero(~guessed):
            return painted
        return _grown(features[kept], classes[kept], guessed[kept])

    def fitted_to(self, geometry: Geometry) -> PixelModel:
        """The model for a movie whose pixels may be larger, smaller or flatter.

        Raises
        ------
        InputError
            Where one has planes and the other volumes.
        """
        if geometry.ndim != self.ndim:
            raise InputError(
                f"the pixel model {self.name!r} was taught on {self.ndim}D frames, the movie has "
                f"{geometry.ndim}D frames; paint strokes on this movie"
            )
        size = _micrometres(geometry)
        zoom = self.pixel / size if self.pixel is not None and size is not None else 1.0
        diameter = self.diameter * zoom
        sampling = sampling_of(geometry.scale, geometry.shape or (1,) * self.ndim, diameter)
        return replace(self, diameter=diameter, sampling=sampling, pixel=size or self.pixel)

    def probability(self, frame: NDArray[Any]) -> NDArray[np.float32]:
        """How probable every class is at every pixel of a frame.

        Parameters
        ----------
        frame
            One channel, shape ([Z,] Y, X), of a movie as in `fitted_to`.

        Returns
        -------
        NDArray[np.float32]
            Shape (classes, [Z,] Y, X), in the order of `classes`; sums to 1.
        """
        views = self.views(frame)
        found = np.empty((len(self.classes), *frame.shape), dtype=np.float32)
        for outer, inner, place in tiles(frame.shape, self.diameter, self.sampling, _TILE):
            found[(slice(None), *place)] = self._probability(views, outer, inner)
        return found

    def views(self, frame: NDArray[Any]) -> NDArray[np.float32]:
        """What the model sees of a whole frame, shape (3, [Z,] Y, X), for `probability_in`.

        Raises
        ------
        InputError
            Where the frame has not as many axes as those that were painted.
        """
        if frame.ndim != self.ndim:
            raise InputError(f"the pixel model takes frames of {self.ndim} axes, not {frame.ndim}")
        return views_of(finite_image(frame)[0], self.diameter, self.sampling)

    def probability_in(self, views: NDArray[np.float32], place: Box) -> NDArray[np.float32]:
        """As `probability`, of a part of the frame that `views` are of.

        For the sake of speed it is not looked as far beyond the part as the widest filters reach;
        at its edge the probability may be off by a tenth.
        """
        rim = with_rim(place, views.shape[1:], self.diameter, self.sampling, _NEAR)
        return self._probability(views, *rim)

    def _probability(
        self, views: NDArray[np.float32], outer: Box, inner: Box
    ) -> NDArray[np.float32]:
        features = pixel_features(views[(slice(None), *outer)], self.diameter, self.sampling)
        return self.of_features(features[(slice(None), *inner)])

    def of_features(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """As `probability`, for the features of pixels, shape (features, ...)."""
        rows = np.ascontiguousarray(features.reshape(len(features), -1).T)
        probable = self._forest.predict_proba(rows).T.astype(np.float32)
        return np.asarray(probable.reshape(-1, *features.shape[1:]))


def _parted(given: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Classes 1 to 3 of pixels, and which of them were guessed."""
    return ((given.astype(np.intp) - 1) % GUESSED) + 1, given > GUESSED


def _grown(
    features: NDArray[np.float32], classes: NDArray[np.intp], guessed: NDArray[np.bool_]
) -> Any:
    """A forest in which classes weigh as they should, and guesses a little."""
    from sklearn.ensemble import ExtraTreesClassifier

    groups = classes + GUESSED * guessed
    share = np.asarray(_WEIGHTS)[classes - 1] * np.where(guessed, _TRUST, 1 - _TRUST)
    weights = share / np.bincount(groups)[groups] * len(groups)
    forest = ExtraTreesClassifier(_TREES, min_samples_leaf=3, max_features=12, random_state=0)
    return forest.fit(features, classes, sample_weight=weights)


def taught_model(taught: Sequence[PaintedPixels], diameter: float, movie: Movie) -> PixelModel:
    """A model for a movie of what was painted, whose features were made for this diameter."""
    geometry = movie.geometry
    sampling = sampling_of(geometry.scale, geometry.shape or (), diameter)
    together = PaintedPixels.together(taught)
    return PixelModel(together, diameter, sampling, _micrometres(geometry), Path(movie.source).name)


def painted_pixels(
    frame: NDArray[Any],
    marks: NDArray[np.integer[Any]],
    diameter: float,
    scale: tuple[float, ...] | None = None,
) -> PaintedPixels:
    """What strokes on a frame teach.

    Parameters
    ----------
    frame
        One channel, shape ([Z,] Y, X).
    marks
        Strokes on it, 0 to 3, same shape; 4 to 6 for what was guessed.
    diameter
        Diameter of a typical cell in pixels.
    scale
        Pixel size per axis; only ratios matter.
    """
    sampling = sampling_of(scale, frame.shape, diameter)
    pixels, invalid = finite_image(frame)
    views = views_of(pixels, diameter, sampling)
    marks = np.where(invalid, 0, marks)
    features, classes = [np.zeros((0, feature_count(frame.ndim)), np.float32)], []
    for outer, inner, place in tiles(frame.shape, diameter, sampling, _TILE):
        here = marks[place] > 0
        if here.any():
            seen = pixel_features(views[(slice(None), *outer)], diameter, sampling)
            features.append(seen[(slice(None), *inner)][:, here].T)
            classes.append(marks[place][here])
    known = np.concatenate(classes) if classes else np.zeros(0)
    return PaintedPixels(np.concatenate(features), known.astype(np.uint8))


def _micrometres(geometry: Geometry) -> float | None:
    return geometry.scale[-1] if geometry.unit == "micrometer" else None


# ---------------------------------------------------------------------- files


class _Content(OpenEntry):
    name: str = ""
    diameter: float = Field(ge=1, le=1e5)
    sampling: list[float] = Field(min_length=2, max_length=3)
    pixel: float | None = Field(default=None, gt=0)
    classes: str
    features: str
    provenance: JsonObject = Field(default_factory=dict)

    def model(self) -> PixelModel:
        if not all(0 < s < 1e4 for s in self.sampling):
            raise ModelError("sampling: pixel sizes must be positive")
        classes = _decoded(self.classes, "classes", np.uint8)
        features = _decoded(self.features, "features", np.float32)
        if not len(classes) or not np.isin(classes, range(1, 2 * GUESSED + 1)).all():
            raise ModelError("classes: these must be 1 to 6")
        columns = feature_count(len(self.sampling))
        if features.size != len(classes) * columns:
            raise ModelError(
                f"features: {features.size} numbers do not make {len(classes)} pixels of "
                f"{columns} features"
            )
        if not np.isfinite(features).all():
            raise ModelError("features: not all numbers are finite")
        painted = PaintedPixels(features.reshape(len(classes), columns), classes)
        sampling = tuple(self.sampling)
        return PixelModel(
            painted, self.diameter, sampling, self.pixel, self.name or "unnamed", self.provenance
        )


PIXEL_MODEL_FILE = FileFormat(
    "bridgetrack-pixel-model", 1, "a pixel model", _Content, _Content.model, ModelError
)
"""Files of pixel models."""


def pixel_model_to_json(model: PixelModel) -> dict[str, Any]:
    """A pixel model as the JSON values of its file."""
    return {
        **PIXEL_MODEL_FILE.head,
        "name": model.name,
        "diameter": model.diameter,
        "sampling": list(model.sampling),
        "pixel": model.pixel,
        "classes": _encoded(model.painted.classes.astype("<u1")),
        "features": _encoded(model.painted.features.astype("<f4")),
        "provenance": {"program": program_version(), **model.provenance},
    }


def save_pixel_model(model: PixelModel, path: Path | str) -> Path:
    """Write the file of a pixel model.

    Raises
    ------
    OutputError
        Where it cannot be written; an older file stays as it was.
    """
    text = json_text(pixel_model_to_json(model), f"the pixel model {model.name!r}", ModelError)
    return write_text(Path(path), text, "the pixel model")


def load_pixel_model(path: Path | str) -> PixelModel:
    """Read the file of a pixel model.

    Raises
    ------
    ModelError
        Where the file is missing, damaged, of another kind or of a later version.
    """
    return PIXEL_MODEL_FILE.read(path)


def _encoded(values: NDArray[Any]) -> str:
    return b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _decoded(text: str, what: str, kind: type[np.generic]) -> NDArray[Any]:
    try:
        content = b64decode(text.encode("ascii"), validate=True)
        return np.frombuffer(content, dtype=np.dtype(kind).newbyteorder("<")).astype(kind)
    except ValueError as error:
        raise ModelError(f"{what}: this is no list of numbers in base64 ({error})") from None
