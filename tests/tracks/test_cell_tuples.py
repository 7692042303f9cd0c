"""Tuples of cells held as numbers behave in a table as a list of tuples does."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from bridgetrack.tracks.cell_tuples import CellTuples

CELLS = st.lists(st.lists(st.integers(0, 9), max_size=2).map(tuple), max_size=12)


def _both(values: list[tuple[int, ...]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table with such a column, and one with plain tuples."""
    plain = pd.Series(values, dtype=object, index=range(len(values)))
    number = np.arange(len(values))
    held = CellTuples._from_sequence(values)
    return pd.DataFrame({"n": number, "cells": held}), pd.DataFrame({"n": number, "cells": plain})


@given(CELLS)
def test_they_are_the_tuples(values: list[tuple[int, ...]]) -> None:
    held, plain = _both(values)
    assert list(held["cells"]) == held["cells"].tolist() == values
    assert [held["cells"].iloc[k] for k in range(len(values))] == values
    assert (held["cells"] == held["cells"].copy()).all() and not held["cells"].isna().any()
    assert held.to_csv() == plain.to_csv()


@given(CELLS, st.data())
def test_tables_do_the_same_with_them(values: list[tuple[int, ...]], data: st.DataObject) -> None:
    held, plain = _both(values)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(held), max_size=len(held))))
    mask = mask.astype(bool)
    for do in (
        lambda t: t[mask],
        lambda t: t.sort_values("n", ascending=False),
        lambda t: pd.concat([t, t[mask]], ignore_index=True),
        lambda t: t.reset_index(drop=True).head(3),
    ):
        assert do(held)["cells"].tolist() == do(plain)["cells"].tolist()
    for one, other in zip(*(t.explode("cells").itertuples() for t in (held, plain)), strict=True):
        assert one.Index == other.Index and one.n == other.n
        assert pd.isna(one.cells) == pd.isna(other.cells)
        assert pd.isna(one.cells) or one.cells == other.cells


def test_rows_without_a_partner_are_missing() -> None:
    held, _ = _both([(1,), (2, 3), ()])
    found = held["cells"].reindex([1, 7])
    assert found.tolist() == [(2, 3), None] and found.isna().tolist() == [False, True]
