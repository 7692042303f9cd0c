"""What columns are taken for: heads that programs write."""

from __future__ import annotations

import pytest

from bridgetrack.io.columns import guess_columns

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
    "box and seconds": ("x_min,y_min,x,y,time [s]", "frame=time [s] y=y x=x"),
    "trackpy": ("y,x,mass,size,ecc,frame,particle", "frame=frame y=y x=x track=particle"),
    "CellProfiler": (
        "ImageNumber,ObjectNumber,AreaShape_Area,Location_Center_X,Location_Center_Y,"
        "Location_Center_Z,TrackObjects_Label_50",
        "frame=ImageNumber z=Location_Center_Z y=Location_Center_Y x=Location_Center_X "
        "track=TrackObjects_Label_50 label=ObjectNumber area=AreaShape_Area",
    ),
    "napari Points, 3D": (
        "index,axis-0,axis-1,axis-2,axis-3",
        "frame=axis-0 z=axis-1 y=axis-2 x=axis-3",
    ),
    "ImageJ": ("Area,XM,YM,Slice", "frame=Slice y=YM x=XM area=Area"),
    "Manual Tracking": ("Track n°,Slice n°,X,Y", "frame=Slice n° y=Y x=X track=Track n°"),
    "MTrackJ": (
        "Nr,TID,PID,x [pixel],y [pixel],t [frame]",
        "frame=t [frame] y=y [pixel] x=x [pixel] track=TID",
    ),
    "Mastodon": (
        "Label,ID,Spot frame,Spot position X,Spot position Y,Spot radius",
        "frame=Spot frame y=Spot position Y x=Spot position X id=ID radius=Spot radius",
    ),
    "NIS Elements": ("Item,Frame,PosX [µm],PosY [µm]", "frame=Frame y=PosY [µm] x=PosX [µm]"),
    "QuPath": (
        "Image,Time index,Centroid X µm,Centroid Y µm,Cell: Area µm^2",
        "frame=Time index y=Centroid Y µm x=Centroid X µm area=Cell: Area µm^2",
    ),
    "ilastik of old": (
        "object_id,timestep,Object_Center_0,Object_Center_1",
        "frame=timestep y=Object_Center_1 x=Object_Center_0 label=object_id",
    ),
    "LapTrack": ("frame_y,y,x,index,track_id", "frame=frame_y y=y x=x track=track_id"),
    "Cell-ACDC": (
        "frame_i,Cell_ID,x_centroid,y_centroid,cell_area_pxl,cell_area_um2",
        "frame=frame_i y=y_centroid x=x_centroid track=Cell_ID area=cell_area_pxl",
    ),
    "Imaris": (
        "Position X,Position Y,Position Z,Unit,Category,Time,TrackID,ID,",
        "frame=Time z=Position Z y=Position Y x=Position X id=ID track=TrackID unit=Unit",
    ),
    "boxes": (
        "frame,id,bb_left,bb_top,bb_width,bb_height",
        "frame=frame y=bb_top x=bb_left id=id width=bb_width height=bb_height",
    ),
    "one word": ("TIMEPOINT,CentroidX,CentroidY", "frame=TIMEPOINT y=CentroidY x=CentroidX"),
    "CellProfiler, one table": (
        "ImageNumber,Metadata_Frame,Nuclei_Number_Object_Number,Nuclei_AreaShape_Area,"
        "Nuclei_Location_Center_X,Nuclei_Location_Center_Y",
        "frame=ImageNumber y=Nuclei_Location_Center_Y x=Nuclei_Location_Center_X "
        "label=Nuclei_Number_Object_Number area=Nuclei_AreaShape_Area",
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_headers(name: str) -> None:
    header, expected = KNOWN[name]
    used = guess_columns(header.split(","))
    assert " ".join(f"{role}={column}" for role, column in used.items()) == expected
