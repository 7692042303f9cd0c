"""Files as TrackMate saves them, for the tests that read one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

SPOT = (
    '<Spot ID="{id}" name="ID{id}" QUALITY="1.0" POSITION_X="{x}" POSITION_Y="{y}" '
    'POSITION_Z="{z}" POSITION_T="{t}" FRAME="{frame}" RADIUS="{radius}" VISIBILITY="1" />'
)
HEAD = """<?xml version="1.0" encoding="UTF-8"?>
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
"""
IMAGE = (
    '<Settings><ImageData filename="cells.tif" folder="/data" width="60" height="40" '
    'nslices="{nslices}" nframes="5" pixelwidth="{width}" pixelheight="{height}" '
    'voxeldepth="2.0" timeinterval="90.0" /></Settings>'
)
Links = Sequence[tuple[int, int]]


def trackmate_text(
    places: Mapping[int, tuple[int, float, float]],
    tracks: Sequence[Links],
    hidden: Sequence[int] = (),
    *,
    space: str = "micron",
    depth: float = 0.0,
    pixel: tuple[float, float] = (0.25, 0.5),
) -> str:
    """A file with spots, by id (frame, x, y), and tracks, some of which the filters hide.

    ``pixel`` is the height and the width of a pixel in units.
    """
    lines = []
    for frame in sorted({f for f, _, _ in places.values()}):
        inside = "".join(
            SPOT.format(id=k, x=x, y=y, z=depth * k, t=90.0 * frame, frame=frame, radius=1.5)
            for k, (f, x, y) in places.items()
            if f == frame
        )
        lines.append(f'<SpotsInFrame frame="{frame}">{inside}</SpotsInFrame>')
    drawn = []
    for number, links in enumerate(tracks):
        edges = "".join(f'<Edge SPOT_SOURCE_ID="{a}" SPOT_TARGET_ID="{b}" />' for a, b in links)
        drawn.append(f'<Track name="Track_{number}" TRACK_ID="{number}">{edges}</Track>')
    shown = "".join(f'<TrackID TRACK_ID="{k}" />' for k in range(len(tracks)) if k not in hidden)
    return "\n".join(
        [
            HEAD.format(space=space),
            f'<AllSpots nspots="{len(places)}">',
            *lines,
            "</AllSpots><AllTracks>",
            *drawn,
            f"</AllTracks><FilteredTracks>{shown}</FilteredTracks></Model>",
            IMAGE.format(nslices=8 if depth else 1, height=pixel[0], width=pixel[1]),
            "</TrackMate>",
        ]
    )


def saved(path: Path, *, space: str = "micron", depth: float = 0.0) -> Path:
    """A cell (1, 2) that divides into 3 and 4, with one link that points back; a hidden track."""
    places = {1: (0, 5.0, 2.0), 2: (1, 6.0, 2.0), 3: (2, 7.0, 1.0), 4: (2, 7.0, 3.0)}
    places |= {5: (0, 20.0, 5.0), 6: (1, 20.0, 5.0)}
    tracks = [[(1, 2), (3, 2), (2, 4)], [(5, 6)]]
    text = trackmate_text(places, tracks, hidden=[1], space=space, depth=depth)
    path.write_text(text, encoding="utf-8")
    return path
