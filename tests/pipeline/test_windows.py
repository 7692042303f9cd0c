"""Tracking a few frames at a time gives the tracks of the whole movie, within the memory given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bridgetrack as bt
from bridgetrack.cli.main import main
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.pipeline.summary import least_certain
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import parse_memory, track_in_windows, track_within


def walk(cells: int, frames: int) -> pd.DataFrame:
    """Cells that walk at random and divide; some vanish for a frame, some for good."""
    draw = np.random.default_rng(5)
    place = draw.uniform(0, 18 * np.sqrt(cells), (cells, 2))
    tables = []
    for t in range(frames):
        seen = place[draw.random(len(place)) > 0.01]
        tables.append(pd.DataFrame({"t": t, "y": seen[:, 0], "x": seen[:, 1], "area": 110.0}))
        place = place[draw.random(len(place)) > 0.01]
        born = place[draw.random(len(place)) < 0.01]
        place = np.concatenate([place, born + draw.normal(0, 5, born.shape)])
        place = place + draw.normal(0, 3, place.shape)
    return pd.concat(tables)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A movie of 40 frames."""
    path = tmp_path_factory.mktemp("walk") / "cells.csv"
    walk(60, 40).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def whole(table: Path) -> Tracking:
    """The movie tracked at once."""
    return bt.track(table)


def in_windows(evidence: Evidence, *windows: range) -> Tracking:
    """The movie tracked in windows."""
    return bt.run(track_in_windows(evidence, None, None, list(windows)))


CUTS = [
    (range(40),),
    (range(25), range(17, 40)),
    (range(12), range(6, 20), range(14, 30), range(22, 40)),
]


@pytest.mark.parametrize("cuts", CUTS)
def test_the_tracks_are_those_of_the_whole_movie(
    table: Path, whole: Tracking, cuts: tuple[range, ...]
) -> None:
    found = in_windows(whole.scene.evidence, *cuts)
    pd.testing.assert_frame_equal(found.tracks.nodes, whole.tracks.nodes)
    pd.testing.assert_frame_equal(
        found.tracks.edges.drop(columns="margin"), whole.tracks.edges.drop(columns="margin")
    )
    assert set(found.tracks.events["event"]) >= {"move", "divide", "appear", "disappear", "skip"}
    assert found.solution.value == pytest.approx(whole.solution.value, rel=1e-12)
    assert found.windows is not None
    assert found.windows.hypotheses == len(whole.scene.hypotheses)
    assert found.windows.count == len(cuts)


def test_the_bound_holds_where_windows_cost_something(whole: Tracking) -> None:
    lost = []
    for overlap in (0, 4):
        starts = range(0, 40 - overlap - 1, 5)
        cuts = [range(s, min(s + 5 + overlap, 40)) for s in starts]
        cuts[-1] = range(cuts[-1].start, 40)
        if overlap == 0:  # one frame in common is the least
            cuts = [range(c.start, min(c.stop + 1, 40)) for c in cuts]
        found = in_windows(whole.scene.evidence, *cuts)
        lost.append(whole.solution.value - found.solution.value)
        assert -1e-6 <= lost[-1] <= found.solution.gap + 1e-6
        found.solution.check(found.scene.problem, found.scores)
    assert lost[0] > 1e-3
    assert lost[1] < lost[0]


def test_one_window_is_sure_of_the_same_events(whole: Tracking) -> None:
    found = in_windows(whole.scene.evidence, range(40))
    assert found.solution.gap < 1e-4
    assert least_certain(found) == least_certain(whole)


def test_enough_memory_needs_no_windows(table: Path, whole: Tracking) -> None:
    cells = bt.read_detections_csv(table)
    assert bt.run(track_within(cells, 1e12)).windows is None
    found = bt.run(gather_evidence(cells))
    assert len(found.detections) == len(whole.scene.detections)
    with pytest.raises(
        BridgetrackError, match=r"are not enough for the tables of 2,\d+ cells; .* --memory 0"
    ):
        bt.run(track_within(cells, 1e6))


LIMITED = """
import re, sys
from pathlib import Path
from bridgetrack.cli.main import main
assert main(["track", sys.argv[1], "--out", sys.argv[2], "--memory", "430MB"]) == 0
# not ru_maxrss: that begins with the size of the program that started this one
print(1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is counted otherwise")
def test_the_memory_is_kept_to(tmp_path: Path) -> None:
    table, out = tmp_path / "cells.csv", tmp_path / "out"
    walk(350, 60).to_csv(table, index=False)
    words = [sys.executable, "-c", LIMITED, str(table), str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[-1]) < 430e6
    record = json.loads((out / "run.json").read_text())
    assert record["inference"]["windows"]["count"] > 1
    assert record["inference"]["gap"] < 1e-3 * record["inference"]["objective"]
    whole = bt.track(table)
    assert record["inference"]["hypotheses"] == len(whole.scene.hypotheses)
    whole.save(tmp_path / "whole")
    one, other = ((p / "detections.csv").read_bytes() for p in (out, tmp_path / "whole"))
    assert one == other


def test_words_for_memory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = ("4GB", "800 MB", "1.5g", "2TiB", "1000000")
    assert [parse_memory(m) for m in given] == [4e9, 8e8, 1.5e9, 2e12, 1e6]
    for wrong in ("much", "0GB", "-1GB", "4 apples"):
        with pytest.raises(InputError, match="no amount of memory"):
            parse_memory(wrong)
    words = ["track", "x.tif", "--out", str(tmp_path), "--memory", "1GB", "--annotations", "a.json"]
    assert main(words) == 2
    assert "exclude each other" in capsys.readouterr().err
