"""Lineages from tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgetrack.errors import InputError
from bridgetrack.io.csv import read_tracks_csv
from bridgetrack.tracks.tracks import MARGINS

PARENTS = "t,y,x,id,parent_id\n0,1,1,0,\n1,1,2,1,0\n2,1,1,2,1\n2,1,4,3,1\n3,1,5,4,3\n"


def put(tmp_path: Path, **files: str) -> Path:
    """Files with these texts; the path of the first."""
    for name, text in files.items():
        (tmp_path / name.replace("__", ".")).write_text(text)
    return tmp_path / next(iter(files)).replace("__", ".")


def test_parents_make_tracks(tmp_path: Path) -> None:
    tracks = read_tracks_csv(put(tmp_path, a__csv=PARENTS))
    assert tracks.nodes["track_id"].tolist() == [1, 1, 2, 3, 3]
    counts = tracks.events["event"].value_counts().to_dict()
    assert counts == {"move": 2, "divide": 1, "disappear": 1}
    assert set(tracks.nodes["lineage_id"]) == {1}


@pytest.mark.parametrize("nothing", ["", "-1", "0"])
def test_ways_to_have_no_parent(tmp_path: Path, nothing: str) -> None:
    text = f"t,y,x,id,parent\n0,1,1,5,{nothing}\n1,1,2,6,5\n"
    assert len(read_tracks_csv(put(tmp_path, a__csv=text)).edges) == 1


def test_tracks_with_parent_tracks(tmp_path: Path) -> None:
    text = "t,track,y,x,parent\n0,1,1,1,-1\n2,1,1,2,-1\n3,2,1,1,1\n3,3,1,5,1\n"
    tracks = read_tracks_csv(put(tmp_path, a__csv=text))
    assert tracks.events["event"].tolist() == ["skip", "divide"]
    assert tracks.links["parent_id"].tolist() == [1, 1]


def test_files_beside_the_table_are_found(tmp_path: Path) -> None:
    cells = "node,t,y,x,track\n0,0,1,1,1\n1,1,1,1,2\n2,1,2,2,3\n"
    path = put(tmp_path, P_nodes__csv=cells, P_edges__csv="source,target\n0,2\n0,1\n")
    assert read_tracks_csv(path).events["event"].tolist() == ["divide"]
    cells = "node,t,y,x\n0,0,1,1\n1,0,1,3\n2,1,1,2\n"
    path = put(tmp_path, Q_nodes__csv=cells, Q_edges__csv="source,target\n0,2\n1,2\n")
    assert read_tracks_csv(path).events["event"].tolist() == ["merge"]


@pytest.mark.parametrize("name", MARGINS)
def test_the_margin_of_an_answered_event_is_infinite(tmp_path: Path, name: str) -> None:
    edges = f"source,target,event,score,{name}\n0,1,move,2.5,inf\n"
    cells = "t,y,x,id\n0,1,1,0\n1,1,2,1\n"
    tracks = read_tracks_csv(put(tmp_path, detections__csv=cells, edges__csv=edges))
    assert tracks.edges["margin_at_least"].tolist() == [float("inf")]
    both = "source,target,margin_at_least,margin\n0,1,2.5,3\n"
    tracks = read_tracks_csv(put(tmp_path, detections__csv=cells, edges__csv=both))
    assert tracks.edges["margin_at_least"].tolist() == [2.5]
    edges = edges.replace("2.5,inf", "inf,1")
    with pytest.raises(InputError, match="score"):
        read_tracks_csv(put(tmp_path, detections__csv=cells, edges__csv=edges))


def test_a_column_of_whole_lineages_is_not_taken_for_tracks(tmp_path: Path) -> None:
    text = PARENTS.replace("parent_id", "parent_id,track_id")
    text = "\n".join(f"{row},7" if k else row for k, row in enumerate(text.split("\n")[:-1]))
    tracks = read_tracks_csv(put(tmp_path, a__csv=text))
    assert tracks.n_tracks == 3
    assert any("whole lineages" in note for note in tracks.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,y,x,id,parent_id\n0,1,1,1,2\n1,1,1,2,\n", "row 2: .*parent 2 in frame 1"),
        ("t,y,x,id,parent_id\n0,1,1,1,\n1,1,1,2,9\n", "row 3: the parent 9 is not in the table"),
        ("t,y,x,id\n0,1,1,1\n", "nothing says which cell comes from which"),
        ("t,track,y,x,parent\n0,1,1,1,4\n", "row 2: the parent track 4 is not"),
        ("t,track,y,x,parent\n1,1,1,1,2\n0,2,1,1,0\n1,2,1,1,0\n", "row 2: .*parent 2 in frame 1;"),
        ("t,track,y,x,parent\n0,1,1,1,0\n1,2,1,1,1\n2,2,1,1,0\n", "2 names different parents"),
    ],
)
def test_contradictions_are_explained(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_tracks_csv(put(tmp_path, a__csv=text))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("source,target\n0,9\n", "names the id 9"),
        ("source,target\n4,3\n", "does not run forward"),
        ("source,target,event\n0,1,jump\n", "row 2: 'jump' is not an event"),
        ("a,b\n0,1\n", "needs the columns source and target"),
    ],
)
def test_bad_edges_are_explained(tmp_path: Path, edges: str, message: str) -> None:
    path = put(tmp_path, detections__csv=PARENTS, edges__csv=edges)
    with pytest.raises(InputError, match=message):
        read_tracks_csv(path)


def test_real_lineages(shared_data: Path) -> None:
    tracks = read_tracks_csv(shared_data / "Phallusia-lineages-csv3D" / "Pm04_nodes.csv")
    assert len(tracks.nodes) == 11689
    assert (tracks.events["event"] == "divide").sum() == 237


def test_edges_of_rows_without_a_position_are_left_out(tmp_path: Path) -> None:
    cells = "id,t,y,x\n0,0,5,5\n1,1,NaN,NaN\n2,1,20,20\n3,2,20,21\n"
    tracks = read_tracks_csv(
        put(tmp_path, detections__csv=cells, edges__csv="source,target\n0,1\n2,3\n")
    )
    assert tracks.nodes["id"].tolist() == [0, 2, 3]
    assert tracks.edges[["source", "target"]].to_numpy().tolist() == [[2, 3]]
    assert tracks.notes == (
        "1 row without a position, such as row 3, left out",
        "1 edges of the rows left out were left out",
    )
