"""How a population lives: movement, growth, division, death."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.simulation.cells import (
    DEATH_FRAMES,
    Array,
    Phase,
    SimulatedCells,
    founders,
    looks,
    orthonormal,
    phases,
    unit,
)
from bridgetrack.simulation.settings import SimulationSettings

_CYCLE_SPREAD = 0.12
_CROWDED = 0.55
_CONTACT = 0.95
_BUMP_SIZE = 0.09
_MARGIN = 1.6


@dataclass(frozen=True)
class World:
    """A box that wraps around, larger than the field of view so that nobody sees it wrap."""

    box: Array  # extent in pixels, shape (d,)
    origin: Array  # corner of the field of view, shape (d,)
    drift: Array  # steady movement, pixels per frame, shape (d,)
    # waves, wave_phase, wave_direction: of the flow that neighbours share: wave vectors (k, d),
    # phases (k,), directions (k, d)
    waves: Array
    wave_phase: Array
    wave_direction: Array


def make_world(settings: SimulationSettings, rng: np.random.Generator) -> World:
    """The world of these settings."""
    d = settings.dim
    field = np.array(settings.shape) * settings.spacing
    box = field + 2 * _MARGIN * settings.diameter
    mostly_flat = np.array([0.3, 1.0, 1.0][-d:])
    waves = 2 * np.pi * np.round(rng.standard_normal((6, d)) * 1.5) / box
    return World(
        box=box,
        origin=np.full(d, _MARGIN * settings.diameter),
        drift=settings.drift * unit(rng.standard_normal(d) * mostly_flat),
        waves=waves,
        wave_phase=rng.random(6) * 2 * np.pi,
        wave_direction=rng.standard_normal((6, d)) * mostly_flat / np.sqrt(3 * d),
    )


def first_cells(
    settings: SimulationSettings, world: World, rng: np.random.Generator
) -> SimulatedCells:
    """The population of the first frame, spread out until hardly anything overlaps."""
    # Cells count as in sight until well over half of them is beyond the border.
    field = np.prod(np.array(settings.shape) * settings.spacing + 0.5 * settings.diameter)
    count = round(settings.cells * float(np.prod(world.box) / field))
    cells = founders(count, world.box, settings.diameter / 2, rng, _cycles(settings, count, rng))
    spread = np.clip(rng.standard_normal((3, count)), -2.5, 2.5)
    cells = replace(
        cells,
        radius=cells.radius * (1 + settings.diameter_spread * spread[0]),
        elongation=np.maximum(1.02, settings.elongation + 0.18 * spread[1]),
        brightness=np.exp(settings.brightness_spread * spread[2]),
        bump_size=_BUMP_SIZE * rng.standard_normal(cells.bump_size.shape),
        velocity=_kicks(settings, count, rng),
    )
    for _ in range(40):
        cells = replace(
            cells, position=(cells.position + _push(cells, settings, world)) % world.box
        )
    return cells


def live(
    settings: SimulationSettings, world: World, rng: np.random.Generator
) -> Iterator[SimulatedCells]:
    """The population at every frame, one after the other."""
    cells = first_cells(settings, world, rng)
    next_id = len(cells)
    for t in range(settings.frames):
        if t:
            cells, next_id = step(cells, settings, world, rng, t=t, next_id=next_id)
        yield cells


def step(
    cells: SimulatedCells,
    settings: SimulationSettings,
    world: World,
    rng: np.random.Generator,
    *,
    t: int,
    next_id: int,
) -> tuple[SimulatedCells, int]:
    """One frame on: the population and the next free identity."""
    cells = _grow(cells, settings, world, rng)
    cells = _move(cells, settings, world, rng, t)
    cells, next_id = _divide(cells, settings, rng, next_id)
    return replace(cells, position=cells.position % world.box), next_id


def _cycles(settings: SimulationSettings, count: int, rng: np.random.Generator) -> Array:
    """Ages at division; the mean cycle is ln 2 over the rate, as in exponential growth."""
    z = np.clip(rng.standard_normal(count), -2.5, 2.5)
    if settings.division_rate == 0:
        return np.full(count, np.inf)
    mean = max(np.log(2) / settings.division_rate, settings.mitosis_frames + 3.0)
    return np.asarray(np.maximum(mean * (1 + _CYCLE_SPREAD * z), settings.mitosis_frames + 2.0))


def _kicks(settings: SimulationSettings, count: int, rng: np.random.Generator) -> Array:
    """Random velocities with the root mean square length `speed`."""
    flat = np.array([0.4, 1.0, 1.0][-settings.dim :])
    z = rng.standard_normal((count, settings.dim)) * flat
    return np.asarray(settings.speed * z / np.sqrt((flat**2).sum()))


def _grow(
    cells: SimulatedCells, settings: SimulationSettings, world: World, rng: np.random.Generator
) -> SimulatedCells:
    """Age, lose and regain focus, begin to die, and go when dead."""
    n = len(cells)
    u = rng.random((3, n))
    before = phases(cells, settings)
    calm = (before == Phase.INTERPHASE) & (cells.dying == 0)
    covered = np.pi * (cells.radius**2).sum() / np.prod(world.box[-2:])
    held = calm & (settings.dim == 2) & (covered > _CROWDED)
    dying = np.where(cells.dying > 0, cells.dying + 1, calm & (u[0] < settings.death_rate))
    lost = calm & (cells.fading == 0) & (u[1] < settings.fading_rate)
    fading = np.where(lost, 1 + (u[2] < 0.3), np.maximum(cells.fading - 1, 0))
    cells = replace(
        cells, age=cells.age + ~held, dying=dying.astype(np.int64), fading=fading.astype(np.int64)
    )
    after = phases(cells, settings)
    plated = (after == Phase.METAPHASE) & (before != Phase.METAPHASE)
    # The spindle lies along what was the long axis, so the plate stands across it.
    axes = np.where(plated[:, None, None], cells.axes[:, ::-1], cells.axes)
    return replace(cells, axes=axes).take(dying <= DEATH_FRAMES)


def _move(
    cells: SimulatedCells,
    settings: SimulationSettings,
    world: World,
    rng: np.random.Generator,
    t: int,
) -> SimulatedCells:
    """Persistent random walk, shared flow and drift, repulsion, rotation, slow shape changes."""
    n = len(cells)
    p = settings.persistence
    velocity = p * cells.velocity + np.sqrt(1 - p**2) * _kicks(settings, n, rng)
    phase = phases(cells, settings)
    mitotic = (phase == Phase.PROPHASE) | (phase == Phase.METAPHASE) | (phase == Phase.DYING)
    own = velocity * np.where(mitotic, 0.4, 1.0)[:, None]
    position = cells.position + own + world.drift + _flow(cells.position, settings, world, t)
    moved = replace(cells, position=position % world.box, velocity=velocity)
    turn = np.where(phase == Phase.METAPHASE, 0.03, 0.07)[:, None, None]
    axes = orthonormal(cells.axes + turn * rng.standard_normal(cells.axes.shape))
    bumps = 0.9 * cells.bump_size + _BUMP_SIZE * 0.436 * rng.standard_normal(cells.bump_size.shape)
    brightness = cells.brightness * np.exp(0.02 * rng.standard_normal(n))
    return replace(
        moved,
        position=moved.position + _push(moved, settings, world),
        axes=axes,
        bump_size=bumps,
        brightness=brightness,
    )


def _flow(position: Array, settings: SimulationSettings, world: World, t: int) -> Array:
    """Velocity of the flow at each cell, pixels per frame, shape (n, d)."""
    angle = (position[:, None, :] * world.waves).sum(axis=-1) + world.wave_phase + 0.08 * t
    waves = np.sin(angle)[:, :, None] * world.wave_direction
    return np.asarray(settings.flow * waves.sum(axis=1))


def _push(cells: SimulatedCells, settings: SimulationSettings, world: World) -> Array:
    """Half-way correction of overlaps between neighbours, shape (n, d)."""
    force = np.zeros_like(cells.position)
    if len(cells) < 2:
        return force
    size = looks(cells, settings).size
    tree = cKDTree(cells.position % world.box, boxsize=world.box)
    pairs = tree.query_pairs(2 * _CONTACT * float(size.max()), output_type="ndarray")
    # Sorted, so that sums do not depend on how the tree was walked.
    i, j = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].T
    gap = cells.position[i] - cells.position[j]
    gap -= world.box * np.round(gap / world.box)
    distance = np.sqrt((gap**2).sum(axis=1))
    overlap = np.maximum(_CONTACT * (size[i] + size[j]) - distance, 0)
    push = 0.35 * (overlap / np.maximum(distance, 1e-6))[:, None] * gap
    for axis in range(settings.dim):
        force[:, axis] = np.bincount(i, push[:, axis], len(cells))
        force[:, axis] -= np.bincount(j, push[:, axis], len(cells))
    return force


def _divide(
    cells: SimulatedCells, settings: SimulationSettings, rng: np.random.Generator, next_id: int
) -> tuple[SimulatedCells, int]:
    """Replace the cells at the end of their cycle by two daughters, apart along the spindle."""
    ripe = (cells.age >= cells.cycle) & (cells.dying == 0)
    mothers = cells.take(ripe)
    m = len(mothers)
    if m == 0:
        return cells, next_id
    daughters = mothers.join(mothers)
    side = np.repeat([1.0, -1.0], m)[:, None]
    spindle = daughters.axes[:, -1]
    apart = side * spindle * daughters.radius[:, None]
    ids: NDArray[np.int64] = next_id + np.arange(2 * m)
    uneven = 1 + 0.05 * np.clip(rng.standard_normal((2, 2 * m)), -2, 2)
    daughters = replace(
        daughters,
        id=ids,
        mother=daughters.id,
        position=daughters.position + 0.55 * apart,
        velocity=daughters.velocity * 0.3 + 0.35 * apart,
        radius=np.clip(
            daughters.radius * uneven[0], 0.35 * settings.diameter, 0.7 * settings.diameter
        ),
        brightness=daughters.brightness * uneven[1],
        age=np.zeros(2 * m),
        cycle=_cycles(settings, 2 * m, rng),
        grain=rng.random(daughters.grain.shape) * 1000,
        bump_axes=unit(rng.standard_normal(daughters.bump_axes.shape)),
    )
    return cells.take(~ripe).join(daughters), next_id + 2 * m
