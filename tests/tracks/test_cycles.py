"""Times between divisions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import CensoredData, ecdf

import bridgetrack as bt
from bridgetrack.tracks.cycles import cell_cycles, survival
from bridgetrack.tracks.table import track_table, with_fates
from lineage_cases import tracks_of


@pytest.fixture
def tracks():
    """1 divides after frame 1 into 2, which divides after frame 3 into 4 and 5, and 3."""
    spans = {1: (0, 1), 2: (2, 3), 3: (2, 5), 4: (4, 5), 5: (4, 4)}
    nodes = [(t, k, 20.0, 10.0 * k, k) for k, (a, b) in spans.items() for t in range(a, b + 1)]
    at = {(t, k): i for i, (t, _, _, _, k) in enumerate(nodes)}
    edges = [(at[t, k], at[t + 1, k], "move") for k, (a, b) in spans.items() for t in range(a, b)]
    for mother, daughter in ((1, 2), (1, 3), (2, 4), (2, 5)):
        end, begin = spans[mother][1], spans[daughter][0]
        edges.append((at[end, mother], at[begin, daughter], "divide"))
    return tracks_of(nodes, edges, n_frames=6, frame_interval=30.0)


def test_times_between_divisions(tracks):
    found = cell_cycles(tracks)
    table = found.cycles.set_index("track_id")
    assert table.index.tolist() == [2, 3, 4, 5], "the birth of track 1 was not seen"
    assert table["duration [min]"].tolist() == [60, 90, 30, 0]
    assert table["divides"].tolist() == [True, False, False, False]
    assert table["mother"].tolist() == [1, 1, 2, 2]
    assert found.survival["undivided"].tolist() == [1, 1, 0.5, 0.5]
    assert found.generations["tracks"].tolist() == [2, 2]
    assert any(name.startswith("median speed") for name in found.generations.columns)
    assert "4 cells were born" in found.words and "within 1.0 h" in found.words
    links = tracks.links.assign(event=["divide", "divide", "merge", "merge"])
    merged = cell_cycles(replace(tracks, links=links))
    assert merged.cycles[["divides", "ends_in"]].to_numpy().tolist() == [
        [False, "merge"], [False, "end of movie"]
    ]  # fmt: skip
    assert "none of them divided again" in merged.words
    assert cell_cycles(replace(tracks, links=links.head(0))).words


def test_ends_and_beginnings_that_somebody_named_are_told(tracks):
    [last] = tracks.nodes.loc[tracks.nodes["track_id"] == 5, "id"]
    first = tracks.nodes.loc[tracks.nodes["track_id"] == 1, "id"].min()
    named = with_fates(tracks, {int(last): "birth death", int(first): "birth"})
    table = track_table(named).set_index("track_id")
    assert table["begins_in"].tolist() == ["birth", "", "", "", "birth"]
    assert table["ends_in"][1] == "division" and table["ends_in"][5] == "death"
    found = cell_cycles(named)
    assert found.cycles.set_index("track_id")["ends_in"][5] == "death"
    assert "1 died, as annotated." in found.words


def test_the_survival_curve_is_that_of_scipy():
    rng = np.random.default_rng(3)
    lived, divides = rng.integers(1, 9, 60).astype(float), rng.random(60) < 0.4
    found = survival(lived, divides)
    other = ecdf(CensoredData(uncensored=lived[divides], right=lived[~divides])).sf
    band = other.confidence_interval(method="log-log")
    for name, curve in (("undivided", other), ("low", band.low), ("high", band.high)):
        assert np.allclose(found[name], curve.evaluate(found["time"]), equal_nan=True), name
    assert found["at_risk"].tolist() == [np.sum(lived >= time) for time in found["time"]]
    none = survival(lived, np.zeros(60, dtype=bool))
    assert (none[["undivided", "low", "high"]] == 1).all(axis=None)


def test_cycles_and_trees_are_formats_of_a_result(tracks, tmp_path):
    out = tmp_path / "result"
    bt.write_results(tracks, None, out, ["cycles", "lineage"])
    assert sorted(p.name for p in out.iterdir()) == ["cycles.csv", "lineages.svg"]
    assert len(pd.read_csv(out / "cycles.csv")) == 4
    assert "<svg" in (out / "lineages.svg").read_text()
