"""Files as other programs write them, and damaged ones: each is read rightly, or refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import bridgetrack as bt
from bridgetrack.cli.main import main
from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.io.tables import read_detections_csv
from bridgetrack.tracks.tracks import Tracks

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"


def counts(tracks: Tracks) -> tuple[int, ...]:
    """Cells, frames, tracks and divisions."""
    divisions = int((tracks.events["event"] == "divide").sum())
    return len(tracks.nodes), tracks.geometry.n_frames, tracks.n_tracks, divisions


RIGHT = {
    "cellprofiler_objects/cells.csv": (48, 8, 6, 0),
    "napari_points/cells.csv": (48, 8, 6, 0),
    "decimal_comma/cells.csv": (48, 8, 6, 0),
    "duplicate_rows/cells.csv": (48, 8, 6, 0),
    "time_in_seconds/cells.csv": (48, 8, 6, 0),
    "micrometres_header/cells.csv": (48, 8, 6, 0),
    "geff_minutes/tracks.geff": (17, 6, 3, 0),
    "geff_no_axes/tracks.geff": (17, 6, 3, 0),
}
"""What is right by the README of a case."""

REFUSED: dict[str, tuple[str, str]] = {
    "positions_xy": (".", "several positions"),
    "folder_two_positions": ("movies", "several positions"),
    "binary_255": ("labels.tif", "bridgetrack segment"),
    "ome_unexpected_error": ("x.ome.tif", "damaged"),
    "tiff_later_pages_dropped": ("dtype.tif", "holds 2 stacks"),
}
"""Cases that cannot be tracked, with what the message names."""


def case(name: str) -> Path:
    """A file or folder of the cases; skips the test where it is absent."""
    if not (CASES / name).exists():
        pytest.skip(f"the case {name} is not beside the project")
    return CASES / name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RIGHT)
def test_it_is_read_as_its_maker_meant_it(name: str) -> None:
    path = case(name)
    tracks = bt.track(path).tracks if path.suffix == ".csv" else bt.read_tracks(path)
    assert counts(tracks) == RIGHT[name]


@pytest.mark.parametrize("name", ["ctc_division_gap", "ctc_extra_columns"])
def test_divisions_of_other_programs_are_read(name: str) -> None:
    assert counts(bt.read_tracks(case(name) / "01_GT"))[-1] == 1


def test_types_that_grow_from_file_to_file() -> None:
    assert counts(bt.track(case("folder_growing_dtype/labels")).tracks)[:3] == (77, 5, 18)


@pytest.mark.parametrize("name", ["frames_zfiles", "planes_micromanager"])
def test_a_file_for_every_plane(name: str) -> None:
    geometry = bt.open_labels(case(name)).geometry
    assert (geometry.n_frames, geometry.shape) == (6, (3, 280, 300))


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_what_to_do(name: str) -> None:
    file, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        bt.track(case(name) / file)


@pytest.mark.filterwarnings("ignore")
def test_tables_of_twenty_programs_hold_the_same_three_cells() -> None:
    files = sorted(case("table_heads").glob("*.csv"))
    tables = [read_detections_csv(file) for file in files]
    assert len(files) == 21
    assert {(len(t), t.geometry.n_frames, t.geometry.ndim) for t in tables} == {(12, 4, 2)}


def test_a_damaged_mask_of_a_truth_is_no_empty_frame() -> None:
    with pytest.raises(InputError, match="man_track003"):
        bt.read_tracks(case("ctc_damaged_mask") / "TRA")


def test_scores_of_links_that_fit_nothing_are_counted() -> None:
    folder = case("link_scores_one_based")
    masks, right = folder / "TRA", (77, 5, 18)
    assert counts(bt.track(masks, link_scores=folder / "good.csv").tracks)[:3] == right
    with pytest.raises(InputError, match="from 1"):
        bt.track(masks, link_scores=folder / "one_based.csv")
    with pytest.warns(BridgetrackWarning, match="2 of"):
        assert counts(bt.track(masks, link_scores=folder / "beyond.csv").tracks)[:3] == right


def test_a_table_of_many_movies_holds_no_formula(tmp_path: Path) -> None:
    """Names of files may begin like one."""
    (tmp_path / "movies").mkdir()
    cells = case("napari_points") / "cells.csv"
    shutil.copy(cells, tmp_path / "movies" / "=cmd.csv")
    assert main(["batch", str(tmp_path / "movies"), "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "batch.csv").read_text().splitlines()[1].startswith("'=cmd,")
