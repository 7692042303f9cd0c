"""From light to grey values: optics, illumination, noise, quantisation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from bridgetrack.simulation.cells import Array
from bridgetrack.simulation.settings import SimulationSettings

_READ_NOISE = 0.7
_NOISE_PER_GREY = 0.05
_STRETCH_Z = 2.0


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
    rejection sampling; read noise is added to it.

    Parameters
    ----------
    light
        Grey values above the background, shape of the frame.
    lamp
        From `illumination`, shape (y, x).
    settings
        Blur, noise, background and bits.
    rng
        Source of the noise of this frame.
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
