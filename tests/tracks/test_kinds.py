"""Movies of kinds that dense public movies do not hold come out right."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bridgetrack as bt
from kinds import Case, cases, tracked

CASES = Path(os.environ.get("BRIDGETRACK_CASES", Path(__file__).parents[3] / "shared" / "cases"))
"""Folder of label movies, each with a README that says what is right."""
RIGHT = {
    "dark_labels_2": {"tracks": 6, "skip": 6},
    "gap2_isolated": {"tracks": 9, "skip": 1},
    "blinking_labels": {"tracks": 6, "appear": 0},
    "microwells_7": {"tracks": 9, "move": 27},
    "isolated_step8": {"tracks": 6, "move": 30},
    "division_with_gap": {"divide": 1, "appear": 0, "tracks": 7},
    "late_daughter_crowded": {"divide": 1, "appear": 0, "tracks": 27},
    "second_daughter_late": {"divide": 1, "appear": 0, "tracks": 7},
    "mother_machine_0": {"divide": 9, "appear": 0},
    "mother_machine_g7_0": {"divide": 9, "skip": 0},
}
"""How many tracks and events of a kind there are."""


def found_in(name):
    if not (CASES / name).is_dir():
        pytest.skip(f"{CASES / name} is absent; BRIDGETRACK_CASES names the folder of the movies")
    return bt.track(CASES / name / "labels.tif")


@pytest.mark.parametrize("name", RIGHT)
def test_given_movies(name):
    counts = bt.count_events(found_in(name).tracks)
    assert {key: counts[key] for key in RIGHT[name]} == RIGHT[name]


def test_late_divisions_where_windows_meet():
    for window, case in zip((4, 5), cases("D late", 2, seed=0), strict=True):
        whole, parts = bt.track(case.source()), bt.track(case.source(), window=window)
        assert parts.windows is not None
        links = [t.tracks.edges[["source", "target"]] for t in (parts, whole)]
        pd.testing.assert_frame_equal(*links)


@pytest.mark.parametrize("kind", ["A gap", "B no shift", "C channel", "D late", "G slices"])
def test_generated_movies(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = [tracked(case).right for case in cases(kind, 3, seed=0)]
    assert all(right)


def test_channels_side_by_side_that_open_to_either_side():
    one, two = list(cases("C channel", 4, seed=0))[2:]
    assert one.labels is not None and two.labels is not None
    frames = min(len(one.labels), len(two.labels))
    beyond = int(one.labels.max())
    upturned = np.where(two.labels > 0, two.labels + beyond, 0)[:frames, ::-1]
    height = max(one.labels.shape[1], upturned.shape[1])
    both = [
        np.pad(part, ((0, 0), (0, height - part.shape[1]), (0, 0)))
        for part in (one.labels[:frames], upturned)
    ]
    links = {(a, b) for a, b in one.links if b[0] < frames}
    for (t, a), (u, b) in two.links:
        if u < frames:
            links.add(((t, a + beyond), (u, b + beyond)))
    labels = np.concatenate(both, axis=2).swapaxes(1, 2)
    assert tracked(Case("two channels", [], links, labels=labels)).right
