"""Cells that are missed for a frame or two, daughters that are drawn late, and what may be no cell.

These tie neighbouring frame pairs together, so they are proposed only where no direct event is
plausible: components must not grow through the movie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections, equivalent_diameter, median_diameter
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.hypotheses.motion import MAX_GAP
from bridgetrack.hypotheses.near import (
    Links,
    links,
    mutual_neighbours,
    nearest,
    neighbour_pairs,
    neighbours,
)

if TYPE_CHECKING:
    from bridgetrack.hypotheses.evidence import Evidence

_TINY, _SPECK, _SMALL = 0.45, 0.55, 0.65
"""Diameters over the median below which a cell may be a speck: where it is badly explained, where
its mask lies within the frame, and in any case."""
_SPECK_SHARE, _SMALL_SHARE = 0.1, 0.02
"""Of all cells, how many of the latter two are proposed at most."""
_SKIP_SHARE = 0.02
"""Skips proposed, as a share of all cells; the nearest are kept."""
_NEAREST = 4
"""Cells after the dark that are looked at from one before it, and the other way round."""
LONELY, _NEARER = 2.0, 0.6
"""A skip has no rival where other cells are so many diameters away, and it is so much shorter."""
_MIDDLE, _APART, _ADD_UP, _GROWN, _ALIKE = 0.2, 0.92, np.log(1.75), np.log(1.25), np.log(1.35)
"""How much late daughters look like halves: diameters between mother and midpoint, and at least
from one to the other; logarithms of the factors by which both may be smaller or larger than the
mother, and one larger than the other."""


@dataclass(frozen=True)
class Missed:
    """Events of cells that are not seen in every frame.

    Parameters
    ----------
    skips, divisions, false
        Cells that are found again a few frames later, divisions of which a daughter is late, and
        detections that may be no cells.
    goes_on, returns
        Whether a cell that is lost is seen again, or one that is new was seen before, up to some
        frames away and with no other explanation nearly as near; shape (n,).
    """

    skips: Events
    divisions: Events
    false: Events
    goes_on: Mask
    returns: Mask

    @property
    def events(self) -> Events:
        """All of them."""
        return Events.join([self.divisions, self.skips, self.false])


def find_missed(evidence: Evidence) -> Missed:
    """The rare events of a whole movie."""
    followed, preceded = _plausible(evidence)
    before, after = _across_dark(evidence)
    source, target, unrivalled = _skip_pairs(evidence, followed, preceded)
    source, target = np.append(source, before), np.append(target, after)
    unrivalled = np.append(unrivalled, np.ones(len(before), dtype=bool))
    late = _late_divisions(evidence, followed, preceded)
    goes_on, returns = np.zeros((2, len(evidence.detections)), dtype=bool)
    goes_on[source[unrivalled]] = returns[target[unrivalled]] = True
    goes_on[late.sources[:, 0]] = returns[late.targets] = True
    skips = Events.of_kind(Event.SKIP, [source], [target])
    false = Events.of_kind(Event.FALSE, [_false_detections(evidence, followed, preceded)])
    return Missed(skips, late, false, goes_on, returns)


def _plausible(evidence: Evidence) -> tuple[Mask, Mask]:
    """Whether every cell has a plausible direct successor and predecessor, shapes (n,)."""
    reach = max(4.0 * evidence.motion.step, 0.5 * evidence.motion.diameter)
    size = np.log(np.maximum(equivalent_diameter(evidence.detections), 1e-9))
    size = size * evidence.detections.geometry.ndim

    def similar(match: Index, residual: Array) -> Mask:
        change = np.abs(size[np.maximum(match, 0)] - size)
        return np.asarray((match >= 0) & (residual <= reach) & (change < np.log(2.0)))

    return (
        similar(evidence.match_next, evidence.residual_next),
        similar(evidence.match_previous, evidence.residual_previous),
    )


def _across_dark(evidence: Evidence) -> Links:
    """Cells before and after dark frames, proposed as widely as between neighbouring frames."""
    motion, found = evidence.motion, [np.zeros((2, 0), dtype=np.int64)]
    for t, lit in enumerate(motion.following[:-1].tolist()):
        if lit > t + 1:
            here, there = evidence.detections.rows(t), evidence.detections.rows(lit)
            before, after = evidence.predicted[here], evidence.detections.position[there]
            ahead = neighbours(before, after, _NEAREST, motion.reach)
            back = neighbours(after, before, _NEAREST, motion.reach)
            i, j = links(ahead, back)
            found.append(np.stack([i + here.start, j + there.start]))
    source, target = np.concatenate(found, axis=1)
    return source, target


def _skip_pairs(evidence: Evidence, followed: Mask, preceded: Mask) -> tuple[Index, Index, Mask]:
    """Cells lost in one frame and found again a few frames later, though others are seen.

    Only cells of similar size, and no more than a small share of all cells, the nearest first.
    Those do not count that tie nothing together: skips between cells that are nearer to each other
    than to any other cell.

    Returns
    -------
    source, target
        Rows, shapes (S,).
    unrivalled
        Where no other explanation is nearly as near, shape (S,).
    """
    detections, motion = evidence.detections, evidence.motion
    offsets, position, travelled = detections.offsets, detections.position, motion.travelled
    n_frames, reach = detections.geometry.n_frames, motion.reach
    empty = np.zeros(0, dtype=np.int64)
    found = [(empty, empty, np.zeros(0), np.zeros(0, dtype=bool))]
    room = np.full(len(detections), np.nan)  # known once a cell is a candidate
    for t, lit in enumerate(motion.following[:-2].tolist()):
        lost = offsets[t] + np.flatnonzero(~followed[detections.rows(t)])
        for later in range(lit + 1, min(t + MAX_GAP, n_frames - 1) + 1):
            rows = detections.rows(later)
            new = rows.start + np.flatnonzero(~preceded[rows])
            here = evidence.predicted[lost] + travelled[later] - travelled[lit]
            match, residual = mutual_neighbours(here, position[new], reach)
            k = np.flatnonzero(match >= 0)
            i, j, away = lost[k], new[match[k]], residual[k]
            alone = np.minimum(_room(evidence, i, room, 1), _room(evidence, j, room, -1))
            unrivalled = (alone > LONELY * motion.diameter) & (away < _NEARER * alone)
            near = away <= 0.6 * motion.diameter + 3.0 * motion.step * np.sqrt(later - t)
            kept = near | unrivalled
            cost = away + 0.3 * (later - t) * motion.diameter
            found.append(tuple(x[kept] for x in (i, j, cost, unrivalled)))
    source, target, cost, unrivalled = map(np.concatenate, zip(*found, strict=True))
    size = np.log(np.maximum(equivalent_diameter(detections), 1e-9))
    change = np.abs(size[source] - size[target]) * detections.geometry.ndim
    similar = change < np.log(2.5)
    counted = np.flatnonzero(similar & ~unrivalled)
    most = max(3, int(_SKIP_SHARE * len(detections)))
    best = counted[np.argsort(cost[counted], kind="stable")[:most]]
    keep = np.append(np.flatnonzero(similar & unrivalled), best)
    return source[keep], target[keep], unrivalled[keep]


def _late_divisions(evidence: Evidence, followed: Mask, preceded: Mask) -> Events:
    """Divisions of which a daughter, or both, are not drawn in the first frame.

    Only where nothing else explains the late daughters, and where two cells look much like halves
    of the mother: on either side of it, of about the same size, which add up to it.
    """
    detections, motion = evidence.detections, evidence.motion
    position, area = detections.position, detections.table["area"].to_numpy(dtype=np.float64)
    reach, found = 1.5 * motion.diameter, [Events.join([])]
    travelled = motion.travelled
    for t in range(detections.geometry.n_frames - 2):
        mothers, there = detections.rows(t), detections.rows(t + 2)
        new = there.start + np.flatnonzero(~preceded[there])
        if not len(new) or mothers.start == mothers.stop:
            continue
        shift = travelled[t + 2] - travelled[motion.following[t]]
        expected = evidence.predicted[mothers] + shift
        lost = np.flatnonzero(~followed[mothers])
        both, c, d = neighbour_pairs(neighbours(expected[lost], position[new], 4, reach), 4)
        b, one, _ = nearest(neighbours(position[new], expected, 4, reach), 4)
        mother = np.append(lost[both], one) + mothers.start
        first = np.append(new[c], evidence.match_next[one + mothers.start])
        second = np.append(new[d], new[b])
        seen = first >= 0
        mother, first, second = mother[seen], first[seen], second[seen]
        middle = (position[first] + position[second]) / 2
        off = np.linalg.norm(middle - expected[mother - mothers.start], axis=1)
        # Or the daughter that is seen first may be the mother.
        after = evidence.match_next[first]
        usual = (position[after] + position[second]) / 2 - evidence.predicted[first]
        rival = np.where(after < 0, np.inf, np.linalg.norm(usual, axis=1))
        rival[detections.frame[first] == t + 2] = np.inf
        grown = np.log((area[first] + area[second]) / area[mother])
        good = (off < _MIDDLE * motion.diameter) & (off < 0.5 * rival)
        good &= (rival > _MIDDLE * motion.diameter) & (grown > -_ADD_UP) & (grown < _GROWN)
        apart = np.linalg.norm(position[first] - position[second], axis=1)
        good &= apart > _APART * motion.diameter
        good &= np.abs(np.log(area[first] / area[second])) < _ALIKE
        rows = np.sort(np.stack([first[good], second[good]]), axis=0)
        found.append(Events.of_kind(Event.DIVIDE, [mother[good]], [*rows]))
    return Events.join(found).unique()


def _room(evidence: Evidence, rows: Index, known: Array, step: int) -> Array:
    """Distance from cells of a frame to the nearest other one there and beside it, shape of rows.

    Beside it is the next frame for step 1, the previous one for -1; `known` keeps what was found.
    """
    missing = rows[np.isnan(known[rows])]
    if len(missing):
        detections, position = evidence.detections, evidence.detections.position
        motion = evidence.motion
        points, others = position, evidence.predicted
        if step > 0:
            points, others = others, points
        t = int(detections.frame[missing[0]])
        other = (motion.following if step > 0 else motion.previous)[t]
        (own, _), (beside, _) = (
            neighbours(position[missing], position[detections.rows(t)], 2, np.inf),
            neighbours(points[missing], others[detections.rows(other)], 1, np.inf),
        )
        known[missing] = np.concatenate([own[:, 1:], beside], axis=1).min(axis=1, initial=np.inf)
    return known[rows]


def _false_detections(evidence: Evidence, followed: Mask, preceded: Mask) -> Index:
    """Rows of detections that nothing before or after explains, or that are oddly small.

    Specks persist, so small ones are proposed even where neighbours in time explain them, but no
    more than a share of all cells, the smallest first: a tenth, as in masks that the program makes
    of phase contrast, and fewer of those that the edge of the frame may have cut, or that are
    hardly smaller than others.
    """
    detections = evidence.detections
    if not len(detections):
        return np.zeros(0, dtype=np.int64)
    relative = equivalent_diameter(detections) / median_diameter(detections)
    lost = (relative < _TINY) & ~(followed & preceded)
    alone = np.flatnonzero(lost | (~followed & ~preceded))
    small = np.flatnonzero(relative < _SMALL)
    small = small[np.argsort(relative[small], kind="stable")]
    specks = small[_within(detections)[small] & (relative[small] < _SPECK)]
    specks = specks[: int(_SPECK_SHARE * len(detections))]
    smallest = small[: max(3, int(_SMALL_SHARE * len(detections)))]
    return np.union1d(alone, np.union1d(smallest, specks))


def _within(detections: Detections) -> Mask:
    """Which cells have a mask that does not touch the edge of the frame, shape (n,)."""
    if not detections.has_masks or "border_distance" not in detections.table.columns:
        return np.zeros(len(detections), dtype=bool)
    return np.asarray(detections.table["border_distance"].to_numpy() > 0)
