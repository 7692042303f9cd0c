"""What a simulated movie shall look like."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError


@dataclass(frozen=True)
class SimulationSettings:
    """Settings of a simulated movie of nuclei; equal settings give equal pixels.

    Lengths are in pixels of the y and x axes and times in frames unless said otherwise.

    Parameters
    ----------
    frames
        Number of frames.
    cells
        Nuclei in the field of view of the first frame, about.
    size
        Side of the square frames; unless given, it follows from `cells` and `density`.
    dim
        2 for flat movies, 3 for stacks.
    seed
        Seed of every random number.
    density
        Share of the area (in 3D: the volume) that nuclei cover; used unless `size` is given.
    diameter, diameter_spread
        Mean diameter of a nucleus in interphase, and its relative standard deviation.
    elongation
        Mean ratio of the long axis to the short one.
    speed, persistence
        Root mean square step of a nucleus' own movement, and the share of its velocity that it
        keeps from one frame to the next (0 is diffusion).
    drift
        Steady movement of all nuclei together, per frame; the direction follows from the seed.
    flow
        Root mean square speed of a smooth flow that neighbours share.
    jitter
        Root mean square shake of the stage between frames.
    division_rate
        Divisions per cell and frame.
    mitosis_frames
        Frames from the first rounding to the separation of the daughters.
    death_rate
        Share of the cells that die per frame.
    fading_rate
        Share of the cells that leave the focus per frame; they come back after a frame or two.
    debris
        Specks that are no cells, as a share of `cells`.
    brightness, brightness_spread
        Mean grey value of a nucleus above the background (of 255), and the standard deviation
        of its logarithm between nuclei.
    texture
        Relative contrast within a nucleus.
    background, unevenness
        Grey value of the background, and the share that illumination loses in the corners.
    noise
        Strength of the camera noise, 1 for an ordinary camera and 0 for none.
    blur
        Standard deviation of the optical blur.
    bits
        8 or 16 bits per pixel; 16 means a camera of 12 bits.
    depth, anisotropy
        Number of planes and distance of two planes in pixels; for `dim` = 3.
    pixel_size
        Micrometres per pixel.
    frame_interval
        Minutes per frame.

    Raises
    ------
    InputError
        Where a setting is out of its range; the message names it.
    """

    frames: int = 36
    cells: int = 60
    size: int | None = None
    dim: int = 2
    seed: int = 0
    density: float = 0.15
    diameter: float = 22.0
    diameter_spread: float = 0.1
    elongation: float = 1.35
    speed: float = 1.2
    persistence: float = 0.6
    drift: float = 0.8
    flow: float = 0.5
    jitter: float = 0.2
    division_rate: float = 0.01
    mitosis_frames: int = 4
    death_rate: float = 0.002
    fading_rate: float = 0.002
    debris: float = 0.05
    brightness: float = 36.0
    brightness_spread: float = 0.4
    texture: float = 0.17
    background: float = 18.0
    unevenness: float = 0.2
    noise: float = 1.0
    blur: float = 1.1
    bits: int = 8
    depth: int = 16
    anisotropy: float = 3.0
    pixel_size: float = 0.645
    frame_interval: float = 10.0

    def __post_init__(self) -> None:
        self._check_choices()
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise InputError(
                    f"the simulation setting {name} is {value}; choose {low:g} to {high:g}"
                )

    def _check_choices(self) -> None:
        for name, choices in (("dim", (2, 3)), ("bits", (8, 16))):
            if getattr(self, name) not in choices:
                raise InputError(
                    f"the simulation setting {name} is {getattr(self, name)}; "
                    f"choose {choices[0]} or {choices[1]}"
                )

    @property
    def side(self) -> int:
        """Side of the square frames in pixels, chosen from the density where not set."""
        if self.size is not None:
            return self.size
        volume = self.cells * _content(self.diameter / 2, self.dim) / self.density
        if self.dim == 3:
            volume /= self.depth * self.anisotropy
        return max(32, 8 * math.ceil(math.sqrt(volume) / 8))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a frame, ``(y, x)`` or ``(z, y, x)``."""
        flat = (self.side, self.side)
        return flat if self.dim == 2 else (self.depth, *flat)

    @property
    def spacing(self) -> NDArray[np.float64]:
        """Extent of a voxel along each axis, in pixels of the y and x axes, shape (dim,)."""
        return np.array([1.0, 1.0] if self.dim == 2 else [self.anisotropy, 1.0, 1.0])

    @property
    def scale(self) -> tuple[float, ...]:
        """Micrometres per voxel along each axis."""
        return tuple(float(s) * self.pixel_size for s in self.spacing)


def _content(radius: float, dim: int) -> float:
    return math.pi * radius**2 if dim == 2 else 4 / 3 * math.pi * radius**3


_RANGES = {
    "frames": (1, 100_000),
    "cells": (0, 50_000),
    "size": (16, 32_768),
    "seed": (0, 2**63 - 1),
    "density": (1e-4, 0.6),
    "diameter": (4, 500),
    "diameter_spread": (0, 0.3),
    "elongation": (1, 3),
    "speed": (0, 200),
    "persistence": (0, 0.99),
    "drift": (0, 200),
    "flow": (0, 200),
    "jitter": (0, 50),
    "division_rate": (0, 0.1),
    "mitosis_frames": (1, 50),
    "death_rate": (0, 0.5),
    "fading_rate": (0, 0.5),
    "debris": (0, 10),
    "brightness": (1, 200),
    "brightness_spread": (0, 1.5),
    "texture": (0, 0.5),
    "background": (0, 150),
    "unevenness": (0, 0.9),
    "noise": (0, 20),
    "blur": (0, 20),
    "depth": (1, 1000),
    "anisotropy": (0.2, 20),
    "pixel_size": (1e-4, 1000),
    "frame_interval": (1e-6, 1e6),
}
