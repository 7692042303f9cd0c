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
from bridgetrack.training.components import LARGEST, build_training_set
from bridgetrack.training.kinds import ALIKE, most_of_each, vouched
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import choices
from bridgetrack.training.sure import OFTEN, as_seen, hold_sure
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import TrainingSet
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


def about_specks(count: int, largest: int = LARGEST) -> TrainingSet:
    """Answers that so many specks are none, among moves that are sure, as training holds them."""
    scene, specks = dirty()
    events = scene.hypotheses
    label, frame = scene.detections.label, scene.detections.frame
    numbers = np.unique(label[specks])[:count]
    rows = [np.flatnonzero((label == n) & (frame == 2 * t))[0] for t, n in enumerate(numbers)]
    (before,) = choices([scene], START)
    moves = np.flatnonzero(before & (events.event == Event.MOVE))
    moves = moves[~specks[events.sources[moves, 0]]][::300]
    told = np.append(false_columns(scene, np.array(rows)), moves)
    return build_training_set([confirmed(scene, told)], largest)


@pytest.mark.parametrize(("count", "wrong"), [(2, False), (OFTEN, True), (5, True)])
def test_answers_that_specks_are_no_cells_cost_no_trust_in_moves(count: int, wrong: bool) -> None:
    sure = hold_sure(about_specks(count), START)
    assert sure.data.vouches is not None
    # the starting model is sure that each of them is a cell
    assert (sure.data.vouches < 0).sum() == count
    assert sure.wrong == ({Event.FALSE} if wrong else set())
    assert sure.against == (0 if wrong else count)
    assert sure.trusted
    assert sure.data.n_held


def test_nothing_is_held_in_place_of_a_speck() -> None:
    data = hold_sure(about_specks(OFTEN, 10**9), START).data
    assert data.sure is not None
    assert data.firm is not None
    covered = data.incidence[data.kind == Event.FALSE].sum(axis=0).A1 > 0
    rivals = data.incidence @ covered > 0
    assert (data.firm & rivals).any()
    assert not (data.sure & rivals).any()


def test_who_has_not_seen_the_answers_about_specks_does_not_know_of_them() -> None:
    data = hold_sure(about_specks(OFTEN), START).data
    assert data.vouches is not None
    against = data.annotation_sample[data.vouches < 0]
    assert as_seen(data, against).n_held
    # two are too few to tell that the model is wrong about them, and too many for slips
    assert not as_seen(data, against[1:]).n_held


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
