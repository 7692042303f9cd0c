"""The score of regions: the shipped start, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.movie import open_movie
from bridgetrack.movie.movie import Movie
from bridgetrack.regions.describe import FEATURES, Described, describe_frame, described
from bridgetrack.regions.propose import propose_frame
from bridgetrack.regions.regions import (
    Regions,
    concatenate,
    likeness,
    no_regions,
)
from bridgetrack.regions.score import (
    RegionScore,
    prune,
    starting_score,
)
from bridgetrack.segmentation.builtin import FrameView
from bridgetrack.segmentation.readings import estimate_settings
from simulator import SimulationSettings, simulate

START = starting_score()
MOVIE = simulate(SimulationSettings(frames=3, cells=30, seed=91, density=0.3))


@dataclass(frozen=True)
class Scored:
    """Candidates of all frames with their features."""

    regions: Regions
    features: np.ndarray

    @property
    def log_odds(self) -> np.ndarray:
        return START.log_odds(self.features)


def candidates_of(movie: Movie) -> Scored:
    known = estimate_settings(movie).settings

    def frames() -> Iterator[Described]:
        for t in range(movie.n_frames):
            image = movie.channel_frame(t)
            regions = propose_frame(FrameView(image, known), t=t)
            yield Described(regions, describe_frame(regions, FrameView(image, known)))

    done = list(described(frames()))
    features = np.concatenate([one.features for one in done])
    return Scored(concatenate([one.regions for one in done]), features)


@cache
def scored() -> Scored:
    """Candidates of the movie."""
    return candidates_of(open_movie(MOVIE.image))


def likeness_to_cells(t: int, kept: np.ndarray) -> np.ndarray:
    """Intersection over union of some candidates of a frame with its true cells, (R, cells)."""
    cells, part = MOVIE.labels[t], scored().regions.select(kept[scored().regions.frame[kept] == t])
    true = [np.flatnonzero(cells == k) for k in np.unique(cells[cells > 0])]
    found = [[likeness(part.region_pixels(r), pixels) for pixels in true] for r in range(len(part))]
    return np.array(found)


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
    assert START.features == tuple(name for name in FEATURES if name not in other)
    columns = [list(FEATURES).index(name) for name in START.features]
    rows = scored().features[::37]
    expected = [by_hand(START, row[columns]) for row in rows]
    np.testing.assert_allclose(START.log_odds(rows), np.clip(expected, -12, 12))
    np.testing.assert_allclose(scored().log_odds, START.log_odds(scored().features))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1.0, 2.0, 4.0]))
def test_pruning_keeps_the_likeliest_of_every_place(seed: int, per_cell: float) -> None:
    rng = np.random.default_rng(seed)
    rows = scored().regions.rows(1)
    regions = scored().regions.select(np.arange(rows.start, rows.stop))
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


def test_pruning_keeps_the_cells() -> None:
    kept = prune(scored().regions, scored().log_odds, 4.0)
    cells = sum(len(np.unique(MOVIE.labels[t])) - 1 for t in range(3))
    assert len(kept) < 5.5 * cells
    found = before = 0
    for t in range(3):
        found += (likeness_to_cells(t, kept).max(axis=0) > 0.5).sum()
        before += (likeness_to_cells(t, np.arange(len(scored().regions))).max(axis=0) > 0.5).sum()
    assert found >= 0.96 * before
    assert before > 0.95 * cells
    assert len(prune(no_regions((3, 4)), np.zeros(0), 4.0)) == 0
