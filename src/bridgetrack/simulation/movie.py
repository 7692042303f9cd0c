"""Simulate a movie of dividing nuclei with its exact truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.movie.geometry import Geometry
from bridgetrack.simulation.camera import expose, illumination
from bridgetrack.simulation.cells import Array
from bridgetrack.simulation.debris import debris_light, wander
from bridgetrack.simulation.looks import Looks, Phase, looks
from bridgetrack.simulation.population import live, make_world
from bridgetrack.simulation.render import draw, texture_tile
from bridgetrack.simulation.settings import SimulationSettings
from bridgetrack.simulation.truth import Register

_LIFE, _OPTICS, _DEBRIS, _NOISE = range(4)


@dataclass(frozen=True)
class SimulatedFrame:
    """One frame with its truth.

    Parameters
    ----------
    t
        Number of the frame.
    image
        Grey values, uint8 or uint16, shape ([Z,] Y, X).
    labels
        Track id of every pixel, 0 for background, uint16, shape ([Z,] Y, X).
    nodes
        One row per visible cell: ``frame``, ``label``, centre in pixels (``z``, ``y``, ``x``),
        ``area`` in pixels, ``phase`` (name in lower case).
    """

    t: int
    image: NDArray[Any]
    labels: NDArray[np.uint16]
    nodes: pd.DataFrame


@dataclass
class Simulation:
    """A movie that is simulated frame by frame while it is read.

    Parameters
    ----------
    settings
        What the movie looks like.

    Attributes
    ----------
    tracks
        Table of the tracks, see `Register.table`; complete once all frames were read.
    """

    settings: SimulationSettings
    tracks: pd.DataFrame = field(default_factory=lambda: Register().table())

    def __iter__(self) -> Iterator[SimulatedFrame]:
        settings = self.settings
        tile = texture_tile(settings, _rng(settings, _OPTICS, 0))
        lamp = illumination(settings, _rng(settings, _OPTICS, 1))
        register = Register()
        life = _rng(settings, _LIFE)
        world = make_world(settings, life)
        specks = wander(settings, world, _rng(settings, _DEBRIS, 0))
        for t, cells in enumerate(live(settings, world, life)):
            noise = _rng(settings, _NOISE, t)
            shake = settings.jitter / np.sqrt(2) * noise.standard_normal(settings.dim)
            position = cells.position - world.origin + shake
            look = looks(cells, settings)
            canvas = draw(cells, look, position, settings, tile)
            area = np.bincount(canvas.owner.ravel(), minlength=len(cells) + 1)[1:]
            labels = register.see(t, cells, area >= _least_area(settings))
            speck_light = debris_light(settings, next(specks) + shake, _rng(settings, _DEBRIS, 1))
            image = expose(canvas.light + speck_light, lamp, settings, noise)
            lookup = np.concatenate([[0], labels]).astype(np.uint16)
            nodes = _nodes(settings, t, labels, position=position, area=area, look=look)
            self.tracks = register.table() if t == settings.frames - 1 else self.tracks
            yield SimulatedFrame(t, image, lookup[canvas.owner], nodes)


@dataclass(frozen=True)
class SimulatedMovie:
    """A simulated movie with its exact truth.

    Parameters
    ----------
    settings
        From what it was made.
    image
        Grey values, uint8 or uint16, shape (T, [Z,] Y, X).
    labels
        Track ids, uint16, shape (T, [Z,] Y, X); each id is one connected region per frame.
    tracks
        One row per track: ``label``, ``begin``, ``end``, ``parent``, ``origin``, ``fate``.
    nodes
        One row per cell and frame, see `SimulatedFrame`.
    """

    settings: SimulationSettings
    image: NDArray[Any]
    labels: NDArray[np.uint16]
    tracks: pd.DataFrame
    nodes: pd.DataFrame

    @property
    def man_track(self) -> NDArray[np.int64]:
        """CTC's table of tracks, rows ``L B E P``, shape (n, 4)."""
        return self.tracks[["label", "begin", "end", "parent"]].to_numpy(dtype=np.int64)

    @property
    def geometry(self) -> Geometry:
        """Extent, scale and units of the movie."""
        return geometry_of(self.settings)


def geometry_of(settings: SimulationSettings) -> Geometry:
    """Extent, scale and units of the movie that these settings give."""
    return Geometry(
        n_frames=settings.frames,
        shape=settings.shape,
        scale=settings.scale,
        unit="micrometer",
        frame_interval=settings.frame_interval,
    )


def simulate(settings: SimulationSettings) -> SimulatedMovie:
    """Simulate a whole movie in memory; `Simulation` gives it frame by frame."""
    simulation = Simulation(settings)
    shape = (settings.frames, *settings.shape)
    image = np.empty(shape, dtype=np.uint8 if settings.bits == 8 else np.uint16)
    labels = np.empty(shape, dtype=np.uint16)
    nodes = []
    for frame in simulation:
        image[frame.t], labels[frame.t] = frame.image, frame.labels
        nodes.append(frame.nodes)
    return SimulatedMovie(
        settings, image, labels, simulation.tracks, pd.concat(nodes, ignore_index=True)
    )


def _rng(settings: SimulationSettings, *purpose: int) -> np.random.Generator:
    """A generator of its own for each purpose, so that frames do not depend on each other."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([settings.seed, *purpose])))


def _least_area(settings: SimulationSettings) -> float:
    """Pixels below which a cell at the border counts as out of sight."""
    radius = settings.diameter / 2
    content = np.pi * radius**2 if settings.dim == 2 else 4 / 3 * np.pi * radius**3
    return max(4.0, 0.06 * content / float(np.prod(settings.spacing)))


def _nodes(
    settings: SimulationSettings,
    t: int,
    labels: NDArray[np.int64],
    *,
    position: Array,
    area: NDArray[np.int64],
    look: Looks,
) -> pd.DataFrame:
    seen = np.flatnonzero(labels)
    seen = seen[np.argsort(labels[seen])]
    names = np.array([p.name.lower() for p in Phase])
    columns: dict[str, Any] = {"frame": np.full(len(seen), t), "label": labels[seen]}
    centre = position[seen] / settings.spacing
    for axis, name in enumerate(("z", "y", "x")[-settings.dim :]):
        columns[name] = centre[:, axis]
    return pd.DataFrame({**columns, "area": area[seen], "phase": names[look.phase[seen]]})
