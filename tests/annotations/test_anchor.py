import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotations.annotation_cases import labels_of, ref, says, table_of
from bridgetrack.annotations.anchor import anchor, cell_diameters
from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry
from lineage_cases import detections_of, movie_of

BEFORE = labels_of(
    [{1: (20, 20), 2: (20, 60), 3: (70, 50)}, {1: (22, 20), 2: (20, 64), 3: (70, 52)}]
)
CELLS = detections_of(BEFORE)


def moves(detections, *pairs):
    listed = [
        says(f"a{k}", "confirm", ref(detections, Event.MOVE, [i], [j]))
        for k, (i, j) in enumerate(pairs, 1)
    ]
    return AnnotationSet(detections.geometry, listed)


def relabelled(movie, mapping):
    images = np.stack([movie.channel_frame(t) for t in range(movie.n_frames)])
    table = np.arange(images.max() + 1)
    for old, new in mapping.items():
        table[old] = new
    return movie_of(table[images].astype(np.int32))


@pytest.mark.parametrize("with_masks", [True, False])
@settings(max_examples=25, deadline=None)
@given(
    order=st.permutations(range(1, 10)),
    places=st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=9, max_size=9),
    shift=st.integers(0, 2),
)
def test_relabelling_leaves_cells_where_they_are(with_masks, order, places, shift):
    """Cells that touch or nearly touch, under any permutation of their labels."""
    here = {k: (6 + 11 * y, 6 + 11 * x + shift) for k, (y, x) in enumerate(sorted(places), 1)}
    movie = labels_of([here, here])
    other = relabelled(movie, dict(zip(range(1, 10), order, strict=True)))
    before, after = detections_of(movie), detections_of(other)
    found = anchor(
        moves(before, *((i, 9 + i) for i in range(9))), after, other if with_masks else None
    )
    assert found.lost == ()
    expected = np.array(order)
    assert after.label[found.events.sources[:, 0]].tolist() == expected.tolist()
    assert after.label[found.events.targets[:, 0]].tolist() == expected.tolist()


def test_a_cell_that_moved_a_little_is_the_nearest_within_half_a_diameter():
    shifted = labels_of([{5: (23, 20), 6: (20, 63), 7: (70, 50)}, {5: (22, 20), 6: (20, 64)}])
    found = anchor(moves(CELLS, (0, 3), (1, 4), (2, 5)), detections_of(shifted))
    assert [a.id for a in found.listed] == ["a1", "a2"]
    (lost,) = found.lost
    assert (lost.id, lost.cell.frame, lost.cell.label) == ("a3", 1, 3)
    assert lost.reason == "there is no detection within 0.5 cell diameters of it now"


def test_the_mask_decides_where_the_centroid_is_far():
    """A long mask covers the old place although its centroid is further than half a diameter."""
    images = np.zeros((1, 100, 100), dtype=np.int32)
    images[0, 18:23, 15:90] = 9
    movie = movie_of(images)
    leaves = says("a1", "confirm", EventRef(Event.FALSE, (CellRef(0, 1, (20.0, 20.0)),)))
    annotations = AnnotationSet(movie.geometry, [leaves])
    assert len(anchor(annotations, detections_of(movie)).lost) == 1
    found = anchor(annotations, detections_of(movie), movie)
    assert found.lost == ()
    assert found.events.sources.tolist() == [[0, -1]]


@pytest.mark.parametrize("keeps_label", [True, False])
@pytest.mark.parametrize("with_masks", [True, False])
def test_a_cell_cut_in_two_is_ambiguous(keeps_label, with_masks):
    images = np.stack([BEFORE.channel_frame(t) for t in range(2)])
    right = images[0][:, 20:]
    right[right == 1] = 8
    if not keeps_label:
        images[0][images[0] == 1] = 7
    movie = movie_of(images)
    found = anchor(moves(CELLS, (0, 3)), detections_of(movie), movie if with_masks else None)
    assert [i.reason for i in found.lost] == ["two detections are about equally near to it now"]


def test_two_cells_that_became_one_are_both_lost():
    apart = labels_of([{1: (20, 20), 2: (20, 30)}, {1: (20, 20), 2: (20, 30)}])
    before = detections_of(apart)
    merged = relabelled(apart, {1: 4, 2: 4})
    found = anchor(moves(before, (0, 2), (1, 3)), detections_of(merged), merged)
    assert {i.id for i in found.lost} == {"a1", "a2"}
    assert "one detection now" in found.lost[0].reason


