"""Candidate regions: sets of pixels that overlap; at most one of those chosen owns a pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import ndimage as ndi

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.labels import numbered
from bridgetrack.errors import InputError

_PICTURE = 300_000
"""Pixels of regions that are looked at together; larger pictures do not fit into a cache."""
_SAME_CELL = 0.6
"""Overlap over union from which two outlines surely are of one cell."""


@dataclass(frozen=True)
class Regions:
    """Candidate regions of some frames, sorted by frame.

    Parameters
    ----------
    shape
        Spatial shape of a frame.
    frame
        Frame of every region, ascending, shape (R,).
    starts
        Where the pixels of each region begin in `pixels`, and their number at the end,
        shape (R + 1,); no region is empty.
    pixels
        Places in the flat frame, ascending within a region, shape (P,).
    sources
        Names of what proposed regions, e.g. ``"threshold"`` or a brought label movie.
    source
        Which of them the pixels come from, index into `sources`, shape (R,).
    votes
        How many readings of every source proposed nearly these pixels, shape (R, S).
    persistence
        Share of the levels of the tree over which the region stays much the same, 0 where it
        is not from a tree, shape (R,).
    """

    shape: tuple[int, ...]
    frame: Index
    starts: Index
    pixels: Index
    sources: tuple[str, ...]
    source: Index
    votes: Index
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
    def frames(self) -> Index:
        """Frames that hold a region, ascending."""
        return np.unique(self.frame)

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

    def membership(self, t: int) -> sp.csr_matrix:
        """Regions of frame `t` × pixels of a frame, entries 0 or 1."""
        rows = self.rows(t)
        starts = self.starts[rows.start : rows.stop + 1]
        pixels = self.pixels[starts[0] : starts[-1]]
        shape = (rows.stop - rows.start, self.n_pixels)
        return sp.csr_matrix((np.ones(len(pixels), np.int32), pixels, starts - starts[0]), shape)

    @cached_property
    def atoms(self) -> tuple[sp.csr_matrix, Index]:
        """Sets of pixels of a frame that lie in the same regions.

        Returns
        -------
        member, size
            Regions × atoms, entries 0 or 1; and how many pixels each atom has.
        """
        column = numbered(self.frame[self.owner] * self.n_pixels + self.pixels)[1]
        # A pixel's set of regions is told by the sum of random numbers that its regions have.
        key = np.random.default_rng(0).integers(1, 2**62, len(self), dtype=np.uint64)
        total = np.zeros(int(column.max(initial=-1)) + 1, dtype=np.uint64)
        np.add.at(total, column, key[self.owner])
        _, first, atom, size = np.unique(
            total, return_index=True, return_inverse=True, return_counts=True
        )
        atom = atom[column]
        one = np.flatnonzero(first[atom] == column)  # one pixel stands for all of an atom
        shape = (len(self), len(size))
        entries = np.ones(len(one), dtype=np.int64), (self.owner[one], atom[one])
        return sp.csr_matrix(entries, shape), size.astype(np.int64)

    @cached_property
    def overlaps(self) -> sp.csr_matrix:
        """Pixels that every two regions of a frame share, shape (R, R); areas on the diagonal."""
        member, size = self.atoms
        counted = sp.csr_matrix((size[member.indices], member.indices, member.indptr), member.shape)
        shared = sp.csr_matrix(counted @ member.T)
        shared.sort_indices()
        return shared

    def at_edge(self, in_plane: bool = False) -> Mask:
        """Which regions touch the frame's edge, shape (R,); of stacks that along y and x alone."""
        places = zip(np.unravel_index(self.pixels, self.shape), self.shape, strict=True)
        outer = [(p == 0) | (p == n - 1) for p, n in places]
        touches = np.zeros(len(self), dtype=bool)
        touches[self.owner[np.logical_or.reduce(outer[-2:] if in_plane else outer)]] = True
        return touches

    def centroid(self) -> Array:
        """Mean pixel of every region, shape (R, ndim)."""
        places = np.unravel_index(self.pixels, self.shape)
        sums = [np.add.reduceat(p, self.starts[:-1]) if len(self) else p for p in places]
        return np.stack(sums, axis=1) / self.area[:, None]

    def select(self, kept: Mask | Index) -> Regions:
        """Some of the regions, as a mask or ascending numbers."""
        chosen = np.flatnonzero(kept) if np.asarray(kept).dtype == bool else np.asarray(kept)
        area = self.area[chosen]
        starts = np.concatenate([[0], np.cumsum(area)])
        offset = np.repeat(self.starts[:-1][chosen] - starts[:-1], area)
        pixels = self.pixels[np.arange(starts[-1]) + offset]
        columns = ("frame", "source", "votes", "persistence")
        part = {name: getattr(self, name)[chosen] for name in columns}
        return replace(self, starts=starts, pixels=pixels, **part)


