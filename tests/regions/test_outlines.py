"""What corrected outlines teach of others."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from bridgetrack.regions.outlines import redrawn, usual_ratio


def discs(*radii: float, middle: float = 20.0) -> sp.csr_matrix:
    y, x = np.mgrid[:40, :60]
    away = np.hypot(y - 20, x - middle)
    return sp.csr_matrix(np.stack([(away <= r).ravel() for r in radii]).astype(np.int32))


@pytest.mark.parametrize(
    ("ratios", "usual"),
    [
        ([1.4, 1.5, 1.6, 2.5, 3.0], 1.5),
        ([0.6, 0.7, 0.75, 0.7, 0.5, 2.0], 0.75),
        ([1.5] * 4, 1.0),  # too few
        ([1.5, 1.5, 1.5, 0.6, 0.7], 1.0),  # of no one direction
        ([1.05] * 9, 1.0),  # hardly another outline
        ([], 1.0),
    ],
)
def test_a_habit_is_what_most_corrections_share(ratios: list[float], usual: float) -> None:
    assert usual_ratio(ratios) == pytest.approx(usual, rel=0.03)


def test_few_corrections_among_many_cells_found_right_are_no_habit() -> None:
    assert usual_ratio([1.5] * 6, checked=120) == pytest.approx(1.5)
    assert usual_ratio([1.5] * 6, checked=130) == 1.0


def test_a_cell_is_redrawn_by_the_candidate_of_the_wanted_size_around_it() -> None:
    cells = sp.vstack([discs(6), discs(6, middle=45.0)], format="csr")
    offered = sp.vstack([discs(5, 6, 7.3, 9), discs(7.3, middle=32.0)], format="csr")
    assert redrawn(cells, offered, 1.5).tolist() == [2, -1]
    assert redrawn(cells, offered, 0.7).tolist() == [0, -1]
    beside = sp.vstack([cells, discs(3, middle=27.0)], format="csr")
    assert redrawn(beside, offered, 1.5).tolist() == [1, -1, -1]  # the larger would take both
    assert redrawn(cells, offered, 9.0).tolist() == [2, -1]  # of 9 pixels it is hardly the cell
