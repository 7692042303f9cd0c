"""The state of all simulated cells at one time, and how each looks at its stage of life."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.simulation.settings import SimulationSettings

Array = NDArray[np.float64]
N_BUMPS = 3  # per outline: enough for beans, pears and soft corners
DEATH_FRAMES = 5  # a dying cell shrinks and glows for so many frames and is then gone
_RECOVERY = 5.0
_PLATE_ASPECT = 2.8
_FADED = 0.12


@dataclass(frozen=True)
class SimulatedCells:
    """Cells alive at one time; every array has one row per cell."""

    # id, mother: mother is -1 for none; both of shape (n,)
    id: NDArray[np.int64]
    mother: NDArray[np.int64]
    # position, velocity: pixels (per frame) in the coordinates of the world, (n, d)
    position: Array
    velocity: Array
    axes: Array  # rows are the unit vectors of the long, middle and short axis, shape (n, d, d)
    # radius, elongation, brightness: kept for life and handed on to daughters, (n,)
    radius: Array
    elongation: Array
    brightness: Array
    # age, cycle: frames since birth, age at division, (n,)
    age: Array
    cycle: Array
    # dying, fading: frames since death began (0: alive), frames out of focus to come, (n,)
    dying: NDArray[np.int64]
    fading: NDArray[np.int64]
    # bump_axes, bump_size: bumps of the outline: body axes (n, k, d), heights (n, k)
    bump_axes: Array
    bump_size: Array
    grain: Array  # place of the cell's texture in the texture tile, shape (n, d)

    def __len__(self) -> int:
        return len(self.id)

    def take(self, index: NDArray[Any]) -> SimulatedCells:
        """The cells at these rows (or where this mask is True)."""
        return SimulatedCells(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def join(self, other: SimulatedCells) -> SimulatedCells:
        """These cells and then the others."""
        names = [f.name for f in fields(self)]
        return SimulatedCells(
            **{n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in names}
        )


def founders(
    count: int, box: Array, radius: float, rng: np.random.Generator, cycle: Array
) -> SimulatedCells:
    """Cells scattered evenly over a box, with ages of a growing population, before spreads.

    The age a (as a share of the cycle) has the density 2 ln2 2^-a of an exponentially growing
    population, drawn by inverting its distribution function.
    """
    d = len(box)
    share = -np.log2(1 - rng.random(count) / 2)
    endless = ~np.isfinite(cycle)
    return SimulatedCells(
        id=np.arange(count),
        mother=np.full(count, -1),
        position=rng.random((count, d)) * box,
        velocity=np.zeros((count, d)),
        axes=orthonormal(rng.standard_normal((count, d, d))),
        radius=np.full(count, radius),
        elongation=np.ones(count),
        brightness=np.ones(count),
        age=share * np.where(endless, 100.0, cycle),
        cycle=cycle,
        dying=np.zeros(count, dtype=np.int64),
        fading=np.zeros(count, dtype=np.int64),
        bump_axes=unit(rng.standard_normal((count, N_BUMPS, d))),
        bump_size=np.zeros((count, N_BUMPS)),
        grain=rng.random((count, d)) * 1000,
    )


def unit(vectors: Array) -> Array:
    """Vectors of length one along the last axis."""
    length = np.sqrt((vectors**2).sum(axis=-1, keepdims=True))
    return np.asarray(vectors / np.maximum(length, 1e-12))


def orthonormal(axes: Array) -> Array:
    """Gram-Schmidt on the rows of each matrix, shape (n, d, d)."""
    rows: list[Array] = []
    for k in range(axes.shape[1]):
        row = axes[:, k]
        for done in rows:
            row = row - (row * done).sum(axis=-1, keepdims=True) * done
        rows.append(unit(row))
    return np.stack(rows, axis=1)


class Phase(IntEnum):
    """Stages of life that can be told apart in the image."""

    INTERPHASE = 0
    PROPHASE = 1
    METAPHASE = 2
    DAUGHTER = 3
    DYING = 4


@dataclass(frozen=True)
class Looks:
    """What the renderer needs of each cell."""

    semi: Array  # half the axes in pixels, shape (n, d), in the order of ``SimulatedCells.axes``
    size: Array  # radius of the circle (sphere) of the same content in pixels, shape (n,)
    intensity: Array  # grey value above the background, shape (n,)
    contrast: Array  # relative contrast of the texture, shape (n,)
    bumps: Array  # heights of the bumps of the outline, shape (n, k)
    phase: NDArray[np.int8]  # values of `Phase`, shape (n,)


def phases(cells: SimulatedCells, settings: SimulationSettings) -> NDArray[np.int8]:
    """Stage of every cell, shape (n,)."""
    left = cells.cycle - cells.age
    phase = np.zeros(len(cells), dtype=np.int8)
    phase[(cells.age < _RECOVERY) & (cells.mother >= 0)] = Phase.DAUGHTER
    phase[left <= settings.mitosis_frames] = Phase.PROPHASE
    phase[left <= max(1.0, settings.mitosis_frames / 2)] = Phase.METAPHASE
    phase[cells.dying > 0] = Phase.DYING
    return phase


def looks(cells: SimulatedCells, settings: SimulationSettings) -> Looks:
    """Appearance of every cell.

    Brightness follows from the amount of DNA over the area, so that a cell that rounds up or
    forms a plate lights up, and daughters start small and bright.
    """
    phase = phases(cells, settings)
    area = _area(cells, phase)
    dna = 1 + np.clip((_progress(cells) - 0.3) / 0.4, 0, 1)
    size = cells.radius * np.sqrt(area)
    ratios = _ratios(cells, phase, settings.dim)
    semi = size[:, None] * ratios / np.prod(ratios, axis=1, keepdims=True) ** (1 / settings.dim)
    intensity = settings.brightness * cells.brightness * (dna / area / 1.35) ** 0.8
    intensity = np.where(cells.dying > 0, intensity * _glow(cells), intensity)
    condensed = (phase == Phase.METAPHASE) | (phase == Phase.DYING)
    contrast = settings.texture * np.select([condensed, phase == Phase.PROPHASE], [2.0, 1.8], 1.0)
    calm = np.where((phase == Phase.INTERPHASE) | (phase == Phase.METAPHASE), 1.0, 0.5)
    return Looks(
        semi=semi,
        size=size,
        intensity=intensity * np.where(cells.fading > 0, _FADED, 1.0),
        contrast=contrast,
        bumps=cells.bump_size * calm[:, None],
        phase=phase,
    )


def _progress(cells: SimulatedCells) -> Array:
    """Share of the cycle that is over, 0-1; half way for cells that never divide."""
    endless = ~np.isfinite(cells.cycle)
    cycle = np.where(endless, 1.0, cells.cycle)
    return np.where(endless, 0.5, np.clip(cells.age / cycle, 0, 1))


def _area(cells: SimulatedCells, phase: NDArray[np.int8]) -> Array:
    """Area as a multiple of the mean one."""
    grown = 0.75 + 0.55 * _progress(cells)
    young = 0.28 + (grown - 0.28) * np.clip(cells.age / _RECOVERY, 0, 1)
    dead = grown * np.maximum(1 - 0.75 * cells.dying / DEATH_FRAMES, 0.2)
    return np.select(
        [phase == k for k in (Phase.DAUGHTER, Phase.PROPHASE, Phase.METAPHASE, Phase.DYING)],
        [young, np.full(len(cells), 0.8), np.full(len(cells), 0.5), dead],
        grown,
    )


def _ratios(cells: SimulatedCells, phase: NDArray[np.int8], dim: int) -> Array:
    """Lengths of the axes relative to each other, longest first, shape (n, dim)."""
    recovered = np.clip(cells.age / _RECOVERY, 0, 1)
    born = 1.9 + (cells.elongation - 1.9) * recovered
    long = np.select(
        [phase == k for k in (Phase.DAUGHTER, Phase.PROPHASE, Phase.METAPHASE, Phase.DYING)],
        [born, np.full(len(cells), 1.08), np.full(len(cells), _PLATE_ASPECT), np.ones(len(cells))],
        cells.elongation,
    )
    if dim == 2:
        return np.stack([long, np.ones_like(long)], axis=1)
    disc = (phase == Phase.METAPHASE) | (phase == Phase.DAUGHTER)
    middle = np.where(disc, 0.9 * long, np.sqrt(long))
    return np.stack([long, middle, np.ones_like(long)], axis=1)


def _glow(cells: SimulatedCells) -> Array:
    """Brightening of a dying cell, which fades in the end."""
    share = cells.dying / DEATH_FRAMES
    return np.where(share < 0.9, 1.1, 0.35)
