"""Patches: a partition of the slots, sized by density, with the labels that fit inside."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.experiments.patches import build_pool, component_patches, local_patches
from bridgetrack.hypotheses.events import Event
from bridgetrack.training.components import build_training_set
from bridgetrack.training.tracking_model import TrackingModel
from training.training_cases import confirmed, plain_scene, true_columns


@pytest.mark.parametrize("cells", [3.0, 8.0])
@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_local_patches_lie_in_one_pair_and_are_small(cells: float, shift: float) -> None:
    scene = plain_scene()
    patch = local_patches(scene, cells, shift)
    assert np.array_equal(np.unique(patch), np.arange(patch.max() + 1))
    n = len(scene.detections)
    pair = scene.detections.frame[scene.slots % n] - (scene.slots >= n)
    for k in range(patch.max() + 1):
        assert len(np.unique(pair[patch == k])) == 1
    sizes = np.bincount(patch) / 2
    assert sizes.max() <= cells * 4 / 3
    assert sizes.mean() > cells / 4


def test_patches_are_local() -> None:
    scene = plain_scene()
    patch = local_patches(scene, 4.0)
    place = scene.detections.position[scene.slots % len(scene.detections)]
    within = np.mean([np.ptp(place[patch == k], axis=0).mean() for k in range(patch.max() + 1)])
    assert within < 0.7 * np.ptp(place, axis=0).mean()


def test_other_cuts_for_another_shift() -> None:
    scene = plain_scene()
    assert not np.array_equal(local_patches(scene, 4.0), local_patches(scene, 4.0, 0.15))
    with pytest.raises(InputError):
        local_patches(scene, 0.0)
    with pytest.raises(InputError):
        local_patches(scene, 4.0, 0.5)


def test_a_pool_holds_the_labels_that_lie_inside() -> None:
    scene = confirmed(plain_scene(), true_columns())
    patch = local_patches(scene, 5.0)
    pool = build_pool(scene, patch)
    inside = [
        len(np.unique(patch[scene.problem.incidence[c].indices])) == 1 for c in true_columns()
    ]
    assert 0 < pool.n_annotations == sum(inside) < len(inside)
    assert (np.diff(pool.column_sample) >= 0).all()
    assert (np.diff(pool.slot_sample) >= 0).all()
    entries = pool.incidence.tocoo()
    assert np.array_equal(pool.column_sample[entries.row], pool.slot_sample[entries.col])
    model = TrackingModel(pool)
    w = np.zeros(model.n_features)
    for sample in pool.samples:
        best = model.compatible_inference(sample.x, sample.y_star, w)
        assert model.task_loss(sample.y_star, best.output) == 0


def test_components_cut_nothing() -> None:
    scene = confirmed(plain_scene(), true_columns())
    patch = component_patches(scene)
    local = ~np.isin(scene.hypotheses.event, (Event.SKIP, Event.FALSE))
    for column in np.flatnonzero(local):
        assert len(np.unique(patch[scene.problem.incidence[column].indices])) == 1
    pool = build_pool(scene, patch)
    assert pool.n_annotations == build_training_set([scene]).n_annotations


def test_a_pool_needs_a_label() -> None:
    scene = plain_scene()
    with pytest.raises(InputError, match="no patch"):
        build_pool(scene, local_patches(scene, 5.0))
