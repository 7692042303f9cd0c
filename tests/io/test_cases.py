"""Files as other programs write them, and damaged ones: each is read rightly, or refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import bridgetrack as bt
from bridgetrack.cli.main import main
from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.io.tables import read_detections_csv

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
Result = Callable[[Path], tuple[int, ...]]


def tracked(name: str) -> Result:
    """Cells, frames and tracks of a movie."""

    def found(case: Path) -> tuple[int, ...]:
        tracks = bt.track(case / name).tracks
        return len(tracks.nodes), tracks.geometry.n_frames, tracks.n_tracks

    return found


def read(name: str) -> Result:
    """Cells, frames, tracks and divisions of tracks that somebody wrote."""

    def found(case: Path) -> tuple[int, ...]:
        tracks = bt.read_tracks(case / name)
        divisions = int((tracks.events["event"] == "divide").sum())
        return len(tracks.nodes), tracks.geometry.n_frames, tracks.n_tracks, divisions

    return found


def opened(name: str) -> Result:
    """Extent of a movie."""

    def found(case: Path) -> tuple[int, ...]:
        geometry = bt.open_labels(case / name).geometry
        return geometry.n_frames, *(geometry.shape or ())

    return found


def with_scores(name: str) -> Result:
    """As `tracked`, with scores of links."""

    def found(case: Path) -> tuple[int, ...]:
        tracks = bt.track(case / "TRA", link_scores=case / name).tracks
        return len(tracks.nodes), tracks.geometry.n_frames, tracks.n_tracks

    return found


RIGHT: dict[str, tuple[Result, tuple[int, ...]]] = {
    "cellprofiler_objects": (tracked("cells.csv"), (48, 8, 6)),
    "napari_points": (tracked("cells.csv"), (48, 8, 6)),
    "decimal_comma": (tracked("cells.csv"), (48, 8, 6)),
    "duplicate_rows": (tracked("cells.csv"), (48, 8, 6)),
    "time_in_seconds": (tracked("cells.csv"), (48, 8, 6)),
    "micrometres_header": (tracked("cells.csv"), (48, 8, 6)),
    "folder_growing_dtype": (tracked("labels"), (77, 5, 18)),
    "frames_zfiles": (opened("."), (6, 3, 280, 300)),
    "planes_micromanager": (opened("."), (6, 3, 280, 300)),
    "geff_minutes": (read("tracks.geff"), (17, 6, 3, 0)),
    "geff_no_axes": (read("tracks.geff"), (17, 6, 3, 0)),
    "link_scores_one_based": (with_scores("good.csv"), (77, 5, 18)),
}
"""Cases with what is right by their README."""

REFUSED: dict[str, tuple[str, str]] = {
    "positions_xy": (".", "several positions"),
    "folder_two_positions": ("movies", "several positions"),
    "binary_255": ("labels.tif", "bridgetrack segment"),
    "ome_unexpected_error": ("x.ome.tif", "damaged"),
    "tiff_later_pages_dropped": ("dtype.tif", "holds 2 stacks"),
}
"""Cases that cannot be tracked, with what the message names."""


def case(name: str) -> Path:
    """The folder of a case; skips the test where it is absent."""
    if not (CASES / name).is_dir():
        pytest.skip(f"the case {name} is not beside the project")
    return CASES / name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RIGHT)
def test_it_is_read_as_its_maker_meant_it(name: str) -> None:
    found, right = RIGHT[name]
    assert found(case(name)) == right


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


@pytest.mark.parametrize("gap", ["ctc_division_gap", "ctc_extra_columns"])
def test_divisions_of_other_programs_are_read(gap: str) -> None:
    assert read("01_GT")(case(gap))[3] == 1


def test_a_damaged_mask_of_a_truth_is_no_empty_frame() -> None:
    with pytest.raises(InputError, match="man_track003"):
        bt.read_tracks(case("ctc_damaged_mask") / "TRA")


def test_scores_of_links_that_fit_nothing_are_counted() -> None:
    folder = case("link_scores_one_based")
    with pytest.raises(InputError, match="from 1"):
        with_scores("one_based.csv")(folder)
    with pytest.warns(BridgetrackWarning, match="2 of"):
        assert with_scores("beyond.csv")(folder) == (77, 5, 18)


def test_names_in_files_give_no_commands_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = case("ansi_in_messages")
    words = ["track", str(folder / "TRA"), "--model", str(folder / "m.json")]
    assert main([*words, "--out", str(tmp_path / "out")]) == 1
    assert "\x1b" not in "".join(capsys.readouterr())


def test_a_table_of_many_movies_holds_no_formula(tmp_path: Path) -> None:
    """Names of files may begin like one."""
    (tmp_path / "movies").mkdir()
    cells = case("napari_points") / "cells.csv"
    shutil.copy(cells, tmp_path / "movies" / "=cmd.csv")
    assert main(["batch", str(tmp_path / "movies"), "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "batch.csv").read_text().splitlines()[1].startswith("'=cmd,")