def likeness(first: Index, second: Index) -> float:
    """Intersection over union of two sets of pixels, each of them once and not both empty."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)


def no_regions(shape: tuple[int, ...], sources: Sequence[str] = ("none",)) -> Regions:
    """No candidate at all."""
    none = np.zeros(0, dtype=np.int64)
    votes = np.zeros((0, len(sources)), dtype=np.int64)
    start = np.zeros(1, dtype=np.int64)
    return Regions(shape, none, start, none, tuple(sources), none, votes, np.zeros(0))


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
    flat = np.ascontiguousarray(labels).reshape(-1)
    places = np.flatnonzero(flat)
    order = np.argsort(flat[places], kind="stable")
    present, area = np.unique(flat[places], return_counts=True)
    n = len(present)
    return Regions(
        labels.shape,
        np.full(n, t, dtype=np.int64),
        np.concatenate([[0], np.cumsum(area)]).astype(np.int64),
        places[order].astype(np.int64),
        (source,),
        np.zeros(n, dtype=np.int64),
        np.ones((n, 1), dtype=np.int64),
        np.zeros(n),
    )


def concatenate(parts: Sequence[Regions]) -> Regions:
    """Candidates of several frames or origins together, sorted by frame; sources join by name.

    Raises
    ------
    InputError
        Where there is nothing, or frames differ in shape.
    """
    if not parts or len({p.shape for p in parts}) > 1:
        raise InputError("regions that are put together must be of frames of one shape")
    sources = tuple(dict.fromkeys(name for p in parts for name in p.sources))
    frame = np.concatenate([p.frame for p in parts])
    place = [np.array([sources.index(n) for n in p.sources], dtype=np.int64) for p in parts]
    votes = np.zeros((len(frame), len(sources)), dtype=np.int64)
    row = 0
    for p, columns in zip(parts, place, strict=True):
        votes[row : row + len(p), columns] = p.votes
        row += len(p)
    together = {
        "starts": np.concatenate([[0], np.cumsum(np.concatenate([p.area for p in parts]))]),
        "pixels": np.concatenate([p.pixels for p in parts]),
        "source": np.concatenate([c[p.source] for p, c in zip(parts, place, strict=True)]),
        "persistence": np.concatenate([p.persistence for p in parts]),
    }
    order = np.argsort(frame, kind="stable")
    if (order[1:] > order[:-1]).all():
        return Regions(parts[0].shape, frame, sources=sources, votes=votes, **together)
    unsorted = Regions(
        parts[0].shape, np.zeros_like(frame), sources=sources, votes=votes, **together
    )
    return replace(unsorted.select(order), frame=frame[order])


def much_alike(regions: Regions, rows: Mask) -> Mask:
    """Some of the candidates of a frame, and all that are much like one of them, shape (R,)."""
    shared, area = regions.overlaps.tocoo(), regions.area
    alike = shared.data > _SAME_CELL * (area[shared.row] + area[shared.col] - shared.data)
    found = rows.copy()
    found[shared.row[alike & rows[shared.col]]] = True
    return found


def exclusions(regions: Regions) -> sp.csr_matrix:
    """Atoms × regions: at most one region of every row may be chosen.

    An atom is the set of regions that share a pixel. Those within another atom say nothing more
    and are left out, as are atoms of one region, so that two regions stand in a row together
    exactly where they share a pixel.

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


