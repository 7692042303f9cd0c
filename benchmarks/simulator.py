"""Simulated movies of dividing nuclei with their exact truth, for benchmarks and tests.

`simulate` gives a movie in memory, `simulate_to_folder` writes it as the Cell Tracking Challenge
lays movies out. Equal settings give equal pixels; the default ones gave the sample movie.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tifffile
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array
from bridgetrack.movie.geometry import Geometry

Rng = np.random.Generator

PIXEL_SIZE, FRAME_INTERVAL = 0.645, 10.0
"""Micrometres per pixel, minutes per frame."""
LIFE, OPTICS, DEBRIS, NOISE = range(4)
"""What random numbers are for."""
DEATH_FRAMES, RECOVERY = 5, 5.0
"""Frames in which a dying cell shrinks, and in which a daughter grows."""
N_BUMPS, BUMP_SIZE = 3, 0.09
"""Bumps of an outline, and their height."""
CYCLE_SPREAD, CROWDED, CONTACT, MARGIN = 0.12, 0.55, 0.95, 1.6
EDGE, GRAINS_PER_PIXEL, READ_NOISE, NOISE_PER_GREY, STRETCH_Z = 1.2, 2.0, 0.7, 0.05, 2.0


@dataclass(frozen=True)
class SimulationSettings:
    """What a movie looks like; lengths in pixels of y and x, times in frames, rates per frame."""

    frames: int = 36
    cells: int = 60  # in the first frame, about
    size: int | None = None  # side of the frames; follows from cells and density where None
    dim: int = 2
    seed: int = 0
    density: float = 0.15  # share of the area (in 3D: the volume) that nuclei cover
    diameter: float = 22.0
    elongation: float = 1.35
    speed: float = 1.2  # root mean square step of a nucleus' own movement
    drift: float = 0.8  # of all nuclei together
    flow: float = 0.5  # of a smooth flow that neighbours share
    jitter: float = 0.2  # of the stage
    division_rate: float = 0.01
    mitosis_frames: int = 4
    death_rate: float = 0.002
    fading_rate: float = 0.002  # share of cells that leave the focus
    debris: float = 0.05  # specks, as a share of cells
    depth: int = 16
    anisotropy: float = 3.0  # distance of two planes
    persistence: float = 0.6
    brightness: float = 36.0
    background: float = 18.0

    @property
    def side(self) -> int:
        """Side of the square frames."""
        if self.size is not None:
            return self.size
        volume = self.cells * self.content / self.density
        if self.dim == 3:
            volume /= self.depth * self.anisotropy
        return max(32, 8 * math.ceil(math.sqrt(volume) / 8))

    @property
    def content(self) -> float:
        """Area (volume) of a nucleus of the mean diameter."""
        radius = self.diameter / 2
        return math.pi * radius**2 if self.dim == 2 else 4 / 3 * math.pi * radius**3

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a frame."""
        flat = (self.side, self.side)
        return flat if self.dim == 2 else (self.depth, *flat)

    @property
    def spacing(self) -> Array:
        """Extent of a voxel along each axis."""
        return np.array([1.0, 1.0] if self.dim == 2 else [self.anisotropy, 1.0, 1.0])

    @property
    def scale(self) -> tuple[float, ...]:
        """Micrometres per voxel along each axis."""
        return tuple(float(s) * PIXEL_SIZE for s in self.spacing)

    def rng(self, *purpose: int) -> Rng:
        """A generator for each purpose, so that frames do not depend on each other."""
        sequence = np.random.SeedSequence([self.seed, *purpose])
        return np.random.Generator(np.random.PCG64(sequence))


@dataclass(frozen=True)
class SimulatedMovie:
    """Grey values (uint8), track ids (uint16) and a table of tracks: label, begin, end, parent."""

    settings: SimulationSettings
    image: NDArray[np.uint8]
    labels: NDArray[np.uint16]
    tracks: pd.DataFrame

    @property
    def geometry(self) -> Geometry:
        """Extent, scale and units of the movie."""
        settings = self.settings
        return Geometry(
            settings.frames, settings.shape, settings.scale, "micrometer", FRAME_INTERVAL
        )


