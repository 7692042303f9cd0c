"""Tables of detections refuse what later steps could not use."""

import numpy as np
import pandas as pd
import pytest

from bridgetrack.detections.table import (
    Detections,
    cell_diameter,
    detections_at,
    equivalent_diameter,
)
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry

GEOMETRY = Geometry(3, (50, 50), (0.5, 0.5))


def table(**change):
    columns = {
        "frame": [0, 0, 2],
        "label": [1, 3, 1],
        "y": [1.0, 2.0, 3.0],
        "x": [4.0, 5.0, 6.0],
        "area": [9.0, 16.0, 25.0],
    }
    return pd.DataFrame(columns | change)


def test_cells_without_masks_are_numbered_and_sorted():
    frame, place = np.array([1, 0, 0, 0]), np.array([[2.0, 2], [1, 1], [9, 9], [5, 5]])
    label, area = np.array([3, 3, 3, np.nan]), np.array([4.0, np.nan, -1, 2])
    found = detections_at(frame, place, GEOMETRY, label, area)
    assert found.label.tolist() == [3, 4, 5, 3] and found.frame.tolist() == [0, 0, 0, 1]
    assert found.table["area"].tolist() == [1.0, 1.0, 2.0, 4.0]
    assert found.table["border_distance"].tolist() == [0.5, 4.5, 2.5, 1.0]
    assert detections_at(frame, place, GEOMETRY).label.tolist() == [2, 3, 4, 1]
    # Numbers from 1 on are kept.
    ones = np.array([1, 2, 3, 1])
    assert sorted(detections_at(frame, place, GEOMETRY, ones).label.tolist()) == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frame": [0, 2, 0]}, "sorted by frame.*frame 0 at label 1"),
        ({"label": [3, 3, 1]}, "named once.*frame 0 at label 3"),
        ({"frame": [0, 0, 3]}, "in frame 3 at label 1, but the movie has frames 0 to 2"),
        ({"y": [1.0, np.nan, 3.0]}, "y is nan in frame 0 at label 3"),
        ({"area": [1.0, 0.0, 3.0]}, "area is 0 in frame 0 at label 3"),
    ],
)
def test_bad_tables(change, message):
    with pytest.raises(InputError, match=message):
        Detections(table(**change), GEOMETRY)


def test_missing_columns():
    with pytest.raises(InputError, match=r"lacks the columns \['x', 'area'\]"):
        Detections(table().drop(columns=["x", "area"]), GEOMETRY)


def test_diameters():
    flat = Detections(table(), GEOMETRY)
    np.testing.assert_allclose(
        np.pi * (equivalent_diameter(flat) / 2) ** 2, np.array([9, 16, 25]) * 0.25
    )
    assert cell_diameter(flat) == pytest.approx(2 * np.sqrt(4 / np.pi))
    deep = Detections(table(z=[0.0, 0.0, 0.0]), Geometry(3, None, (2.0, 1.0, 1.0)))
    np.testing.assert_allclose(
        np.pi / 6 * equivalent_diameter(deep) ** 3, np.array([9, 16, 25]) * 2.0
    )