def ranges(first: Index, size: Index) -> Index:
    """``first[k], first[k] + 1, ...``, `size[k]` of them, one after another."""
    starts = np.cumsum(size) - size
    return np.arange(int(size.sum())) + np.repeat(first - starts, size)


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
    """The largest piece of every region with what it encloses on all sides.

    Pieces are joined over faces; of equal ones it is the first.
    """
    if not len(regions):
        return regions
    begin = regions.starts[:-1]
    index = np.unravel_index(regions.pixels, regions.shape)
    low = np.stack([np.minimum.reduceat(i, begin) for i in index])
    size = np.stack([np.maximum.reduceat(i, begin) for i in index]) - low + 1
    # Many regions are drawn below each other in one picture, those of like width together.
    order = np.argsort(size[1:].max(axis=0), kind="stable")
    picture = np.cumsum(np.prod(size + 1, axis=0)[order]) // _PICTURE
    owners, pixels = [], []
    for some in np.split(order, np.flatnonzero(np.diff(picture)) + 1):
        owner, places = _whole_pieces(regions, some, low[:, some], size[:, some])
        owners.append(some[owner])
        pixels.append(places)
    owner = np.concatenate(owners)
    area = np.bincount(owner, minlength=len(regions))
    ordered = np.concatenate(pixels)[np.argsort(owner, kind="stable")]
    return replace(regions, starts=np.append(0, np.cumsum(area)), pixels=ordered)


def _whole_pieces(regions: Regions, some: Index, low: Index, size: Index) -> tuple[Index, Index]:
    """Largest pieces of some regions, found in one picture: owner and place of their pixels."""
    area, height = regions.area[some], size[0] + 1
    shape = (int(height.sum()) + 1, *(size[1:].max(axis=1) + 2))
    top = low - 1
    top[0] -= np.cumsum(height) - height
    places = np.unravel_index(regions.pixels[ranges(regions.starts[some], area)], regions.shape)
    drawn = _flat(places, shape) - np.repeat(_flat(top, shape), area)
    picture = np.zeros(int(np.prod(shape)), dtype=bool)
    picture[drawn] = True
    pieces, n = ndi.label(picture.reshape(shape))
    if n > len(area):
        piece = pieces.ravel()[drawn]
        whose = np.zeros(n + 1, dtype=np.int64)
        whose[piece] = np.repeat(np.arange(len(area)), area)
        by_size = 1 + np.lexsort((-np.bincount(piece)[1:], whose[1:]))
        kept = np.zeros(n + 1, dtype=bool)
        kept[by_size[np.flatnonzero(np.diff(whose[by_size], prepend=-1))]] = True
        picture[drawn] = kept[piece]
    gaps, _ = ndi.label(~picture.reshape(shape))
    picture |= gaps.ravel() > 1  # the first is what lies around all regions
    found = np.unravel_index(np.flatnonzero(picture), shape)
    owner = np.repeat(np.arange(len(area)), height)[found[0] - 1]
    return owner, _flat(found, regions.shape) + _flat(top, regions.shape)[owner]


def _flat(index: Sequence[Index] | Index, shape: tuple[int, ...]) -> Index:
    """Places in a flat frame, also of what lies outside it."""
    flat = index[0]
    for places, length in zip(index[1:], shape[1:], strict=True):
        flat = flat * length + places
    return flat


def labels_of(regions: Regions, chosen: Mask | Index, t: int) -> NDArray[np.int32]:
    """The chosen regions of frame `t` as a label frame.

    Parameters
    ----------
    regions
        Candidates.
    chosen
        Which of all of them are chosen, as a mask or ascending numbers.
    t
        Number of the frame.

    Returns
    -------
    NDArray[np.int32]
        Labels 1 to n in the order of the regions, 0 for background.

    Raises
    ------
    InputError
        Where two of them share a pixel.
    """
    numbers = np.flatnonzero(chosen) if np.asarray(chosen).dtype == bool else np.asarray(chosen)
    rows = regions.rows(t)
    part = regions.select(numbers[(numbers >= rows.start) & (numbers < rows.stop)])
    flat = np.zeros(part.n_pixels, dtype=np.int32)
    flat[part.pixels] = part.owner + 1
    if np.count_nonzero(flat) != len(part.pixels):
        raise InputError(f"frame {t}: two of the chosen regions share a pixel")
    return flat.reshape(part.shape)
