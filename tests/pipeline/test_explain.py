"""Explanations add up to the margin, for chosen and for rejected events."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.margins import exact_margin
from bridgetrack.inference.solve import solve
from bridgetrack.pipeline.explain import explain_event, find_event
from bridgetrack.pipeline.scene import prepare
from bridgetrack.pipeline.tracking import Tracking, track_scene
from bridgetrack.progress import run
from scenes import label_movie, simulated


@pytest.fixture(scope="module")
def tracking() -> Tracking:
    """A small tracked movie."""
    return run(track_scene(run(prepare(label_movie(simulated())))))


@pytest.mark.parametrize("event", [Event.MOVE, Event.APPEAR, Event.DISAPPEAR])
def test_a_chosen_event_adds_up_to_its_margin(tracking: Tracking, event: Event) -> None:
    chosen = np.flatnonzero(tracking.solution.chosen & (tracking.scene.hypotheses.event == event))
    column = int(chosen[np.argmin(tracking.margins[chosen])])
    found = explain_event(tracking, column)
    exact = exact_margin(tracking.scene.problem, tracking.scores, tracking.solution, column)
    assert found.was_chosen
    assert found.margin == pytest.approx(exact, abs=1e-9)
    assert sum(c.contribution for c in found.contributions) == pytest.approx(found.margin)
    assert found.words().startswith("Chosen: ")
    assert "higher; the largest differences:\n" in found.words()


def test_what_differs_by_rounding_alone_is_not_told(tracking: Tracking) -> None:
    for column in np.flatnonzero(tracking.solution.chosen)[:60]:
        found = explain_event(tracking, int(column))
        assert all(abs(c.contribution) > 1e-6 for c in found.contributions)


def test_a_rejected_event_adds_up_to_what_it_would_cost(tracking: Tracking) -> None:
    scene = tracking.scene
    moves = scene.hypotheses.of(Event.MOVE)
    column = int(moves[~tracking.solution.chosen[moves]][3])
    found = explain_event(tracking, column)
    slots = scene.problem.incidence[column].indices
    allowed = scene.constraints.allowed
    allowed[np.unique(scene.problem.by_slot[slots].indices)] = False
    allowed[column] = True
    forced = solve(scene.problem, tracking.scores, allowed)
    assert not found.was_chosen
    assert found.margin == pytest.approx(tracking.solution.value - forced.value)
    assert found.event in found.replaced_by


def test_the_event_of_a_cell(tracking: Tracking) -> None:
    detections = tracking.scene.detections
    for row in (0, len(detections) - 1):
        frame, label = int(detections.frame[row]), int(detections.label[row])
        column = find_event(tracking, frame, label)
        event = tracking.scene.hypotheses.take(np.array([column]))
        assert tracking.solution.chosen[column]
        assert row in (*event.sources[0], *event.targets[0])
