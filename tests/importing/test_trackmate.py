"""Files of TrackMate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.importing.geff import is_trackmate

SPOT = (
    '<Spot ID="{id}" name="ID{id}" QUALITY="1.0" POSITION_X="{x}" POSITION_Y="{y}" '
    'POSITION_Z="{z}" POSITION_T="{t}" FRAME="{frame}" RADIUS="{radius}" VISIBILITY="1" />'
)
XML = """<?xml version="1.0" encoding="UTF-8"?>
<TrackMate version="7.11.1">
  <Log>saved</Log>
  <Model spatialunits="{space}" timeunits="sec">
    <FeatureDeclarations>
      <SpotFeatures>
        <Feature feature="QUALITY" name="Q" shortname="Q" dimension="QUALITY" isint="false" />
        <Feature feature="POSITION_X" name="X" shortname="X" dimension="POSITION" isint="false" />
        <Feature feature="POSITION_Y" name="Y" shortname="Y" dimension="POSITION" isint="false" />
        <Feature feature="POSITION_Z" name="Z" shortname="Z" dimension="POSITION" isint="false" />
        <Feature feature="POSITION_T" name="T" shortname="T" dimension="TIME" isint="false" />
        <Feature feature="FRAME" name="Frame" shortname="F" dimension="NONE" isint="true" />
        <Feature feature="RADIUS" name="R" shortname="R" dimension="LENGTH" isint="false" />
        <Feature feature="VISIBILITY" name="V" shortname="V" dimension="NONE" isint="true" />
      </SpotFeatures>
      <EdgeFeatures>
        <Feature feature="SPOT_SOURCE_ID" name="S" shortname="S" dimension="NONE" isint="true" />
        <Feature feature="SPOT_TARGET_ID" name="T" shortname="T" dimension="NONE" isint="true" />
      </EdgeFeatures>
      <TrackFeatures>
        <Feature feature="TRACK_ID" name="ID" shortname="ID" dimension="NONE" isint="true" />
      </TrackFeatures>
    </FeatureDeclarations>
    <AllSpots nspots="6">{spots}</AllSpots>
    <AllTracks>
      <Track name="Track_0" TRACK_ID="0">
        <Edge SPOT_SOURCE_ID="1" SPOT_TARGET_ID="2" />
        <Edge SPOT_SOURCE_ID="3" SPOT_TARGET_ID="2" />
        <Edge SPOT_SOURCE_ID="2" SPOT_TARGET_ID="4" />
      </Track>
      <Track name="Track_1" TRACK_ID="1"><Edge SPOT_SOURCE_ID="5" SPOT_TARGET_ID="6" /></Track>
    </AllTracks>
    <FilteredTracks><TrackID TRACK_ID="0" /></FilteredTracks>
  </Model>
  <Settings>
    <ImageData filename="cells.tif" folder="/data" width="60" height="40" nslices="{nslices}"
      nframes="5" pixelwidth="0.5" pixelheight="0.25" voxeldepth="2.0" timeinterval="90.0" />
  </Settings>
</TrackMate>
"""


def saved(path: Path, *, space: str = "micron", depth: float = 0.0) -> Path:
    """A cell (1, 2) that divides into 3 and 4, with one link that points back; a hidden track."""
    places = {1: (0, 5.0, 2.0), 2: (1, 6.0, 2.0), 3: (2, 7.0, 1.0), 4: (2, 7.0, 3.0)}
    places |= {5: (0, 20.0, 5.0), 6: (1, 20.0, 5.0)}
    spots = "".join(
        SPOT.format(id=k, x=x, y=y, z=depth * k, t=90.0 * frame, frame=frame, radius=1.5)
        for k, (frame, x, y) in places.items()
    )
    nslices = 8 if depth else 1
    path.write_text(XML.format(space=space, spots=spots, nslices=nslices), encoding="utf-8")
    return path


def test_tracks_that_are_shown(tmp_path: Path) -> None:
    tracks = bt.read_tracks(saved(tmp_path / "cells.xml"))
    assert tracks.nodes["id"].tolist() == [1, 2, 3, 4]
    assert tracks.nodes[["y", "x"]].to_numpy().tolist() == [[8, 10], [8, 12], [4, 14], [12, 14]]
    assert np.allclose(tracks.nodes["area"], np.pi * 1.5**2 / (0.5 * 0.25))
    assert tracks.events["event"].tolist() == ["move", "divide", "disappear", "disappear"]
    assert tracks.events["targets"].tolist()[:2] == [(2,), (3, 4)]
    assert tracks.geometry == bt.Geometry(5, (40, 60), (0.25, 0.5), "micrometer", 1.5)


def test_stacks_and_pixels(tmp_path: Path) -> None:
    stack = bt.read_tracks(saved(tmp_path / "a.xml", depth=1.0))
    assert stack.geometry.shape == (8, 40, 60)
    assert stack.nodes["z"].tolist() == [0.5, 1, 1.5, 2]
    pixels = bt.read_tracks(saved(tmp_path / "b.xml", space="pixel")).geometry
    assert (pixels.unit, pixels.scale) == ("pixel", (0.25, 0.5))


def test_files_that_are_no_tracks(tmp_path: Path) -> None:
    with pytest.raises(bt.BridgetrackError, match="no such file"):
        bt.read_tracks(tmp_path / "none.xml")
    other = tmp_path / "other.xml"
    other.write_text("<svg/>")
    with pytest.raises(bt.BridgetrackError, match=r"other\.xml: cannot be read as a file of Track"):
        bt.read_tracks(other)
    cut = saved(tmp_path / "cut.xml")
    cut.write_text(cut.read_text()[:2000])
    with pytest.raises(bt.BridgetrackError, match=r"cut\.xml: cannot be read"):
        bt.read_tracks(cut)


def test_every_kind_of_file_has_the_same_door(tmp_path: Path) -> None:
    tracks = bt.read_tracks(saved(tmp_path / "cells.xml"))
    bt.write_results(tracks, None, tmp_path / "out", ["csv", "geff"])
    for name in ("detections.csv", "tracks.geff"):
        again = bt.read_tracks(tmp_path / "out" / name)
        assert again.edges.equals(tracks.edges)
    scores = bt.evaluate(tmp_path / "out" / "tracks.geff", tmp_path / "cells.xml")
    assert scores.edge_f1 == 1
    with pytest.raises(bt.BridgetrackError, match=r"\.png: no tracks are known"):
        bt.read_tracks(tmp_path / "picture.png")


def test_other_xml_is_left_to_others(tmp_path: Path) -> None:
    assert is_trackmate(saved(tmp_path / "cells.xml"))
    for k, text in enumerate(("", "<TrackMate", "<OME><TrackMate/></OME>", "t,y,x\n", "\x00")):
        other = tmp_path / f"{k}.xml"
        other.write_text(text)
        assert not is_trackmate(other)
    assert not is_trackmate(tmp_path / "nothing.xml")
    assert not is_trackmate(tmp_path)
