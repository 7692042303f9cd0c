"""Simulate a movie of dividing nuclei with its exact truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.simulation.cells import Array, Looks, Phase, SimulatedCells, looks
from bridgetrack.simulation.population import live, make_world
from bridgetrack.simulation.render import (
    debris_light,
    draw,
    expose,
    illumination,
    texture_tile,
    wander,
)
from bridgetrack.simulation.settings import SimulationSettings

_MAX_LABEL = 65_535
_LIFE, _OPTICS, _DEBRIS, _NOISE = range(4)


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
        return Geometry(
            n_frames=self.settings.frames,
            shape=self.settings.shape,
            scale=self.settings.scale,
            unit="micrometer",
            frame_interval=self.settings.frame_interval,
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
            light, owner = draw(cells, look, position, settings, tile)
            area = np.bincount(owner.ravel(), minlength=len(cells) + 1)[1:]
            labels = register.see(t, cells, area >= _least_area(settings))
            light += debris_light(settings, next(specks) + shake, _rng(settings, _DEBRIS, 1))
            image = expose(light, lamp, settings, noise)
            lookup = np.concatenate([[0], labels]).astype(np.uint16)
            nodes = _nodes(settings, t, labels, position=position, area=area, look=look)
            self.tracks = register.table() if t == settings.frames - 1 else self.tracks
            yield SimulatedFrame(t, image, lookup[owner], nodes)


@dataclass
class Register:
    """Gives out track ids: one for each unbroken sight of a cell.

    A cell that leaves the field and comes back is a new track without a parent. Where only one
    daughter of a division is in sight, what can be seen is a move, so she keeps her mother's
    track.
    """

    tracks: list[list[int]] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    fates: list[str] = field(default_factory=list)
    _in_sight: dict[int, int] = field(default_factory=dict)

    def see(self, t: int, cells: SimulatedCells, visible: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Track id of every cell of frame `t`, 0 for those out of sight, shape (n,)."""
        before = self._in_sight
        seen = np.flatnonzero(visible)
        ids, mothers = cells.id[seen].tolist(), cells.mother[seen].tolist()
        sisters: dict[int, int] = {}
        for cell, mother in zip(ids, mothers, strict=True):
            if cell not in before and mother in before:
                sisters[mother] = sisters.get(mother, 0) + 1
        now: dict[int, int] = {}
        for cell, mother in zip(ids, mothers, strict=True):
            known = cell if cell in before else mother
            if cell in before or sisters.get(mother) == 1:
                now[cell] = before[known]
                self.tracks[now[cell] - 1][2] = t
            else:
                now[cell] = self._begin(t, before.get(mother, 0))
        self._end(before, now, set(cells.id.tolist()), sisters)
        self._in_sight = now
        labels = np.zeros(len(cells), dtype=np.int64)
        labels[seen] = [now[c] for c in ids]
        return labels

    def _begin(self, t: int, parent: int) -> int:
        label = len(self.tracks) + 1
        if label > _MAX_LABEL:
            raise InputError(
                f"the simulated movie has more than {_MAX_LABEL} tracks (frame {t}), which label "
                "images of 16 bits cannot hold; ask for fewer cells or frames"
            )
        self.tracks.append([label, t, t, parent])
        self.origins.append("divide" if parent else "enter" if t else "start")
        self.fates.append("end")
        return label

    def _end(
        self,
        before: dict[int, int],
        now: dict[int, int],
        alive: set[int],
        sisters: dict[int, int],
    ) -> None:
        for cell, label in before.items():
            if cell in now or sisters.get(cell) == 1:
                continue
            divided = sisters.get(cell, 0) == 2
            self.fates[label - 1] = "divide" if divided else "leave" if cell in alive else "die"

    def table(self) -> pd.DataFrame:
        """One row per track: label, begin, end, parent (CTC's L B E P), origin and fate.

        ``origin`` is ``start``, ``divide`` or ``enter``; ``fate`` is ``end`` (of the movie),
        ``divide``, ``leave`` or ``die`` (also where a cell divides out of sight).
        """
        rows = np.array(self.tracks, dtype=np.int64).reshape(-1, 4)
        table = pd.DataFrame(rows, columns=["label", "begin", "end", "parent"])
        return table.assign(origin=self.origins, fate=self.fates)


def _rng(settings: SimulationSettings, *purpose: int) -> np.random.Generator:
    """A generator of its own for each purpose, so that frames do not depend on each other."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([settings.seed, *purpose])))


def _least_area(settings: SimulationSettings) -> float:
    """Pixels below which a cell at the border counts as out of sight."""
    return max(4.0, 0.06 * settings.content / float(np.prod(settings.spacing)))


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
