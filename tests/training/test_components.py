"""Samples are the annotated components, as found one by one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from bridgetrack.annotations.annotation import Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.training_set import (
    LARGEST,
    TrainingSet,
    build_training_set,
    labelled,
)
from training.training_cases import plain_scene, says, some_true, with_annotations


def whole_movie(scene: Scene, largest: int) -> TrainingSet:
    """The same, from the components of the whole movie with its annotations."""
    incidence, constraints = scene.problem.incidence, scene.constraints
    _, label = connected_components(incidence.T @ incidence, directed=False)
    huge = np.bincount(label)[label] > largest
    tying = np.isin(scene.hypotheses.event, (Event.SKIP, Event.FALSE))
    tying &= huge[incidence.indices[incidence.indptr[:-1]]]
    tying[constraints.sets.indices] = False
    incidence = sp.csr_matrix(sp.diags((~tying).astype(float)) @ incidence)
    incidence.eliminate_zeros()
    _, label = connected_components(incidence.T @ incidence, directed=False)
    slot = np.searchsorted(scene.slots, constraints.slot)
    wanted, owner = np.unique(label[slot], return_inverse=True)
    columns, slots, numbers = [], [], np.arange(len(wanted))
    for k in wanted:
        touched = np.asarray(incidence @ (label == k).astype(float)) > 0
        columns.append(np.flatnonzero(touched))
        slots.append(np.flatnonzero(label == k))
    column, place = np.concatenate(columns), np.concatenate(slots)
    of_column, of_slot = (np.repeat(numbers, [len(x) for x in all_]) for all_ in (columns, slots))
    return labelled(scene, column, of_column, place, of_slot, owner)


def assert_same(whole: TrainingSet, quick: TrainingSet) -> None:
    for name in ("phi", "incidence", "sets"):
        a, b = getattr(whole, name), getattr(quick, name)
        assert a.shape == b.shape
        assert abs(a - b).max() == 0
    for name in (
        "column_sample",
        "slot_sample",
        "annotation_sample",
        "allowed",
        "pair",
        "event",
        "single",
        "drawn",
        "importance",
    ):
        np.testing.assert_array_equal(getattr(whole, name), getattr(quick, name))
    assert whole.samples == quick.samples
    assert whole.names == quick.names


@pytest.mark.parametrize("largest", [LARGEST, 40])
@pytest.mark.parametrize("count", [1, 12])
def test_same_training_set(largest: int, count: int) -> None:
    scene = plain_scene()
    tying = scene.hypotheses.of(Event.FALSE)[:1]
    noted = says(scene, some_true(count)) + says(scene, tying, Kind.REJECT, prefix="r")
    scene = with_annotations(scene, noted)
    assert_same(whole_movie(scene, largest), build_training_set(scene, largest))


@pytest.mark.parametrize("largest", [LARGEST, 40])
def test_a_confirmed_false_detection_ties_what_it_joins(largest: int) -> None:
    plain = plain_scene()
    false = plain.hypotheses.of(Event.FALSE)
    scene = with_annotations(plain, says(plain, [*some_true(6)[:3], *false[5:7]]))
    assert_same(whole_movie(scene, largest), build_training_set(scene, largest))
