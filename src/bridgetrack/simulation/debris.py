"""Specks that shine but are no cells: what a segmentation wrongly finds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bridgetrack.simulation.cells import Array
from bridgetrack.simulation.population import World
from bridgetrack.simulation.settings import SimulationSettings


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
