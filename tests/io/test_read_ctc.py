"""Ground truth in the format of the Cell Tracking Challenge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile

from bridgetrack.errors import InputError
from bridgetrack.io.ctc import read_ctc
from lineage_cases import DIVIDING, DIVIDING_ROWS, frame_of, write_ctc_folder


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    """A data set with one sequence."""
    write_ctc_folder(tmp_path / "01_GT" / "TRA", DIVIDING, DIVIDING_ROWS)
    return tmp_path


def counts(folder: Path) -> dict[str, int]:
    """Number of events per kind."""
    return read_ctc(folder).tracks.events["event"].value_counts().to_dict()


def test_every_way_to_name_a_sequence(truth: Path) -> None:
    expected = read_ctc(truth).tracks.nodes
    for folder in (truth / "01_GT", truth / "01_GT" / "TRA"):
        assert read_ctc(folder).tracks.nodes.equals(expected)


def test_divisions_gaps_and_positions(truth: Path) -> None:
    tracks = read_ctc(truth, scale=(0.5, 0.5), frame_interval=10.0).tracks
    assert counts(truth) == {"move": 4, "divide": 1, "skip": 1}
    assert tracks.nodes.iloc[0][["y", "x", "area"]].tolist() == [13.5, 13.5, 64.0]
    assert tracks.links.to_numpy().tolist() == [[2, 1, "divide"], [3, 1, "divide"]]
    assert tracks.nodes.groupby("track_id")["lineage_id"].first().tolist() == [1, 1, 1, 4]
    assert (tracks.geometry.unit, tracks.geometry.frame_interval) == ("micrometer", 10.0)


def test_whole_cells_come_before_markers(truth: Path) -> None:
    markers = [np.where(f > 0, f, 0) for f in DIVIDING]
    for f in markers:
        f[::2] = 0
    write_ctc_folder(truth / "01_GT" / "FULL", DIVIDING, DIVIDING_ROWS)
    for t, f in enumerate(markers):
        tifffile.imwrite(truth / "01_GT" / "TRA" / f"man_track{t:03d}.tif", f)
    both = read_ctc(truth)
    assert both.markers is not None
    assert both.tracks.nodes["area"].iloc[0] == 64
    assert (both.markers.channel_frame(0) > 0).sum() < (both.labels.channel_frame(0) > 0).sum()
    assert read_ctc(truth / "01_GT" / "TRA").tracks.nodes["area"].iloc[0] < 64


def test_an_only_child_continues_its_parent(tmp_path: Path) -> None:
    frames = [frame_of({1: (5, 5, 4, 4)}), frame_of({}), frame_of({2: (5, 6, 4, 4)})]
    folder = write_ctc_folder(tmp_path / "TRA", frames, ["1 0 0 0", "2 2 2 1"])
    tracks = read_ctc(folder).tracks
    assert tracks.nodes["track_id"].tolist() == [1, 2]
    assert tracks.links["event"].tolist() == ["skip"]


def test_three_daughters_are_read(tmp_path: Path) -> None:
    frames = [frame_of({1: (5, 5, 9, 9)}), frame_of({k: (5, 5 * k, 4, 4) for k in (2, 3, 4)})]
    rows = ["1 0 0 0", *(f"{k} 1 1 1" for k in (2, 3, 4))]
    tracks = read_ctc(write_ctc_folder(tmp_path / "TRA", frames, rows)).tracks
    assert tracks.links["event"].tolist() == ["divide"] * 3


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2 2 x 1", "row 2, column 'end': 'x' is not a number"),
        ("2 2 3", "row 2, column 'parent': '' is not a number"),
        ("1 2 3 0", "row 2: the label was used before"),
        ("2 2 3 9", "row 2: there is no track of its parent"),
        ("2 1 3 1", "row 2: its parent is still there"),
        ("2 3 3 1", "label 2 has a mask in frame 2, but the table has it in the frames 3 to 3"),
        ("9 2 3 1", "label 2 of frame 2 is not in it"),
        ("2 2 1000000000 1", "ends in frame 1000000000, but the last mask is that of frame 3"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: str, message: str) -> None:
    rows = [DIVIDING_ROWS[0], row, *DIVIDING_ROWS[2:]]
    with pytest.raises(InputError, match=message):
        read_ctc(write_ctc_folder(tmp_path / "TRA", DIVIDING, rows))


@pytest.mark.parametrize("form", ["{}.0 ", "{:.18e} ", "\ufeff{}, ", "{}\t"])
def test_every_way_to_write_a_table(tmp_path: Path, truth: Path, form: str) -> None:
    """With more columns, and roots that name themselves or a number below 0."""
    words = [[int(word) for word in row.split()] for row in DIVIDING_ROWS]
    words = [[*row[:3], row[3] or row[0] * (-1) ** k, 7, 1] for k, row in enumerate(words)]
    rows = ["".join(form.format(word) for word in row) for row in words]
    rows = [row[:1] + row[1:].replace("\ufeff", "") for row in rows]
    rows[1:] = [row.replace("\ufeff", "") for row in rows[1:]]
    again = read_ctc(write_ctc_folder(tmp_path / "more" / "TRA", DIVIDING, rows)).tracks
    assert again.nodes.equals(read_ctc(truth).tracks.nodes)
    assert again.edges.equals(read_ctc(truth).tracks.edges)


def test_a_table_without_rows_is_told_of_where_cells_are_drawn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the table is empty, but the masks are not"):
        read_ctc(write_ctc_folder(tmp_path / "TRA", DIVIDING, []))


def test_a_track_that_is_nowhere_drawn(tmp_path: Path) -> None:
    folder = write_ctc_folder(tmp_path / "TRA", DIVIDING, [*DIVIDING_ROWS, "7 0 1 0"])
    with pytest.raises(InputError, match="track 7 has no mask"):
        read_ctc(folder)


def test_broken_files_are_named(truth: Path) -> None:
    folder = truth / "01_GT" / "TRA"
    second = folder / "man_track001.tif"
    good = second.read_bytes()
    second.write_bytes(good[: len(good) // 4])
    with pytest.raises(InputError, match=r"man_track001\.tif"):
        read_ctc(truth)
    tifffile.imwrite(second, np.zeros((5, 5), dtype=np.uint16))
    with pytest.raises(InputError, match=r"man_track001\.tif: the frame has shape \(5, 5\)"):
        read_ctc(truth)
    tifffile.imwrite(second, np.full((40, 60), 0.5, dtype=np.float32))
    with pytest.raises(InputError, match="frame 1"):
        read_ctc(truth)
    second.unlink()
    with pytest.raises(InputError, match="frame 1 is missing"):
        read_ctc(truth)


def test_folders_that_hold_no_truth(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        read_ctc(tmp_path / "nothing")
    with pytest.raises(InputError, match="neither man_track"):
        read_ctc(tmp_path)
    (tmp_path / "01_GT").mkdir()
    with pytest.raises(InputError, match=r"01_GT: found neither man_track\.txt"):
        read_ctc(tmp_path)
    (tmp_path / "02_GT").mkdir()
    with pytest.raises(InputError, match="several sequences"):
        read_ctc(tmp_path)


@pytest.mark.parametrize(
    ("name", "nodes", "divisions"), [("bacteria", 1684, 162), ("HL60-3D-small", 777, 8)]
)
def test_real_truth(shared_data: Path, name: str, nodes: int, divisions: int) -> None:
    tracks = read_ctc(shared_data / name).tracks
    assert len(tracks.nodes) == nodes
    assert (tracks.events["event"] == "divide").sum() == divisions
