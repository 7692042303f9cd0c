"""Results appear complete or not at all."""

from __future__ import annotations

import errno
import io
import json
from pathlib import Path
from typing import Any

import pytest

from bridgetrack.errors import OutputError
from bridgetrack.io.results import write_results
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


def test_without_masks_there_is_no_ctc(tracks: Tracks, tmp_path: Path) -> None:
    notes = write_results(tracks, None, tmp_path / "out", ("ctc", "csv"))
    assert notes == ("ctc: not written, because there are no masks",)
    assert "ctc" not in names(tmp_path / "out")


def test_a_disk_that_fills_up_keeps_the_earlier_result(
    tracks: Tracks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write_results(tracks, movie_of(DIVIDING), out)
    before = content(tmp_path)
    longer = Tracks(**{**vars(tracks), "nodes": tracks.nodes.iloc[:1], "edges": tracks.edges[:0]})

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    opened = Path.open

    def open_full(path: Path, *args: Any, **kwargs: Any) -> Any:
        writes = path.name == "tracks.csv" and "rb" not in args
        return Full() if writes else opened(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(OutputError, match="No space left"):
        write_results(longer, None, out, ("csv",))
    monkeypatch.undo()
    assert content(tmp_path) == before


def test_unknown_format(tracks: Tracks, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no format 'xml'"):
        write_results(tracks, None, tmp_path / "out", ("xml",))


def test_the_sidecar_names_the_units(tmp_path: Path) -> None:
    physical = {"scale": (0.5, 0.5), "unit": "micrometer", "frame_interval": 3.0}
    tracks = tracks_of([(0, 1, 1, 1, 1)], [], **physical)
    write_results(tracks, None, tmp_path / "out", ("csv",))
    sidecar = json.loads((tmp_path / "out" / "units.json").read_text())
    assert sidecar["units"]["y"] == "px"
    assert sidecar["geometry"]["scale"] == [0.5, 0.5]
    assert sidecar["geometry"]["frame_interval"] == 3.0
