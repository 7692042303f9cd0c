"""Candidate regions: sets of pixels that overlap; at most one of those chosen owns a pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.labels import Foreground, foreground, meeting_runs, ranges

_SAME_CELL = 0.6
"""Overlap over union from which two outlines surely are of one cell."""


class Pairs(NamedTuple):
    """Pairs of regions of a frame that share pixels, each region also with itself, shape (p,)."""

    # numbers of the two, ascending
    row: Index
    column: Index
    shared: Index  # pixels that both contain
    iou: Array  # intersection over union


@dataclass(frozen=True)
class Regions:
    """Candidate regions of some frames, sorted by frame."""

    shape: tuple[int, ...]  # spatial shape of a frame
    frame: Index  # frame of every region, ascending, shape (R,)
    # where the pixels of each region begin in `pixels`, and their number at the end, shape (R +
    # 1,); no region is empty
    starts: Index
    pixels: Index  # places in the flat frame, ascending within a region, shape (P,)
    # names of what proposed regions, e.g. ``"threshold"`` or a given label movie
    sources: tuple[str, ...]
    votes: Index  # how many readings of every source proposed nearly these pixels, shape (R, S)
    # share of the levels of the tree over which the region stays much the same, 0 where it is not
    # from a tree, shape (R,)
    persistence: Array

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return int(np.prod(self.shape))

    @cached_property
    def area(self) -> Index:
        """Pixels of every region, shape (R,)."""
        return np.diff(self.starts)

    @cached_property
    def owner(self) -> Index:
        """Region of every entry of `pixels`, shape (P,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.area)

    @cached_property
    def runs(self) -> Foreground:
        """The pixels as runs along the last axis; labels are the numbers of the regions."""
        begins = np.diff(self.pixels, prepend=-2) != 1
        begins[self.starts[:-1]] = True
        first = np.flatnonzero(begins)
        # Pixels that continue from the end of a row in the next one are two runs.
        column = self.pixels[first] % self.shape[-1]
        rows = (column + np.diff(first, append=len(self.pixels)) - 1) // self.shape[-1]
        if rows.any():
            next_row = 1 + ranges(np.zeros_like(rows), rows)
            more = np.repeat(first - column, rows) + next_row * self.shape[-1]
            first = np.sort(np.append(first, more))
        start = self.pixels[first]
        stop = start + np.diff(first, append=len(self.pixels))
        return Foreground(np.arange(len(self)), self.owner[first], start, stop, self.shape)

    def rows(self, t: int) -> slice:
        """The regions of frame `t`."""
        first, last = np.searchsorted(self.frame, [t, t + 1])
        return slice(int(first), int(last))

    def region_pixels(self, r: int) -> Index:
        """Places of region `r` in the flat frame, ascending."""
        return self.pixels[self.starts[r] : self.starts[r + 1]]

    def mask(self, r: int) -> Mask:
        """Region `r` as a yes/no frame."""
        flat = np.zeros(self.n_pixels, dtype=bool)
        flat[self.region_pixels(r)] = True
        return flat.reshape(self.shape)

    @cached_property
    def atoms(self) -> tuple[sp.csr_matrix, Index]:
        """Sets of pixels of a frame that belong to the same regions.

        Returns
        -------
        member, size
            Regions × atoms, entries 0 or 1; and how many pixels each atom has.
        """
        owner, runs = self.runs.owner, self.runs
        start, stop = (self.frame[owner] * self.n_pixels + end for end in (runs.start, runs.stop))
        # The frames between the places where some run begins or ends: pieces of one set each.
        ends, row = np.unique(np.concatenate([start, stop]), return_inverse=True)
        begin, end = np.split(row, 2)
        # A set of regions is identified by the sum of random numbers given to them.
        key = np.random.default_rng(0).integers(1, 2**62, len(self), dtype=np.uint64)
        step = np.zeros(len(ends), dtype=np.uint64)
        np.add.at(step, begin, key[owner])
        np.subtract.at(step, end, key[owner])
        total = np.cumsum(step, dtype=np.uint64)
        used = np.flatnonzero(total)
        _, first, atom = np.unique(total[used], return_index=True, return_inverse=True)
        size = np.bincount(atom, np.diff(ends, append=0)[used], len(first)).astype(np.int64)
        # One piece represents all of an atom; a run holds some of these pieces in a row.
        one = np.sort(first)
        since, until = (np.searchsorted(used[one], ends) for ends in (begin, end))
        held = one[ranges(since, until - since)]
        entries = np.ones(len(held), np.int64), (np.repeat(owner, until - since), atom[held])
        return sp.csr_matrix(entries, (len(self), len(size))), size

    @cached_property
    def overlaps(self) -> sp.csr_matrix:
        """Pixels that every two regions of a frame share, shape (R, R); areas on the diagonal."""
        member, size = self.atoms
        counted = sp.csr_matrix((size[member.indices], member.indices, member.indptr), member.shape)
        shared = sp.csr_matrix(counted @ member.T)
        shared.sort_indices()
        return shared

    @cached_property
    def pairs(self) -> Pairs:
        """Which regions share pixels, in the order of the entries of `overlaps`."""
        found, area = self.overlaps.tocoo(), self.area
        union = area[found.row] + area[found.col] - found.data
        return Pairs(found.row, found.col, found.data, found.data / union)

    def voted(self, *names: str) -> Mask:
        """Whether any of some sources proposed nearly these pixels, shape (R,)."""
        columns = [k for k, source in enumerate(self.sources) if source in names]
        return np.asarray(self.votes[:, columns].sum(axis=1) > 0)

    def at_edge(self, in_plane: bool = False) -> Mask:
        """Which regions touch the frame's edge, shape (R,); of stacks that along y and x alone."""
        first, last = (
            np.unravel_index(p, self.shape) for p in (self.runs.start, self.runs.stop - 1)
        )
        ends = zip(first, last, self.shape, strict=True)
        outer = [(a == 0) | (b == n - 1) for a, b, n in ends]
        touches = np.zeros(len(self), dtype=bool)
        touches[self.runs.owner[np.logical_or.reduce(outer[-2:] if in_plane else outer)]] = True
        return touches

    @cached_property
    def centroid(self) -> Array:
        """Mean pixel of every region, shape (R, ndim)."""
        return self.runs.centroid()

    def select(self, kept: Mask | Index) -> Regions:
        """Some of the regions, as a mask or ascending numbers."""
        chosen = np.flatnonzero(kept) if np.asarray(kept).dtype == bool else np.asarray(kept)
        area = self.area[chosen]
        starts = np.concatenate([[0], np.cumsum(area)])
        offset = np.repeat(self.starts[:-1][chosen] - starts[:-1], area)
        pixels = self.pixels[np.arange(starts[-1]) + offset]
        columns = ("frame", "votes", "persistence")
        part = {name: getattr(self, name)[chosen] for name in columns}
        return replace(self, starts=starts, pixels=pixels, **part)


