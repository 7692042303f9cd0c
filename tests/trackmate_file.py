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


_OUTLINE = (
    ' AREA="7.07" PERIMETER="9.4" CIRCULARITY="0.99" ELLIPSE_MAJOR="1.5" SOLIDITY="NaN" '
    'MEAN_INTENSITY_CH1="77.3" SNR_CH1="-5.1E12" MANUAL_SPOT_COLOR="-10921639" ROI_N_POINTS="4">'
    "1.5 0.0 0.0 1.5 -1.5 0.0 0.0 -1.5</Spot>"
)
_TRACK = (
    'TRACK_INDEX="0" NUMBER_SPOTS="4" NUMBER_GAPS="0" LONGEST_GAP="0" NUMBER_SPLITS="1" '
    'NUMBER_MERGES="0" NUMBER_COMPLEX="0" TRACK_DURATION="2.0" TRACK_MEAN_SPEED="NaN" TRACK_ID='
)
_EDGE = (
    ' LINK_COST="8.08" DIRECTIONAL_CHANGE_RATE="NaN" SPEED="2.8" DISPLACEMENT="2.8" '
    'EDGE_TIME="0.5" EDGE_X_LOCATION="5.5" EDGE_Y_LOCATION="2.0" EDGE_Z_LOCATION="0.0" />'
)
_MORE = """<BasicSettings xstart="0" xend="59" ystart="0" yend="39" zstart="0" zend="0" tstart="0"
 tend="4" /><DetectorSettings DETECTOR_NAME="STARDIST_DETECTOR" TARGET_CHANNEL="1" />
<InitialSpotFilter feature="QUALITY" value="0.0" isabove="true" /><SpotFilterCollection />
<TrackerSettings TRACKER_NAME="SPARSE_LAP_TRACKER" CUTOFF_PERCENTILE="0.9"
 BLOCKING_VALUE="Infinity"><Linking LINKING_MAX_DISTANCE="15.0"><FeaturePenalties /></Linking>
</TrackerSettings><TrackFilterCollection><Filter feature="NUMBER_SPOTS" value="2.5"
 isabove="true" /></TrackFilterCollection><AnalyzerCollection><SpotAnalyzers>
<Analyzer key="Spot intensity" /></SpotAnalyzers></AnalyzerCollection></Settings>
<GUIState state="ConfigureViews" /><DisplaySettings>{ "spotMin": 0.0 }</DisplaySettings>"""
_SPOT_FEATURES = (
    "AREA", "PERIMETER", "CIRCULARITY", "ELLIPSE_MAJOR", "SOLIDITY", "MEAN_INTENSITY_CH1",
    "SNR_CH1", "MANUAL_SPOT_COLOR",
)  # fmt: skip
_EDGE_FEATURES = (
    "LINK_COST", "DIRECTIONAL_CHANGE_RATE", "SPEED", "DISPLACEMENT", "EDGE_TIME",
    "EDGE_X_LOCATION", "EDGE_Y_LOCATION", "EDGE_Z_LOCATION",
)  # fmt: skip


def _declared(names: Sequence[str]) -> str:
    line = '<Feature feature="{0}" name="{0}" shortname="γ" dimension="NONE" isint="{1}" />'
    return "".join(line.format(name, str(name == "MANUAL_SPOT_COLOR").lower()) for name in names)


def whole(path: Path) -> Path:
    """As `saved`, with all that version 8 writes: log, outlines, features, filters, looks."""
    text = saved(path).read_text(encoding="utf-8")
    for old, new in (
        ("<TrackMate", "<!--\n  TrackMate: buddy\n-->\n<TrackMate"),
        ('version="7.11.1"', 'version="8.1.6"'),
        ("<Log>saved", "<Log>Thu, 23 Jul&#xD;\n &amp; saved"),
        ("</SpotFeatures>", f"{_declared(_SPOT_FEATURES)}</SpotFeatures>"),
        ("</EdgeFeatures>", f"{_declared(_EDGE_FEATURES)}</EdgeFeatures>"),
        ('name="ID2"', 'name="éàîü"'),
        (' VISIBILITY="1" />', f' VISIBILITY="1"{_OUTLINE}'),
        ("TRACK_ID=", _TRACK),
    ):
        text = text.replace(old, new)
    text = text.replace(f"<TrackID {_TRACK}", "<TrackID TRACK_ID=")
    head, edges = text.split("<AllTracks>")
    edges, tail = edges.split("</AllTracks>")
    edges = edges.replace(" />", _EDGE)
    text = f"{head}<AllTracks>{edges}</AllTracks>{tail}".replace("</Settings>", _MORE)
    path.write_text(text, encoding="utf-8")
    return path
