"""What a choice changed of labels brought along, and the numbers that cells keep."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.pipeline.mask_changes import ChangeKind, changes, keep_numbers, with_outlines_of


def test_each_kind_of_change() -> None:
    before, after = np.zeros((2, 30, 30), dtype=np.int32)
    before[2:8, 2:14] = 1
    after[2:8, 2:8], after[2:8, 8:14] = 1, 2  # cut
    before[12:18, 2:8], before[12:18, 8:14] = 2, 3
    after[12:18, 2:14] = 3  # joined
    before[22:26, 2:6] = 4  # dropped
    after[22:26, 20:24] = 4  # added
    before[2:8, 20:26] = 5
    after[2:8, 20:24] = 5  # another outline
    before[12:18, 20:26], after[12:18, 20:26] = 6, 6  # the same
    told = {c.kind: (c.before, c.after, c.place) for c in changes(before, after, 3)}
    # the middle of what stood there
    assert told == {
        ChangeKind.CUT: ((1,), (1, 2), (4.5, 7.5)),
        ChangeKind.JOINED: ((2, 3), (3,), (14.5, 7.5)),
        ChangeKind.DROPPED: ((4,), (), (23.5, 3.5)),
        ChangeKind.ADDED: ((), (4,), (23.5, 21.5)),
        ChangeKind.OUTLINE: ((5,), (5,), (4.5, 22.5)),
    }


def test_only_cells_that_were_larger_and_are_not_cut_grow() -> None:
    before, after = np.zeros((2, 30, 30), dtype=np.int32)
    before[2:10, 2:10], after[3:8, 3:8] = 9, 1  # larger before
    before[13:16, 3:6], after[12:18, 2:8] = 8, 2  # smaller before
    before[2:8, 12:24], after[2:8, 12:17], after[2:8, 18:23] = 7, 3, 4  # cut
    before[20:28, 2:10], after[21:26, 3:8] = 6, 5  # somebody drew it
    after[3:8, 9:12] = 6  # took pixels of the first
    grown = with_outlines_of(before, after, [5], larger=True)
    wanted = after.copy()
    wanted[2:10, 2:10] = np.where(after[2:10, 2:10] == 6, 6, 1)
    np.testing.assert_array_equal(grown, wanted)
    assert (with_outlines_of(before, after, [5])[12:18, 2:8] == 2).sum() == 9


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_numbers_are_kept_and_stay_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = np.kron(rng.integers(0, 6, (4, 4)), np.ones((3, 3), int)).astype(np.int32)
    after = before.copy()
    after[rng.random(after.shape) < 0.2] = 0
    _, renamed = np.unique(after, return_inverse=True)
    shuffled = renamed.reshape(after.shape).astype(np.int32)
    kept = keep_numbers(before, shuffled)
    pairs = np.unique(np.stack([shuffled.ravel(), kept.ravel()]), axis=1)
    assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]
    assert (kept[shuffled == 0] == 0).all()
    for label in np.unique(before[before > 0]):
        old, new = before == label, after == label
        if (old & new).sum() > 0.5 * (old | new).sum():
            assert (kept[new] == label).all()
    assert not changes(before, before, 0)
