"""Results appear complete or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgetrack.errors import OutputError
from bridgetrack.io.results import read_tracks, write_results
from bridgetrack.tracks.tracks import Tracks
from lineage_cases import DIVIDING, movie_of, tracks_of

TABLES = ["detections.csv", "edges.csv", "events.csv", "tracks.csv"]


@pytest.fixture
def tracks() -> Tracks:
    """One cell in two frames of `DIVIDING`."""
    return tracks_of([(0, 1, 14, 14, 1), (1, 1, 14, 15, 1)], [(0, 1, "move")], n_frames=4)


def content(folder: Path) -> dict[str, bytes]:
    """All files in a folder and below."""
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def names(folder: Path) -> list[str]:
    """Everything in a folder, hidden files too."""
    return sorted(p.name for p in folder.iterdir())


def test_a_folder_holds_one_result(tracks: Tracks, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert write_results(tracks, movie_of(DIVIDING), out) == ()
    assert names(out) == ["ctc", *TABLES, "tracks.geff", "units.json"]
    assert write_results(tracks, movie_of(DIVIDING), out, ("csv",)) == (
        "the earlier result in this folder was replaced",
    )
    assert names(out) == [*TABLES, "units.json"]
    (out / "mine.txt").write_text("keep")
    before = content(out)
    with pytest.raises(OutputError, match=r"mine.txt was not written by Bridgetrack, so"):
        write_results(tracks, movie_of(DIVIDING), out)
    assert content(out) == before


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
