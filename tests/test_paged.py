"""Arrays on disk are the arrays that were put there, and take no memory while nobody looks."""

from __future__ import annotations

import pickle
import re
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import BridgetrackError
from bridgetrack.paged import Pages, room_on_disk

KINDS = ["int8", "int32", "int64", "float32", "float64", "bool"]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 200_000), st.sampled_from(KINDS), st.integers(1, 3))
def test_arrays_stay_what_they_are(n: int, kind: str, width: int) -> None:
    array = (np.arange(n * width).reshape(n, width) % 100).astype(kind)
    pages = Pages(room_on_disk())
    found = pages.put(array)
    assert found.dtype == array.dtype and found.flags.writeable
    np.testing.assert_array_equal(found, array)
    pages.let_go()
    np.testing.assert_array_equal(found, array)
    if n:
        found[n // 2] = 1
        pages.let_go()
        assert (found[n // 2] == 1).all(), "what is written stays"
    assert pages.put(found[: n // 2 + 1]) is not None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_is_joined_and_taken_piece_by_piece(lengths: list[int], chance: Random) -> None:
    draw = np.random.default_rng(chance.randrange(1000))
    parts = [Pair(draw.integers(0, 9, (n, 2)), Inner(draw.normal(size=n))) for n in lengths]
    both = np.concatenate([part.rows for part in parts])
    numbers = np.concatenate([part.inner.numbers for part in parts])
    order = draw.permutation(len(both))[: chance.randint(0, len(both))]
    mask = draw.random(len(both)) < 0.7
    for pages in (Pages(), Pages(room_on_disk())):
        whole = pages.join(parts)
        np.testing.assert_array_equal(whole.rows, both)
        np.testing.assert_array_equal(whole.inner.numbers, numbers)
        for some in (order, mask):
            found = pages.take(whole, some)
            np.testing.assert_array_equal(found.rows, both[some])
            np.testing.assert_array_equal(found.inner.numbers, numbers[some])


def test_joining_and_taking_hold_little_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridgetrack.paged._AT_ONCE", 1 << 16)
    pages = Pages(room_on_disk())
    array = pages.put(np.arange(1_000_000.0))
    tracemalloc.start()
    try:
        twice = pages.join([array, array])
        back = pages.take(twice, np.arange(len(twice) - 1, -1, -1))
        highest = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert back[0] == array[-1] and len(back) == 2_000_000
    assert highest < 1.1 * back.nbytes, "the numbers of the rows; 16 MB each of what is made"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 30_000), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_comes_in_pieces_is_stacked_ordered_and_has_a_middle(
    lengths: list[int], chance: Random
) -> None:
    draw = np.random.default_rng(chance.randrange(1000))
    pieces = [Pair(draw.integers(0, 9, (n, 2)), Inner(draw.normal(size=n))) for n in lengths]
    numbers = np.concatenate([piece.inner.numbers for piece in pieces])
    keys = draw.integers(-50, chance.choice([0, 10, 100_000]), sum(lengths))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bridgetrack.paged._AT_ONCE", 1 << 16)
        patch.setattr("bridgetrack.paged.ROWS_AT_ONCE", 5_000)
        for pages in (Pages(), Pages(room_on_disk())):
            whole = pages.stack(iter(pieces))
            np.testing.assert_array_equal(whole.rows, np.concatenate([p.rows for p in pieces]))
            np.testing.assert_array_equal(whole.inner.numbers, numbers)
            np.testing.assert_array_equal(pages.argsort(keys), np.argsort(keys, kind="stable"))
            assert not pages.zeros((len(keys), 2), np.int32).any()
            if len(numbers):
                some = (p.inner.numbers for p in pieces)
                assert pages.median(some, len(numbers)) == np.median(numbers)


@dataclass(frozen=True)
class Inner:
    """Something with an array."""

    numbers: np.ndarray


@dataclass(frozen=True)
class Pair:
    """Two arrays of a length."""

    rows: np.ndarray
    inner: Inner


@dataclass(frozen=True)
class Outer:
    """Something with a table and the same array twice."""

    inner: Inner
    again: np.ndarray
    table: pd.DataFrame
    word: str


def test_whole_things_are_kept_each_array_once(tmp_path: Path) -> None:
    numbers = np.arange(50_000.0)
    table = pd.DataFrame({"a": numbers * 2, "name": ["x"] * 50_000, "few": True})
    pages = Pages(tmp_path)
    kept = pages.keep(Outer(Inner(numbers), numbers, table, "w"))
    assert np.shares_memory(kept.inner.numbers, kept.again)
    assert not np.shares_memory(kept.again, numbers)
    pd.testing.assert_frame_equal(kept.table, table)
    assert pages.keep(kept) is kept, "what is there already is not put there again"
    assert not list(tmp_path.iterdir()), "files have no name, so that none is left"
    assert Pages().keep(kept) is kept
    assert pickle.loads(pickle.dumps(pages)) == Pages(), "another machine has another disk"


def _held() -> float:
    text = Path("/proc/self/status").read_text()
    return 1024.0 * int(re.search(r"VmRSS:\s+(\d+)", text)[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says what it holds")
def test_what_nobody_looks_at_takes_no_memory() -> None:
    pages, before = Pages(room_on_disk()), _held()
    found = [pages.put(np.full(2_000_000, k, dtype=np.float64)) for k in range(12)]
    pages.let_go()
    assert _held() < before + 6e7, "192 MB were put there"
    assert [a[7] for a in found] == list(range(12))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BridgetrackError, match=r"larger than memory .*TMPDIR"):
        Pages(tmp_path / "gone").put(np.zeros(100_000))


def test_the_folder_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert room_on_disk() == tmp_path
