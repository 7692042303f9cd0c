"""A small movie with its truth and a simulated annotator, for the tests of active learning."""

from __future__ import annotations

from functools import cache

import numpy as np

from bridgetrack.active.session import ActiveSession, Update
from bridgetrack.active.suggestion import SuggestOptions
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import run
from simulated_annotator import SimulatedAnnotator
from training.training_cases import plain_scene, true_columns


@cache
def true_rows(seed: int = 1) -> Events:
    """True moves and divisions, and every other slot's appearance or disappearance."""
    scene = plain_scene(seed)
    h: Events = scene.hypotheses
    columns = true_columns(seed)
    covered = np.zeros(scene.problem.n_slots, dtype=bool)
    covered[scene.problem.incidence[columns].indices] = True
    single = np.isin(h.event, (Event.APPEAR, Event.DISAPPEAR))
    rest = [
        c
        for c in np.flatnonzero(single)
        if not covered[scene.problem.slots_of(np.array([c]))[0, 0]]
    ]
    rows = np.concatenate([columns, np.asarray(rest, dtype=np.int64)])
    return h.take(rows)


def annotator(seed: int = 1, **rates: float) -> SimulatedAnnotator:
    """An annotator who knows the movie."""
    return SimulatedAnnotator(true_rows(seed), plain_scene(seed).detections, **rates)


@cache
def _first_update(options: SuggestOptions) -> Update:
    return run(ActiveSession(plain_scene(), options=options).update())


def session(prior: Model | None = None, **suggest: float) -> ActiveSession:
    """A session on the movie, with its first questions."""
    options = SuggestOptions(**suggest)  # type: ignore[arg-type]
    started = ActiveSession(plain_scene(), prior, options=options)
    steps = started.update()
    started.adopt(run(steps) if prior else _first_update(options))
    return started


def slots_of(scene: Scene, hypothesis: int) -> set[int]:
    """Slots of the problem that a hypothesis covers."""
    return set(scene.problem.incidence[hypothesis].indices.tolist())
