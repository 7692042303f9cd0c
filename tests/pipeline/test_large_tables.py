"""Tables of a movie whose arrays lie on disk are joined and written with little in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bridgetrack as bt
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.io.csv import csv_notes, first_parents, write_csv
from bridgetrack.movie.geometry import Geometry
from bridgetrack.paged import Pages, room_on_disk
from bridgetrack.tracks.build import build_tracks
from bridgetrack.tracks.table import node_margins, track_table
from bridgetrack.tracks.tracks import Tracks

SAMPLE = Path(__file__).parents[2] / "sample_data" / "01_GT" / "TRA"
CELLS, FRAMES = 400, 60


def test_what_joining_and_writing_take_for_each_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridgetrack.paged._AT_ONCE", 1 << 16)
    monkeypatch.setattr("bridgetrack.paged.ROWS_AT_ONCE", 2_000)
    monkeypatch.setattr("bridgetrack.io.csv._AT_ONCE", 500)
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
    assert joined / n < 25
    assert written / n < 70


def test_tables_made_piece_by_piece_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bt.track(SAMPLE)
    scene, scores, margins = found.scene, found.scores, found.margins
    wanted = found.tracks
    monkeypatch.setattr("bridgetrack.paged._SMALL", 0)
    monkeypatch.setattr("bridgetrack.paged.ROWS_AT_ONCE", 50)
    monkeypatch.setattr("bridgetrack.tracks.table._MORE", 3)
    given = scene.detections, scene.hypotheses, found.solution.chosen, scores, margins
    tracks = build_tracks(*given, pages=Pages(tmp_path))
    assert len(wanted.nodes) > 500 and {"divide", "move"} <= set(wanted.edges["event"])
    for name in ("nodes", "edges", "events", "links"):
        one, other = getattr(tracks, name), getattr(wanted, name)
        if "event" in one:
            one = one.assign(event=one["event"].astype(other["event"].dtype))
        pd.testing.assert_frame_equal(one, other)
    for shuffled in (False, True):
        if shuffled:  # as tables of others may be
            draw = np.random.default_rng(1)
            nodes, edges = (t.iloc[draw.permutation(len(t))] for t in (wanted.nodes, wanted.edges))
            twice = edges.iloc[:1].assign(source=edges["source"].min())
            edges = pd.concat([edges, twice[twice["source"] != edges["source"].iloc[0]]])
            wanted = replace(wanted, nodes=nodes.reset_index(drop=True), edges=edges)
            tracks = replace(wanted, pages=Pages(tmp_path))
        pd.testing.assert_frame_equal(track_table(tracks), _at_once(track_table, wanted))
        pd.testing.assert_series_equal(first_parents(tracks), _at_once(first_parents, wanted))
        several = int((wanted.edges["target"].value_counts() > 1).sum())
        assert (several == 0) != shuffled
        assert [f"{several} detection" in note for note in csv_notes(tracks)] == [True] * shuffled
        np.testing.assert_array_equal(node_margins(tracks), _at_once(node_margins, wanted))


def _at_once(make: Callable[..., Any], tracks: Tracks, *more: str) -> Any:
    """What is made of tracks, none of them put aside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bridgetrack.paged.ROWS_AT_ONCE", 1 << 20)
        return make(replace(tracks, pages=Pages()), *more)
