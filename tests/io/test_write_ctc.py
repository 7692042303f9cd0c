"""Results in the format of the Cell Tracking Challenge pass its validation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings

from bridgetrack.errors import InputError
from bridgetrack.io.ctc import ctc_form, write_ctc
from bridgetrack.tracks.tracks import Tracks
from lineage_cases import (
    DIVIDING,
    cut_cell,
    frame_of,
    movie_of,
    random_tracks,
    regained_identity,
    tracks_of,
)


def is_valid(folder: Path) -> bool:
    """What py-ctcmetrics says of a result folder."""
    validation = pytest.importorskip("ctc_metrics.metrics.validation.valid")
    from ctc_metrics.utils.filesystem import parse_masks, read_tracking_file

    masks = parse_masks(str(folder))
    labels = [[int(v) for v in np.unique(tifffile.imread(m)) if v] for m in masks]
    table = read_tracking_file(str(folder / "res_track.txt"))
    return bool(validation.valid(masks, table, labels))


@settings(deadline=None, max_examples=12)
@given(random_tracks())
def test_any_tracks_take_a_valid_form(tracks: Tracks) -> None:
    form = ctc_form(tracks)
    label, begin, end, parent = form.table.T
    assert len(np.unique(label)) == len(label)
    assert (begin <= end).all()
    ends = dict(zip(label.tolist(), end.tolist(), strict=True))
    assert all(p == 0 or ends[p] < b for p, b in zip(parent.tolist(), begin.tolist(), strict=True))
    frame = tracks.nodes["frame"].to_numpy()
    drawn = set(zip(form.label.tolist(), frame.tolist(), strict=True))
    rows = zip(label.tolist(), begin.tolist(), end.tolist(), strict=True)
    assert drawn == {(lab, t) for lab, b, e in rows for t in range(b, e + 1)}


def test_pieces_share_a_label_and_false_detections_are_erased(tmp_path: Path) -> None:
    frames = [
        frame_of({1: (5, 5, 6, 12), 9: (30, 30, 3, 3)}),
        frame_of({1: (5, 5, 6, 6), 2: (5, 11, 6, 6)}),
        frame_of({1: (5, 5, 6, 12)}),
    ]
    write_ctc(cut_cell(), movie_of(frames), tmp_path / "out")
    assert (tmp_path / "out" / "res_track.txt").read_text() == "1 0 2 0\n"
    masks = [tifffile.imread(tmp_path / "out" / f"mask00{t}.tif") for t in range(3)]
    assert [np.unique(m).tolist() for m in masks] == [[0, 1]] * 3
    assert [int((m > 0).sum()) for m in masks] == [72, 72, 72]
    assert is_valid(tmp_path / "out")


def test_a_merge_is_never_a_division() -> None:
    form = ctc_form(regained_identity())
    parents = form.table[:, 3][form.table[:, 3] > 0]
    assert sorted(parents.tolist()) == [1, 2]
    assert any("2 merge links" in note for note in form.notes)


def test_a_merge_keeps_one_parent_where_it_can() -> None:
    nodes = [(0, 1, 5, 5, 1), (0, 2, 5, 9, 2), (1, 1, 5, 7, 3)]
    tracks = tracks_of(nodes, [(0, 2, "merge"), (1, 2, "merge")], n_frames=2)
    form = ctc_form(tracks)
    assert form.table.tolist() == [[1, 0, 0, 0], [2, 0, 0, 0], [3, 1, 1, 1]]
    assert any("1 merge link " in note for note in form.notes)


def test_a_mother_that_is_still_there_is_left_out() -> None:
    nodes = [(0, 1, 5, 5, 1), (1, 1, 5, 5, 1), (1, 2, 5, 9, 2)]
    form = ctc_form(tracks_of(nodes, [(0, 1, "move")], [(2, 1, "divide")]))
    assert form.table.tolist() == [[1, 0, 1, 0], [2, 1, 1, 0]]
    assert any("still exist when the daughter appears" in note for note in form.notes)


def test_ids_beyond_16_bits_are_renumbered() -> None:
    tracks = tracks_of([(0, 1, 1, 1, 70_000), (1, 1, 1, 1, 70_000)], [(0, 1, "move")])
    assert ctc_form(tracks).table.tolist() == [[1, 0, 1, 0]]


def test_another_segmentation_is_noticed(tmp_path: Path) -> None:
    tracks = tracks_of([(0, 5, 1, 1, 1)], [], n_frames=4)
    with pytest.raises(InputError, match="frame 0: the cell 5 is in the tracks but not"):
        write_ctc(tracks, movie_of(DIVIDING), tmp_path / "out")
