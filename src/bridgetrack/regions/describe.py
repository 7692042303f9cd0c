"""Features that tell a cell from parts and unions of cells: dimensionless numbers per candidate.

Lengths are relative to the candidates around and intensities to the candidate itself or to the
noise of the frame, so that a score learned on one kind of movie means something on another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.labels import meeting_runs
from bridgetrack.detections.measure import moments, roundness
from bridgetrack.regions.regions import Pairs, Regions, shared_pixels
from bridgetrack.segmentation.builtin import FrameView
from bridgetrack.segmentation.cells import order_within, weighted_median
from bridgetrack.segmentation.signal import Sampling

FEATURES = {
    "area": "log of the area over the usual one in the frame",
    "area near": "log of the area over the usual one among the nearest candidates",
    "roundness": "1 for a disc or ball",
    "elongation": "short over long axis",
    "ellipse": "area over that of the ellipse with the same second moments",
    "border": "share of the outline on the frame's edge",
    "from the edge": "distance of its centre from the frame's edge in diameters, at most 3",
    "contrast": "mean step across the outline over the brightness inside",
    "weak outline": "share of the outline with less than a quarter of the usual step in the frame",
    "lowest side": "least mean step among the sides, over the mean step",
    "brightness": "log of the mean signal over the noise",
    "evenness": "standard deviation of the signal over its mean",
    "foreground": "share of pixels in the usual foreground",
    "outside": "mean signal just outside the outline over that inside",
    "level": "signal on the fainter part of the outline over that of the bright part within",
    "least level": "the lowest level among the candidates that are much like it",
    "probability": "mean signal inside over twice the usual, at most 1",
    "probability outside": "the same just outside the outline",
    "persistence": "share of the levels of the tree over which it stays the same",
    "sources": "how many kinds of readings agree",
    "readings": "log of how many readings agree",
    "built-in": "share of the built-in settings that agree",
    "support": "how much overlapping candidates resemble it, weighted by their readings",
    "dominance": "its share of the support of itself and its strongest rival",
    "support within": "support of the strongest candidate within it over its own",
    "parts": "share of it that two disjoint candidates within it cover, weighted by support",
    "support around": "support of the strongest candidate that contains it over its own",
    "before and after": "overlap with a candidate of a neighbouring frame, weighted by dominance",
    "size in time": "log of the area over that of these candidates",
}
"""Names of the features and what they say, in the order of the columns."""

SPATIAL = len(FEATURES) - 2

_NEIGHBOURS = 12
_FAR_INSIDE = 3.0
_FAINTER = 0.4
"""Share of the outline: the level is not that of the rest, where cells may touch."""
_MUCH_ALIKE = 0.5


def describe_frame(regions: Regions, view: FrameView) -> Array:
    """Features of the candidates of one frame that depend on this frame alone.

    Parameters
    ----------
    regions
        Candidates of this frame.
    view
        The frame, with the settings that the candidates were proposed with.

    Returns
    -------
    Array
        The first `SPATIAL` columns of `FEATURES`, shape (R, SPATIAL).
    """
    if not len(regions):
        return np.zeros((0, SPATIAL))
    support = _support(regions)
    columns = _shape(regions, view.sampling)
    columns |= _sizes(regions, support, view.sampling)
    columns["from the edge"] = _from_the_edge(regions, view.diameter)
    columns |= _look(regions, view)
    columns |= _agreement(regions, support)
    named = list(FEATURES)[:SPATIAL]
    return np.stack([columns[name] for name in named], axis=1)


def describe_in_time(here: Described, others: Sequence[tuple[Described, sp.coo_matrix]]) -> Array:
    """Features of the candidates of a frame that depend on the neighbouring frames, shape (R, 2).

    Each of these comes with the pixels that its candidates share with those of the frame.
    """
    n = len(here.regions)
    found, size = np.zeros(n), np.zeros(n)
    for other, shared in others:
        union = here.regions.area[shared.row] + other.regions.area[shared.col] - shared.data
        likeness = shared.data / union * other.dominance[shared.col]
        order = np.lexsort((likeness, shared.row))
        last = np.flatnonzero(np.diff(shared.row[order], append=-1))
        row, column = shared.row[order][last], shared.col[order][last]
        found[row] += likeness[order][last]
        size[row] += np.log(here.regions.area[row] / other.regions.area[column])
    return np.stack([found, size], axis=1) / max(len(others), 1)


@dataclass(frozen=True)
class Described:
    """Candidates of one frame and their features so far."""

    regions: Regions  # candidates
    features: Array  # shape (R, SPATIAL)
    # labels of the built-in method, where these were among what was proposed
    read: NDArray[np.int32] | None = None

    @property
    def dominance(self) -> Array:
        """The feature of this name, shape (R,)."""
        return np.asarray(self.features[:, list(FEATURES).index("dominance")])


def _support(regions: Regions) -> Array:
    """How much each and the others that resemble it are supported by readings, shape (R,)."""
    pairs, readings = regions.pairs, regions.votes.sum(axis=1)
    weight = readings[pairs.column] * np.maximum(0.0, 2 * pairs.iou - 1)
    return np.bincount(pairs.row, weight, len(regions)).astype(np.float64)


def _agreement(regions: Regions, support: Array) -> dict[str, Array]:
    """How many readings agree with a region, and its support compared with its rivals."""
    area, (row, column, shared, iou) = regions.area, regions.pairs
    own, unlike = np.maximum(support, 1e-9), iou < 0.7
    against = unlike & (shared > 0.3 * np.minimum(area[row], area[column]))
    within = unlike & (shared > 0.85 * area[column])
    around = unlike & (shared > 0.85 * area[row])
    cover = within & (iou > 0.15)
    share = shared / area[row] * np.minimum(support[column] / own[row], 1)
    builtin = regions.votes[:, regions.sources.index("built-in")]

    def most(kept: Mask) -> Array:
        """Largest support among some of the rivals of each region, 0 where there are none."""
        found = np.zeros(len(regions))
        np.maximum.at(found, row[kept], support[column[kept]])
        return found

    return {
        "persistence": regions.persistence,
        "sources": (regions.votes > 0).sum(axis=1).astype(np.float64),
        "readings": np.log1p(regions.votes.sum(axis=1)),
        "built-in": builtin / max(1, int(builtin.max())),
        "support": np.log1p(support),
        "dominance": own / (own + most(against)),
        "support within": np.log1p(most(within) / own),
        "parts": np.minimum(2.0, _two_most(len(regions), row[cover], share[cover])),
        "support around": np.log1p(most(around) / own),
    }


def _two_most(n: int, row: Index, value: Array) -> Array:
    """Sum of the two largest values of each row."""
    order = np.lexsort((value, row))
    row, value = row[order], value[order]
    last = np.flatnonzero(np.diff(row, append=-1))
    out = np.zeros(n)
    out[row[last]] = value[last]
    second = last[(last > 0) & (row[last - 1] == row[last])] - 1
    out[row[second]] += value[second]
    return out


def _shape(regions: Regions, sampling: Sampling) -> dict[str, Array]:
    """Ellipse of the same second moments; the outline follows with the look."""
    area, _, spread = moments(regions.runs, np.asarray(sampling))
    two = len(sampling) == 2
    values = np.maximum(np.linalg.eigvalsh(spread), 1e-9)
    axes = (2 if two else np.sqrt(5.0)) * np.sqrt(values)
    ball = np.pi if two else 4 / 3 * np.pi
    volume = area * float(np.prod(sampling))
    return {
        "elongation": axes[:, 0] / axes[:, -1],
        "ellipse": volume / (ball * axes.prod(axis=1)),
    }


def _sizes(regions: Regions, support: Array, sampling: Sampling) -> dict[str, Array]:
    """Size against the usual one: the median weighted by support, in the frame and around."""
    log_area = np.log(regions.area)
    usual = weighted_median(log_area, support)
    centre = regions.centroid * sampling
    strong = np.flatnonzero(support >= np.quantile(support, 0.5))
    k = min(4 * _NEIGHBOURS, len(strong))
    _, near = cKDTree(centre[strong]).query(centre, k=k)
    near = strong[near.reshape(len(regions), k)]
    around = weighted_median(log_area[near], support[near])
    return {"area": log_area - usual, "area near": log_area - around}


def _from_the_edge(regions: Regions, diameter: float) -> Array:
    """How far inside the frame regions lie: cells close to its edge are often left out."""
    centre, shape = regions.centroid[:, -2:], np.array(regions.shape[-2:])
    distance = np.minimum(centre, shape - 1 - centre).min(axis=1)
    return np.minimum(distance / diameter, _FAR_INSIDE)


def _look(regions: Regions, view: FrameView) -> dict[str, Array]:
    """Signal inside, along the outline and outside."""
    diameter, sampling, signal = view.diameter, view.sampling, view.signal
    usual, values = view.foreground, view.fine.ravel()
    level = float(np.median(values[usual.ravel()])) if usual.any() else 1.0
    cellness = np.clip(values / max(2 * level, 1e-9), 0, 1)
    n, starts, area = len(regions), regions.starts[:-1], regions.area
    inside = values[regions.pixels]
    mean = np.add.reduceat(inside, starts, dtype=np.float64) / area
    square = np.add.reduceat(inside.astype(np.float64) ** 2, starts) / area
    bright = np.maximum(mean, signal.noise)
    outline = _outline(regions, max(1, round(0.06 * diameter)), sampling)
    owner, size = outline.owner, outline.size
    step = values[outline.inner].astype(np.float64) - values[outline.outer]
    total = np.maximum(np.bincount(owner, size, minlength=n), 1e-9)

    def along(quantity: Array) -> Array:
        return np.bincount(owner, size * quantity, minlength=n) / total

    contrast = along(step)
    side = np.bincount(owner * 8 + outline.side, size * step, minlength=8 * n).reshape(n, 8)
    length = np.bincount(owner * 8 + outline.side, size, minlength=8 * n).reshape(n, 8)
    of_side = np.where(length > 0.02 * total[:, None], side / np.maximum(length, 1e-9), np.inf)
    weakest = np.where(np.isfinite(of_side.min(axis=1)), of_side.min(axis=1), contrast)
    volume = np.asarray(area * float(np.prod(sampling)), dtype=np.float64)
    around = np.asarray(total + outline.edge, dtype=np.float64)
    weak = step < 0.25 * np.maximum(contrast, signal.noise)[owner]
    # Weighted by itself the mean signal is that of the bright part of a region. Where cells are
    # told by their texture, the signal is smeared beyond them.
    reach = _fainter(outline, values, n) / np.maximum(square / bright, signal.noise)
    reach = np.zeros(n) if view.complete.foreground == "texture" else reach
    return {
        "roundness": roundness(volume, around, len(sampling)),
        "border": outline.edge / around,
        "contrast": contrast / bright,
        "weak outline": along(weak.astype(np.float64)),
        "lowest side": np.clip(weakest / np.maximum(np.abs(contrast), signal.noise), -2, 2),
        "brightness": np.log(bright / signal.noise),
        "evenness": np.sqrt(np.maximum(square - mean**2, 0)) / bright,
        "foreground": np.add.reduceat(usual.ravel()[regions.pixels].astype(np.float64), starts)
        / area,
        "outside": along(values[outline.outer].astype(np.float64)) / bright,
        "level": reach,
        "least level": _least_alike(reach, regions.pairs),
        "probability": np.add.reduceat(cellness[regions.pixels], starts, dtype=np.float64) / area,
        "probability outside": along(cellness[outline.outer].astype(np.float64)),
    }


def _fainter(outline: _Outline, values: NDArray[Any], n: int) -> Array:
    """Signal on the outline below which some share of each outline lies; 0 without one."""
    on = (values[outline.inner].astype(np.float64) + values[outline.outer]) / 2
    count = np.bincount(outline.owner, minlength=n)
    place = np.cumsum(count) - count + (_FAINTER * count).astype(np.int64)
    ordered = np.append(on[order_within(outline.owner, on)], 0.0)
    return np.where(count > 0, ordered[np.minimum(place, len(on))], 0.0)


def _least_alike(value: Array, pairs: Pairs) -> Array:
    """The least value among the candidates similar to each, shape (R,)."""
    alike, least = pairs.iou > _MUCH_ALIKE, value.copy()
    np.minimum.at(least, pairs.row[alike], value[pairs.column[alike]])
    return least


@dataclass(frozen=True)
class _Outline:
    """Faces between a region and what is around it, of all regions."""

    owner: Index  # region, shape (k,)
    # places some pixels inside and outside of the face, shape (k,)
    inner: Index
    outer: Index
    size: Array  # length or area of the face, shape (k,)
    side: Index  # which of eight sides of the region it lies on, shape (k,)
    edge: Array  # length of the faces on the frame's edge, per region, shape (R,)


def _outline(regions: Regions, reach: int, sampling: Sampling) -> _Outline:
    shape = regions.shape
    edge = np.zeros(len(regions))
    rows: list[list[Any]] = []
    volume = float(np.prod(sampling))
    for axis, length in enumerate(shape):
        step = int(np.prod(shape[axis + 1 :]))
        far = max(0, round(reach / sampling[axis]) - 1)
        area = volume / sampling[axis]  # of a face
        for sign, last, faces in zip((-1, 1), (0, length - 1), _faces(regions, axis), strict=True):
            on_edge = regions.pixels[faces] // step % length == last
            edge += area * np.bincount(regions.owner[faces[on_edge]], minlength=len(regions))
            face = faces[~on_edge]
            owner, place = regions.owner[face], regions.pixels[face]
            depth = place // step % length
            back = np.clip(depth - sign * far, 0, length - 1) - depth
            ahead = np.clip(depth + sign * (1 + far), 0, length - 1) - depth
            inner, outer = place + back * step, place + ahead * step
            rows.append([owner, inner, outer, np.full(len(face), area), place])
    owner, inner, outer, size, place = (np.concatenate(part) for part in zip(*rows, strict=True))
    index = np.unravel_index(place, shape)
    offset = [index[a] - regions.centroid[owner, a] for a in (-2, -1)]
    side = (
        np.floor((np.arctan2(offset[0], offset[1]) + np.pi) / (2 * np.pi) * 8).astype(np.int64) % 8
    )
    return _Outline(owner, inner, outer, size, side, edge)


def _faces(regions: Regions, axis: int) -> tuple[Index, Index]:
    """Entries of `pixels` before which the region ends along an axis, and after which it does."""
    shape, runs = regions.shape, regions.runs
    owner, place, length = runs.owner, runs.start, runs.length
    first = np.cumsum(length) - length
    if axis == len(shape) - 1:
        return first, first + length - 1
    step = int(np.prod(shape[axis + 1 :]))
    start = owner * regions.n_pixels + place
    one, other = meeting_runs(start + step, start + length + step, start, start + length)
    inner = place[one] // step % shape[axis] < shape[axis] - 1  # the frame goes on
    one, other = one[inner], other[inner]
    shift = start[one] + step - start[other]  # of the first run along the second
    low = np.maximum(shift, 0)
    size = np.minimum(shift + length[one], length[other]) - low
    after, before = first[one] + low - shift, first[other] + low
    n = len(regions.pixels)
    return _outside(n, before, size), _outside(n, after, size)


def _outside(n: int, start: Index, size: Index) -> Index:
    """Numbers below `n` that lie in none of some disjoint ranges."""
    change = np.zeros(n + 1, dtype=np.int8)
    change[start] += 1
    change[start + size] -= 1
    return np.flatnonzero(np.cumsum(change[:-1], dtype=np.int8) == 0)


def described(frames: Iterator[Described]) -> Iterator[Described]:
    """All features of candidates frame by frame; three frames are in memory at a time.

    Yields
    ------
    Described
        Of every frame in order; features have shape (R, F).
    """
    beside: list[tuple[Described, sp.coo_matrix]] = []  # the frame before
    here = next(frames, None)
    while here is not None:
        after, beside_next = next(frames, None), list[tuple[Described, sp.coo_matrix]]()
        if after is not None and len(here.regions) and len(after.regions):
            shared = shared_pixels(here.regions, after.regions).tocoo()
            beside.append((after, shared))
            beside_next.append((here, shared.T))
        in_time = describe_in_time(here, beside)
        yield replace(here, features=np.concatenate([here.features, in_time], axis=1))
        here, beside = after, beside_next
