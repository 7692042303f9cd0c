"""Results appear complete or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgetrack.io.results import read_tracks, write_results
from bridgetrack.tracks.tracks import Tracks
from lineage_cases import tracks_of


@pytest.fixture
def tracks() -> Tracks:
    """One cell in two frames of `DIVIDING`."""
    return tracks_of([(0, 1, 14, 14, 1), (1, 1, 14, 15, 1)], [(0, 1, "move")], n_frames=4)


def names(folder: Path) -> list[str]:
    """Everything in a folder, hidden files too."""
    return sorted(p.name for p in folder.iterdir())


def test_the_home_folder_has_a_short_name(
    tracks: Tracks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write_results(tracks, None, "~/out", ("csv", "geff"))
    assert "detections.csv" in names(tmp_path / "out")
    for name in ("~/out", "~/out/detections.csv", "~/out/tracks.geff"):
        assert len(read_tracks(name).nodes) == 2


def test_without_masks_there_is_no_ctc(tracks: Tracks, tmp_path: Path) -> None:
    notes = write_results(tracks, None, tmp_path / "out", ("ctc", "csv"))
    assert notes == ("ctc: not written, because there are no masks",)
    assert "ctc" not in names(tmp_path / "out")
