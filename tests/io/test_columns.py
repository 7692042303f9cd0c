"""What columns are taken for."""

from __future__ import annotations

import pytest

from bridgetrack.io.tables import guess_columns

KNOWN = {
    "own": (
        "t,z,y,x,id,parent_id,track_id,label,lineage_id,area",
        "frame=t z=z y=y x=x id=id parent=parent_id track=track_id label=label area=area",
    ),
    "trackmate": (
        "LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,POSITION_Z,POSITION_T,FRAME,RADIUS",
        "frame=FRAME z=POSITION_Z y=POSITION_Y x=POSITION_X id=ID track=TRACK_ID radius=RADIUS",
    ),
    "ilastik": (
        "frame,labelimageId,trackId,lineageId,parentTrackId,mergerLabelId,Object_Center_0,"
        "Object_Center_1,Size_in_pixels_0",
        "frame=frame y=Object_Center_1 x=Object_Center_0 track=trackId "
        "parent_track=parentTrackId label=labelimageId area=Size_in_pixels_0",
    ),
    "3D scikit-image": (
        "label,centroid-0,centroid-1,centroid-2,frame",
        "frame=frame z=centroid-0 y=centroid-1 x=centroid-2 label=label",
    ),
    "units in brackets": ("Frame,X [um],Y (um),ID", "frame=Frame y=Y (um) x=X [um] id=ID"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_headers(name: str) -> None:
    header, expected = KNOWN[name]
    used = guess_columns(header.split(","))
    assert " ".join(f"{role}={column}" for role, column in used.items()) == expected
