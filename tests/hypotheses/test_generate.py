"""Which events are proposed: the true ones, few others, whatever the scale and the drift."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import N_SOURCES, N_TARGETS, Event, Events, active_slots
from bridgetrack.hypotheses.generate import generate_hypotheses
from bridgetrack.hypotheses.motion import estimate_motion
from bridgetrack.movie.geometry import Geometry
from gallery import BY_NAME, GALLERY, movie_of
from scenes import (
    events_of,
    evidence_of,
    keys_of,
    label_movie,
    simulated,
    situation_scene,
    true_moves_and_divisions,
)

ids = [s.name for s in GALLERY]

_APART = {Event.SKIP: (2, 3), Event.DIVIDE: (1, 2)}
"""Frames from the earlier cell to the later one."""


@pytest.mark.parametrize("situation", GALLERY, ids=ids)
def test_what_happens_in_the_gallery_is_proposed(situation):
    scene = situation_scene(situation)
    true = set(situation.true_events(scene.evidence.detections))
    assert true <= events_of(scene.hypotheses)


@pytest.mark.parametrize("situation", GALLERY, ids=ids)
def test_every_hypothesis_is_well_formed(situation):
    scene = situation_scene(situation)
    hypotheses, frame = scene.hypotheses, scene.evidence.detections.frame
    for event in Event:
        rows = hypotheses.of(event)
        sources, targets = hypotheses.sources[rows], hypotheses.targets[rows]
        assert ((sources >= 0).sum(axis=1) == N_SOURCES[event]).all()
        assert ((targets >= 0).sum(axis=1) == N_TARGETS[event]).all()
        for pair in (sources, targets):
            assert ((pair[:, 0] >= 0) | (pair[:, 1] < 0)).all()
            two = pair[:, 1] >= 0
            assert (pair[two, 0] < pair[two, 1]).all()
        if N_SOURCES[event] and N_TARGETS[event]:
            gap = frame[targets[:, 0]] - frame[sources[:, 0]]
            first, last = _APART.get(event, (1, 1))
            assert ((gap >= first) & (gap <= last)).all()
    keys = keys_of(hypotheses)
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("situation", GALLERY, ids=ids)
def test_every_active_slot_can_be_covered_alone(situation):
    scene = situation_scene(situation)
    active = active_slots(scene.evidence.detections)
    incidence = scene.hypotheses.incidence(active)
    single = np.asarray(incidence[np.diff(incidence.indptr) == 1].sum(axis=0)).ravel()
    assert (single[active] >= 1).all()
    covered = np.asarray(incidence.sum(axis=0)).ravel()
    assert (covered[~active] == 0).all()
    assert (np.diff(incidence.indptr) >= 1).all()


@pytest.mark.parametrize("dim", [2, 3])
def test_true_moves_and_divisions_of_a_simulated_movie(dim):
    movie = simulated(dim=dim, frames=8, division_rate=0.05)
    evidence = evidence_of(label_movie(movie))
    true = true_moves_and_divisions(movie, evidence.detections)
    assert sum(e == Event.DIVIDE for e, _, _ in true) >= 3
    assert not true - events_of(generate_hypotheses(evidence))


@pytest.mark.parametrize("factor", [0.001, 40.0])
def test_the_scale_does_not_matter(factor):
    pixels = simulated().labels.astype(np.int32)
    one = generate_hypotheses(evidence_of(movie_of(pixels)))
    other = generate_hypotheses(evidence_of(movie_of(pixels, scale=(factor, factor))))
    assert keys_of(one) == keys_of(other)


def test_a_finer_camera_proposes_the_same_events():
    pixels = simulated(cells=20).labels.astype(np.int32)
    fine = np.kron(pixels, np.ones((1, 2, 2), dtype=np.int32))
    one = events_of(generate_hypotheses(evidence_of(movie_of(pixels))))
    other = events_of(generate_hypotheses(evidence_of(movie_of(fine))))
    assert len(one ^ other) <= 0.02 * len(one)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.floats(-25, 25), st.floats(-25, 25), st.integers(2, 3))
def test_a_common_drift_is_found(seed, dy, dx, ndim):
    rng = np.random.default_rng(seed)
    drift = np.array([dy, dx, 5.0])[:ndim]
    side = 200.0 if ndim == 2 else 90.0
    start = rng.uniform(0, side, (60, ndim))
    points = [start + t * drift + rng.normal(0, 0.5, start.shape) for t in range(3)]
    motion = estimate_motion(points_table(points))
    for pair in motion.pairs:
        assert np.linalg.norm(drift) < 5 or np.allclose(pair.drift, drift, atol=1.5)
        assert (pair.match == np.arange(60)).mean() > 0.9
        assert np.median(np.linalg.norm(pair.flow - drift, axis=1)) < 2.0
    assert motion.step < 2.5


def points_table(frames, area=80.0):
    ndim = frames[0].shape[1] if len(frames[0]) else 2
    rows = [(t, k + 1, *p) for t, points in enumerate(frames) for k, p in enumerate(points)]
    table = pd.DataFrame(rows, columns=["frame", "label", *("z", "y", "x")[-ndim:]])
    table["area"] = area + np.arange(len(table)) % 2
    geometry = Geometry(len(frames), None, (1.0,) * ndim)
    return Detections(table.astype({"frame": int, "label": int}), geometry, has_masks=False)


def test_required_events_are_always_there_and_only_once():
    scene = situation_scene(BY_NAME["two cells pass each other"])
    detections = scene.evidence.detections
    last = detections.rows(1)
    far = (0, last.stop - 1)
    keys = keys_of(scene.hypotheses)
    wanted = (int(Event.MOVE), far[0], -1, far[1], -1)
    assert wanted not in keys
    known = keys[3]
    required = Events(
        np.array([Event.MOVE, known[0], Event.MOVE], dtype=np.int8),
        np.array([[far[0], -1], known[1:3], [far[0], -1]]),
        np.array([[far[1], -1], known[3:5], [far[1], -1]]),
    )
    again = keys_of(generate_hypotheses(scene.evidence, required))
    assert again == sorted({*keys, wanted})


def test_skips_and_false_detections_only_where_nothing_direct_is_plausible():
    quiet = situation_scene(BY_NAME["the stage drifts"])
    assert len(quiet.hypotheses.of(Event.SKIP)) == 0
    assert len(quiet.hypotheses.of(Event.FALSE)) == 0
    missed = BY_NAME["a detection is missing"]
    scene = situation_scene(missed)
    skips = scene.hypotheses.of(Event.SKIP)
    detections = scene.evidence.detections
    assert set(scene.hypotheses.sources[skips, 0]) == {missed.row(detections, 1, "A")}
    dirt = BY_NAME["a speck of dirt"]
    scene = situation_scene(dirt)
    false = scene.hypotheses.of(Event.FALSE)
    assert scene.hypotheses.sources[false, 0].tolist() == [
        dirt.row(scene.evidence.detections, 2, "1")
    ]


def test_skips_follow_the_drift():
    rng = np.random.default_rng(2)
    start = rng.uniform(0, 300, (50, 2))
    drift = np.array([0.0, 18.0])
    points = [start + t * drift for t in range(4)]
    points[1] = np.delete(points[1], 7, axis=0)
    points[2] = np.delete(points[2], 7, axis=0)
    evidence = evidence_of(points_table(points))
    hypotheses = generate_hypotheses(evidence)
    skip = hypotheses.of(Event.SKIP)
    pairs = list(zip(hypotheses.sources[skip, 0], hypotheses.targets[skip, 0], strict=True))
    there = (7, int(evidence.detections.offsets[3]) + 7)
    assert there in pairs
    reached = evidence.expected(np.array([there[0]]), np.array([there[1]]))
    np.testing.assert_allclose(reached, evidence.detections.position[[there[1]]], atol=1e-6)


def test_components_stay_within_a_few_frame_pairs():
    movie = simulated(cells=40, frames=12)
    evidence = evidence_of(label_movie(movie))
    hypotheses = generate_hypotheses(evidence)
    incidence = hypotheses.incidence(active_slots(evidence.detections))
    direct = incidence[~np.isin(hypotheses.event, [Event.SKIP, Event.FALSE])]
    count, _ = connected_components(incidence.T @ incidence, directed=False)
    alone, _ = connected_components(direct.T @ direct, directed=False)
    assert count > 0.8 * alone
    ties = len(hypotheses.of(Event.SKIP)) + len(hypotheses.of(Event.FALSE))
    assert ties < 0.05 * len(hypotheses)


def test_limits_hold():
    evidence = evidence_of(label_movie(simulated(cells=60)))
    hypotheses = generate_hypotheses(evidence)
    for event, cells, least, most in (
        (Event.DIVIDE, hypotheses.sources, 5, 10),
        (Event.SPLIT, hypotheses.sources, 2, 2),
        (Event.MERGE, hypotheses.targets, 2, 2),
    ):
        assert least <= np.bincount(cells[hypotheses.of(event), 0]).max() <= most


def test_divisions_are_proposed_where_daughters_jump_apart():
    angle = np.arange(6) * np.pi / 3
    others = 40 + 16 * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    before = np.array([[40.0, 40.0], *others])
    after = np.array([[18.0, 40.0], [62.0, 40.0], *others])
    found = generate_hypotheses(evidence_of(points_table([before, after])))
    assert (Event.DIVIDE, (0,), (7, 8)) in events_of(found)


@pytest.mark.parametrize("n_frames", [1, 2, 3])
def test_movies_that_are_nearly_nothing(n_frames):
    labels = np.zeros((n_frames, 9, 9), dtype=int)
    labels[0, 3:6, 3:6] = 1
    hypotheses = generate_hypotheses(evidence_of(movie_of(labels)))
    # a lone cell may have left, or may be no cell; both cover its fate
    expected = [Event.DISAPPEAR, Event.FALSE] if n_frames > 1 else []
    assert [Event(e) for e in hypotheses.event] == expected


def test_incidence_of_every_event():
    scene = situation_scene(BY_NAME["two cells touch for a frame and part"])
    detections = scene.evidence.detections
    n, active = len(detections), active_slots(detections)
    incidence = scene.hypotheses.incidence(active)
    for h, (event, a, b, c, d) in enumerate(keys_of(scene.hypotheses)):
        slots = {a, b} | {r + n for r in (c, d) if r >= 0}
        if event == Event.FALSE:
            slots |= {a + n}
        expected = sorted(s for s in slots - {-1} if active[s])
        assert sorted(incidence[h].indices.tolist()) == expected


def test_skips_over_a_frame_without_some_cells():
    rng = np.random.default_rng(4)
    start = rng.uniform(0, 400, (60, 2))
    gone = rng.permutation(60)[:20]
    holes = [start, start, np.delete(start, gone, axis=0), start]
    hypotheses = generate_hypotheses(evidence_of(points_table(holes, area=1600.0)))
    rows = hypotheses.of(Event.SKIP)
    pairs = set(zip(hypotheses.sources[rows, 0], hypotheses.targets[rows, 0], strict=True))
    assert pairs == {(60 + k, 160 + k) for k in gone}


@pytest.mark.parametrize("rows", [3, 4])
def test_a_row_of_an_array_is_no_drift(rows):
    rng = np.random.default_rng(rows)
    wells = 120.0 * np.stack(np.meshgrid(np.arange(rows), np.arange(3)), -1).reshape(-1, 2)
    for _ in range(20):
        angle = rng.uniform(0, 2 * np.pi, len(wells))
        own = 14.0 * np.stack([np.sin(angle), np.cos(angle)], axis=1)
        motion = estimate_motion(points_table([wells + t * own for t in range(4)], area=254.0))
        for pair in motion.pairs:
            assert np.linalg.norm(pair.drift) < 14
            assert (pair.match == np.arange(len(wells))).all()


def test_a_cell_that_is_missed_near_others_has_no_rival():
    start = 34.0 * np.stack(np.meshgrid(np.arange(3), np.arange(3)), -1).reshape(-1, 2)
    shifted = start + np.array([6.0, 0.0])
    points = [start, start, np.delete(start, 4, axis=0), shifted, start]
    evidence = evidence_of(points_table(points, area=np.pi * 100.0))
    assert np.flatnonzero(evidence.missed.goes_on).tolist() == [13]


def test_daughters_have_at_least_a_fifth_of_their_mothers_area():
    points = [np.array([[50.0, 50.0]]), np.array([[50.0, 42.0], [50.0, 58.0]])]
    for share, proposed in ((0.15, 0), (0.25, 1)):
        table = points_table(points, area=1000.0)
        table.table.loc[1:, "area"] = 1000.0 * share / 2
        assert len(generate_hypotheses(evidence_of(table)).of(Event.DIVIDE)) == proposed
