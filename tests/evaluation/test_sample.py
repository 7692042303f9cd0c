"""Samples of a result: drawn fairly, judged, and what they say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bridgetrack.errors import InputError
from bridgetrack.evaluation.sample import (
    SampleOptions,
    draw_sample,
    exact_interval,
    read_sample,
    write_sample,
)
from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.tracks import assemble_tracks


@pytest.fixture(scope="module")
def tracks():
    """Forty cells in three frames, every fourth of which divides after the first."""
    rows, edges = [], []
    for k in range(40):
        rows.append((k, 0, k + 1, 5.0 * k, 5.0))
        later = [100 + k] + ([200 + k] if k % 4 == 0 else [])
        for n in later:
            rows.append((n, 1, n, 5.0 * k + n // 200, 6.0))
            edges.append((k, n))
            rows.append((n + 1000, 2, n, 5.0 * k + n // 200, 7.0))
            edges.append((n, n + 1000))
    nodes = pd.DataFrame(rows, columns=["id", "frame", "label", "y", "x"]).assign(area=9.0)
    return assemble_tracks(
        nodes, pd.DataFrame(edges, columns=["source", "target"]), Geometry(3, (300, 30), (1.0, 1.0))
    )


def test_every_event_is_as_likely_to_be_drawn(tracks):
    drawn: dict[object, int] = {}
    for seed in range(100):
        for event in draw_sample(tracks, SampleOptions(10, seed=seed)).events:
            drawn[event.key] = drawn.get(event.key, 0) + 1
    assert len(drawn) == 90, "30 moves and 10 divisions, then 50 moves"
    expected = 100 * 10 / 90
    assert np.abs(np.array(list(drawn.values())) - expected).max() < 4.5 * np.sqrt(expected)
    divisions = draw_sample(tracks, SampleOptions(30, of="divisions"))
    assert {e.event.key for e in divisions.events} == {"divide"}
    assert len(divisions.events) == divisions.population == 10
    longer = draw_sample(tracks, SampleOptions(20)).events
    assert longer[:10] == draw_sample(tracks, SampleOptions(10)).events
    with pytest.raises(InputError, match="no divisions"):
        draw_sample(_without_divisions(tracks), SampleOptions(of="divisions"))


def _without_divisions(tracks):
    nodes = tracks.nodes[tracks.nodes["frame"] == 0].drop(columns=["track_id", "lineage_id"])
    return assemble_tracks(nodes, tracks.edges.iloc[:0], tracks.geometry)


def test_the_interval_covers_however_rare_errors_are():
    assert exact_interval(30, 30) == pytest.approx((0.025 ** (1 / 30), 1.0))
    assert exact_interval(0, 5)[0] == 0.0
    ends = [exact_interval(k, 60) for k in range(61)]
    for truth in (0.5, 0.9, 0.99, 0.999):
        chance = np.array([truth, 1 - truth])
        counts = np.random.default_rng(1).multinomial(60, chance, 5_000)[:, 0]
        covered = np.mean([ends[k][0] <= truth <= ends[k][1] for k in counts])
        assert covered >= 0.945, truth


def test_judged_on_paper(tracks, tmp_path):
    sample = draw_sample(tracks, SampleOptions(4, seed=2))
    assert sample.accuracy is None
    for number, verdict in enumerate(("yes", "no", "?")):
        sample = sample.judged(number, verdict)
    assert sample.left == (3,)
    with pytest.raises(InputError, match="'maybe' is not an answer"):
        sample.judged(3, "maybe")
    path = write_sample(sample, tmp_path / "sample.csv")
    again = read_sample(path, tracks)
    assert again.verdicts == sample.verdicts
    assert (again.accuracy.right, again.accuracy.judged, again.accuracy.unsure) == (1, 2, 1)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(",", ";").replace(";no\n", "; N \n"), encoding="utf-8")
    assert read_sample(path, tracks).verdicts == sample.verdicts, "as a spreadsheet saves it"
    lines = text.splitlines(keepends=True)
    for wrong, said in (
        (text.replace(",no\n", ",maybe\n"), r"sample.csv, row 3: 'maybe' is not an answer"),
        ("".join(lines[:1] + lines[2:]), "not the events that were drawn"),
        ("".join(lines[:1] + lines[:0:-1]), "not the events that were drawn"),
        (text.replace("right\n", "fine\n"), "columns right are missing"),
        (lines[0], "there are no events"),
        (text.replace("links", "cells"), "of: .*'links', 'divisions' or 'events', not 'cells'"),
    ):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            read_sample(path, tracks)
    assert sample.holds_for(tracks)
    other = replace(tracks, events=tracks.events.iloc[1:])
    assert not sample.holds_for(other)
