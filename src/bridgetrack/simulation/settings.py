"""What a simulated movie shall look like."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.option import check_options, option


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

    frames: int = option(36, least=1, most=100_000)
    cells: int = option(60, least=0, most=50_000)
    size: int | None = option(None, least=16, most=32_768)
    dim: int = option(2, choices=(2, 3))
    seed: int = option(0, least=0, most=2**63 - 1)
    density: float = option(0.15, least=1e-4, most=0.6)
    diameter: float = option(22.0, least=4, most=500)
    diameter_spread: float = option(0.1, least=0, most=0.3)
    elongation: float = option(1.35, least=1, most=3)
    speed: float = option(1.2, least=0, most=200)
    persistence: float = option(0.6, least=0, most=0.99)
    drift: float = option(0.8, least=0, most=200)
    flow: float = option(0.5, least=0, most=200)
    jitter: float = option(0.2, least=0, most=50)
    division_rate: float = option(0.01, least=0, most=0.1)
    mitosis_frames: int = option(4, least=1, most=50)
    death_rate: float = option(0.002, least=0, most=0.5)
    fading_rate: float = option(0.002, least=0, most=0.5)
    debris: float = option(0.05, least=0, most=10)
    brightness: float = option(36.0, least=1, most=200)
    brightness_spread: float = option(0.4, least=0, most=1.5)
    texture: float = option(0.17, least=0, most=0.5)
    background: float = option(18.0, least=0, most=150)
    unevenness: float = option(0.2, least=0, most=0.9)
    noise: float = option(1.0, least=0, most=20)
    blur: float = option(1.1, least=0, most=20)
    bits: int = option(8, choices=(8, 16))
    depth: int = option(16, least=1, most=1000)
    anisotropy: float = option(3.0, least=0.2, most=20)
    pixel_size: float = option(0.645, least=1e-4, most=1000)
    frame_interval: float = option(10.0, least=1e-6, most=1e6)

    def __post_init__(self) -> None:
        check_options(self, "the simulation setting")

    @property
    def side(self) -> int:
        """Side of the square frames in pixels, chosen from the density where not set."""
        if self.size is not None:
            return self.size
        volume = self.cells * self.content / self.density
        if self.dim == 3:
            volume /= self.depth * self.anisotropy
        return max(32, 8 * math.ceil(math.sqrt(volume) / 8))

    @property
    def content(self) -> float:
        """Area (volume) of a nucleus of the mean diameter, in pixels of the y and x axes."""
        radius = self.diameter / 2
        return math.pi * radius**2 if self.dim == 2 else 4 / 3 * math.pi * radius**3

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
