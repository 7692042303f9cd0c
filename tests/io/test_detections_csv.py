"""Detections from tables of centroids."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bridgetrack.errors import InputError
from bridgetrack.io.columns import parse_columns
from bridgetrack.io.csv import read_tracks_csv
from bridgetrack.io.tables import read_detections_csv, unknown_columns
from bridgetrack.io.text_table import read_text_table

TRACKMATE = """LABEL,ID,TRACK_ID,POSITION_X,POSITION_Y,POSITION_Z,POSITION_T,FRAME,RADIUS
Label,Spot ID,Track ID,X,Y,Z,T,Frame,Radius
Label,Spot ID,Track ID,X,Y,Z,T,Frame,R
,,,(micron),(micron),(micron),(min),,(micron)
ID31,31,0,10.0,4.0,0.0,0.0,0,2.0
ID32,32,None,12.0,4.0,0.0,5.0,1,2.0
"""


def table(tmp_path: Path, text: str, name: str = "cells.csv") -> Path:
    """A file with this text."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_order_and_identities(tmp_path: Path) -> None:
    detections = read_detections_csv(table(tmp_path, "t,y,x,id\n1,5,6,9\n0,1.5,2,7\n0,3,4,3\n"))
    assert detections.frame.tolist() == [0, 0, 1]
    assert detections.label.tolist() == [3, 7, 9]
    assert detections.table["y"].tolist() == [3, 1.5, 5]
    assert detections.table["area"].tolist() == [1, 1, 1]
    assert (detections.has_masks, detections.geometry.n_frames) == (False, 2)


def test_trackmate_has_four_header_rows_and_micrometres(tmp_path: Path) -> None:
    path = table(tmp_path, TRACKMATE)
    detections = read_detections_csv(path)
    assert detections.geometry.unit == "micrometer"
    assert detections.position[:, -1].tolist() == [10, 12]
    in_pixels = read_detections_csv(path, scale=(1.0, 0.5, 0.5))
    assert in_pixels.table["x"].tolist() == [20, 24]
    assert (detections.geometry.ndim, in_pixels.geometry.ndim) == (2, 3)
    assert in_pixels.position[:, 1:].tolist() == detections.position.tolist()
    assert np.allclose(detections.table["area"], 4 * np.pi)
    assert np.allclose(in_pixels.table["area"], 4 / 3 * np.pi * 8 / 0.25)


def test_radius_gives_the_area_and_rows_without_are_left_out(tmp_path: Path) -> None:
    path = table(tmp_path, "t,z,y,x,radius\n0,1,1,1,3\n0,0,0,0,0\n")
    with pytest.warns(UserWarning, match="1 rows without a positive radius"):
        detections = read_detections_csv(path)
    assert np.allclose(detections.table["area"], [4 / 3 * np.pi * 27])


def test_labels_are_numbered_where_ids_do_not_serve(tmp_path: Path) -> None:
    alike = ("0,1,1,3,7\n0,2,2,3,8\n", "3 is twice", [7, 8])
    for rows, what, labels in (("0,1,1,3,7\n0,2,2,-1,7\n", "is -1", [1, 2]), alike):
        with pytest.warns(UserWarning, match=f"renumbered, since in row 3 the label {what}"):
            numbered = read_detections_csv(table(tmp_path, f"t,y,x,label,track\n{rows}"))
        assert numbered.label.tolist() == labels


@pytest.mark.parametrize("role", ["id", "label", "track"])
def test_two_cells_of_a_frame_with_one_number_are_refused(tmp_path, role):
    path = table(tmp_path, f"t,y,x,{role}\n0,1,1,5\n1,1,1,5\n1,2,2,4\n1,3,3,4\n")
    with pytest.raises(InputError, match=f"row 5: the {role} 4 was .* by row 4.*columns {role}= "):
        read_detections_csv(path)
    assert len(read_detections_csv(path, parse_columns(f"{role}="))) == 4