def simulate(settings: SimulationSettings) -> SimulatedMovie:
    """A whole movie in memory."""
    register = Register()
    images, labels = zip(*simulated_frames(settings, register), strict=True)
    return SimulatedMovie(settings, np.stack(images), np.stack(labels), register.table())


def simulate_to_folder(settings: SimulationSettings, folder: Path) -> Path:
    """Write a movie into ``01`` and ``01_GT`` of a folder; gives the folder of the images."""
    images, truth = folder / "01", folder / "01_GT" / "TRA"
    images.mkdir(parents=True)
    truth.mkdir(parents=True)
    register = Register()
    for t, (image, labels) in enumerate(simulated_frames(settings, register)):
        _write_tiff(images / f"t{t:03d}.tif", image, settings)
        _write_tiff(truth / f"man_track{t:03d}.tif", labels, settings)
    np.savetxt(truth / "man_track.txt", register.table().to_numpy(), fmt="%d")
    (truth.parent / "simulation.json").write_text(json.dumps(asdict(settings), indent=2) + "\n")
    return images


def _write_tiff(path: Path, pixels: NDArray[Any], settings: SimulationSettings) -> None:
    axes = "ZYX" if pixels.ndim == 3 else "YX"
    metadata: dict[str, Any] = {"axes": axes, "unit": "micron", "tunit": "sec"}
    metadata["finterval"] = FRAME_INTERVAL * 60
    if pixels.ndim == 3:
        metadata["spacing"] = settings.scale[0]
    resolution = (1 / PIXEL_SIZE, 1 / PIXEL_SIZE)
    tifffile.imwrite(
        path, pixels, imagej=True, compression="zlib", resolution=resolution, metadata=metadata
    )


def simulated_frames(
    settings: SimulationSettings, register: Register
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint16]]]:
    """Image and labels of every frame; `register` keeps the tracks."""
    tile = texture_tile(settings, settings.rng(OPTICS, 0))
    lamp = illumination(settings, settings.rng(OPTICS, 1))
    life = settings.rng(LIFE)
    world = make_world(settings, life)
    specks = wander(settings, world, settings.rng(DEBRIS, 0))
    least = max(4.0, 0.06 * settings.content / float(np.prod(settings.spacing)))
    for t, cells in enumerate(live(settings, world, life)):
        noise = settings.rng(NOISE, t)
        shake = settings.jitter / np.sqrt(2) * noise.standard_normal(settings.dim)
        light, owner = draw(cells, cells.position - world.origin + shake, settings, tile)
        area = np.bincount(owner.ravel(), minlength=len(cells) + 1)[1:]
        labels = register.see(t, cells, area >= least)
        light += debris_light(settings, next(specks) + shake, settings.rng(DEBRIS, 1))
        lookup = np.concatenate([[0], labels]).astype(np.uint16)
        yield expose(light, lamp, settings, noise), lookup[owner]


