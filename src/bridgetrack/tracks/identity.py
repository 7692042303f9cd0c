"""Which chains of detections are the same cell, through splits and merges.

A *chain* is a run of detections joined by moves and skips. Splits and merges are never
divisions: pieces of one cell keep one identity; cells that were drawn as one region regain
theirs when the region parts again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PART_AFTER = 5
"""Frames that both parts of a split must live apart to be taken for two touching cells."""


@dataclass(frozen=True)
class Junction:
    """A split or merge between chains.

    Parameters
    ----------
    frame
        Frame of the later chains' first detections.
    before, after
        Chains that end and begin here.
    """

    frame: int
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class ChainEnds:
    """First and last detection of every chain.

    Parameters
    ----------
    first_position, last_position
        In the movie's unit, shape (chains, ndim).
    first_size, last_size
        Log areas, shape (chains,).
    length
        Frames from first to last, inclusive, shape (chains,).
    """

    first_position: Array
    last_position: Array
    first_size: Array
    last_size: Array
    length: NDArray[np.int64]


@dataclass
class Identities:
    """Track of every chain, filled in time order.

    Parameters
    ----------
    track
        Track of each chain (named by the chain that founded it), shape (chains,).
    occupants
        For merged regions: the tracks inside, with the chain on which each was last seen alone.
    links
        (track, parent track, event) of tracks founded by a merge or a parting.
    """

    track: NDArray[np.int64]
    occupants: dict[int, dict[int, int]] = field(default_factory=dict)
    links: list[tuple[int, int, str]] = field(default_factory=list)


def resolve_identities(
    n_chains: int, junctions: list[Junction], ends: ChainEnds, diameter: float
) -> Identities:
    """Decide which chains are one cell.

    Parameters
    ----------
    n_chains
        Number of chains.
    junctions
        All splits and merges.
    ends
        What the chains look like at their ends.
    diameter
        Typical cell diameter, which makes distances comparable with log sizes.
    """
    state = Identities(np.arange(n_chains))
    joins = {frozenset(j.before) for j in junctions if len(j.before) == 2}
    for junction in sorted(junctions, key=lambda j: (j.frame, j.before)):
        if len(junction.before) == 2:
            _merge(state, junction)
        else:
            _split(state, junction, joins, ends, diameter)
    return state


def _inside(state: Identities, chain: int) -> dict[int, int]:
    """Tracks drawn as this chain, each with the chain it was last seen alone on."""
    return state.occupants.get(chain, {int(state.track[chain]): chain})


def _merge(state: Identities, junction: Junction) -> None:
    one, two = junction.before
    (region,) = junction.after
    if state.track[one] == state.track[two]:
        state.track[region] = state.track[one]
        return
    state.occupants[region] = {**_inside(state, one), **_inside(state, two)}
    state.links += [
        (region, int(state.track[one]), "merge"),
        (region, int(state.track[two]), "merge"),
    ]


def _split(
    state: Identities,
    junction: Junction,
    joins: set[frozenset[int]],
    ends: ChainEnds,
    diameter: float,
) -> None:
    (whole,) = junction.before
    one, two = junction.after
    inside = _inside(state, whole)
    if len(inside) > 1:
        _part(state, inside, one, two, ends, diameter)
        return
    track = state.track[whole]
    apart = bool(min(ends.length[one], ends.length[two]) >= PART_AFTER)
    if apart and frozenset(junction.after) not in joins:
        keeper = one if ends.first_size[one] >= ends.first_size[two] else two
        other = two if keeper == one else one
        state.track[keeper] = track
        state.links.append((other, int(track), "split"))
        return
    state.track[one] = state.track[two] = track


def _part(
    state: Identities, inside: dict[int, int], one: int, two: int, ends: ChainEnds, diameter: float
) -> None:
    """Give the parts of a merged region back to the cells that were in it."""

    def unlike(track: int, part: int) -> float:
        last = inside[track]
        shift = ends.first_position[part] - ends.last_position[last]
        size = abs(float(ends.first_size[part] - ends.last_size[last]))
        return float(np.linalg.norm(shift)) / diameter + size

    preference = sorted(inside, key=lambda t: unlike(t, one) - unlike(t, two))
    head = preference[: max(1, len(preference) // 2)]
    for part, tracks in ((one, head), (two, preference[len(head) :])):
        if len(tracks) == 1:
            state.track[part] = tracks[0]
        else:
            state.occupants[part] = {t: inside[t] for t in tracks}
            state.links += [(part, t, "merge") for t in tracks]
