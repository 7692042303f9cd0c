"""Files of TrackMate."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.io.geff import is_trackmate

FILES = Path(__file__).parent / "files"
CELLS, RECENT = FILES / "trackmate7.xml", FILES / "trackmate8.xml"
"""A cell (1, 2) that divides into 3 and 4, with one link that points back; a hidden track.

The second file has all that version 8 writes: log, outlines, features, filters, looks.
"""


def test_tracks_that_are_shown() -> None:
    tracks = bt.read_tracks(CELLS)
    assert tracks.nodes["id"].tolist() == [1, 2, 3, 4]
    assert tracks.nodes[["y", "x"]].to_numpy().tolist() == [[8, 10], [8, 12], [4, 14], [12, 14]]
    assert np.allclose(tracks.nodes["area"], np.pi * 1.5**2 / (0.5 * 0.25))
    assert tracks.events["event"].tolist() == ["move", "divide", "disappear", "disappear"]
    assert tracks.events["targets"].tolist()[:2] == [(2,), (3, 4)]
    assert tracks.geometry == bt.Geometry(5, (40, 60), (0.25, 0.5), "micrometer", 1.5)


def test_all_that_a_recent_version_writes(tmp_path: Path) -> None:
    plain, tracks = bt.read_tracks(CELLS), bt.read_tracks(RECENT)
    assert is_trackmate(RECENT)
    assert tracks.nodes.equals(plain.nodes) and tracks.edges.equals(plain.edges)
    assert tracks.geometry == plain.geometry
    text = RECENT.read_text(encoding="utf-8")
    hidden = tmp_path / "hidden.xml"
    hidden.write_text(text.replace('<TrackID TRACK_ID="0" />', ""), encoding="utf-8")
    with pytest.raises(bt.BridgetrackError, match="no tracks that TrackMate shows"):
        bt.read_tracks(hidden)


def test_stacks_and_pixels(tmp_path: Path) -> None:
    text = CELLS.read_text(encoding="utf-8")
    deep = re.sub(r'(Spot ID="(\d)".*?POSITION_Z=)"0', r'\1"\2', text)
    (tmp_path / "a.xml").write_text(deep.replace('nslices="1"', 'nslices="8"'))
    stack = bt.read_tracks(tmp_path / "a.xml")
    assert stack.geometry.shape == (8, 40, 60)
    assert stack.nodes["z"].tolist() == [0.5, 1, 1.5, 2]
    (tmp_path / "b.xml").write_text(text.replace('"micron"', '"pixel"'))
    pixels = bt.read_tracks(tmp_path / "b.xml").geometry
    assert (pixels.unit, pixels.scale) == ("pixel", (0.25, 0.5))
    (tmp_path / "c.xml").write_text(re.sub('(pixelwidth="0.5"|nframes="5")', "", text))
    unsaid = bt.read_tracks(tmp_path / "c.xml")
    assert unsaid.nodes["x"].tolist() == [5, 6, 7, 7] and unsaid.geometry.n_frames == 3


def test_files_that_are_no_tracks(tmp_path: Path) -> None:
    with pytest.raises(bt.BridgetrackError, match="no such file"):
        bt.read_tracks(tmp_path / "none.xml")
    with pytest.raises(bt.BridgetrackError, match=r"\.py: no tracks are known"):
        bt.read_tracks(Path(__file__))
    other = tmp_path / "other.xml"
    other.write_text("<svg/>")
    with pytest.raises(bt.BridgetrackError, match=r"other\.xml: this is not what Save writes"):
        bt.read_tracks(other)
    other.write_text(CELLS.read_text(encoding="utf-8")[:2000])
    with pytest.raises(bt.BridgetrackError, match=r"other\.xml: cannot be read"):
        bt.read_tracks(other)


def test_other_xml_is_left_to_others(tmp_path: Path) -> None:
    assert is_trackmate(CELLS)
    for k, text in enumerate(("", "<TrackMate", "<OME><TrackMate/></OME>", "t,y,x\n", "\x00")):
        other = tmp_path / f"{k}.xml"
        other.write_text(text)
        assert not is_trackmate(other)
    assert not is_trackmate(tmp_path / "nothing.xml")
    assert not is_trackmate(tmp_path)
