"""Pieces and holes of many overlapping regions at once, by runs of pixels along the last axis.

A run and a gap between two runs of a line are intervals; those of neighbouring lines touch where
they overlap. Thousands of regions then need a few sorted searches and one connected labelling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from bridgetrack.regions.regions import Index, Mask, Regions, ranges


@dataclass(frozen=True)
class _Intervals:
    """Intervals of lines, sorted: keys of their first and last pixel.

    A key is ``owner * n_pixels + place``, so that one search finds region, line and place.
    """

    owner: Index
    first: Index
    last: Index


def largest_pieces(regions: Regions) -> Regions:
    """The largest piece of every region, joined over faces; of equal ones the first."""
    if not len(regions):
        return regions
    runs = _runs(regions)
    piece = _joined(runs, regions.shape)
    length = runs.last - runs.first + 1
    size = np.bincount(piece, weights=length)
    owner = np.zeros(len(size), dtype=np.int64)
    owner[piece] = runs.owner
    order = np.lexsort((-np.arange(len(size)), size, owner))
    best = order[np.flatnonzero(np.diff(owner[order], append=-1))]
    kept = np.isin(piece, best)
    return _of_keys(regions, ranges(runs.first[kept], length[kept]))


def filled(regions: Regions) -> Regions:
    """Regions with what they enclose on all sides, gaps joined over faces."""
    if not len(regions):
        return regions
    runs, shape = _runs(regions), regions.shape
    width = shape[-1]
    same = (np.diff(runs.owner) == 0) & (np.diff(runs.first // width) == 0)
    gaps = _Intervals(runs.owner[:-1][same], runs.last[:-1][same] + 1, runs.first[1:][same] - 1)
    if not len(gaps.owner):
        return regions
    group = _joined(gaps, shape)
    is_open = np.zeros(int(group.max()) + 1, dtype=bool)
    is_open[group[_reach_out(gaps, runs, shape)]] = True
    holes = ~is_open[group]
    length = (gaps.last - gaps.first + 1)[holes]
    keys = np.concatenate(
        [regions.owner * regions.n_pixels + regions.pixels, ranges(gaps.first[holes], length)]
    )
    return _of_keys(regions, np.sort(keys, kind="stable"))


def _runs(regions: Regions) -> _Intervals:
    key = regions.owner * regions.n_pixels + regions.pixels
    begins = np.diff(key, prepend=-2) != 1
    begins |= key % regions.shape[-1] == 0
    place = np.flatnonzero(begins)
    ends = np.append(place[1:], len(key)) - 1
    return _Intervals(regions.owner[place], key[place], key[ends])


def _lines_beside(keys: Index, shape: tuple[int, ...]) -> Iterator[tuple[int, Mask]]:
    """Steps to the neighbouring lines along the other axes, and from which keys there is one."""
    index = np.unravel_index(keys % int(np.prod(shape)), shape)
    for axis in range(len(shape) - 1):
        step = int(np.prod(shape[axis + 1 :]))
        yield step, np.asarray(index[axis] < shape[axis] - 1)
        yield -step, np.asarray(index[axis] > 0)


def _joined(these: _Intervals, shape: tuple[int, ...]) -> Index:
    """Number of the connected group of every interval, shape (n,)."""
    rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for step, there in _lines_beside(these.first, shape):
        low = np.searchsorted(these.last, these.first[there] + step)
        high = np.searchsorted(these.first, these.last[there] + step, side="right")
        rows.append(np.repeat(np.flatnonzero(there), high - low))
        columns.append(ranges(low, high - low))
    row, column = np.concatenate(rows), np.concatenate(columns)
    n = len(these.first)
    graph = sp.coo_matrix((np.ones(len(row), dtype=bool), (row, column)), (n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _reach_out(gaps: _Intervals, runs: _Intervals, shape: tuple[int, ...]) -> Mask:
    """Gaps beside pixels that lie outside both the runs and the gaps of a neighbouring line."""
    line, start = np.unique(runs.first // shape[-1], return_index=True)
    stop = np.append(start[1:], len(runs.first)) - 1
    first, last = runs.first[start], runs.last[stop]
    found = np.zeros(len(gaps.first), dtype=bool)
    for step, there in _lines_beside(gaps.first, shape):
        low, high = gaps.first + step, gaps.last + step
        k = np.minimum(np.searchsorted(line, low // shape[-1]), len(line) - 1)
        within = (line[k] == low // shape[-1]) & (first[k] <= low) & (high <= last[k])
        found |= ~(there & within)
    return found


def _of_keys(regions: Regions, keys: Index) -> Regions:
    """The same regions with other pixels, given as sorted keys."""
    owner = keys // regions.n_pixels
    area = np.bincount(owner, minlength=len(regions))
    starts = np.concatenate([[0], np.cumsum(area)]).astype(np.int64)
    return replace(regions, starts=starts, pixels=keys - owner * regions.n_pixels)
