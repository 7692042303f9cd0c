"""What columns are taken for: heads that programs write."""

from __future__ import annotations

import pytest

from bridgetrack.io.columns import guess_columns

KNOWN = {
    "own": "frame=t,z=z,y=y,x=x,id=id,parent=parent_id,track=track_id,label=label,lineage_id,"
    "area=area",
    "TrackMate": "LABEL,id=ID,track=TRACK_ID,QUALITY,x=POSITION_X,y=POSITION_Y,z=POSITION_Z,"
    "POSITION_T,frame=FRAME,radius=RADIUS",
    "ilastik": "frame=frame,label=labelimageId,track=trackId,lineageId,parent_track=parentTrackId,"
    "mergerLabelId,x=Object_Center_0,y=Object_Center_1,area=Size_in_pixels_0",
    "ilastik of old": "label=object_id,frame=timestep,x=Object_Center_0,y=Object_Center_1",
    "3D scikit-image": "label=label,z=centroid-0,y=centroid-1,x=centroid-2,frame=frame",
    "units in brackets": "frame=Frame,x=X [um],y=Y (um),id=ID",
    "box and seconds": "x_min,y_min,x=x,y=y,frame=time [s]",
    "trackpy": "y=y,x=x,mass,size,ecc,frame=frame,track=particle",
    "CellProfiler": "frame=ImageNumber,label=ObjectNumber,area=AreaShape_Area,"
    "x=Location_Center_X,y=Location_Center_Y,z=Location_Center_Z,track=TrackObjects_Label_50",
    "napari Points, 3D": "index,frame=axis-0,z=axis-1,y=axis-2,x=axis-3",
    "ImageJ": "area=Area,x=XM,y=YM,frame=Slice",
    "Manual Tracking": "track=Track n°,frame=Slice n°,x=X,y=Y",
    "MTrackJ": "Nr,track=TID,PID,x=x [pixel],y=y [pixel],frame=t [frame]",
    "Mastodon": "Label,id=ID,frame=Spot frame,x=Spot position X,y=Spot position Y,"
    "radius=Spot radius",
    "NIS Elements": "Item,frame=Frame,x=PosX [µm],y=PosY [µm]",
    "QuPath": "Image,frame=Time index,x=Centroid X µm,y=Centroid Y µm,area=Cell: Area µm^2",
    "LapTrack": "frame=frame_y,y=y,x=x,index,track=track_id",
    "Cell-ACDC": "frame=frame_i,track=Cell_ID,x=x_centroid,y=y_centroid,area=cell_area_pxl,"
    "cell_area_um2",
    "Imaris": "x=Position X,y=Position Y,z=Position Z,unit=Unit,Category,frame=Time,track=TrackID,"
    "id=ID,",
    "boxes": "frame=frame,id=id,x=bb_left,y=bb_top,width=bb_width,height=bb_height",
    "one word": "frame=TIMEPOINT,x=CentroidX,y=CentroidY",
    "CellProfiler, one table": "frame=ImageNumber,Metadata_Frame,label=Nuclei_Number_Object_Number,"
    "area=Nuclei_AreaShape_Area,x=Nuclei_Location_Center_X,y=Nuclei_Location_Center_Y",
}
"""Names of columns, each after the role that it has."""


@pytest.mark.parametrize("name", KNOWN)
def test_known_headers(name: str) -> None:
    columns = [column.rpartition("=") for column in KNOWN[name].split(",")]
    expected = {role: column for role, _, column in columns if role}
    assert guess_columns([column for *_, column in columns]) == expected
