"""Lineages as trees: their layout, their files, and what they are coloured by."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings

import bridgetrack as bt
from bridgetrack.tracks.colours import colouring, colourings
from bridgetrack.tracks.table import cells_by_track, track_table
from bridgetrack.tracks.trees import lineages
from lineage_cases import random_tracks, tracks_of

#: Track 1 divides into 2 and 3 after frame 1; 4 goes on while 5 parts from it in frame 2.
NODES = [
    (0, 1, 5, 5, 1), (1, 1, 5, 7, 1), (2, 1, 2, 5, 2), (3, 1, 2, 5, 2), (2, 2, 8, 5, 3),
    (0, 2, 20, 9, 4), (1, 2, 20, 9, 4), (2, 3, 20, 9, 4), (3, 2, 20, 9, 4), (2, 4, 26, 9, 5),
]  # fmt: skip
EDGES = [
    (0, 1, "move"), (1, 2, "divide"), (1, 4, "divide"), (2, 3, "move"),
    (5, 6, "move"), (6, 7, "split"), (6, 9, "split"), (7, 8, "move"),
]  # fmt: skip
LINKS = [(2, 1, "divide"), (3, 1, "divide"), (5, 4, "split")]


@pytest.fixture
def tracks():
    return tracks_of(NODES, EDGES, LINKS, n_frames=4, frame_interval=30.0)


def test_trees_have_mothers_over_their_daughters(tracks):
    drawn = lineages(tracks)
    x = dict(zip(drawn.branches["track_id"], drawn.branches["x"], strict=True))
    assert x[1] == (x[2] + x[3]) / 2 and abs(x[2] - x[3]) == 1
    assert len({x[2], x[3], x[4], x[5]}) > 2 and min(x[4], x[5]) > max(x[2], x[3]) + 1
    assert drawn.nearest(x[3] + 0.2, 2.4) == (3, 2)
    assert drawn.nearest(x[2] - 3, 2) is None


@settings(max_examples=8, phases=[Phase.explicit, Phase.generate])
@given(random_tracks())
def test_every_track_is_in_one_tree_and_drawn_once(tracks):
    drawn = lineages(tracks)
    ids = sorted(tracks.nodes["track_id"].unique().tolist())
    assert drawn.branches["track_id"].tolist() == ids
    for by in ("lineage", "area", "growth"):
        assert by in colourings(tracks)
        colours = colouring(tracks, by)
        assert len(colours.shades) == len(cells_by_track(tracks))
        known = colours.shades[~np.isnan(colours.shades)]
        assert ((known >= 0) & (known <= 1)).all()
        ends, shades = drawn.strokes(colours)
        assert len(ends) == len(shades) and (ends[:, 1, 1] >= ends[:, 0, 1]).all()
        spans = {}
        for (x, start), (_, end) in ends.tolist():
            low, high = spans.get(x, (start, end))
            spans[x] = min(low, start), max(high, end)
        first = drawn.branches.groupby("x")["start"].min()
        assert {x: low for x, (low, _) in spans.items()} == first.to_dict()


def test_a_lineage_keeps_its_colour_where_another_one_goes(tracks):
    alone = [(t, label, y, x, track - 3) for t, label, y, x, track in NODES if track > 3]
    edges = [(i - 5, j - 5, event) for i, j, event in EDGES if i >= 5]
    left = tracks_of(alone, edges, [(2, 1, "split")], n_frames=4, frame_interval=30.0)
    for by in ("lineage", "track"):
        before, after = colouring(tracks, by), colouring(left, by)
        assert before.shades[before.track_id > 3].tolist() == after.shades.tolist()


def test_the_table_counts_divisions_growth_and_certainty(tracks):
    nodes = tracks.nodes.assign(area=10.0 * 2.0 ** tracks.nodes["frame"])
    table = track_table(replace(tracks, nodes=nodes)).set_index("track_id")
    assert table["divisions"].tolist() == [1, 0, 0, 0, 0]
    assert table.loc[4, "growth [1/h]"] == pytest.approx(2 * np.log(2))
    assert np.isnan(table.loc[1, "growth [1/h]"]), "two sights are too few"
    assert table.loc[1, "mean_area [px2]"] == 15
    assert table["certainty"].isna().all(), "nothing is known of these events"
    sure = tracks.events.assign(
        margin_at_least=np.where(tracks.events["event"] == "divide", 0.0, np.inf)
    )
    table = track_table(replace(tracks, events=sure)).set_index("track_id")
    assert table["certainty"].tolist() == [0.5, 0.5, 0.5, 1, 1]
    coloured = colouring(replace(tracks, events=sure), "certainty")
    assert {coloured.shades[coloured.track_id == k].min() for k in (1, 2, 3)} == {0}
    assert {coloured.shades[coloured.track_id == k].min() for k in (4, 5)} == {1}


def test_pieces_of_one_cell_are_one_sight():
    nodes = [(0, 1, 5, 5, 1), (2, 1, 5, 11, 1), (2, 2, 5, 5, 1)]
    pieces = tracks_of(nodes, [(0, 1, "split"), (0, 2, "split")], [], n_frames=3)
    pieces.nodes.loc[:, "area"] = [40.0, 30.0, 10.0]
    cells = cells_by_track(pieces)
    assert cells[["frame", "x", "area", "id"]].to_numpy().tolist() == [
        [0, 5, 40, 0],
        [2, 9.5, 40, 1],
    ]
    assert cells["speed"].tolist()[1] == 4.5 / 2


def test_trees_are_drawn_written_and_refused(tracks, tmp_path):
    for name in ("all.svg", "again.svg", "one.png"):
        more = {"colour": "area"} if name == "one.png" else {}
        bt.save_lineages(tracks, tmp_path / name, **more)
    svg = (tmp_path / "all.svg").read_text()
    assert (tmp_path / "again.svg").read_text() == svg, "equal figures give equal files"
    ticks, axis, _ = svg.partition("time [h]")
    drawn = re.findall(r'id="LineCollection_\d">(.*?)</g>', svg, re.DOTALL)
    divided, parted, lines = (group.count("<path") for group in drawn)
    assert (divided, parted) == (2, 1) and lines >= 5 and axis
    last = float(re.findall(r"<!-- ([\d.]+) -->", ticks)[-1])
    assert 1 < last <= 1.5, "three frames of half an hour"
    assert (tmp_path / "one.png").read_bytes()[:4] == b"\x89PNG"
    before = sorted(tmp_path.iterdir())
    for name, more in (("x.txt", {}), ("x.svg", {"colour": "blue"})):
        with pytest.raises(bt.BridgetrackError):
            bt.save_lineages(tracks, tmp_path / name, **more)
    assert sorted(tmp_path.iterdir()) == before