class Register:
    """Gives out track ids: one for each unbroken sight of a cell.

    A cell that leaves the field and comes back is a new track without a parent. Where only one
    daughter of a division is in sight, what can be seen is a move, so she keeps her mother's
    track.
    """

    def __init__(self) -> None:
        self._tracks: list[list[int]] = []
        self._in_sight: dict[int, int] = {}

    def see(self, t: int, cells: SimulatedCells, visible: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Track id of every cell of frame `t`, 0 for those out of sight."""
        before = self._in_sight
        seen = np.flatnonzero(visible)
        ids, mothers = cells.id[seen].tolist(), cells.mother[seen].tolist()
        sisters: dict[int, int] = {}
        for cell, mother in zip(ids, mothers, strict=True):
            if cell not in before and mother in before:
                sisters[mother] = sisters.get(mother, 0) + 1
        now: dict[int, int] = {}
        for cell, mother in zip(ids, mothers, strict=True):
            if cell in before or sisters.get(mother) == 1:
                now[cell] = before[cell if cell in before else mother]
                self._tracks[now[cell] - 1][2] = t
            else:
                now[cell] = len(self._tracks) + 1
                self._tracks.append([now[cell], t, t, before.get(mother, 0)])
        self._in_sight = now
        labels = np.zeros(len(cells), dtype=np.int64)
        labels[seen] = [now[c] for c in ids]
        return labels

    def table(self) -> pd.DataFrame:
        """CTC's table of tracks."""
        rows = np.array(self._tracks, dtype=np.int64).reshape(-1, 4)
        return pd.DataFrame(rows, columns=["label", "begin", "end", "parent"])


# ------------------------------------------------------------------ cells and their looks


@dataclass(frozen=True)
class SimulatedCells:
    """Cells alive at one time; every array has one row per cell."""

    id: NDArray[np.int64]
    mother: NDArray[np.int64]  # -1 for none
    position: Array
    velocity: Array
    axes: Array  # rows are the unit vectors of the long, middle and short axis
    radius: Array
    elongation: Array
    brightness: Array
    age: Array
    cycle: Array  # age at division
    dying: NDArray[np.int64]  # frames since death began, 0: alive
    fading: NDArray[np.int64]  # frames out of focus to come
    bump_axes: Array
    bump_size: Array
    grain: Array  # place of the cell's texture in the texture tile

    def __len__(self) -> int:
        return len(self.id)

    def take(self, index: NDArray[Any]) -> SimulatedCells:
        """The cells at these rows."""
        return SimulatedCells(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def join(self, other: SimulatedCells) -> SimulatedCells:
        """These cells and then the others."""
        names = [f.name for f in fields(self)]
        return SimulatedCells(
            **{n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in names}
        )

    @property
    def progress(self) -> Array:
        """Share of the cycle that is over; half way for cells that never divide."""
        endless = ~np.isfinite(self.cycle)
        cycle = np.where(endless, 1.0, self.cycle)
        return np.where(endless, 0.5, np.clip(self.age / cycle, 0, 1))


class Phase(IntEnum):
    """Stages of life that can be told apart in the image."""

    INTERPHASE = 0
    PROPHASE = 1
    METAPHASE = 2
    DAUGHTER = 3
    DYING = 4


LOOKING_UNLIKE = (Phase.DAUGHTER, Phase.PROPHASE, Phase.METAPHASE, Phase.DYING)


def phases(cells: SimulatedCells, settings: SimulationSettings) -> NDArray[np.int8]:
    """Stage of every cell."""
    left = cells.cycle - cells.age
    phase = np.zeros(len(cells), dtype=np.int8)
    phase[(cells.age < RECOVERY) & (cells.mother >= 0)] = Phase.DAUGHTER
    phase[left <= settings.mitosis_frames] = Phase.PROPHASE
    phase[left <= max(1.0, settings.mitosis_frames / 2)] = Phase.METAPHASE
    phase[cells.dying > 0] = Phase.DYING
    return phase


@dataclass(frozen=True)
class Looks:
    """What is drawn of each cell."""

    semi: Array  # half the axes
    size: Array  # radius of the circle (sphere) of the same content
    intensity: Array
    contrast: Array  # of the texture
    bumps: Array


def looks(cells: SimulatedCells, settings: SimulationSettings) -> Looks:
    """Appearance of every cell.

    Brightness follows from the amount of DNA over the area, so that a cell that rounds up or
    forms a plate lights up, and daughters start small and bright.
    """
    phase = phases(cells, settings)
    area = _area(cells, phase)
    dna = 1 + np.clip((cells.progress - 0.3) / 0.4, 0, 1)
    size = cells.radius * np.sqrt(area)
    ratios = _ratios(cells, phase, settings.dim)
    semi = size[:, None] * ratios / np.prod(ratios, axis=1, keepdims=True) ** (1 / settings.dim)
    intensity = settings.brightness * cells.brightness * (dna / area / 1.35) ** 0.8
    glow = np.where(cells.dying / DEATH_FRAMES < 0.9, 1.1, 0.35)
    intensity = np.where(cells.dying > 0, intensity * glow, intensity)
    condensed = (phase == Phase.METAPHASE) | (phase == Phase.DYING)
    contrast = 0.17 * np.select([condensed, phase == Phase.PROPHASE], [2.0, 1.8], 1.0)
    calm = np.where((phase == Phase.INTERPHASE) | (phase == Phase.METAPHASE), 1.0, 0.5)
    intensity = intensity * np.where(cells.fading > 0, 0.12, 1.0)
    return Looks(semi, size, intensity, contrast, cells.bump_size * calm[:, None])


def _area(cells: SimulatedCells, phase: NDArray[np.int8]) -> Array:
    """Area as a multiple of the mean one."""
    grown = 0.75 + 0.55 * cells.progress
    young = 0.28 + (grown - 0.28) * np.clip(cells.age / RECOVERY, 0, 1)
    dead = grown * np.maximum(1 - 0.75 * cells.dying / DEATH_FRAMES, 0.2)
    areas = [young, np.full(len(cells), 0.8), np.full(len(cells), 0.5), dead]
    return np.select([phase == k for k in LOOKING_UNLIKE], areas, grown)


def _ratios(cells: SimulatedCells, phase: NDArray[np.int8], dim: int) -> Array:
    """Lengths of the axes relative to each other, longest first."""
    born = 1.9 + (cells.elongation - 1.9) * np.clip(cells.age / RECOVERY, 0, 1)
    ones = np.ones(len(cells))
    lengths = [born, np.full(len(cells), 1.08), np.full(len(cells), 2.8), ones]
    long = np.select([phase == k for k in LOOKING_UNLIKE], lengths, cells.elongation)
    if dim == 2:
        return np.stack([long, ones], axis=1)
    disc = (phase == Phase.METAPHASE) | (phase == Phase.DAUGHTER)
    middle = np.where(disc, 0.9 * long, np.sqrt(long))
    return np.stack([long, middle, ones], axis=1)


def unit(vectors: Array) -> Array:
    """Vectors of length one along the last axis."""
    length = np.sqrt((vectors**2).sum(axis=-1, keepdims=True))
    return np.asarray(vectors / np.maximum(length, 1e-12))


def orthonormal(axes: Array) -> Array:
    """Gram-Schmidt on the rows of each matrix."""
    rows: list[Array] = []
    for k in range(axes.shape[1]):
        row = axes[:, k]
        for done in rows:
            row = row - (row * done).sum(axis=-1, keepdims=True) * done
        rows.append(unit(row))
    return np.stack(rows, axis=1)


# ------------------------------------------------------------------ how a population lives


@dataclass(frozen=True)
class World:
    """A box that wraps around, larger than the field of view so that nobody sees it wrap."""

    box: Array
    origin: Array  # corner of the field of view
    drift: Array
    waves: Array  # of the flow that neighbours share
    wave_phase: Array
    wave_direction: Array


def make_world(settings: SimulationSettings, rng: Rng) -> World:
    """The world of these settings."""
    d = settings.dim
    box = np.array(settings.shape) * settings.spacing + 2 * MARGIN * settings.diameter
    mostly_flat = np.array([0.3, 1.0, 1.0][-d:])
    waves = 2 * np.pi * np.round(rng.standard_normal((6, d)) * 1.5) / box
    return World(
        box=box,
        origin=np.full(d, MARGIN * settings.diameter),
        drift=settings.drift * unit(rng.standard_normal(d) * mostly_flat),
        waves=waves,
        wave_phase=rng.random(6) * 2 * np.pi,
        wave_direction=rng.standard_normal((6, d)) * mostly_flat / np.sqrt(3 * d),
    )


def first_cells(settings: SimulationSettings, world: World, rng: Rng) -> SimulatedCells:
    """The population of the first frame, spread out until hardly anything overlaps.

    Ages are those of a growing population: the age a (as a share of the cycle) has the density
    2 ln2 2^-a, drawn by inverting its distribution function.
    """
    d = settings.dim
    # Cells count as in sight until well over half of them is beyond the border.
    field = np.prod(np.array(settings.shape) * settings.spacing + 0.5 * settings.diameter)
    n = round(settings.cells * float(np.prod(world.box) / field))
    cycle = _cycles(settings, n, rng)
    share = -np.log2(1 - rng.random(n) / 2)
    position = rng.random((n, d)) * world.box
    axes = orthonormal(rng.standard_normal((n, d, d)))
    bump_axes, grain = unit(rng.standard_normal((n, N_BUMPS, d))), rng.random((n, d)) * 1000
    spread = np.clip(rng.standard_normal((3, n)), -2.5, 2.5)
    bump_size = BUMP_SIZE * rng.standard_normal((n, N_BUMPS))
    cells = SimulatedCells(
        id=np.arange(n),
        mother=np.full(n, -1),
        position=position,
        velocity=_kicks(settings, n, rng),
        axes=axes,
        radius=settings.diameter / 2 * (1 + 0.1 * spread[0]),
        elongation=np.maximum(1.02, settings.elongation + 0.18 * spread[1]),
        brightness=np.exp(0.4 * spread[2]),
        age=share * np.where(np.isfinite(cycle), cycle, 100.0),
        cycle=cycle,
        dying=np.zeros(n, dtype=np.int64),
        fading=np.zeros(n, dtype=np.int64),
        bump_axes=bump_axes,
        bump_size=bump_size,
        grain=grain,
    )
    for _ in range(40):
        position = (cells.position + _push(cells, settings, world)) % world.box
        cells = replace(cells, position=position)
    return cells


def live(settings: SimulationSettings, world: World, rng: Rng) -> Iterator[SimulatedCells]:
    """The population at every frame, one after the other."""
    cells = first_cells(settings, world, rng)
    next_id = len(cells)
    for t in range(settings.frames):
        if t:
            cells = _move(_grow(cells, settings, world, rng), settings, world, rng, t)
            cells, next_id = _divide(cells, settings, rng, next_id)
            cells = replace(cells, position=cells.position % world.box)
        yield cells


def _cycles(settings: SimulationSettings, count: int, rng: Rng) -> Array:
    """Ages at division; the mean cycle is ln 2 over the rate, as in exponential growth."""
    z = np.clip(rng.standard_normal(count), -2.5, 2.5)
    if settings.division_rate == 0:
        return np.full(count, np.inf)
    mean = max(np.log(2) / settings.division_rate, settings.mitosis_frames + 3.0)
    return np.asarray(np.maximum(mean * (1 + CYCLE_SPREAD * z), settings.mitosis_frames + 2.0))


def _kicks(settings: SimulationSettings, count: int, rng: Rng) -> Array:
    """Random velocities with the root mean square length `speed`."""
    flat = np.array([0.4, 1.0, 1.0][-settings.dim :])
    z = rng.standard_normal((count, settings.dim)) * flat
    return np.asarray(settings.speed * z / np.sqrt((flat**2).sum()))


def _grow(
    cells: SimulatedCells, settings: SimulationSettings, world: World, rng: Rng
) -> SimulatedCells:
    """Age, lose and regain focus, begin to die, and go when dead."""
    u = rng.random((3, len(cells)))
    before = phases(cells, settings)
    calm = (before == Phase.INTERPHASE) & (cells.dying == 0)
    covered = np.pi * (cells.radius**2).sum() / np.prod(world.box[-2:])
    held = calm & (settings.dim == 2) & (covered > CROWDED)
    dying = np.where(cells.dying > 0, cells.dying + 1, calm & (u[0] < settings.death_rate))
    lost = calm & (cells.fading == 0) & (u[1] < settings.fading_rate)
    fading = np.where(lost, 1 + (u[2] < 0.3), np.maximum(cells.fading - 1, 0))
    cells = replace(
        cells, age=cells.age + ~held, dying=dying.astype(np.int64), fading=fading.astype(np.int64)
    )
    plated = (phases(cells, settings) == Phase.METAPHASE) & (before != Phase.METAPHASE)
    # The spindle lies along what was the long axis, so the plate stands across it.
    axes = np.where(plated[:, None, None], cells.axes[:, ::-1], cells.axes)
    return replace(cells, axes=axes).take(dying <= DEATH_FRAMES)


def _move(
    cells: SimulatedCells, settings: SimulationSettings, world: World, rng: Rng, t: int
) -> SimulatedCells:
    """Persistent random walk, shared flow and drift, repulsion, rotation, slow shape changes."""
    n, p = len(cells), settings.persistence
    velocity = p * cells.velocity + np.sqrt(1 - p**2) * _kicks(settings, n, rng)
    phase = phases(cells, settings)
    mitotic = (phase == Phase.PROPHASE) | (phase == Phase.METAPHASE) | (phase == Phase.DYING)
    own = velocity * np.where(mitotic, 0.4, 1.0)[:, None]
    position = cells.position + own + world.drift + _flow(cells.position, settings, world, t)
    moved = replace(cells, position=position % world.box, velocity=velocity)
    turn = np.where(phase == Phase.METAPHASE, 0.03, 0.07)[:, None, None]
    axes = orthonormal(cells.axes + turn * rng.standard_normal(cells.axes.shape))
    bumps = 0.9 * cells.bump_size + BUMP_SIZE * 0.436 * rng.standard_normal(cells.bump_size.shape)
    brightness = cells.brightness * np.exp(0.02 * rng.standard_normal(n))
    position = moved.position + _push(moved, settings, world)
    return replace(moved, position=position, axes=axes, bump_size=bumps, brightness=brightness)


def _flow(position: Array, settings: SimulationSettings, world: World, t: int) -> Array:
    """Velocity of the flow at each cell."""
    angle = (position[:, None, :] * world.waves).sum(axis=-1) + world.wave_phase + 0.08 * t
    waves = np.sin(angle)[:, :, None] * world.wave_direction
    return np.asarray(settings.flow * waves.sum(axis=1))


def _push(cells: SimulatedCells, settings: SimulationSettings, world: World) -> Array:
    """Half-way correction of overlaps between neighbours."""
    force = np.zeros_like(cells.position)
    if len(cells) < 2:
        return force
    size = looks(cells, settings).size
    tree = cKDTree(cells.position % world.box, boxsize=world.box)
    pairs = tree.query_pairs(2 * CONTACT * float(size.max()), output_type="ndarray")
    # Sorted, so that sums do not depend on how the tree was walked.
    i, j = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].T
    gap = cells.position[i] - cells.position[j]
    gap -= world.box * np.round(gap / world.box)
    distance = np.sqrt((gap**2).sum(axis=1))
    overlap = np.maximum(CONTACT * (size[i] + size[j]) - distance, 0)
    push = 0.35 * (overlap / np.maximum(distance, 1e-6))[:, None] * gap
    for axis in range(settings.dim):
        force[:, axis] = np.bincount(i, push[:, axis], len(cells))
        force[:, axis] -= np.bincount(j, push[:, axis], len(cells))
    return force


def _divide(
    cells: SimulatedCells, settings: SimulationSettings, rng: Rng, next_id: int
) -> tuple[SimulatedCells, int]:
    """Replace the cells at the end of their cycle by two daughters, apart along the spindle."""
    ripe = (cells.age >= cells.cycle) & (cells.dying == 0)
    mothers = cells.take(ripe)
    m = len(mothers)
    if m == 0:
        return cells, next_id
    daughters = mothers.join(mothers)
    side = np.repeat([1.0, -1.0], m)[:, None]
    apart = side * daughters.axes[:, -1] * daughters.radius[:, None]
    uneven = 1 + 0.05 * np.clip(rng.standard_normal((2, 2 * m)), -2, 2)
    smallest, largest = 0.35 * settings.diameter, 0.7 * settings.diameter
    daughters = replace(
        daughters,
        id=next_id + np.arange(2 * m),
        mother=daughters.id,
        position=daughters.position + 0.55 * apart,
        velocity=daughters.velocity * 0.3 + 0.35 * apart,
        radius=np.clip(daughters.radius * uneven[0], smallest, largest),
        brightness=daughters.brightness * uneven[1],
        age=np.zeros(2 * m),
        cycle=_cycles(settings, 2 * m, rng),
        grain=rng.random(daughters.grain.shape) * 1000,
        bump_axes=unit(rng.standard_normal(daughters.bump_axes.shape)),
    )
    return cells.take(~ripe).join(daughters), next_id + 2 * m


# ------------------------------------------------------------------ light and camera


def texture_tile(settings: SimulationSettings, rng: Rng) -> Array:
    """Smooth periodic noise of unit variance; the side is a power of two."""
    side = 256 if settings.dim == 2 else 64
    noise = rng.standard_normal((side,) * settings.dim)
    noise = ndimage.gaussian_filter(noise, 1.1 * GRAINS_PER_PIXEL, mode="wrap")
    return np.asarray((noise - noise.mean()) / noise.std())


def draw(
    cells: SimulatedCells, position: Array, settings: SimulationSettings, tile: Array
) -> tuple[Array, NDArray[np.int32]]:
    """Light of all cells before optics, and the row of the cell that owns each pixel plus one.

    Light adds up where nuclei overlap; a pixel belongs to the cell in which it lies deepest.
    """
    look = looks(cells, settings)
    shape, spacing = settings.shape, settings.spacing
    light, depth = np.zeros(shape), np.ones(shape)
    owner = np.zeros(shape, dtype=np.int32)
    reach = look.semi.max(axis=1) * (1 + np.abs(look.bumps).sum(axis=1)) + 2
    low = np.floor((position - reach[:, None]) / spacing).astype(np.int64)
    high = np.ceil((position + reach[:, None]) / spacing).astype(np.int64) + 1
    low, high = np.clip(low, 0, shape), np.clip(high, 0, shape)
    contested = np.zeros(len(cells), dtype=bool)
    for k in np.flatnonzero((high > low).all(axis=1)).tolist():
        patch = tuple(slice(a, b) for a, b in zip(low[k], high[k], strict=True))
        level, glow = _nucleus(cells, look, k, position[k], patch, spacing, tile)
        light[patch] += glow
        mine = level < depth[patch]
        previous = owner[patch][(level < 1) & (owner[patch] > 0)]
        if previous.size:
            contested[previous - 1] = True
            contested[k] = True
        depth[patch] = np.where(mine, level, depth[patch])
        owner[patch] = np.where(mine, k + 1, owner[patch])
    for k in np.flatnonzero(contested).tolist():
        patch = tuple(slice(a, b) for a, b in zip(low[k], high[k], strict=True))
        _keep_largest_piece(owner[patch], k + 1)
    return light, owner


def _nucleus(
    cells: SimulatedCells,
    look: Looks,
    k: int,
    centre: Array,
    patch: tuple[slice, ...],
    spacing: Array,
    tile: Array,
) -> tuple[Array, Array]:
    """Level (0 at the centre, 1 on the outline) and light of one nucleus in its patch."""
    d = len(patch)
    offsets = [
        (np.arange(s.start, s.stop) * spacing[a] - centre[a]).reshape(
            [-1 if b == a else 1 for b in range(d)]
        )
        for a, s in enumerate(patch)
    ]
    body = [_project(cells.axes[k, i], offsets) for i in range(d)]
    unit_body = [b / s for b, s in zip(body, look.semi[k], strict=True)]
    rho2 = unit_body[0] * unit_body[0]
    for u in unit_body[1:]:
        rho2 = rho2 + u * u
    rho = np.sqrt(rho2) + 1e-9
    outline = np.ones_like(rho)
    for axis, height in zip(cells.bump_axes[k], look.bumps[k], strict=True):
        along = _project(axis, unit_body) / rho
        outline += height * along * along * along
    level = rho / outline
    mask = tile.shape[0] - 1
    grain = tuple(
        (b * GRAINS_PER_PIXEL + g).astype(np.int64) & mask
        for b, g in zip(body, cells.grain[k], strict=True)
    )
    inside = np.clip((1 - level) * (look.size[k] / EDGE) + 0.5, 0, 1)
    dome = 1.08 - 0.25 * np.minimum(level, 1) ** 2
    relief = np.maximum(1 + look.contrast[k] * tile[grain], 0.15)
    return level, look.intensity[k] * inside * dome * relief


def _project(vector: Array, coordinates: list[Array]) -> Array:
    total = vector[0] * coordinates[0]
    for c, x in zip(vector[1:], coordinates[1:], strict=True):
        total = total + c * x
    return np.asarray(total)


def _keep_largest_piece(owner: NDArray[np.int32], label: int) -> None:
    """Clear all but the largest piece of a label that a neighbour cut in pieces."""
    pieces, count = ndimage.label(owner == label)
    if count > 1:
        sizes = np.bincount(pieces.ravel())
        sizes[0] = 0
        owner[(pieces > 0) & (pieces != sizes.argmax())] = 0


def wander(settings: SimulationSettings, world: World, rng: Rng) -> Iterator[Array]:
    """Places of the specks in the field of view, one frame after the other."""
    n = round(settings.debris * settings.cells)
    place = rng.random((n, settings.dim)) * world.box
    while True:
        yield place - world.origin
        step = world.drift + 0.3 * settings.speed * rng.standard_normal(place.shape)
        place = (place + step) % world.box


def debris_light(settings: SimulationSettings, place: Array, rng: Rng) -> Array:
    """Light of the specks; size and strength are drawn from `rng`."""
    light = np.zeros(settings.shape)
    radii = settings.diameter * (0.08 + 0.08 * rng.random(len(place)))
    greys = settings.brightness * (0.4 + 0.8 * rng.random(len(place)))
    for centre, radius, grey in zip(place, radii, greys, strict=True):
        low = np.clip(np.floor((centre - 3 * radius) / settings.spacing), 0, settings.shape)
        high = np.clip(np.ceil((centre + 3 * radius) / settings.spacing), 0, settings.shape)
        patch = tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))
        squares = [
            ((np.arange(s.start, s.stop) * step - c) / radius) ** 2
            for s, step, c in zip(patch, settings.spacing, centre, strict=True)
        ]
        distance = squares[0]
        for square in squares[1:]:
            distance = np.add.outer(distance, square)
        light[patch] += grey * np.clip(1 - distance / 2, 0, 1)
    return light


def illumination(settings: SimulationSettings, rng: Rng) -> Array:
    """Brightness of the lamp over the frame, at most 1."""
    side = settings.side
    centre = side * (0.5 + 0.15 * (rng.random(2) - 0.5))
    y = (np.arange(side)[:, None] - centre[0]) / side
    x = (np.arange(side)[None, :] - centre[1]) / side
    return np.asarray(1 - np.clip(2 * 0.2 * (y * y + x * x), 0, 0.95))


def expose(light: Array, lamp: Array, settings: SimulationSettings, rng: Rng) -> NDArray[np.uint8]:
    """Take the picture: blur, background, illumination, shot noise (as normal) and read noise."""
    sigma = 1.1 / settings.spacing
    if settings.dim == 3:
        sigma[0] *= STRETCH_Z
    signal = ndimage.gaussian_filter(light, sigma, truncate=3.0)
    signal = (signal + settings.background) * lamp
    spread = np.sqrt(READ_NOISE**2 + NOISE_PER_GREY * signal)
    grey = signal + spread * rng.standard_normal(signal.shape)
    return np.clip(np.floor(grey + 0.5), 0, 255).astype(np.uint8)
