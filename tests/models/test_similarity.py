"""Feature statistics and what is said of how similar movies are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.models.shipped import untrained_model
from bridgetrack.models.similarity import compare, rate_words, times, words_of
from bridgetrack.pipeline.movie_record import statistics_of, statistics_steps
from bridgetrack.pipeline.scene import Scene, prepare
from bridgetrack.progress import run
from library_cases import KEYS, statistics, statistics_like
from scenes import image_movie, label_movie, simulated


@cache
def _scene(image: bool = False, **settings: float) -> Scene:
    movie = simulated(cells=25, frames=6, division_rate=0.03, **settings)
    pixels = image_movie(movie.image, movie.geometry.scale) if image else None
    return run(prepare(label_movie(movie), pixels))


@settings(deadline=None, max_examples=20)
@given(statistics(), statistics())
def test_the_distance_is_symmetric_and_zero_for_equals(one: object, two: object) -> None:
    assert compare(one, two).distance == pytest.approx(compare(two, one).distance)  # type: ignore[arg-type]
    same = compare(one, one)  # type: ignore[arg-type]
    assert same.level in ("unknown", "very similar")
    assert same.distance == (0.0 if same.level == "very similar" else float("inf"))


def test_the_largest_difference_is_named() -> None:
    base = statistics_like(move__raw_distance=0.4)
    fast = statistics_like(move__raw_distance=0.8)
    similarity = compare(fast, base)
    assert similarity.distance > 0
    assert "your cells move twice as far per frame" in similarity.differences[0].words
    assert "half as far" in compare(base, fast).differences[0].words
    assert compare(base, base).words == "very similar to your movie"
    far = statistics_like(move__raw_distance=3.0, move__covered=3.0, divide__angle=3.0)
    assert compare(far, base).distance > similarity.distance


def test_rare_events_and_unknown_features_do_not_count() -> None:
    base = statistics_like()
    other = statistics_like(divide__separation=4.0, move__level_change=2.0)
    assert compare(other, base).distance > 0.05
    blind = np.array([k.startswith("divide.") or k == "move.level_change" for k in KEYS])
    few = replace(other, count=np.where(blind, 3, other.count))
    assert compare(few, base).distance < 0.05
    none = replace(other, count=np.zeros(len(KEYS), dtype=np.int64))
    assert compare(none, base).level == "unknown"
    assert "not known" in compare(none, base).words


def test_a_division_rate_that_differs_is_said() -> None:
    base = statistics_like()
    often = replace(base, events={**base.events, "divide": 150})
    found = [d for d in compare(often, base).differences if d.key == "divide"]
    assert found[0].words == "your cells divide 2.9 times as often"
    none = replace(base, events={**base.events, "divide": 0})
    (found_none,) = [d for d in compare(none, base).differences if d.key == "divide"]
    assert "as often" in found_none.words


def test_times() -> None:
    assert [times(v) for v in (2.0, 0.5, 0.26, 3.14, 50, 0.01)] == [
        "twice", "half", "a quarter", "3.1 times", "more than ten times", "less than a tenth",
    ]  # fmt: skip
    assert rate_words(Event.DIVIDE, 2.0) == "your cells divide twice as often"
    assert words_of("move.rank_forward", 1.0, 2.0).startswith("your cells have fewer")
    assert words_of("false.size", 1.0, 2.0) == ""


def test_movies_of_the_same_kind_are_nearer() -> None:
    calm = [statistics_of(s, _chosen(s)) for s in (_scene(seed=1), _scene(seed=2))]
    wild = statistics_of(s := _scene(seed=3, speed=6.0), _chosen(s))
    same, other = compare(*calm), compare(wild, calm[0])
    assert same.distance < other.distance
    assert any("move" in d.words and "as far" in d.words for d in other.differences[:6])


def _chosen(scene: Scene) -> np.ndarray:
    return solve(scene.problem, scene.matrix.scores(untrained_model().weights)).chosen


def test_statistics_of_a_movie_without_image() -> None:
    without, with_image = _scene(seed=1), _scene(image=True, seed=1)
    a, b = (run(statistics_steps(s)) for s in (without, with_image))
    level = KEYS.index("move.level_change")
    assert a.count[level] == 0 < b.count[level]
    moves = KEYS.index("move.distance")
    assert a.count[moves] == a.events["move"] > 30
    rows = without.matrix.rows[Event.MOVE]
    values = without.matrix.blocks[Event.MOVE][_chosen(without)[rows]][:, 1]
    assert a.mean[moves] == pytest.approx(values.mean())
    assert a.deviation[moves] == pytest.approx(values.std())
    assert a.quantiles[moves] == pytest.approx(np.quantile(values, [0.1, 0.5, 0.9]))
    assert a.n_cells == len(without.detections) and a.ndim == 2