def test_numbers_that_may_come_again_in_a_frame(tmp_path):
    """Those of lineages where cells have ids, and those that stand for none."""
    for rows in ("t,y,x,id,track\n0,1,1,1,5\n0,2,2,2,5\n", "t,y,x,id\n0,1,1,-1\n0,2,2,-1\n"):
        assert read_detections_csv(table(tmp_path, rows)).label.tolist() == [1, 2]


def test_border_distance_where_the_frame_is_known(tmp_path: Path) -> None:
    path = table(tmp_path, "t,y,x\n0,3,4\n0,10,48\n")
    assert "border_distance" not in read_detections_csv(path).table
    known = read_detections_csv(path, shape=(20, 50), scale=(2.0, 2.0))
    assert known.table["border_distance"].tolist() == [6, 2]
    with pytest.raises(InputError, match="a number for each axis"):
        read_detections_csv(path, scale=2.0)


def test_columns_can_be_corrected(tmp_path: Path) -> None:
    path = table(tmp_path, "when,row,col,x\n0,1,2,9\n")
    with pytest.raises(InputError, match="no column for frame, y"):
        read_detections_csv(path)
    mapping = {"t": "when", "y": "row", "x": "col"}
    assert read_detections_csv(path, mapping).table["x"].tolist() == [2]
    with pytest.raises(InputError, match="no role 'colour'"):
        read_detections_csv(path, {"colour": "row"})
    with pytest.raises(InputError, match="no role 'row' for a column; write y=row"):
        read_detections_csv(path, {"row": "y"})
    named = table(tmp_path, "t,y,x,id,cell\n0,1,2,5,7\n")
    assert read_detections_csv(named, {"label": "cell"}).label.tolist() == [7]
    assert read_detections_csv(named, {"id": None}).label.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,y,x,id\n0,1,1,4\n1,1,1,4\n1,1,2,4\n", "row 4: the id 4 was used before in its frame"),
        ("time [s],y,x\n0,1,1\n30,1,1\n95,1,1\n", "not evenly spaced"),
        ("t,y,x\n0,1,1\n31,1,1\n60,1,1\n95,1,1\n", "not evenly spaced.*column frame"),
        ("t,y,x\n0,1,1\nt,y,x\n0,1,1\n", "row 3, column 't': 't' is not .* save each by itself"),
        ("7,0,1,2\n8,1,1,2\n", "the file has the columns '1', '2', '3', '4'"),
        ("t,y,x\n0,1,1\n1,two,1\n", "row 3, column 'y': 'two' is not a number"),
        ("t,y,x\n0.5,1,1\n", "row 2, column 't': '0.5' is not an integer"),
        ("t,y,x\n-1,1,1\n", "row 2: the frame is negative"),
        ("t,y,x,area\n0,1,1,0\n", "row 2: the area is not positive"),
        ("", "cannot be read as a table"),
        ("t,y,x\n0,1,2,5\n1,1,2,5\n", "a row holds 4 cells, the first 3 names"),
        ("t,y,x\n0,1,2\n1,1,2,5,6\n", "Expected 3 fields in line 3, saw 5"),
    ],
)
def test_bad_tables_are_explained(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_detections_csv(table(tmp_path, text))


def test_an_extent_that_cannot_be(tmp_path: Path) -> None:
    path = table(tmp_path, "t,y,x\n0,1,1\n")
    known = {"n_frames": 1, "shape": [10**400, 5], "scale": [1.0, 1.0]}
    beside = {"files": [path.name], "geometry": known, "units": {}}
    (tmp_path / "units.json").write_text(json.dumps(beside))
    with pytest.raises(InputError, match=r"units.json.*geometry.shape.0: should be"):
        read_detections_csv(path)


@pytest.mark.parametrize(
    ("text", "frames", "interval"),
    [
        ("POSITION_T,y,x\n0.0,1,1\n30.0,1,1\n90.0,1,1\n", [0, 1, 3], None),
        ("Time [h],y,x\n0,1,1\n1,1,1\n2,1,1\n", [0, 1, 2], 60),
        ("time_min,y,x\n20,1,1\n25.1,1,1\n30,1,1\n", [0, 1, 2], 5),
        ("Time [mins],y,x\n0,1,1\n5,1,1\n10,1,1\n", [0, 1, 2], 5),
        ("Elapsed time (hrs),y,x\n0,1,1\n.25,1,1\n.5,1,1\n", [0, 1, 2], 15),
        ("t_sec,y,x\n0,1,1\n30,1,1\n60,1,1\n", [0, 1, 2], 0.5),
        ("frame,time [s],y,x\n4,0,1,1\n6,1,1,1\n8,2,1,1\n", [4, 6, 8], 0.5 / 60),
        ("frame_i,time_minutes,y,x\n0,0,1,1\n1,5,1,1\n2,10.1,1,1\n", [0, 1, 2], 5.05),
        ("Slice,y,x\n1,1,1\n2,1,1\n4,1,1\n", [0, 1, 3], None),
        ("t,y,x\n1,1,1\n2,1,1\n4,1,1\n", [1, 2, 4], None),
    ],
)
def test_times_become_frames(
    tmp_path: Path, text: str, frames: list[int], interval: float | None
) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = read_detections_csv(table(tmp_path, text))
    assert found.frame.tolist() == frames
    assert found.geometry.frame_interval == pytest.approx(interval)
    as_written = frames == [int(float(row.split(",")[0])) for row in text.split()[-3:]]
    assert bool(told) != as_written or interval is not None


def test_times_beside_frames_give_the_interval_if_they_are_even(tmp_path):
    assert read_detections_csv(table(tmp_path, TRACKMATE)).geometry.frame_interval == 5
    path = table(tmp_path, "frame,time [s],y,x\n0,0,1,1\n1,1,1,1\n2,5,1,1\n")
    with pytest.warns(UserWarning, match="'time \\[s\\]' are uneven"):
        assert read_detections_csv(path).geometry.frame_interval is None


UNITS = ["[um]", "(um)", "(micron)", "µm", "[µm]", "(micrometres)", "_micrometers", "/um", "..um."]


@pytest.mark.parametrize("unit", UNITS)
def test_positions_in_micrometres_by_their_header(tmp_path: Path, unit: str) -> None:
    head = f"t,y {unit},x {unit},area [µm²]"
    path = table(tmp_path, f"{head}\n0,4,8,50\n1,4,9,50\n")
    assert read_detections_csv(path).geometry.unit == "micrometer"
    known = read_detections_csv(path, scale=(0.5, 0.5))
    assert known.table[["y", "x", "area"]].to_numpy().tolist() == [[8, 16, 200], [8, 18, 200]]


@pytest.mark.parametrize(
    ("head", "area"),
    [
        ("x,y,Area (µm²)", 4),
        ("x,y,cell_area_um2", 4),
        ("x,y,radius [um]", np.pi * 4),
        ("x [um],y [um],Area (px^2)", 1),
        ("x [um],y [um],radius (pix)", np.pi),
    ],
)
def test_sizes_in_another_unit_than_places_need_that_of_a_pixel(tmp_path, head, area):
    path = table(tmp_path, f"t,{head}\n0,8,4,1\n1,9,4,1\n")
    with pytest.warns(UserWarning, match="is left out, since the size of a pixel is not known"):
        assert read_detections_csv(path).table["area"].tolist() == [1, 1]
    known = read_detections_csv(path, scale=(0.5, 0.5))
    assert known.table["area"].tolist() == pytest.approx([area, area])


def test_an_empty_size_is_the_median_of_the_others(tmp_path):
    path = table(tmp_path, "t,y,x,area\n0,1,1,300\n0,5,5,\n0,9,9,400\n")
    with pytest.warns(UserWarning, match="1 row without an area: the median"):
        assert read_detections_csv(path).table["area"].tolist() == [300, 350, 400]
    path = table(tmp_path, "t,y,x,radius\n0,1,1,1\n0,5,5,\n0,9,9,1\n")
    with pytest.warns(UserWarning, match="1 row without an area: the median"):
        assert read_detections_csv(path).table["area"].tolist() == pytest.approx([np.pi] * 3)


def test_units_that_nobody_knows_are_told(tmp_path: Path) -> None:
    path = table(tmp_path, "t [ticks],y [furlongs],x [furlongs]\n0,1,1\n1,2,1\n")
    with pytest.warns(UserWarning) as told:
        assert read_detections_csv(path).geometry.unit == "pixel"
    assert [str(w.message).partition("the unit ")[2][:9] for w in told] == [
        "'ticks' o", "'furlongs", "'furlongs",
    ]  # fmt: skip


def test_axes_may_have_units_of_their_own(tmp_path: Path) -> None:
    path = table(tmp_path, "t,z [um],y [px],x [px],volume [um3]\n0,4,8,9,50\n1,6,8,9,50\n")
    with pytest.raises(InputError, match="--scale"):
        read_detections_csv(path)
    found = read_detections_csv(path, scale=(2.0, 0.5, 0.5)).table
    assert found[["z", "y", "x", "area"]].to_numpy().tolist() == [[2, 8, 9, 100], [3, 8, 9, 100]]


TWO = [[0, 1234.5, 2], [1, 1234.5, 3]]


@pytest.mark.parametrize(
    "text",
    [
        'frame,y,x\n0,"1234,5",2\n1,"1234,5",3\n',
        'frame,y,x\n0,"1,234.5",2\n1,"1,234.5",3\n',
        "frame;y;x\n0;1.234,5;2\n1;1.234,5;3\n",
        'frame, "y", "x"\n0, "1234.5", "2"\n1, "1234.5", "3"\n',
        "frame|y|x\n0|1234.5|2\n1|1234.5|3\n",
        "frame\ty\tx\n0\t1234.5\t2\n1\t1234.5\t3\n",
        " frame     y    x\n     0  1234.5   2\n     1    1234.5   3\n",
        "frame,y,x\n0,1234.5,2,\n1,1234.5,3,\n",
        "frame,y,x, x,x \n0,1234.5,2,8,9\n1,1234.5,3,8,9\n",
        "frame,y,x,x.1,x\n0,1234.5,2,8,9\n1,1234.5,3,8,9\n",
        "# a, remark, in, parts\n# frame y x\n0 1234.5 2\n1 1234.5 3\n",
        '"frame" "y" "x"\n"1" 0 1234.5 2\n"2" 1 1234.5 3\n',
        "frame,y,x\n0,1234.5,2\n,,\n1,1234.5,3\n,,\n",
    ],
)
def test_tables_of_every_habit(tmp_path: Path, text: str) -> None:
    """Marks of thousands and decimals, blanks, remarks, empty rows, and R's names of rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_detections_csv(table(tmp_path, text)).table
    assert found[["frame", "y", "x"]].to_numpy().tolist() == TWO


def test_a_column_without_a_name_has_the_one_that_pandas_gives_it(tmp_path: Path) -> None:
    path = table(tmp_path, ",frame,y,x,\n7,0,1,2,\n9,1,3,4,\n")
    assert read_text_table(path).header == ["Unnamed: 0", "frame", "y", "x", "Unnamed: 4"]
    assert read_detections_csv(path, {"id": "Unnamed: 0"}).table["id"].tolist() == [7, 9]


def test_a_row_that_is_cut_off_after_its_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 3, column 'frame': '' is not a number"):
        read_detections_csv(table(tmp_path, '"frame" "y" "x"\n"1" 0 1 2\n"2"'))


def test_names_of_cells_that_are_no_numbers_are_passed_over(tmp_path: Path) -> None:
    """QuPath writes an Object ID and the name of a parent."""
    head = "Image,Object ID,Parent,Centroid X µm,Centroid Y µm,Time index"
    path = table(tmp_path, f"{head}\na,4f-1c,Root object,4,8,0\na,7e-2d,Root object,5,8,1\n")
    with pytest.warns(UserWarning, match="holds words") as told:
        assert read_detections_csv(path).label.tolist() == [1, 1]
    assert len(told) == 2


def test_cells_of_several_movies_are_told(tmp_path: Path) -> None:
    rows = ["a.tif,0,1,1", "a.tif,1,1,1", "b.tif,0,9,9", "b.tif,1,9,9"]
    path = table(tmp_path, "\n".join(["Image,t,y,x", *rows]))
    with pytest.warns(UserWarning, match=r"column 'Image' .* several movies \('a.tif', 'b.tif'\)"):
        read_detections_csv(path)
    path = table(tmp_path, "\n".join(["Image,t,y,x", rows[0], rows[3]]))  # an image a frame
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_detections_csv(path)
    path = table(tmp_path, "Image,t,y,x,label\na.tif,0,1,1,1\nb.tif,0,9,9,1\n")
    with pytest.raises(InputError, match=r"row 3: the label 1 .* give a table of each"):
        read_detections_csv(path)


def test_a_comma_that_may_mean_either_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 2, column 'y': '1,234' may have a decimal comma"):
        read_detections_csv(table(tmp_path, 'frame,y,x\n0,"1,234",2\n'))


def test_rows_that_repeat_another_are_left_out(tmp_path: Path) -> None:
    path = table(tmp_path, "t,y,x,id\n0,1,1,1\n0,5,5,2\n1,1,1,3\n0,1,1.0,4\n")
    with pytest.warns(UserWarning, match="1 row that another row repeats, such as row 5"):
        assert read_detections_csv(path).frame.tolist() == [0, 0, 1]


@pytest.mark.parametrize("head", ["ID,T,Y,X", "id,t,y,x", "track_id,t,y,x"])
def test_ids_of_tracks(tmp_path: Path, head: str) -> None:
    path = table(tmp_path, f"{head}\n7,0,1,1\n3,0,5,5\n7,1,1,2\n3,1,5,6\n")
    found = read_detections_csv(path)
    assert found.label.tolist() == found.table["id"].tolist() == [3, 7, 3, 7]
    assert read_tracks_csv(path).n_tracks == 2


def test_tables_of_european_programs(tmp_path: Path) -> None:
    text = "Frame;Y;X;Größe [µm]\n0;1,5;2,25;3\n1;1,5;2,5;3\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"):
        path = tmp_path / "cells.csv"
        path.write_bytes(text.encode(encoding))
        found = read_detections_csv(path).table
        assert found[["y", "x"]].to_numpy().tolist() == [[1.5, 2.25], [1.5, 2.5]]


def test_a_title_above_the_names_and_a_column_of_units(tmp_path: Path) -> None:
    """Imaris writes both."""
    rows = "Position X,Position Y,Unit,Time,TrackID,ID,\n4,8,um,1,100,1,\n5,8,um,2,100,2,\n"
    path = table(tmp_path, f"Position\n=========\n\n{rows}")
    found = read_detections_csv(path, scale=(2.0, 2.0), n_frames=3)
    assert found.table[["frame", "y", "x"]].to_numpy().tolist() == [[1, 4, 2], [2, 4, 2.5]]


def test_boxes_are_cells_at_their_middle(tmp_path: Path) -> None:
    head = "frame,id,bb_left,bb_top,bb_width,bb_height,conf,x,y,z"
    path = table(tmp_path, f"{head}\n0,1,10,20,4,8,1,-1,-1,-1\n")
    found = read_detections_csv(path).table
    assert found[["y", "x"]].to_numpy().tolist() == [[24, 12]]
    assert found["area"].iloc[0] == pytest.approx(np.pi * 2 * 4)


def test_tables_of_mot_have_no_names(tmp_path):
    path = table(tmp_path, "1,7,10,20,4,8,1,-1,-1,-1\n2,7,11,20,4,8,1,-1,-1,-1\n", "gt.txt")
    with pytest.warns(UserWarning, match="counts from 1"):
        found = read_detections_csv(path)
    assert found.table[["frame", "y", "x", "id"]].to_numpy().tolist() == [
        [0, 24, 12, 7],
        [1, 24, 13, 7],
    ]
    path = table(tmp_path, "0,7,10,20\n1,7,11,20\n")
    found = read_detections_csv(path, parse_columns("t=1,id=2,x=3,y=4"))
    assert found.table[["y", "x", "id"]].to_numpy().tolist() == [[20, 10, 7], [20, 11, 7]]


def test_the_axes_of_mastodon_are_below_the_names(tmp_path):
    head = '"Label","ID","Spot frame","Spot position","Spot position","Spot radius"\n'
    path = table(
        tmp_path, f'{head}"","","","X","Y",""\n"","","","(µm)","(µm)","(µm)"\n0,0,0,4,8,1\n'
    )
    found = read_detections_csv(path, scale=(2.0, 2.0))
    assert found.table[["y", "x", "area"]].to_numpy().tolist() == [[4, 2, np.pi / 4]]


def test_a_track_that_names_itself_as_parent_has_none(tmp_path: Path) -> None:
    rows = "1,0,1,1,1\n1,1,1,1,1\n2,2,1,2,1\n3,2,1,0,1\n"
    path = table(tmp_path, f"ID,t,x,y,parent\n{rows}")
    assert read_tracks_csv(path).events["event"].tolist() == ["move", "divide"]


def test_columns_that_nobody_knows(tmp_path: Path) -> None:
    for ending in (".csv", ".tsv", ".txt"):
        path = table(tmp_path, "when,row,col\n0,1,2\n").rename(tmp_path / f"a{ending}")
        assert unknown_columns(path) == ["when", "row", "col"]
    assert unknown_columns(table(tmp_path, "t,y,x\n0,1,2\n")) == []


def test_columns_are_named_in_words() -> None:
    assert parse_columns("y=Row, no,x=Col,t=Im") == {"y": "Row, no", "x": "Col", "t": "Im"}
    with pytest.raises(InputError, match="roles and names"):
        parse_columns("Row,Col")


def test_frames_that_fit_a_project_stay(tmp_path: Path) -> None:
    path = table(tmp_path, "time,y,x\n0,1,1\n30,1,1\n60,1,1\n")
    assert read_detections_csv(path, n_frames=61).frame.tolist() == [0, 30, 60]
    with pytest.warns(UserWarning, match="counted as frames"):
        assert read_detections_csv(path, n_frames=3).frame.tolist() == [0, 1, 2]


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_detections_csv(tmp_path / "none.csv")
    (tmp_path / "book.csv").write_bytes(b"PK\x03\x04\x14\0\6\0")
    with pytest.raises(InputError, match="if it is a spreadsheet, save it as CSV"):
        read_detections_csv(tmp_path / "book.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01\x80")
    with pytest.raises(InputError, match="cannot be read as a table"):
        read_detections_csv(tmp_path / "binary.csv")
    good = table(tmp_path, "t,y,x\n5,1,1\n")
    with pytest.raises(InputError, match="row 2: the movie has 3 frames"):
        read_detections_csv(good, n_frames=3)
    with pytest.raises(InputError, match="2 spatial columns"):
        read_detections_csv(good, scale=(1.0, 1.0, 1.0))


def test_a_table_is_read_some_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{k // 50},{k % 50},{0.1 * k:.3f},{k + 1}" for k in range(20_000)]
    path = table(tmp_path, "\n".join(["t,y,x,area", *rows]))
    whole = read_detections_csv(path).table
    monkeypatch.setattr("bridgetrack.io.text_table._ROWS_AT_ONCE", 700)
    tracemalloc.start()
    try:
        read_text_table(path)
        highest = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if isinstance(read_text_table(path).cells["x"].array, pd.arrays.ArrowStringArray):
        assert highest < 3 * path.stat().st_size  # of text alone, five times as much were taken
    pd.testing.assert_frame_equal(read_detections_csv(path).table, whole)
    table(tmp_path, "\n".join(["t,y,x,area", *rows[:5_000], "100,1,one,2", *rows[:1]]))
    with pytest.raises(InputError, match="row 5002, column 'x': 'one' is not a number"):
        read_detections_csv(path)
