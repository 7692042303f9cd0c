"""Tables of a movie whose arrays lie on disk are joined and written with little in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bridgetrack.detections.table import Detections
from bridgetrack.export.csv import write_csv
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.movie.geometry import Geometry
from bridgetrack.paged import Pages, room_on_disk
from bridgetrack.tracks.build import build_tracks

CELLS, FRAMES = 400, 60


def test_what_joining_and_writing_take_for_each_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridgetrack.paged._AT_ONCE", 1 << 16)
    monkeypatch.setattr("bridgetrack.paged.ROWS_AT_ONCE", 2_000)
    monkeypatch.setattr("bridgetrack.export.csv._AT_ONCE", 500)
    n, pages = CELLS * FRAMES, Pages(room_on_disk())
    rows = np.arange(n)
    columns = {
        "frame": rows // CELLS,
        "label": rows % CELLS + 1,
        "y": rows % 40.0,
        "x": rows % 70.0,
    }
    table = pd.DataFrame({**columns, "area": 50.0 + rows % 9, "id": rows})
    detections = Detections(table, Geometry(FRAMES, None, (1.0, 1.0)), False).on(pages)
    moves = pages.keep(Events.of_kind(Event.MOVE, [rows[:-CELLS]], [rows[CELLS:]]))
    scores = pages.put(np.ones(len(moves)))
    tracemalloc.start()
    try:
        chosen = np.ones(len(moves), dtype=bool)
        tracks = build_tracks(detections, moves, chosen, scores, scores, pages=pages)
        joined = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        write_csv(tracks, tmp_path)
        written = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert int(tracks.nodes["track_id"].max()) == CELLS
    # `room` reckons with 350, for all that is held besides
    assert joined / n < 128
    assert written / n < 215
