"""Actions of a click on the masks of one frame: cut, join, grow, remove, outline anew.

Candidates and landscapes are computed from the pixels around the click alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi
from skimage.draw import line_nd
from skimage.morphology import flood
from skimage.segmentation import watershed

from bridgetrack.arrays import Index, Mask
from bridgetrack.errors import InputError
from bridgetrack.regions.describe import Described, describe_frame, described
from bridgetrack.regions.mend import MaskAnswer, MendKind, Place, cell_pixels
from bridgetrack.regions.propose import propose_frame
from bridgetrack.regions.score import MovieScore, starting_score
from bridgetrack.regions.tree import merge_tree
from bridgetrack.segmentation.builtin import FrameView
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import Image, Sampling, finite_image, gaussian, sampling_of

_REACH = 2.5  # diameters around a click that are looked at
_GAP = 0.75  # of a diameter, up to which two masks can be joined
_LEAST_PIECE = 0.1  # of a cell that is cut
_FREE = 0.7  # of a candidate's pixels that no other cell may have
_ALIKE = 0.9  # overlap above which two outlines are one
_OUTLINES = 9  # outlines to choose from
_NARROW = 0.75  # half the width of a drawn line, in pixels; no two pixels touch across it


@dataclass(frozen=True)
class MendSite:
    """A frame whose masks can be mended."""

    frame: int  # its number
    labels: NDArray[Any]  # its labels, shape ([Z,] Y, X)
    # of the built-in segmentation, with the diameter of a cell in pixels
    settings: SegmentationSettings
    free: int  # a number that no cell of the movie ever had
    # one channel of it; without one, masks are told apart by their shape alone
    image: NDArray[Any] | None = None
    scale: tuple[float, ...] | None = None  # pixel size per axis; only ratios matter
    name: Callable[[int], str] = "cell {}".format  # what a cell is called, by its label
    # how likely candidates are cells, learned from the movie if possible
    score: MovieScore = field(default_factory=lambda: MovieScore(starting_score()))

    @property
    def diameter(self) -> float:
        """Diameter of a usual cell in pixels along x."""
        return float(self.settings.diameter or 20.0)

    @property
    def sampling(self) -> Sampling:
        """Sizes of a pixel, in pixels along x."""
        return sampling_of(self.scale, self.labels.shape, self.diameter)

    def pixel(self, place: Place) -> tuple[int, ...]:
        """The pixel at a place; raises an `InputError` where it lies outside the frame."""
        at = tuple(round(p) for p in place)
        shape = self.labels.shape
        if len(at) != len(shape) or not all(0 <= a < n for a, n in zip(at, shape, strict=True)):
            raise self.refusal(
                f"the place {place} lies outside the frame of {shape} pixels; "
                "point at a pixel inside"
            )
        return at

    def cell_at(self, place: Place) -> int:
        """The label of the cell at a place; raises an `InputError` where there is none."""
        at = self.pixel(place)
        label = int(self.labels[at])
        if not label:
            raise self.refusal(f"there is no cell at pixel {at}; point at a mask")
        return label

    def refusal(self, why: str) -> InputError:
        """An error that names the frame."""
        return InputError(f"frame {self.frame}: {why}")


def act(kind: MendKind | str, site: MendSite, *places: Place) -> MaskAnswer:
    """The change that a click of some kind makes; `Session.mend` lists the kinds.

    Raises an `InputError` where there is no such kind, it has another number of places, or it
    cannot be done there.
    """
    known = [str(k) for k in _ACTS]
    if kind not in known:
        raise InputError(f"masks cannot be changed by {kind!r}; choose among {', '.join(known)}")
    does, least, most = _ACTS[MendKind(kind)]
    if not least <= len(places) <= most:
        wanted = f"{least} or {most}" if least < most else str(most)
        raise InputError(f"{kind} needs {wanted} place(s), not {len(places)}")
    return does(site, *places)


def _cut(site: MendSite, *places: Place) -> MaskAnswer:
    """Two cells, the larger with the number; cut by shape and brightness, or along a line."""
    if len(places) == 1:
        label = site.cell_at(places[0])
        part = _part(site, places, label)
        pieces = _best_cut(part, label)
    else:
        label = _crossed(site, places)
        part = _part(site, places, label)
        pieces = _along_line(part, label, places)
    large, small = sorted(pieces, key=lambda p: -int(p.sum()))
    cells = [(large, label), (small, site.free)]
    return part.said(MendKind.CUT, cells, [part.labels == label])


def _join(site: MendSite, *places: Place) -> MaskAnswer:
    """One cell with the number of the larger; a gap is closed."""
    labels = [site.cell_at(p) for p in places]
    if labels[0] == labels[1]:
        name = site.name(labels[0])
        raise site.refusal(f"{name} was pointed at twice; joining needs two cells")
    part = _part(site, places, *labels)
    first, second = (part.labels == label for label in labels)
    away = float(ndi.distance_transform_edt(~first, sampling=site.sampling)[second].min())
    if away > _GAP * site.diameter:
        one, other = map(site.name, labels)
        raise site.refusal(
            f"{one} and {other} are {away:.0f} pixels apart; only cells beside each other can be "
            "joined: paint what lies between them"
        )
    both = _bridged(first | second, part.labels == 0, away, site.sampling)
    kept = labels[int(second.sum() > first.sum())]
    return part.said(MendKind.JOIN, [(both, kept)], [first, second])


def _grow(site: MendSite, place: Place) -> MaskAnswer:
    """A cell where none is drawn: the best candidate that leaves others alone."""
    at = site.pixel(place)
    if taken := int(site.labels[at]):
        raise site.refusal(
            f"here is the mask of {site.name(taken)} already; cut it if it is two cells, or take "
            "its next outline"
        )
    part = _part(site, (place,))
    outlines = _outlines(part, place, 0)
    if not outlines:
        raise site.refusal(f"nothing stands out at pixel {at}; paint the cell")
    return part.said(MendKind.GROW, [(outlines[0], site.free)], [])


def _remove(site: MendSite, place: Place) -> MaskAnswer:
    label = site.cell_at(place)
    part = _part(site, (place,), label)
    return part.said(MendKind.REMOVE, [], [part.labels == label])


def _outline(site: MendSite, place: Place) -> MaskAnswer:
    """The next of the candidates, best first; after the last the best again."""
    label = site.cell_at(place)
    part = _part(site, (place,), label)
    now = part.labels == label
    found = _outlines(part, place, label)
    alike = [_overlap(mask, now) for mask in found]
    same = int(np.argmax(alike)) if alike and max(alike) > _ALIKE else -1
    if not found or (len(found) == 1 and same == 0):
        name = site.name(label)
        raise site.refusal(f"there is no other outline of {name}; paint it as it is")
    chosen = found[(same + 1) % len(found)]
    return part.said(MendKind.OUTLINE, [(chosen, label)], [now])


def _check(site: MendSite, *places: Place) -> MaskAnswer:
    """Confirm all cells within an area, or the frame, except those that reach beyond it."""
    if len(places) == 1:
        raise InputError("check needs two opposite corners of an area, or none for the whole frame")
    labels, inside = site.labels, np.zeros(site.labels.shape, dtype=bool)
    sides = [sorted(round(p) for p in ends) for ends in zip(*places, strict=True)]
    inside[tuple(slice(max(0, low), max(0, high + 1)) for low, high in sides)] = True
    whole = np.setdiff1d(labels[inside], [0, *np.unique(labels[~inside]).tolist()])
    if not len(whole):
        raise site.refusal(
            "no cell lies wholly within the checked area; check a larger part of the frame"
        )
    empty = np.flatnonzero((labels == 0) & inside)
    return MaskAnswer.of(site.frame, MendKind.CHECK, cell_pixels(labels, whole), [empty])


_ACTS: dict[MendKind, tuple[Callable[..., MaskAnswer], int, int]] = {
    MendKind.CUT: (_cut, 1, 2),
    MendKind.JOIN: (_join, 2, 2),
    MendKind.GROW: (_grow, 1, 1),
    MendKind.REMOVE: (_remove, 1, 1),
    MendKind.OUTLINE: (_outline, 1, 1),
    MendKind.CHECK: (_check, 0, 2),
}
"""The function of each kind of click, and the fewest and most places that it needs."""


# ---------------------------------------------------------------------- around the click


@dataclass(frozen=True)
class _Part:
    """The part of a frame around a click."""

    site: MendSite
    box: tuple[slice, ...]
    labels: Index

    def local(self, place: Place) -> tuple[int, ...]:
        pixel = self.site.pixel(place)
        return tuple(p - b.start for p, b in zip(pixel, self.box, strict=True))

    def flat(self, mask: Mask) -> Index:
        """Places of a mask in the flat frame."""
        inside = np.nonzero(mask)
        whole = tuple(i + b.start for i, b in zip(inside, self.box, strict=True))
        return np.ravel_multi_index(whole, self.site.labels.shape).astype(np.int64)

    def said(self, kind: MendKind, cells: list[tuple[Mask, int]], wrong: list[Mask]) -> MaskAnswer:
        """The change that leaves some masks with their labels in place of those that were wrong."""
        after = self.labels.copy()
        for mask in wrong:
            after[mask] = 0
        for mask, label in cells:
            after[mask] = label
        changed = after != self.labels
        change = self.flat(changed), self.labels[changed], after[changed]
        right = (self.flat(mask) for mask, _ in cells)
        return MaskAnswer.of(self.site.frame, kind, right, map(self.flat, wrong), change)


def _part(site: MendSite, places: tuple[Place, ...], *labels: int) -> _Part:
    """The part of the frame within some diameters of the places, and around whole cells."""
    reach = np.ceil(_REACH * site.diameter / np.asarray(site.sampling)).astype(int)
    points = np.array([site.pixel(p) for p in places])
    low, high = points.min(axis=0) - reach, points.max(axis=0) + reach + 1
    if labels:
        whole = np.argwhere(np.isin(site.labels, labels))
        low = np.minimum(low, whole.min(axis=0) - reach // 4)
        high = np.maximum(high, whole.max(axis=0) + reach // 4 + 1)
    low, high = np.maximum(low, 0), np.minimum(high, site.labels.shape)
    box = tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))
    return _Part(site, box, site.labels[box].astype(np.int64))


def _overlap(first: Mask, second: Mask) -> float:
    union = int((first | second).sum())
    return int((first & second).sum()) / union if union else 0.0


# ---------------------------------------------------------------------- two cells


def _best_cut(part: _Part, label: int) -> tuple[Mask, Mask]:
    """Pieces that are separate already, else those on both sides of the deepest valley."""
    mask = part.labels == label
    markers = _two_largest(mask, _LEAST_PIECE * int(mask.sum())) or _deepest_valley(part, mask)
    if markers is None:
        raise part.site.refusal(
            f"{part.site.name(label)} shows no valley to cut it along; click beside it on both "
            "sides to draw the cut, or paint one of the two cells"
        )
    return _spread(markers, mask, part.site.sampling)


def _two_largest(mask: Mask, least: float = 1) -> tuple[Mask, Mask] | None:
    """The two largest connected pieces of a mask, each with at least so many pixels."""
    pieces, n = ndi.label(mask)
    size = np.bincount(pieces.ravel())[1:]
    largest = np.argsort(-size, kind="stable")[:2]
    if n < 2 or size[largest[1]] < least:
        return None
    return pieces == largest[0] + 1, pieces == largest[1] + 1


def _deepest_valley(part: _Part, mask: Mask) -> tuple[Mask, Mask] | None:
    """The two hills of distance and brightness that are parted by the deepest valley."""
    height = _landscape(part, mask)
    tree = merge_tree(height, mask)
    least = _LEAST_PIECE * int(mask.sum())
    parts = np.flatnonzero(tree.parent >= 0)
    pairs = parts[np.argsort(tree.parent[parts], kind="stable")].reshape(-1, 2)
    depth = tree.peak[pairs].min(axis=1) - tree.birth[tree.parent[pairs[:, 0]]]
    depth[tree.area[pairs].min(axis=1) < least] = 0.0
    if not (depth > 0).any():
        return None
    pair = pairs[np.argmax(depth)]
    markers = []
    for node in pair:
        marker = np.zeros(mask.size, dtype=bool)
        marker[tree.pixels[tree.start[node] : tree.stop[node]]] = True
        markers.append(marker.reshape(mask.shape))
    return markers[0], markers[1]


def _landscape(part: _Part, mask: Mask) -> Image:
    """Distance to the outline in radii plus, with an image, its relative brightness."""
    site = part.site
    distance = ndi.distance_transform_edt(np.pad(mask, 1), sampling=site.sampling)
    inner = tuple(slice(1, -1) for _ in mask.shape)
    height = gaussian(distance[inner].astype(np.float32), 0.03 * site.diameter, site.sampling)
    height *= 2 / site.diameter
    if site.image is not None:
        values, _ = finite_image(site.image[part.box])
        smooth = gaussian(values, 0.08 * site.diameter, site.sampling)
        sign = -1 if site.settings.foreground == "dark" else 1
        spread = float(np.ptp(smooth[mask])) or 1.0
        if site.settings.foreground != "texture":
            height += 0.5 * sign * smooth / spread
    return np.asarray(height, dtype=np.float32)


def _spread(markers: tuple[Mask, Mask], mask: Mask, sampling: Sampling) -> tuple[Mask, Mask]:
    """Assign every pixel of the mask to the nearer marker."""
    away = [ndi.distance_transform_edt(~m, sampling=sampling) for m in markers]
    seeds = np.where(markers[0], 1, np.where(markers[1], 2, 0))
    owner = watershed(np.minimum(*away), seeds, mask=mask)
    # Pixels that no marker reaches are separate from both.
    owner = np.where(owner == 0, np.where(away[0] <= away[1], 1, 2), owner)
    return (owner == 1) & mask, (owner == 2) & mask


def _crossed(site: MendSite, places: tuple[Place, ...]) -> int:
    """The cell that a line between two places crosses, the one with most of it."""
    met = site.labels[line_nd(*(site.pixel(p) for p in places), endpoint=True)].astype(np.int64)
    numbers, counts = np.unique(met[met > 0], return_counts=True)
    if not len(numbers):
        raise site.refusal("the line crosses no cell; draw it across the one to cut")
    return int(numbers[np.argmax(counts)])


def _along_line(part: _Part, label: int, places: tuple[Place, ...]) -> tuple[Mask, Mask]:
    """The pieces on both sides of a line, or of a longer one where it ends within the cell.

    In three dimensions the cut stands upright on the plane.
    """
    mask = part.labels == label
    start, stop = (np.array(part.local(p)[-2:], dtype=np.float64) for p in places)
    length = float(np.linalg.norm(stop - start))
    if length == 0:
        raise part.site.refusal("the line has no length; click two places")
    along = (stop - start) / length
    index = np.nonzero(mask)
    offset = np.stack(index[-2:], axis=1) - start
    forth, aside = offset @ along, np.abs(offset @ np.array([-along[1], along[0]]))
    for margin in (1.0, np.inf):
        on_line = (aside <= _NARROW) & (forth >= -margin) & (forth <= length + margin)
        left = mask.copy()
        left[tuple(i[on_line] for i in index)] = False
        pieces = _two_largest(left)
        if pieces is not None:
            return _spread(pieces, mask, part.site.sampling)
    name = part.site.name(label)
    raise part.site.refusal(f"this line does not divide {name}; draw it right across")


# ---------------------------------------------------------------------- one cell


def _bridged(both: Mask, free: Mask, away: float, sampling: Sampling) -> Mask:
    """Two masks with the free pixels between them, and the holes that these enclose."""
    radius = away / 2 + 1
    grown = ndi.distance_transform_edt(~both, sampling=sampling) <= radius
    closed = ndi.distance_transform_edt(np.pad(grown, 1), sampling=sampling) > radius
    inner = tuple(slice(1, -1) for _ in both.shape)
    whole = both | (closed[inner] & free)
    return np.asarray(whole | (ndi.binary_fill_holes(whole) & free))


def _outlines(part: _Part, place: Place, label: int) -> list[Mask]:
    """Candidates at a place without the pixels of other cells, best first, no two alike."""
    site = part.site
    if site.image is None:
        return []
    view = FrameView(site.image[part.box], site.settings, site.scale)
    regions = propose_frame(view)
    [known] = described(iter([Described(regions, describe_frame(regions, view))]))
    odds = site.score.start.log_odds(known.features)
    worth = odds - site.score.size.doubt(regions.area.astype(np.float64))
    at = part.local(place)
    others = (part.labels > 0) & (part.labels != label)
    chosen: list[Mask] = []
    for k in np.argsort(-worth, kind="stable").tolist():
        mask = regions.mask(k)
        if not mask[at] or int((mask & ~others).sum()) < _FREE * int(mask.sum()):
            continue
        mask = flood(mask & ~others, at, connectivity=1)
        if all(_overlap(mask, other) <= _ALIKE for other in chosen):
            chosen.append(mask)
        if len(chosen) == _OUTLINES:
            break
    return chosen
