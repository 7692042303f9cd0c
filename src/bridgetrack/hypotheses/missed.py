"""Cells that are missed for a frame or two, daughters that are drawn late, and what may be no cell.

These tie neighbouring frame pairs together, so they are proposed only where no direct event is
plausible: components must not grow through the movie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import cell_diameter, equivalent_diameter
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

_SMALL = 0.6
"""Diameter over the median below which a cell may be a speck."""
_NEAREST = 4
"""Cells after the dark that are looked at from one before it, and the other way round."""
_NEARER, _BEYOND = 0.6, 1.2
"""A skip has no rival where it is shorter than this share of the way to the nearest other cell, and
by so many diameters."""
LONELY = 2.0
"""Diameters to the nearest other cell beyond which a cell is far from all others."""
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

    Only cells of similar size; the mask says where no other explanation is nearly as near.
    """
    detections, motion, found = evidence.detections, evidence.motion, [np.zeros((3, 0))]
    position, last, travelled = detections.position, len(motion.following) - 1, motion.travelled
    for t, lit in enumerate(motion.following[:-2].tolist()):
        here = detections.rows(t)
        lost = here.start + np.flatnonzero(~followed[here])
        for later in range(lit + 1, min(t + MAX_GAP, last) + 1):
            there = detections.rows(later)
            new = there.start + np.flatnonzero(~preceded[there])
            expected = evidence.predicted[lost] + travelled[later] - travelled[lit]
            match, away = mutual_neighbours(expected, position[new], motion.reach)
            k = np.flatnonzero(match >= 0)
            found.append(np.stack([lost[k], new[match[k]], away[k]]))
    rows, away = np.split(np.concatenate(found, axis=1), [2])
    source, target = rows.astype(np.int64)
    size = np.log(np.maximum(equivalent_diameter(detections), 1e-9))
    similar = np.abs(size[source] - size[target]) * detections.geometry.ndim < np.log(2.5)
    source, target, away = source[similar], target[similar], away[0, similar]
    alone = np.minimum(_room(evidence, source, 1), _room(evidence, target, -1))
    beyond = alone - away > _BEYOND * motion.diameter
    return source, target, beyond & (away < _NEARER * alone)


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


def _room(evidence: Evidence, rows: Index, step: int) -> Array:
    """Distance from cells to the nearest other one of their frame and of that beside it."""
    return np.minimum(evidence.nearest(rows, 0), evidence.nearest(rows, step))


def _false_detections(evidence: Evidence, followed: Mask, preceded: Mask) -> Index:
    """Rows of detections that nothing before or after explains, or that are oddly small.

    Specks persist, so small ones are proposed even where neighbours in time explain them.
    """
    detections = evidence.detections
    relative = equivalent_diameter(detections) / cell_diameter(detections)
    return np.flatnonzero((relative < _SMALL) | (~followed & ~preceded))
