"""Regions chosen together with their events, on movies drawn by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureMatrix
from bridgetrack.hypotheses.alternatives import alternative_evidence
from bridgetrack.models.model import shipped_model
from bridgetrack.movie.geometry import Geometry
from bridgetrack.pipeline.joint import (
    BIAS,
    Candidates,
    choose_jointly,
    measure_regions,
    region_events,
)
from bridgetrack.regions.regions import concatenate, labels_of, regions_of_labels
from bridgetrack.regions.score import choose_by_frame

SHAPE = (60, 80)
N_FRAMES = 6


def disc(y: float, x: float, radius: float = 6.0) -> np.ndarray:
    yy, xx = np.indices(SHAPE)
    return np.asarray((yy - y) ** 2 + (xx - x) ** 2 <= radius**2)


def frame_of(t: int) -> dict[str, np.ndarray]:
    """Two cells that touch and one alone, with what a segmentation may make of them."""
    left, right, alone = disc(20, 20 + t), disc(20, 31 + t), disc(42, 55 - t)
    yy = np.indices(SHAPE)[0]
    return {
        "left": left,
        "right": right & ~left,
        "both": left | right,
        "alone": alone,
        "top": alone & (yy < 42),
        "bottom": alone & (yy >= 42),
    }


NAMES = tuple(frame_of(0))
TRUE = ("left", "right", "alone")


def candidates(scores: dict[tuple[int, str], float], pins: set[tuple[int, str]]):
    """Candidates of a frame; a right region scores 2 and a wrong one -2 unless said otherwise."""

    def of(t: int) -> Candidates:
        masks = frame_of(t)
        parts = [regions_of_labels(m.astype(np.int32), t) for m in masks.values()]
        regions = concatenate(parts)
        table = measure_regions(regions, None, (1.0, 1.0))
        score = np.array([scores.get((t, n), 2.0 if n in TRUE else -2.0) for n in NAMES])
        pinned = np.array([(t, n) in pins for n in NAMES])
        likely = choose_by_frame(regions, score - BIAS)
        return Candidates(t, regions, table, score, pinned, likely)

    return of


def solve(
    scores: dict[tuple[int, str], float] | None = None,
    pins: set[tuple[int, str]] | None = None,
    n_frames: int = N_FRAMES,
    **frames: int,
) -> tuple[list[Candidates], list[set[str]]]:
    geometry = Geometry(n_frames, SHAPE, (1.0, 1.0))
    source = candidates(scores or {}, pins or set())
    work = choose_jointly(map(source, range(n_frames)), geometry, (), shipped_model(), **frames)
    found = [step for step in work if isinstance(step, Candidates)]
    assert [c.frame for c in found] == list(range(n_frames))
    return found, [{NAMES[r] for r in np.flatnonzero(c.chosen)} for c in found]


def test_alternatives_are_no_sign_of_a_wrong_mask() -> None:
    """The halves of a cell lie in the whole one of the next frame, which is its own alternative."""
    source = candidates({}, {})
    each = [source(t) for t in range(N_FRAMES)]
    regions = concatenate([one.regions for one in each])
    table = pd.concat([one.table for one in each], ignore_index=True)
    table["frame"] = np.repeat(np.arange(N_FRAMES), len(NAMES))
    detections = Detections(table, Geometry(N_FRAMES, SHAPE, (1.0, 1.0)))
    likely = np.tile([n in TRUE for n in NAMES], N_FRAMES)
    events, matrix = region_events(regions, detections, likely)
    keys = matrix.features.keys
    beyond = [k for k, key in enumerate(keys) if key.endswith(".wavering")]
    assert not matrix.sparse()[:, beyond].nnz
    evidence = alternative_evidence(detections, regions, likely)
    plain = FeatureMatrix(evidence, events, default_features())
    assert plain.sparse()[:, beyond].nnz, "the test says something"


def test_neighbours_in_time_overrule_one_frame() -> None:
    """In single frames a wrong reading scores higher; frame by frame that would be believed."""
    scores = {(2, "both"): 3.0, (2, "left"): 0.5, (2, "right"): 0.5, (4, "alone"): -1.0}
    of = candidates(scores, {})
    alone = choose_by_frame(of(2).regions, of(2).scores)
    assert {NAMES[r] for r in np.flatnonzero(alone)} == {"both", "alone"}
    assert solve(scores)[1] == [set(TRUE)] * N_FRAMES


def test_cells_that_are_joined_all_the_time_are_one() -> None:
    belief = {"both": 4.0, "left": -2.0, "right": -2.0}
    scores = {(t, n): s for t in range(N_FRAMES) for n, s in belief.items()}
    assert solve(scores)[1] == [{"both", "alone"}] * N_FRAMES


def test_pins_are_honoured_and_carry_over() -> None:
    scores = {(t, n): s for t in range(N_FRAMES) for n, s in (("both", 1.0), ("left", -0.5))}
    pins = {(1, "left"), (1, "right")}
    choice = solve(scores, pins)[1]
    assert {"left", "right"} <= choice[1]


def test_pins_that_exclude_each_other() -> None:
    with pytest.raises(InputError, match="frames 0 to 5 exclude each other"):
        solve(pins={(2, "left"), (2, "both")})


def test_answers_hold_in_a_single_frame() -> None:
    assert solve(n_frames=1)[1] == [set(TRUE)]
    assert solve(pins={(0, "both")}, n_frames=1)[1] == [{"both", "alone"}]
    assert solve(pins={(0, "bottom")}, n_frames=1)[1] == [{"left", "right", "bottom"}]
    with pytest.raises(InputError, match="frame 0 exclude each other"):
        solve(pins={(0, "left"), (0, "both")}, n_frames=1)


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 6), st.integers(1, 2))
def test_no_pixel_twice_and_windows_agree(seed: int, frames: int, overlap: int) -> None:
    rng = np.random.default_rng(seed)
    scores = {
        (t, n): (1.5 if n in TRUE else -1.5) + rng.normal() for t in range(N_FRAMES) for n in NAMES
    }
    whole, names = solve(scores, window=N_FRAMES, overlap=1)
    parts, _ = solve(scores, window=frames, overlap=overlap)
    for choice in (*whole, *parts):
        chosen = choice.regions.select(choice.chosen)
        assert np.count_nonzero(labels_of(chosen, np.arange(len(chosen)))) == len(chosen.pixels)
    assert all(chosen for chosen in names)


@pytest.mark.parametrize("empty", [0, 2])
def test_a_frame_without_candidates(empty: int) -> None:
    of = candidates({(3, "both"): 5.0}, {})

    def gap(t: int) -> Candidates:
        one = of(t)
        if t != empty:
            return one
        return replace(one, chosen=np.zeros(len(one.regions), dtype=bool)).cells

    geometry = Geometry(N_FRAMES, SHAPE, (1.0, 1.0))
    work = choose_jointly(map(gap, range(N_FRAMES)), geometry, (), shipped_model())
    found = [step for step in work if isinstance(step, Candidates)]
    assert [int(c.chosen.sum()) for c in found] == [3 * (t != empty) for t in range(N_FRAMES)]
