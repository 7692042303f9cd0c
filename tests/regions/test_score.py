"""The score of candidates, pruning by it, and what a movie and its answers teach it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.regions.describe import FEATURES, SPATIAL, describe_frame
from bridgetrack.regions.propose import SOURCES, propose_frame
from bridgetrack.regions.regions import (
    Regions,
    concatenate,
    much_alike,
    no_regions,
    regions_of_labels,
)
from bridgetrack.regions.score import (
    MovieScore,
    RegionScore,
    doubt_of_tight,
    prune,
    share_of,
    starting_score,
    teach,
    usual_size,
)
from bridgetrack.segmentation import SegmentationSettings
from bridgetrack.segmentation.builtin import FrameView
from pictures import blobs, photograph

TREES = starting_score()
RNG = np.random.default_rng(5)
FEATURE = RNG.normal(0, 1, (600, len(FEATURES)))


def by_hand(score: RegionScore, row: np.ndarray) -> float:
    total = score.start
    for k in range(len(score.split)):
        node = 0
        while score.split[k, node] >= 0:
            low = row[score.split[k, node]] <= score.threshold[k, node]
            node = (score.left if low else score.right)[k, node]
        total += score.value[k, node]
    return score.slope * total + score.shift


def test_trees_are_walked_to_their_leaves() -> None:
    # how far from the edge of the picture cells count is a matter of the movie
    # and how far down their outlines go, too
    other = {"from the edge", "level", "least level"}
    assert TREES.features == tuple(name for name in FEATURES if name not in other)
    columns = [list(FEATURES).index(name) for name in TREES.features]
    expected = [by_hand(TREES, row[columns]) for row in FEATURE[::37]]
    np.testing.assert_allclose(TREES.log_odds(FEATURE[::37]), np.clip(expected, -12, 12))


@cache
def candidates() -> Regions:
    """Those of a picture of a few cells, some of which touch."""
    centres = [(25.0, 25.0), (25.0, 41.0), (60.0, 40.0), (30.0, 90.0), (70.0, 85.0)]
    picture = photograph(blobs((90, 120), centres, 9))
    return propose_frame(FrameView(picture, SegmentationSettings(diameter=18)))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1.0, 2.0, 4.0]))
def test_pruning_keeps_the_likeliest_of_every_place(seed: int, per_cell: float) -> None:
    rng, regions = np.random.default_rng(seed), candidates()
    score = rng.normal(0, 2, len(regions))
    sure = rng.random(len(regions)) < 0.02
    kept = prune(regions, score, per_cell, sure=sure)
    assert (np.diff(kept) > 0).all()
    assert set(np.flatnonzero(sure).tolist()) <= set(kept.tolist())
    best = int(np.argmax(score))
    beside_sure = regions.overlaps[[best]].toarray().ravel()[sure].any()
    assert best in kept or beside_sure
    shared = regions.select(kept).overlaps.toarray().astype(float)
    area = regions.area[kept]
    alike = shared / (area[:, None] + area - shared)
    np.fill_diagonal(alike, 0)
    plain = ~sure[kept]
    assert alike[np.ix_(plain, plain)].max() <= 0.8


REGIONS = concatenate([regions_of_labels(np.ones((1, 1), dtype=int))] * 600)
START = MovieScore(TREES)


def odds(score: MovieScore) -> np.ndarray:
    return score.log_odds(REGIONS, FEATURE)


def test_without_lessons_nothing_is_learned() -> None:
    for target in (-1, 0, 1):
        told = np.full(600, target, dtype=np.int8)
        assert teach(START, FEATURE, told).trees is None
    known = starting_score().log_odds(FEATURE) - doubt_of_tight(FEATURE)
    np.testing.assert_array_equal(odds(START), known)


def test_what_is_learned_holds_for_other_candidates_and_is_not_all() -> None:
    wanted = (FEATURE[:, 3] > 0).astype(np.int8)
    told = np.where(np.arange(600) < 400, wanted, -1).astype(np.int8)
    taught = teach(START, FEATURE, told)
    rest = slice(400, 600)
    before, after = odds(START)[rest], odds(taught)[rest]
    yes = wanted[rest] == 1
    change = after - before
    assert change[yes].mean() > change[~yes].mean() + 2
    # half of the say remains with the start
    own = taught.trees.log_odds(FEATURE[rest])
    np.testing.assert_allclose(after, (before + np.clip(own, -12, 12)) / 2)
    assert np.mean((own > 0) == yes) > 0.95
    assert own[yes].mean() == pytest.approx(-own[~yes].mean(), rel=0.2), "half of them are cells"


def test_the_more_often_the_start_is_wrong_the_more_of_a_say_has_what_was_checked() -> None:
    told = (FEATURE[:, 3] > 0).astype(np.int8)
    given = ((30, 0), (500, 0.1), (500, 0.3), (500, 0.5), (500, 0.9))
    assert [share_of(n, n, wrong) for n, wrong in given] == pytest.approx([0, 0, 0.5, 1, 1])
    assert 0 < share_of(40, 40, 0.2) < share_of(40, 40, 0.6) < share_of(80, 80, 0.6) < 1
    # Where hardly anything was to be mended, the choice with the frames around is right.
    assert [share_of(500, k, 0.9) for k in (0, 5, 25, 100)] == pytest.approx([0, 0.2, 1, 1])
    full = teach(START, FEATURE, told, 1.0)
    own = full.trees.log_odds(FEATURE)
    clipped = np.clip(own, -12, 12)
    np.testing.assert_allclose(odds(full), np.where(clipped > 0, clipped / 2, clipped))
    np.testing.assert_array_equal(teach(START, FEATURE, told).trees.log_odds(FEATURE), own)


@settings(max_examples=25, deadline=None)
@given(st.floats(20, 2000), st.floats(0.0, 0.5), st.integers(0, 1000))
def test_what_is_far_smaller_than_usual_is_doubted_and_what_is_far_larger_a_little(
    area: float, spread: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    cells = area * np.exp(rng.normal(0, spread, 300))
    specks = np.full(200, area / 12)  # many, but less sure
    size = usual_size([cells, specks], [np.full(300, 2.0), np.full(200, 1.0)])
    assert abs(size.centre - np.log(area)) < 0.15
    larger = size.doubt(area * np.array([1.0, 1.15, 2.0, 4.0, 20.0]))
    assert larger[:2].tolist() == [0, 0] and (np.diff(larger) >= 0).all() and larger[-1] > 1
    assert (larger[2:] <= 0.5 * np.log([2.0, 4.0, 20.0]) / 0.2).all()
    doubt = size.doubt(area / np.arange(1.0, 200.0))
    assert (np.diff(doubt) >= 0).all() and doubt.max() <= 12
    if spread < 0.3:
        assert size.doubt(specks).min() > 6


def test_debris_that_is_as_sure_and_as_frequent_does_not_count_as_cells() -> None:
    rng = np.random.default_rng(0)
    frames = [
        np.concatenate([4000 * np.exp(rng.normal(0, 0.15, 5)), 600 * np.exp(rng.normal(0, 0.4, 8))])
        for _ in range(12)
    ]
    size = usual_size(frames, [np.full(13, 2.0)] * 12)
    assert abs(size.centre - np.log(4000)) < 0.15
    assert size.doubt(np.array([600.0]))[0] > 5
    assert size.doubt(np.array([3000.0, 4000.0, 5000.0])).max() == 0
    assert size.none(np.array([600, 1200, 3000, 4000, 12000])).tolist() == [1, 1, 0, 0, 0]
    # Cells of an embryo, which become smaller with every division, are not debris.
    embryo = [np.full(2**k, 4000.0 / 2**k) for k in range(6)]
    small = usual_size(embryo, [np.full(len(a), 2.0) for a in embryo])
    assert small.doubt(embryo[-1]).max() == 0
    assert not small.none(np.array([1, 125, 4000])).any()
    # Nor are cells beside a clump that is larger than all of them together.
    clump = [np.append(np.full(30, 100.0), 4000.0)] * 5
    beside = usual_size(clump, [np.full(31, 2.0)] * 5)
    assert beside.doubt(np.array([100.0]))[0] == 0


def nested(*radii: float) -> Regions:
    """Discs around the middle of a nucleus of radius 8, as candidates of one frame."""
    y, x = np.mgrid[:60, :60]
    away = np.hypot(y - 30, x - 30)
    masks = [(away <= r).astype(np.int64) for r in radii]
    parts = [no_regions((60, 60), SOURCES)]
    return concatenate([*parts, *(regions_of_labels(m, source="built-in") for m in masks)])


def nucleus(foreground: str) -> tuple[np.ndarray, SegmentationSettings]:
    y, x = np.mgrid[:60, :60]
    light = 1 / (1 + np.exp(np.hypot(y - 30, x - 30) - 8))
    grain = np.random.default_rng(0).normal(0, 5, light.shape)
    signal = 1000 * light if foreground != "dark" else 1500 - 1000 * light
    return signal + grain, SegmentationSettings(diameter=16, foreground=foreground, depth=0.05)


@pytest.mark.parametrize("foreground", ["bright", "dark", "texture"])
def test_an_outline_within_the_bright_part_is_doubted(foreground: str) -> None:
    image, settings = nucleus(foreground)
    known = describe_frame(nested(7, 7.5, 8, 8.5, 9), FrameView(image, settings))
    features = np.concatenate([known, np.zeros((5, len(FEATURES) - SPATIAL))], axis=1)
    doubt = doubt_of_tight(features)
    if foreground == "texture":  # whose signal is smeared beyond the cells
        assert not doubt.any()
        return
    assert (np.diff(doubt) <= 0).all() and doubt[0] > doubt[1] > 0.5 > doubt[-1]
    alone = np.array(features[:1])
    alone[:, list(FEATURES).index("least level")] = alone[:, list(FEATURES).index("level")]
    assert not doubt_of_tight(alone).any(), "no candidate like it reaches farther"


def test_candidates_much_like_some_are_found() -> None:
    regions = nested(5, 8, 8.5, 14)
    assert much_alike(regions, np.array([False, True, False, False])).tolist() == [0, 1, 1, 0]
    assert not much_alike(regions, np.zeros(4, dtype=bool)).any()
