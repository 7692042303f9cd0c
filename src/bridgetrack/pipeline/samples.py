"""Other solutions around the best one, to see what depends on doubtful events.

The score of every event is perturbed by Gumbel noise of the temperature, and the best solution of
the perturbed scores is one sample (perturb-and-MAP, Papandreou and Yuille 2011). Where one cell has
several alternatives of one event each, a sample holds each with the probability
``exp(score / temperature)``, normalised; where events hang together it is close to that.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bridgetrack.errors import InputError
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.pipeline.tracking import Tracking, allowed_by, choose_events, tell_verified
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.tracks.build import build_tracks
from bridgetrack.tracks.tracks import Tracks

_EULER = 0.5772156649015329
"""The mean of Gumbel noise."""


def sampled_tracks(
    tracking: Tracking, count: int, seed: int = 0, temperature: float = 1.0
) -> Steps[list[Tracks]]:
    """Tracks of solutions drawn around the best; answers hold in all of them.

    Parameters
    ----------
    tracking
        The tracked movie.
    count
        How many.
    seed
        Of the noise: the same seed draws the same solutions.
    temperature
        Of the noise; at 1 events are as doubtful as their certainty says.

    Raises
    ------
    InputError
        Where the movie was tracked in windows, which keep the chosen events alone, or a number is
        out of range.
    """
    if count < 1 or temperature <= 0:
        raise InputError("there must be one sample or more, and the temperature be above 0")
    if tracking.windows is not None:
        raise InputError(
            "other solutions need the whole movie at once, and it was tracked a few frames at a "
            "time; allow more memory"
        )
    scene, allowed = tracking.scene, allowed_by(tracking.scene)
    rng = np.random.default_rng([seed, 11])
    found = []
    for k in range(count):
        told = partial(_told, Progress("Drawing other solutions", k / count))
        noise = temperature * (rng.gumbel(size=len(tracking.scores)) - _EULER)
        scores = tracking.scores + noise
        solution = yield from relayed(choose_events(scene, scores, allowed), told)
        margins = margin_bounds(scene.problem, scores, solution, allowed)
        tracks = build_tracks(
            scene.detections, scene.hypotheses, solution.chosen, tracking.scores, margins
        )
        found.append(tell_verified(tracks, scene, solution.chosen))
    return found


def _told(progress: Progress, _: Progress) -> Progress:
    """How far all samples are, not the one under way."""
    return progress
