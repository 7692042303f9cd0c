"""The state of all simulated cells at one time, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """Cells alive at one time; every array has one row per cell.

    Parameters
    ----------
    id, mother
        Identity of the cell and of the cell it came from (-1 for none), shape (n,).
    position, velocity
        In pixels and pixels per frame, in the coordinates of the world, shape (n, d).
    axes
        Rows are the unit vectors of the long, middle and short axis, shape (n, d, d).
    radius, elongation, brightness
        What a cell keeps for life and hands on to its daughters, shape (n,).
    age, cycle
        Frames since birth and age at division, shape (n,).
    dying, fading
        Frames since death began (0: alive), frames out of focus still to come, shape (n,).
    bump_axes, bump_size
        Directions (in body axes) and heights of the bumps of the outline, shapes (n, k, d), (n, k).
    grain
        Place of the cell's texture in the texture tile, shape (n, d).
    """

    id: NDArray[np.int64]
    mother: NDArray[np.int64]
    position: Array
    velocity: Array
    axes: Array
    radius: Array
    elongation: Array
    brightness: Array
    age: Array
    cycle: Array
    dying: NDArray[np.int64]
    fading: NDArray[np.int64]
    bump_axes: Array
    bump_size: Array
    grain: Array

    def __len__(self) -> int:
        return len(self.id)

    def take(self, index: NDArray[Any]) -> Cells:
        """The cells at these rows (or where this mask is True)."""
        return Cells(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def join(self, other: Cells) -> Cells:
        """These cells and then the others."""
        names = [f.name for f in fields(self)]
        return Cells(**{n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in names})

    def change(self, **arrays: NDArray[Any]) -> Cells:
        """The same cells with some arrays replaced."""
        return replace(self, **arrays)


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


def founders(
    count: int, box: Array, radius: float, rng: np.random.Generator, cycle: Array
) -> Cells:
    """Cells scattered evenly over a box, with ages of a growing population, before spreads.

    The age a (as a share of the cycle) has the density 2 ln2 2^-a of an exponentially growing
    population, drawn by inverting its distribution function.
    """
    d = len(box)
    share = -np.log2(1 - rng.random(count) / 2)
    endless = ~np.isfinite(cycle)
    return Cells(
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


N_BUMPS = 3
"""Bumps per outline: enough for beans, pears and soft corners."""