def likeness(first: Index, second: Index) -> float:
    """Intersection over union of two sets of pixels, each of them once and not both empty."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)


def no_regions(shape: tuple[int, ...], sources: Sequence[str] = ("none",)) -> Regions:
    """An empty set of candidates."""
    none, votes = np.zeros(0, dtype=np.int64), np.zeros((0, len(sources)), dtype=np.int64)
    start = np.zeros(1, dtype=np.int64)
    return Regions(shape, none, start, none, tuple(sources), votes, np.zeros(0))


def regions_at(
    shape: tuple[int, ...],
    t: int,
    starts: Index,
    pixels: Index,
    source: str,
    persistence: Array | None = None,
) -> Regions:
    """Candidates of one frame and one source, each with one vote; see `Regions`."""
    n = len(starts) - 1
    frame, votes = np.full(n, t, dtype=np.int64), np.ones((n, 1), dtype=np.int64)
    lasting = np.zeros(n) if persistence is None else persistence
    return Regions(shape, frame, starts, pixels, (source,), votes, lasting)


def regions_of_labels(labels: NDArray[Any], t: int = 0, source: str = "labels") -> Regions:
    """The cells of one label frame as candidates, in order of their labels.

    Parameters
    ----------
    labels
        Label image, 0 is background, shape ([Z,] Y, X).
    t
        Number of the frame.
    source
        What they are called.
    """
    runs = foreground(labels)
    order = np.argsort(runs.owner, kind="stable")
    starts = np.append(0, np.cumsum(runs.area())).astype(np.int64)
    pixels = ranges(runs.start[order], runs.length[order])
    return regions_at(labels.shape, t, starts, pixels, source)


def concatenate(parts: Sequence[Regions]) -> Regions:
    """Candidates of several frames or origins together, sorted by frame; sources join by name."""
    sources = tuple(dict.fromkeys(name for p in parts for name in p.sources))
    frame = np.concatenate([p.frame for p in parts])
    votes = np.zeros((len(frame), len(sources)), dtype=np.int64)
    row = 0
    for p in parts:
        votes[row : row + len(p), [sources.index(name) for name in p.sources]] = p.votes
        row += len(p)
    together = {
        "starts": np.concatenate([[0], np.cumsum(np.concatenate([p.area for p in parts]))]),
        "pixels": np.concatenate([p.pixels for p in parts]),
        "persistence": np.concatenate([p.persistence for p in parts]),
    }
    order = np.argsort(frame, kind="stable")
    if (order[1:] > order[:-1]).all():
        return Regions(parts[0].shape, frame, sources=sources, votes=votes, **together)
    unsorted = Regions(
        parts[0].shape, np.zeros_like(frame), sources=sources, votes=votes, **together
    )
    return replace(unsorted.select(order), frame=frame[order])


def shared_pixels(first: Regions, second: Regions) -> sp.csr_matrix:
    """How many pixels regions share with those of another frame, or others, shape (R, R')."""
    n = len(first)
    both = (replace(regions, frame=np.zeros_like(regions.frame)) for regions in (first, second))
    member, size = concatenate(list(both)).atoms
    counted = sp.csr_matrix(member[:n].multiply(size))
    return sp.csr_matrix(counted @ member[n:].T)


def much_alike(regions: Regions, rows: Mask) -> Mask:
    """Some of the candidates of a frame, and all that are much like one of them, shape (R,)."""
    pairs = regions.pairs
    found = rows.copy()
    found[pairs.row[(pairs.iou > _SAME_CELL) & rows[pairs.column]]] = True
    return found


def exclusions(regions: Regions) -> sp.csr_matrix:
    """Atoms × regions: at most one region of every row may be chosen.

    An atom is the set of regions that share a pixel. Atoms contained in another atom and atoms of
    one region are redundant and left out, so that two regions are in a row together exactly if they
    share a pixel.

    Returns
    -------
    csr_matrix
        Entries 0 or 1, shape (A, R).
    """
    atoms = regions.atoms[0].T.tocsr()
    size = np.diff(atoms.indptr)
    atoms, size = atoms[size > 1], size[size > 1]
    shared = (atoms @ atoms.T).tocoo()
    within = (shared.data == size[shared.row]) & (shared.row != shared.col)
    kept = np.ones(len(size), dtype=bool)
    kept[shared.row[within]] = False
    return atoms[kept]


def layer_numbers(regions: Regions) -> Index:
    """A layer for every region such that those of a layer share no pixel, shape (R,).

    Greedy, those with most rivals first; a frame needs about as many layers as the largest
    number of regions on one pixel.
    """
    shared = regions.overlaps
    layer = np.full(len(regions), -1, dtype=np.int64)
    begin, end = shared.indptr[:-1], shared.indptr[1:]
    for r in np.argsort(begin - end, kind="stable"):
        taken = set(layer[shared.indices[begin[r] : end[r]]].tolist())
        layer[r] = next(k for k in range(len(taken) + 1) if k not in taken)
    return layer


def layers(regions: Regions, t: int) -> list[NDArray[np.int32]]:
    """The regions of frame `t` as label frames without overlap.

    Labels are 1 for the frame's first region, 2 for the next and so on; each stands in one of
    the frames, whole, so that what measures label frames measures candidates.
    """
    rows = regions.rows(t)
    part = regions.select(np.arange(rows.start, rows.stop))
    layer = layer_numbers(part)
    frames = np.zeros((int(layer.max(initial=-1)) + 1, part.n_pixels), dtype=np.int32)
    frames[layer[part.owner], part.pixels] = part.owner + 1
    return [frame.reshape(part.shape) for frame in frames]


def largest_pieces(regions: Regions) -> Regions:
    """The largest piece of every region, with its holes filled.

    Pieces are joined over faces; of equal ones it is the first.
    """
    if not len(regions):
        return regions
    shape, runs = regions.shape, regions.runs
    owner, run, length = runs.owner, runs.start, runs.length
    # Every region has a frame for itself, with a margin all around, one after another.
    padded = tuple(n + 2 for n in shape)
    index = tuple(i + 1 for i in runs.index)
    start = np.ravel_multi_index(index, padded) + owner * int(np.prod(padded))
    steps = [int(np.prod(padded[axis:])) for axis in range(1, len(shape))]
    piece = _pieces(start, start + length, steps)
    _, one = np.unique(piece, return_index=True)
    order = np.lexsort((one, -np.bincount(piece, length), owner[one]))
    largest = order[np.flatnonzero(np.diff(owner[one][order], prepend=-1))]
    kept = np.isin(piece, largest)
    owner, run, start, length = owner[kept], run[kept], start[kept], length[kept]
    stop = start + length
    gap = _pieces(np.append(0, stop), np.append(start, stop[-1] + int(np.prod(padded))), steps)
    enclosed = np.flatnonzero(gap != gap[0])  # the first lies around all regions
    length[enclosed - 1] = start[enclosed] - start[enclosed - 1]
    area = np.bincount(owner, length, minlength=len(regions)).astype(np.int64)
    return replace(regions, starts=np.append(0, np.cumsum(area)), pixels=ranges(run, length))


def _pieces(start: Index, stop: Index, steps: Sequence[int]) -> Index:
    """The piece that each run of pixels belongs to; runs touch where they lie `steps` apart."""
    none = np.zeros((2, 0), dtype=np.int64)
    pairs = (meeting_runs(start + step, stop + step, start, stop) for step in steps)
    row, column = np.concatenate([none, *pairs], axis=1)
    graph = sp.coo_array((np.ones(len(row), dtype=bool), (row, column)), (len(start),) * 2)
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def labels_of(regions: Regions, chosen: Mask | Index) -> NDArray[np.int32]:
    """Some regions of one frame, of which no two share a pixel, as labels 1 to n in their order."""
    part = regions.select(chosen)
    flat = np.zeros(part.n_pixels, dtype=np.int32)
    flat[part.pixels] = part.owner + 1
    return flat.reshape(part.shape)
