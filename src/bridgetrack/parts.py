"""Many rows, a part at a time, for work that takes much memory for each."""

from __future__ import annotations

from collections.abc import Iterator

ROWS_AT_ONCE = 1 << 16
"""Rows of a part."""


def in_parts(rows: int) -> Iterator[slice]:
    """Slices of so many rows."""
    return (slice(k, k + ROWS_AT_ONCE) for k in range(0, rows, ROWS_AT_ONCE))
