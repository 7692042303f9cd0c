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
from bridgetrack.annotations.anchor import cell_refs, event_refs
from bridgetrack.annotations.annotation import Annotation, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.explain import explain_event, find_event
from bridgetrack.pipeline.memory import _bytes_needed, parse_memory
from bridgetrack.pipeline.report import least_certain, use_of_annotations
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import near


def walk(cells: int, frames: int, lost: float = 0.01) -> pd.DataFrame:
    """Cells that walk at random and divide; some vanish for a frame, some for good."""
    draw = np.random.default_rng(5)
    place = draw.uniform(0, 18 * np.sqrt(cells), (cells, 2))
    tables = []
    for t in range(frames):
        seen = place[draw.random(len(place)) > lost]
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
    walk(40, 40).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def whole(table: Path) -> Tracking:
    """The movie tracked at once."""
    return bt.track(table)


@pytest.mark.parametrize("frames", (6, 25))
def test_the_tracks_are_those_of_the_whole_movie(table: Path, whole: Tracking, frames: int) -> None:
    found = bt.track(table, window=frames)
    pd.testing.assert_frame_equal(found.tracks.nodes, whole.tracks.nodes)
    edges = [t.tracks.edges.drop(columns="margin_at_least") for t in (found, whole)]
    pd.testing.assert_frame_equal(*edges)
    assert set(found.tracks.events["event"]) >= {"move", "divide", "appear", "disappear", "skip"}
    assert found.solution.value == pytest.approx(whole.solution.value, rel=1e-12)
    assert found.windows is not None
    assert found.windows.hypotheses == len(whole.scene.hypotheses)
    assert found.windows.count == -(-39 // (frames - 1))


def test_nothing_is_lost_where_windows_meet_and_the_bound_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk(40, 24, lost=0.1).to_csv(tmp_path / "cells.csv", index=False)
    whole = bt.track(tmp_path / "cells.csv")
    assert whole.solution.gap < 1e-6
    found = bt.track(tmp_path / "cells.csv", window=3)
    assert found.windows is not None and found.windows.count == 12
    assert found.solution.value == pytest.approx(whole.solution.value, rel=1e-12)
    assert found.solution.gap < 1e-4
    monkeypatch.setattr("bridgetrack.pipeline.windows._AROUND", 1)  # so that something is lost
    hasty = bt.track(tmp_path / "cells.csv", window=3)
    lost = whole.solution.value - hasty.solution.value
    assert lost > 1
    assert lost <= hasty.solution.gap + 1e-6
    hasty.solution.check(hasty.scene.problem, hasty.scores)


def test_the_least_certain_events_are_told_and_explained(table: Path, whole: Tracking) -> None:
    found = bt.track(table, window=20)
    assert found.solution.gap < 1e-4
    told = least_certain(found)
    assert len(told) == 5 and all(event["at_least"] for event in told)
    rows = np.argsort(found.margins)[:5]
    assert [event["margin"] for event in told] == pytest.approx(found.margins[rows].tolist())
    for event in found.scene.hypotheses.take(rows).first.tolist():
        cell = found.scene.detections.table.iloc[event]
        place = int(cell["frame"]), int(cell["label"])
        around = near(found, place[0])
        exact = explain_event(whole, find_event(whole, *place))
        assert explain_event(around, find_event(around, *place)) == exact
    columns = whole.scene.hypotheses.find(found.scene.hypotheses.take(rows))
    for row, column in zip(rows, columns, strict=True):
        assert found.margins[row] <= explain_event(whole, int(column)).margin + 1e-6


def answers_that_change(whole: Tracking) -> AnnotationSet:
    """Events that were not chosen are right, chosen ones are wrong, across meetings of windows."""
    detections, hypotheses = whole.scene.detections, whole.scene.hypotheses
    draw = np.random.default_rng(3)
    frame = np.where(
        hypotheses.sources[:, 0] < 0,
        detections.frame[hypotheses.targets[:, 0]],
        detections.frame[hypotheses.sources[:, 0]],
    )
    answers = AnnotationSet(detections.geometry)
    taken: set[tuple[int, int]] = set()
    kinds = {Kind.CONFIRM: ~whole.solution.chosen, Kind.REJECT: whole.solution.chosen}
    for kind, which in kinds.items():
        for event in (Event.SKIP, Event.FALSE, Event.MOVE, Event.DIVIDE, Event.APPEAR):
            rows = np.flatnonzero(which & (hypotheses.event == event) & (frame % 8 < 3))
            for ref in event_refs(detections, hypotheses.take(draw.permutation(rows)[:8])):
                if not taken & {c.cell for c in ref.cells}:
                    taken |= {c.cell for c in ref.cells}
                    new = Annotation(f"a{answers.last_id + 1}", kind, (ref,))
                    answers = answers.edit(add=[new])
    return answers


def test_answers_are_honoured_in_the_windows_that_hold_them(table: Path, whole: Tracking) -> None:
    answers = answers_that_change(whole)
    changed = bt.track(table, annotations=answers)
    assert changed.solution.value < whole.solution.value - 10
    found = bt.track(table, annotations=answers, window=9)
    assert found.windows is not None and found.windows.count == 5
    assert found.solution.value == pytest.approx(changed.solution.value, rel=1e-9)
    torn = changed.solution.duals.sum() - changed.solution.value  # the relaxation is not whole
    assert found.solution.gap < torn + 1e-3
    assert use_of_annotations(found) == use_of_annotations(changed)
    assert use_of_annotations(found)["used"] > 20
    pd.testing.assert_frame_equal(found.tracks.nodes, changed.tracks.nodes)
    cells = changed.scene.detections
    gone = np.flatnonzero(cells.frame == 20)[:1]
    alone = [
        Annotation(f"x{k}", Kind.REJECT, (EventRef(event, *sides),))
        for k, (event, sides) in enumerate(
            (e, (tuple(cell_refs(cells, gone)), ())) for e in (Event.DISAPPEAR, Event.FALSE)
        )
    ]
    joined = bt.track(table, annotations=AnnotationSet(cells.geometry, alone), window=9)
    assert use_of_annotations(joined)["given"] == 2


def test_enough_memory_needs_no_windows(
    table: Path, whole: Tracking, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bt.track(table, memory=1e12).windows is None
    assert bt.track(table, window=40).windows is None
    n = len(whole.scene.detections)
    few = "but 1,\\d+ cells, 21 frames at a time, need about 0"
    with pytest.raises(BridgetrackError, match=f"are given, {few}.* give --memory 0"):
        bt.track(table, memory="1MB")
    # What the machine has free counts where nothing is said.
    monkeypatch.setattr("bridgetrack.pipeline.memory.free_memory", lambda: 2e6)
    with pytest.raises(BridgetrackError, match=f"0.002 GB of memory are free here, {few}"):
        bt.track(table)
    tables, per_cell = _bytes_needed(whole.scene.evidence)
    tight = tables + per_cell * 0.6 * n
    monkeypatch.setattr("bridgetrack.pipeline.memory.free_memory", lambda: tight)
    found = bt.track(table)
    assert found.windows is not None and found.windows.count == 2
    assert found.solution.value == pytest.approx(whole.solution.value)


LIMITED = """
import re, sys
from pathlib import Path
from bridgetrack.cli.main import main
assert main(["track", sys.argv[1], "--out", sys.argv[2], "--memory", "380MB"]) == 0
# not ru_maxrss: that begins with the size of the program that started this one
print(1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is counted otherwise")
def test_the_memory_is_kept_to(tmp_path: Path) -> None:
    table, out = tmp_path / "cells.csv", tmp_path / "out"
    walk(300, 50).to_csv(table, index=False)
    words = [sys.executable, "-c", LIMITED, str(table), str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[-1]) < 380e6
    record = json.loads((out / "run.json").read_text())
    assert record["inference"]["windows"]["count"] > 1
    assert record["inference"]["gap"] < 1e-3 * record["inference"]["objective"]


def test_words_for_memory() -> None:
    given = ("4GB", "800 MB", "1.5g", "2TiB", "1000000")
    assert [parse_memory(m) for m in given] == [4e9, 8e8, 1.5e9, 2 * 2**40, 1e6]
    for wrong in ("much", "0GB", "-1GB", "4 apples"):
        with pytest.raises(InputError, match="not an amount of memory"):
            parse_memory(wrong)
    for bare in ("4", 4):
        with pytest.raises(InputError, match="has no unit; write one, such as 4GB"):
            parse_memory(bare)
