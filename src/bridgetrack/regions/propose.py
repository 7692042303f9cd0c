"""Propose candidate regions: cuts of merge trees, built-in cells at several settings, labels.

A frame is read in several ways. Each reading's landscape gives a merge tree, whose nodes are
unions of hills; a node is outlined at several shares of its own height. Near-duplicates become
one candidate that remembers how many readings agreed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.arrays import Index, Mask
from bridgetrack.detections.labels import ranges
from bridgetrack.movie.movie import Movie
from bridgetrack.regions.regions import (
    Regions,
    concatenate,
    largest_pieces,
    no_regions,
    regions_at,
    regions_of_labels,
)
from bridgetrack.regions.tree import MergeTree, distinct, merge_tree
from bridgetrack.segmentation.builtin import FrameView
from bridgetrack.segmentation.cells import cut_edges, joined_over, least_signal, usual_size
from bridgetrack.segmentation.signal import Image, blob_response, gaussian

_LOW = 0.5
"""Level of a more extended foreground, relative to the usual level."""
_OUTLINES = (0.0, 0.3, 0.5, 0.7)
_NEAR = 0.9
_BULGE = 0.5
_BIGGEST = 6.0
Sizes = tuple[float, float]
"""Pixels that a cell has at least and at most."""
SOURCES = ("intensity", "shape", "blobs", "built-in")


def label_sources(labels: Sequence[Movie]) -> tuple[str, ...]:
    """Names of candidates from label movies: ``"labels"``, ``"labels 2"`` and so on."""
    return tuple("labels" if k == 0 else f"labels {k + 1}" for k in range(len(labels)))


def propose_frame(
    view: FrameView, *, labels: dict[str, NDArray[Any]] | None = None, t: int = 0
) -> Regions:
    """Candidate regions of one frame.

    Parameters
    ----------
    view
        The frame.
    labels
        Label frames brought along, by name.
    t
        Number of the frame.
    """
    settings, unit = view.complete, usual_size(view.diameter, view.image.shape, view.sampling)
    sizes = settings.min_size * unit, min(settings.max_size, _BIGGEST) * unit
    found = [no_regions(view.image.shape, (*SOURCES, *(labels or {})))]
    found += [] if view.uniform else _of_image(view, sizes)
    found += [regions_of_labels(brought, source=name) for name, brought in (labels or {}).items()]
    regions = _collapsed(found, sizes)
    return replace(regions, frame=regions.frame + t)


def _of_image(view: FrameView, sizes: Sizes) -> Iterator[Regions]:
    """Candidates of each reading, whose pixels are in any order."""
    signal, values = view.signal, view.signal.values
    least = least_signal(signal, view.complete)
    low = (values > _LOW * least) & ~signal.invalid | view.foreground
    smooth = gaussian(values, 0.08 * view.diameter, view.sampling)
    yield from _outlined("intensity", merge_tree(smooth, low), smooth, sizes, _OUTLINES)
    yield from _blobs(view, low, sizes)
    depth = float(view.complete.depth or 0.0)
    for mask, height in ((view.foreground, view.landscape), (low, view.landscape_of(low))):
        tree = merge_tree(height, mask)
        yield from _outlined("shape", tree, smooth, sizes, _OUTLINES[:3])
        cells = joined_over(tree.hills, tree.passes, tree.summits, depth)
        yield regions_of_labels(cut_edges(cells, values), source="built-in")


def _blobs(view: FrameView, mask: Mask, sizes: Sizes) -> Iterator[Regions]:
    """Blobs of the logarithm of the signal, at half the size of a cell. They end where the signal
    bends most, which is a good outline of small cells that touch without a valley between them.
    """
    height = blob_response(view.level, _BULGE * view.diameter, view.sampling)
    tree = merge_tree(height, mask & (height > 0))
    yield from _outlined("blobs", tree, view.fine, sizes, _OUTLINES[:2])


def _outlined(
    source: str, tree: MergeTree, values: Image, sizes: Sizes, shares: Sequence[float]
) -> Iterator[Regions]:
    """Nodes of a tree, each cut to pixels above some shares of its own highest value."""
    least, most = sizes
    nodes, lasting = distinct(tree, least, 2 * most, _NEAR)
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
        new = (size >= least) & (size <= most) & (size < _NEAR * before)
        before[new] = size[new]
        kept = pixels[inside & np.repeat(new, area)]
        ends = np.append(0, np.cumsum(size[new]))
        yield regions_at(values.shape, 0, ends, kept, source, lasting[new])


def _collapsed(found: list[Regions], sizes: Sizes) -> Regions:
    """The largest pieces of all readings as regions, near-duplicates as one with votes of all."""
    regions = concatenate(found)
    if not len(regions):
        return regions
    before = regions.owner * regions.n_pixels
    ascending = np.sort(regions.pixels + before) - before
    regions = largest_pieces(replace(regions, pixels=ascending))
    reading = np.repeat(np.arange(len(found)), [len(of_one) for of_one in found])
    fits = (regions.area >= sizes[0]) & (regions.area <= sizes[1])
    regions, reading = regions.select(fits), reading[fits]
    kept, row = np.unique(_groups(regions), return_inverse=True)
    # a reading has one vote for a region
    _, cast = np.unique(row * len(found) + reading, return_index=True)
    votes, most = np.zeros((len(kept), len(regions.sources)), dtype=np.int64), np.zeros(len(kept))
    np.add.at(votes, row[cast], regions.votes[cast])
    np.maximum.at(most, row, regions.persistence)
    return replace(regions.select(kept), votes=votes, persistence=most)


def _groups(regions: Regions) -> Index:
    """The representative of each region, shape (R,): itself, or one much like it.

    Those that are like most others stand first.
    """
    pairs = regions.pairs
    alike = pairs.iou > _NEAR
    row, column = pairs.row[alike], pairs.column[alike]
    count = np.bincount(row, minlength=len(regions))
    begin = np.cumsum(count) - count
    free, group = np.ones(len(regions), dtype=bool), np.arange(len(regions))
    for r in np.argsort(-count, kind="stable")[: np.count_nonzero(count > 1)].tolist():
        if free[r]:
            others = column[begin[r] : begin[r] + count[r]]
            others = others[free[others]]
            group[others] = r
            free[others] = False
    return group