def test_a_cell_that_took_in_a_small_one_beside_it_is_still_itself():
    """Its label is where it was, to a tenth of its diameter; that of the other is gone."""
    before = table_of([(0, 1, 50, 50), (0, 2, 50, 55.4), (1, 1, 50, 50), (1, 2, 50, 70)], 2)
    after = table_of([(0, 1, 50, 51), (1, 1, 50, 50), (1, 2, 50, 70)], 2)
    found = anchor(moves(before, (0, 2), (1, 3)), after)
    assert [a.id for a in found.listed] == ["a1"]
    assert [lost.reason for lost in found.lost] == [
        "it and another annotated cell are one detection now"
    ]


def test_daughters_that_lay_on_each_other_and_are_one_detection_now_are_none():
    before = table_of([(0, 1, 50, 50), (1, 1, 50, 50), (1, 2, 50, 50.4)], 2)
    division = says("a1", "confirm", ref(before, Event.DIVIDE, [0], [1, 2]))
    after = table_of([(0, 1, 50, 50), (1, 1, 50, 50.2)], 2)
    found = anchor(AnnotationSet(before.geometry, [division]), after)
    assert not found.listed and "one detection now" in found.lost[0].reason


def test_pairs_are_sorted_by_row_after_relabelling():
    movie = labels_of([{1: (20, 20)}, {1: (20, 20), 2: (20, 40)}])
    before = detections_of(movie)
    division = says("a1", "confirm", ref(before, Event.DIVIDE, [0], [1, 2]))
    other = relabelled(movie, {1: 9, 2: 3})
    found = anchor(AnnotationSet(before.geometry, [division]), detections_of(other), other)
    assert found.events.targets.tolist() == [[1, 2]]
    assert found.events.complete.tolist() == [True]


def test_frames_beyond_the_movie_and_empty_frames():
    short = labels_of([{1: (20, 20)}])
    found = anchor(moves(CELLS, (0, 3), (1, 4)), detections_of(short), short)
    assert [i.reason for i in found.lost] == [
        "the movie has only 1 frames",
        "there is no detection within 0.5 cell diameters of it now",
    ]
    empty = labels_of([{1: (20, 20)}, {}])
    found = anchor(moves(CELLS, (0, 3)), detections_of(empty), empty)
    assert "no detection" in found.lost[0].reason


def test_positions_outside_the_frame_are_lost():
    away = says("a1", "confirm", EventRef(Event.FALSE, (CellRef(0, 1, (-1e300, 5e5)),)))
    found = anchor(AnnotationSet(BEFORE.geometry, [away]), CELLS, BEFORE)
    assert len(found.lost) == 1


def test_a_movie_with_other_axes_is_refused():
    table = pd.DataFrame(columns=["frame", "label", "z", "y", "x", "area"], dtype=float)
    flat = moves(CELLS, (0, 3))
    with pytest.raises(InputError, match="2 spatial axes, this one has 3"):
        anchor(flat, Detections(table, Geometry(2, None, (1.0, 1.0, 1.0))))


def test_distances_are_in_the_unit_of_the_movie():
    """In z, one pixel is five units: two slices away is out of reach, two columns are not."""
    table = pd.DataFrame(
        {"frame": [0], "label": [1], "z": [5.0], "y": [5.0], "x": [5.0], "area": [60.0]}
    )
    detections = Detections(table, Geometry(1, (9, 9, 9), (5.0, 1.0, 1.0)))

    def lost(position):
        one = says("a1", "confirm", EventRef(Event.FALSE, (CellRef(0, 7, position),)))
        return len(anchor(AnnotationSet(detections.geometry, [one]), detections).lost)

    assert lost((5.0, 5.0, 7.0)) == 0
    assert lost((7.0, 5.0, 5.0)) == 1


def test_areas_of_points_are_replaced_by_their_spacing():
    points = table_of([(0, 1, 10, 10), (0, 2, 10, 30), (0, 3, 10, 50)], 1, area=1.0)
    bare = Detections(points.table, points.geometry, has_masks=False)
    assert cell_diameters(bare).tolist() == [10.0] * 3
    alone = Detections(points.table.iloc[:1], points.geometry, has_masks=False)
    assert cell_diameters(alone).tolist() == [10.0]
