"""Draw cells and specks as light and labels, and take the picture with a camera."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from bridgetrack.simulation.cells import Array, Looks, SimulatedCells
from bridgetrack.simulation.population import World
from bridgetrack.simulation.settings import SimulationSettings

_EDGE = 1.2
_GRAINS_PER_PIXEL = 2.0
_READ_NOISE = 0.7
_NOISE_PER_GREY = 0.05
_STRETCH_Z = 2.0


def texture_tile(settings: SimulationSettings, rng: np.random.Generator) -> Array:
    """Smooth periodic noise of unit variance; the side is a power of two."""
    side = 256 if settings.dim == 2 else 64
    noise = ndimage.gaussian_filter(
        rng.standard_normal((side,) * settings.dim), 1.1 * _GRAINS_PER_PIXEL, mode="wrap"
    )
    return np.asarray((noise - noise.mean()) / noise.std())


def draw(
    cells: SimulatedCells, look: Looks, position: Array, settings: SimulationSettings, tile: Array
) -> tuple[Array, NDArray[np.int32]]:
    """Light of all cells before optics, and the row of the cell that owns each pixel plus one.

    Light adds up where nuclei overlap; a pixel belongs to the cell in which it lies deepest.
    `position` is relative to the field of view in pixels of the y and x axes, shape (n, d);
    `tile` comes from `texture_tile`.
    """
    shape, spacing = settings.shape, settings.spacing
    light = np.zeros(shape)
    depth = np.ones(shape)
    owner = np.zeros(shape, dtype=np.int32)
    reach = look.semi.max(axis=1) * (1 + np.abs(look.bumps).sum(axis=1)) + 2
    low = np.floor((position - reach[:, None]) / spacing).astype(np.int64)
    high = np.ceil((position + reach[:, None]) / spacing).astype(np.int64) + 1
    low, high = np.clip(low, 0, shape), np.clip(high, 0, shape)
    contested = np.zeros(len(cells), dtype=bool)
    for k in np.flatnonzero((high > low).all(axis=1)).tolist():
        patch = tuple(slice(a, b) for a, b in zip(low[k], high[k], strict=True))
        level, glow = _nucleus(cells, look, k, position[k], patch, spacing=spacing, tile=tile)
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
    *,
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
        (b * _GRAINS_PER_PIXEL + g).astype(np.int64) & mask
        for b, g in zip(body, cells.grain[k], strict=True)
    )
    inside = np.clip((1 - level) * (look.size[k] / _EDGE) + 0.5, 0, 1)
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


def wander(settings: SimulationSettings, world: World, rng: np.random.Generator) -> Iterator[Array]:
    """Places of the specks in the field of view, one frame after the other, shape (n, d)."""
    n = round(settings.debris * settings.cells)
    place = rng.random((n, settings.dim)) * world.box
    while True:
        yield place - world.origin
        step = world.drift + 0.3 * settings.speed * rng.standard_normal(place.shape)
        place = (place + step) % world.box


def debris_light(settings: SimulationSettings, place: Array, rng: np.random.Generator) -> Array:
    """Light of the specks, shape of the frame; size and strength are drawn from `rng`."""
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


def illumination(settings: SimulationSettings, rng: np.random.Generator) -> Array:
    """Brightness of the lamp over the frame, at most 1, shape (y, x)."""
    side = settings.side
    centre = side * (0.5 + 0.15 * (rng.random(2) - 0.5))
    y = (np.arange(side)[:, None] - centre[0]) / side
    x = (np.arange(side)[None, :] - centre[1]) / side
    return np.asarray(1 - np.clip(2 * settings.unevenness * (y * y + x * x), 0, 0.95))


def expose(
    light: Array, lamp: Array, settings: SimulationSettings, rng: np.random.Generator
) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Take the picture.

    Shot noise is drawn as normal with the variance of the Poisson distribution, which needs no
    rejection sampling; read noise is added to it. `lamp` comes from `illumination`.
    """
    sigma = settings.blur / settings.spacing
    if settings.dim == 3:
        sigma[0] *= _STRETCH_Z
    signal = ndimage.gaussian_filter(light, sigma, truncate=3.0) if settings.blur else light
    signal = (signal + settings.background) * lamp
    spread = np.sqrt(_READ_NOISE**2 + _NOISE_PER_GREY * signal)
    grey = signal + settings.noise * spread * rng.standard_normal(signal.shape)
    if settings.bits == 8:
        return np.clip(np.floor(grey + 0.5), 0, 255).astype(np.uint8)
    return np.clip(np.floor(grey * 16 + 0.5), 0, 4095).astype(np.uint16)
