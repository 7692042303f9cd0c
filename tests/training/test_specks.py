"""Specks that lie there for many frames: proposed as such, and turned by a few answers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bridgetrack.features.view import describe_cells
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.shipped import shipped_model, untrained_model
from bridgetrack.pipeline.scene import Scene, prepare
from bridgetrack.progress import run
from bridgetrack.training.kinds import ALIKE, most_of_each, vouched
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import choices
from bridgetrack.training.train import train_steps
from gallery import movie_of
from scenes import simulated
from training.training_cases import confirmed, says, with_annotations

FRAMES, SPECKS, CELLS = 10, 9, 90
START = untrained_model().weights


@cache
def dirty() -> tuple[Scene, np.ndarray]:
    """Cells among specks that stay where they are, and which detections are specks, shape (n,)."""
    movie = simulated(cells=CELLS, frames=FRAMES, seed=3)
    labels = movie.labels.astype(np.int32)
    first = labels.max() + 1
    rng, taken = np.random.default_rng(0), (labels > 0).any(axis=0)
    y, x = np.indices(taken.shape)
    for number in range(first, first + SPECKS):
        while True:
            at = rng.integers(5, np.array(taken.shape) - 5)
            round_it = (y - at[0]) ** 2 + (x - at[1]) ** 2
            if not taken[round_it <= 25].any():
                break
        speck = round_it <= 4
        labels[:, speck] = number
        taken |= round_it <= 25
    scene = run(prepare(movie_of(labels, scale=movie.geometry.scale, source="dirty")))
    return scene, scene.detections.label >= first


def dropped(scene: Scene, weights: np.ndarray) -> np.ndarray:
    """Which detections the best choice says are none, shape (n,)."""
    (chosen,) = choices([scene], weights)
    out = np.zeros(len(scene.detections), dtype=bool)
    out[scene.hypotheses.sources[chosen & (scene.hypotheses.event == Event.FALSE), 0]] = True
    return out


def false_columns(scene: Scene, rows: np.ndarray) -> np.ndarray:
    """Hypotheses that these detections are none."""
    h = scene.hypotheses
    return np.flatnonzero((h.event == Event.FALSE) & np.isin(h.sources[:, 0], rows))


def test_specks_that_stay_are_proposed_and_taken_for_cells_at_first() -> None:
    scene, specks = dirty()
    assert specks.sum() == FRAMES * SPECKS
    assert len(false_columns(scene, np.flatnonzero(specks))) == FRAMES * SPECKS
    assert not dropped(scene, START)[specks].any()


def test_a_few_answers_turn_specks_in_all_frames() -> None:
    scene, specks = dirty()
    events, label, frame = scene.hypotheses, scene.detections.label, scene.detections.frame
    numbers = np.unique(label[specks])[:3]
    told = [np.flatnonzero((label == n) & (frame == t))[0] for t, n in enumerate(numbers, 1)]
    (before,) = choices([scene], START)
    moves = np.flatnonzero(before & (events.event == Event.MOVE))
    moves = moves[~specks[events.sources[moves, 0]]][::40]
    said = confirmed(scene, np.concatenate([false_columns(scene, np.array(told)), moves]))
    training = run(train_steps(said, shipped_model(), TrainingOptions(strength=0.02)))
    gone = dropped(scene, training.model.weights)
    assert gone[specks].all()
    # a cell that the edge of the frame cuts may be as small
    inside = describe_cells(scene.evidence).border < 0.1
    assert gone[~specks & inside].mean() < 0.01


def test_a_speck_counts_once_for_all_its_frames() -> None:
    scene, specks = dirty()
    label = scene.detections.label
    one = np.flatnonzero(specks & (label == label[specks].min()))
    assert len(one) == FRAMES
    two = np.append(one[2:7], np.flatnonzero(specks & (label == label[specks].max()))[:1])
    said = with_annotations(scene, says(scene, false_columns(scene, two)))
    before = choices([said], START)
    assert dropped(said, START).sum() == len(two)
    most = most_of_each([said], before)
    assert most[Event.FALSE] == 2 + 2 * ALIKE


@pytest.mark.parametrize(("answers", "others"), [(0, 0), (1, 9), (9, 81), (20, 400)])
def test_the_more_answers_agree_the_more_each_vouches_for(answers: int, others: int) -> None:
    assert vouched(answers) == others
