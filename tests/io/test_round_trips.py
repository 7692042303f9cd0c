"""What is written is read back without loss."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from bridgetrack.errors import InputError
from bridgetrack.io.csv import read_tracks_csv, write_csv
from bridgetrack.io.ctc import read_ctc, write_ctc
from bridgetrack.io.geff import read_geff, write_geff
from bridgetrack.io.results import FORMATS, read_tracks, write_results
from bridgetrack.tracks.tracks import Tracks
from lineage_cases import (
    DIVIDING,
    DIVIDING_ROWS,
    assert_same_tracks,
    cut_cell,
    random_tracks,
    regained_identity,
    tracks_of,
    write_ctc_folder,
)

quick = settings(deadline=None, max_examples=4, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(random_tracks())
def test_csv(tracks: Tracks) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_csv(tracks, folder)
        assert_same_tracks(read_tracks_csv(Path(folder) / "detections.csv"), tracks)


@settings(quick, max_examples=3)
@given(random_tracks())
def test_geff(tracks: Tracks) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_geff(tracks, Path(folder) / "a.geff")
        assert_same_tracks(read_geff(Path(folder) / "a.geff"), tracks)


@pytest.mark.parametrize("case", [regained_identity, cut_cell])
def test_merges_splits_and_pieces(tmp_path: Path, case: object) -> None:
    tracks = case()  # type: ignore[operator]
    write_csv(tracks, tmp_path)
    write_geff(tracks, tmp_path / "a.geff")
    assert_same_tracks(read_geff(tmp_path / "a.geff"), tracks)
    assert_same_tracks(read_tracks_csv(tmp_path / "detections.csv"), tracks)


def test_a_cell_in_pieces_is_one_row_and_its_pieces_stand_beside(tmp_path: Path) -> None:
    tracks = cut_cell()
    tracks.nodes["area"] = [8.0, 3.0, 5.0, 8.0]
    write_csv(tracks, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == set(FORMATS["csv"].files)
    table = pd.read_csv(tmp_path / "detections.csv")
    assert table[["t", "track_id"]].values.tolist() == [[0, 1], [1, 1], [2, 1]]
    assert table["id"].tolist() == [0, 2, 3] and table["area"].tolist() == [8.0, 8.0, 8.0]
    assert table["x"].tolist() == pytest.approx([5.0, (3 * 4 + 5 * 6) / 8, 5.0])
    assert table["parent_id"].tolist()[1:] == [0, 2], "each parent is a row"
    assert pd.read_csv(tmp_path / "pieces.csv")["id"].tolist() == [1, 2]
    with pytest.raises(InputError, match=r"table of tracks; open detections\.csv"):
        read_tracks_csv(tmp_path / "tracks.csv")


def test_what_one_parent_per_row_cannot_hold_is_said(tmp_path: Path) -> None:
    (note,) = write_csv(regained_identity(), tmp_path)
    assert "1 detection has several parents" in note
    assert note in json.loads((tmp_path / "units.json").read_text())["limits"]


def test_a_folder_of_results_below_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    tracks = tracks_of([(0, 1, 14, 14, 1), (1, 1, 14, 15, 1)], [(0, 1, "move")])
    notes = write_results(tracks, None, "~/out", ("csv", "ctc", "geff"))
    assert notes == ("ctc: not written, because there are no masks",)
    assert not (tmp_path / "out" / "ctc").exists()
    for name in ("~/out", "~/out/detections.csv", "~/out/tracks.geff"):
        assert len(read_tracks(name).nodes) == 2


def test_ctc_through_a_gap(tmp_path: Path) -> None:
    truth = read_ctc(write_ctc_folder(tmp_path / "TRA", DIVIDING, DIVIDING_ROWS))
    notes = write_ctc(truth.tracks, truth.labels, tmp_path / "out")
    assert any("1 gap " in note for note in notes)
    again = read_ctc(tmp_path / "out")
    for column in ("frame", "y", "x", "area", "lineage_id"):
        assert again.tracks.nodes[column].tolist() == truth.tracks.nodes[column].tolist()
    assert again.tracks.edges.equals(truth.tracks.edges)
    assert again.tracks.n_tracks == truth.tracks.n_tracks + 1
