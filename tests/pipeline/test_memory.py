"""What tracking, and choosing masks, keep in memory."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from functools import partial

import numpy as np
import pandas as pd
import pytest

import bridgetrack as bt
from bridgetrack.detections.table import Detections
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureMatrix
from bridgetrack.hypotheses.events import Event, active_slots
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.opening import open_movie
from bridgetrack.pipeline.finding import CellSearch, Finding
from bridgetrack.pipeline.joint import Candidates, choose_jointly
from bridgetrack.progress import run
from bridgetrack.regions.regions import Regions
from bridgetrack.regions.score import MovieScore, starting_score
from bridgetrack.segmentation.settings import SegmentationSettings
from drawn_movie import drawn


@pytest.fixture
def walkers() -> Detections:
    """Cells that walk at random through a dense movie."""
    draw, cells, frames = np.random.default_rng(1), 150, 20
    place = draw.uniform(0, 18 * np.sqrt(cells), (cells, 2))
    steps = [place + draw.normal(0, 2.5 * np.sqrt(t), place.shape) for t in range(frames)]
    rows = np.concatenate(steps)
    columns = {"frame": np.repeat(np.arange(frames), cells), "y": rows[:, 0], "x": rows[:, 1]}
    table = pd.DataFrame({**columns, "area": 110.0, "label": np.tile(np.arange(cells) + 1, frames)})
    return Detections(table, Geometry(frames, None, (1.0, 1.0)), has_masks=False)


def test_tracking_keeps_little_for_each_hypothesis(walkers: Detections) -> None:
    bt.track(walkers)  # imports everything
    tracemalloc.start()
    try:
        tracking = bt.track(walkers)
        kept, highest = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    n = len(tracking.scene.hypotheses)
    assert n > 10 * len(walkers)
    assert highest / n < 420  # bytes, of which 18 or 21 features are 144 or 168
    assert kept / n < 220


def test_features_are_computed_when_asked_for(walkers: Detections) -> None:
    scene = bt.track(walkers).scene
    at_once, later = (
        FeatureMatrix(scene.evidence, scene.hypotheses, default_features()) for _ in range(2)
    )
    assert list(at_once.keeping()) == list(Event)
    for event in Event:
        first, second = later.values(event), later.values(event)
        np.testing.assert_array_equal(first, at_once.values(event))
        np.testing.assert_array_equal(first, second)
        assert later.values(event) is second
    weights = np.arange(len(default_features()), dtype=np.float64)
    np.testing.assert_array_equal(later.scores(weights), at_once.scores(weights))


def test_what_is_done_in_parts_is_the_same(
    walkers: Detections, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = bt.track(walkers).scene
    active = active_slots(scene.detections)
    monkeypatch.setattr("bridgetrack.features.feature._AT_ONCE", 100)
    monkeypatch.setattr("bridgetrack.progress.ROWS_AT_ONCE", 100)
    assert (scene.hypotheses.covering(active) != scene.problem.incidence).nnz == 0
    assert scene.hypotheses.touching(active).all()
    later = FeatureMatrix(scene.evidence, scene.hypotheses, default_features())
    weights = np.random.default_rng(0).normal(size=len(default_features()))
    scores = scene.matrix.scores(weights)
    np.testing.assert_allclose(later.scores(weights), scores, rtol=1e-9)
    every = np.ones(len(scores), dtype=bool)
    first = scene.problem.undominated(scores, every)
    monkeypatch.undo()
    np.testing.assert_array_equal(scene.problem.undominated(scores, every), first)


def test_masks_of_a_longer_movie_are_chosen_in_no_more_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = partial(choose_jointly, window=3)
    monkeypatch.setattr("bridgetrack.pipeline.finding.choose_jointly", few)
    monkeypatch.setattr("bridgetrack.pipeline.mask_candidates.PER_CELL", 2.0)
    images = drawn(7)[0][:, :50, :50].astype(np.float32)
    cells = SegmentationSettings(diameter=14, foreground="bright")
    # What the movie teaches comes of at most twelve of its frames, however long it is.
    how = Finding(cells, learned=MovieScore(starting_score()))
    seen: list[weakref.ref[Regions]] = []
    alive = 0

    def taken(choice: Candidates) -> None:  # whoever calls keeps what is to be kept
        nonlocal alive
        seen.append(weakref.ref(choice.regions))
        gc.collect()  # what nobody holds any more goes sooner or later
        # The peak is that of work on one frame, beside which candidates are small.
        alive = sum(one() is not None for one in seen)

    def peak(n: int) -> int:
        movie = open_movie(images[:n], axes="TYX")
        seen.clear()
        tracemalloc.start()
        try:
            search = CellSearch(movie, how)
            for step in search.choices(run(search.prepared())):
                if isinstance(step, Candidates):
                    taken(step)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # imports everything
    gc.freeze()  # so that collecting takes no time
    try:
        short, long = peak(3), peak(7)
    finally:
        gc.unfreeze()
    assert long < 1.3 * short
    assert len(seen) == 7 and 1 <= alive <= 4
