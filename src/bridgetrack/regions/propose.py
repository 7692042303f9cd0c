"""Propose candidate regions: cuts of merge trees, built-in cells at several settings, labels.

A frame is read in several ways. Each reading's landscape gives a merge tree, whose nodes are
unions of hills; a node is outlined at several shares of its own height. Near-duplicates become
one candidate that remembers how many readings agreed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import ndimage as ndi

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.labels import numbered
from bridgetrack.movie.movie import Movie
from bridgetrack.regions.regions import (
    Regions,
    concatenate,
    largest_pieces,
    no_regions,
    ranges,
    regions_of_labels,
)
from bridgetrack.regions.tree import MergeTree, distinct, merge_tree
from bridgetrack.segmentation.builtin import FrameView
from bridgetrack.segmentation.cells import (
    cell_landscape,
    cut_edges,
    least_signal,
    merge_shallow,
    usual_size,
)
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import (
    Image,
    Sampling,
    Signal,
    blob_response,
    gaussian,
)

_LOW, _HIGH = 0.5, 2.0
_OUTLINES = (0.0, 0.3, 0.5, 0.7)
_PROBABLE = (0.3, 0.5, 0.7)
_DEPTHS = (1.0, 3.0, 10.0)
_NEAR = 0.9
_BULGE = 0.5
_SAMPLES = 60
_BIGGEST = 6.0
SOURCES = ("intensity", "shape", "threshold", "blobs", "built-in", "probability")


def label_sources(labels: Sequence[Movie]) -> tuple[str, ...]:
    """What candidates from label movies are called: ``"labels"``, ``"labels 2"`` and so on."""
    return tuple("labels" if k == 0 else f"labels {k + 1}" for k in range(len(labels)))


def propose_frame(
    view: FrameView,
    *,
    labels: dict[str, NDArray[Any]] | None = None,
    probability: Image | None = None,
    t: int = 0,
) -> Regions:
    """Candidate regions of one frame.

    Parameters
    ----------
    view
        The frame.
    labels
        Label frames brought along, by name.
    probability
        Probability of a cell at every pixel, less that of an edge between cells.
    t
        Number of the frame.
    """
    found: list[_Reading] = []
    frame = _frame(view)
    if not view.uniform:
        found += _of_image(view, frame)
    if probability is not None:
        found += _of_probability(probability, frame)
    for name, brought in (labels or {}).items():
        found.append(_of_labels(brought, name))
    names = (*SOURCES, *(labels or {}))
    return _collapsed(found, frame, names, t)


@dataclass(frozen=True)
class _Frame:
    """What is known of a frame: settings, pixel sizes, and which sizes a cell may have."""

    settings: SegmentationSettings
    sampling: Sampling
    shape: tuple[int, ...]
    diameter: float
    least: float
    most: float


@dataclass(frozen=True)
class _Reading:
    """Candidates of one reading: a source, and pixels of each in a row."""

    source: str
    starts: Index
    pixels: Index
    persistence: Array


def _frame(view: FrameView) -> _Frame:
    settings, shape = view.complete, view.image.shape
    unit = usual_size(view.diameter, shape, view.sampling)
    least, most = settings.min_size * unit, min(settings.max_size, _BIGGEST) * unit
    return _Frame(settings, view.sampling, shape, view.diameter, least, most)


def _of_image(view: FrameView, frame: _Frame) -> Iterator[_Reading]:
    signal = view.signal
    low, high = _other_masks(view)
    smooth = gaussian(signal.values, 0.08 * frame.diameter, frame.sampling)
    tree = merge_tree(smooth, low)
    yield from _outlined("intensity", tree, smooth, frame, _OUTLINES)
    yield _above_pass(tree, smooth, frame)
    yield from _blobs(view, low, frame)
    for mask in (low, view.foreground, high):
        usual = mask is view.foreground
        height = (
            view.landscape
            if usual
            else cell_landscape(signal, mask, frame.diameter, frame.sampling)
        )
        tree = merge_tree(height, mask)
        yield from _outlined("shape", tree, smooth, frame, _OUTLINES[:3])
        yield from _builtin(tree, height, signal, frame, _DEPTHS if usual else _DEPTHS[:1])


def _blobs(view: FrameView, mask: Mask, frame: _Frame) -> Iterator[_Reading]:
    """Where the logarithm of the signal bulges, at half the size of a cell.

    Bulges end where the signal bends most, which is a good outline of small cells that touch and
    have no valley between them.
    """
    noise = view.signal.noise
    level = np.log(np.maximum(view.signal.values, noise) / noise + 3)
    height = blob_response(level, _BULGE * frame.diameter, frame.sampling)
    tree = merge_tree(height, mask & (height > 0))
    yield from _outlined("blobs", tree, view.fine, frame, _OUTLINES[:2])


def _of_probability(probability: Image, frame: _Frame) -> Iterator[_Reading]:
    smooth = gaussian(probability.astype(np.float32), 0.04 * frame.diameter, frame.sampling)
    tree = merge_tree(smooth, smooth > _PROBABLE[0])
    yield from _outlined("probability", tree, smooth, frame, (0.0, 0.5, 0.7))
    for level in _PROBABLE:
        mask = smooth > level
        distance = ndi.distance_transform_edt(mask, sampling=frame.sampling).astype(np.float32)
        height = gaussian(distance, 0.05 * frame.diameter, frame.sampling)
        tree = merge_tree(height, mask)
        yield from _outlined("probability", tree, smooth, frame, (0.0,))


def _of_labels(labels: NDArray[Any], name: str) -> _Reading:
    cells = regions_of_labels(labels)
    return _Reading(name, cells.starts, cells.pixels, np.zeros(len(cells)))


def _other_masks(view: FrameView) -> tuple[Mask, Mask]:
    """Foreground at a lower and at a higher level than usual."""
    signal, values = view.signal, view.signal.values
    level = least_signal(signal, view.complete)
    low = (values > _LOW * level) & ~signal.invalid
    return low | view.foreground, view.foreground & (values > _HIGH * level)


def _builtin(
    tree: MergeTree, height: Image, signal: Signal, frame: _Frame, depths: Sequence[float]
) -> Iterator[_Reading]:
    """Cells as the built-in segmentation finds them, at several depths of valleys."""
    s = frame.settings
    for factor in depths:
        cells = merge_shallow(tree.hills, height, factor * float(s.depth or 0.0))
        cells = cut_edges(cells, signal.values)
        yield _of_labels(cells, "built-in")


def _outlined(
    source: str, tree: MergeTree, values: Image, frame: _Frame, shares: Sequence[float]
) -> Iterator[_Reading]:
    """Nodes of a tree, each cut to pixels above some shares of its own highest value."""
    nodes, lasting = distinct(tree, frame.least, 2 * frame.most, _NEAR)
    if not len(nodes):
        return
    area = tree.area[nodes]
    starts = np.cumsum(area) - area
    pixels = tree.pixels[ranges(tree.start[nodes], area)]
    value = values.ravel()[pixels]
    peak = np.maximum.reduceat(value, starts)
    before = np.full(len(nodes), np.inf)
    for share in shares:
        inside = value > np.repeat(share * peak, area) if share > 0 else np.ones(len(value), bool)
        size = np.add.reduceat(inside, starts, dtype=np.int64)
        new = (size >= frame.least) & (size <= frame.most) & (size < _NEAR * before)
        before[new] = size[new]
        kept = pixels[inside & np.repeat(new, area)]
        yield _Reading(source, np.append(0, np.cumsum(size[new])), kept, lasting[new])


def _above_pass(tree: MergeTree, values: Image, frame: _Frame) -> _Reading:
    """Components above a threshold, each at the level just before it joins another."""
    nodes, lasting = distinct(tree, frame.least, 2 * frame.most, _NEAR)
    area = tree.area[nodes]
    pixels = tree.pixels[ranges(tree.start[nodes], area)]
    inside = values.ravel()[pixels] > np.repeat(tree.death[nodes], area)
    owner = np.repeat(np.arange(len(nodes)), area)
    size = np.bincount(owner[inside], minlength=len(nodes))
    fits = (size >= frame.least) & (size <= frame.most)
    kept = pixels[inside & fits[owner]]
    return _Reading("threshold", np.append(0, np.cumsum(size[fits])), kept, lasting[fits])


def _collapsed(found: list[_Reading], frame: _Frame, names: tuple[str, ...], t: int) -> Regions:
    """All readings as regions, near-duplicates as one with the votes of all."""
    found = [r for r in found if len(r.persistence)]
    if not found:
        return no_regions(frame.shape, names)
    parts = []
    for number, reading in enumerate(found):
        n = len(reading.persistence)
        votes = np.zeros((n, len(found)), dtype=np.int64)
        votes[:, number] = 1
        parts.append(
            Regions(
                frame.shape,
                np.full(n, t, dtype=np.int64),
                reading.starts,
                reading.pixels,
                tuple(map(str, range(len(found)))),
                np.full(n, number, dtype=np.int64),
                votes,
                reading.persistence,
            )
        )
    of_source: dict[str, list[Regions]] = {name: [] for name in names}
    for part, reading in zip(parts, found, strict=True):
        of_source[reading.source].append(part)
    each = [_merged(concatenate(p), frame) for p in of_source.values() if p]
    regions = _merged(_whole(concatenate(each), frame), frame)
    place = np.array([names.index(r.source) for r in found])
    order = [int(name) for name in regions.sources]
    place = place[order]
    votes = np.zeros((len(regions), len(names)), dtype=np.int64)
    np.add.at(votes.T, place, regions.votes.T)
    return replace(regions, sources=names, source=place[regions.source], votes=votes)


def _merged(regions: Regions, frame: _Frame) -> Regions:
    """One region in place of all that are nearly the same, the one most like the others first."""
    near = _alike(regions, frame)
    begin, end = near.indptr[:-1], near.indptr[1:]
    free = np.ones(len(regions), dtype=bool)
    group = np.arange(len(regions))
    order = np.argsort(begin - end, kind="stable")
    for r in order[: np.count_nonzero(end - begin > 1)]:
        if free[r]:
            alike = near.indices[begin[r] : end[r]]
            alike = alike[free[alike]]
            group[alike] = r
            free[alike] = False
    kept = np.unique(group)
    row = np.searchsorted(kept, group)
    votes = np.zeros((len(kept), regions.votes.shape[1]), dtype=np.int64)
    np.maximum.at(votes, row, regions.votes)
    lasting = np.zeros(len(kept))
    np.maximum.at(lasting, row, regions.persistence)
    return replace(regions.select(kept), votes=votes, persistence=lasting)


def _alike(regions: Regions, frame: _Frame) -> sp.csr_matrix:
    """Pairs with an overlap above 0.9 of their union, each region with itself among them.

    Large cells are compared on every second, third, ... pixel of each axis.
    """
    ndim = len(frame.shape)
    step = max(1, int((frame.most / _BIGGEST / _SAMPLES) ** (1 / ndim)))
    places = np.unravel_index(regions.pixels, frame.shape)
    on_grid = np.logical_and.reduce([p % step == 0 for p in places])
    owner, pixels = regions.owner[on_grid], regions.pixels[on_grid]
    used, column = numbered(pixels)
    shape = (len(regions), len(used))
    member = sp.csr_matrix((np.ones(len(owner), np.int32), (owner, column)), shape)
    shared = (member @ member.T).tocoo()
    size = np.asarray(member.sum(axis=1)).ravel()
    union = size[shared.row] + size[shared.col] - shared.data
    near = (shared.data > _NEAR * union) & (shared.row != shared.col)
    row = np.concatenate([shared.row[near], np.arange(len(regions))])
    column = np.concatenate([shared.col[near], np.arange(len(regions))])
    return sp.csr_matrix((np.ones(len(row), bool), (row, column)), (len(regions),) * 2)


def _whole(regions: Regions, frame: _Frame) -> Regions:
    """The largest piece of every region, its holes filled unless somebody wants them, where that
    has a possible size."""
    whole = largest_pieces(regions)
    return whole.select((whole.area >= frame.least) & (whole.area <= frame.most))
