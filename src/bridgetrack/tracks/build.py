"""Which chains of detections are the same cell, through splits and merges.

A *chain* is a run of detections joined by moves and skips. Splits and merges are never
divisions: pieces of one cell keep one identity; cells that were drawn as one region regain
theirs when the region parts again.

From chosen events to tracks with lineages.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from bridgetrack.detections.table import Detections, cell_diameter
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.tracks.tracks import Tracks

Array = NDArray[np.float64]
Index = NDArray[np.int64]


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


def build_tracks(
    detections: Detections,
    hypotheses: Events,
    chosen: NDArray[np.bool_],
    scores: Array | None = None,
    margins: Array | None = None,
) -> Tracks:
    """Join chosen events into tracks.

    Parameters
    ----------
    detections, hypotheses
        The movie's cells and candidate events.
    chosen
        Which hypotheses hold, shape (H,); every active slot covered once.
    scores, margins
        Per hypothesis, shape (H,); NaN in the tables where None.

    Returns
    -------
    Tracks
        Track numbers count from 1 in the order of first frame and label. A false detection
        belongs to no track.
    """
    picked = np.flatnonzero(chosen)
    unknown = np.full(len(hypotheses), np.nan)
    events = hypotheses.take(picked)
    values = pd.DataFrame(
        {
            "score": (unknown if scores is None else scores)[picked],
            "margin": (unknown if margins is None else margins)[picked],
        }
    )
    kept = np.ones(len(detections), dtype=bool)
    kept[events.sources[events.of(Event.FALSE), 0]] = False
    chain = _chains(events, len(detections))
    track, links = _tracks_of_chains(detections, events, chain)
    nodes, table = _number(detections, kept, track[chain], links)
    return Tracks(
        nodes,
        _edges(events, values),
        _events(events, values, detections),
        table,
        detections.geometry,
    )


def _chains(events: Events, n: int) -> Index:
    """Chain of every detection: connected by moves and skips, shape (n,)."""
    links = np.flatnonzero((events.event == Event.MOVE) | (events.event == Event.SKIP))
    i, j = events.sources[links, 0], events.targets[links, 0]
    graph = coo_matrix((np.ones(len(i)), (i, j)), shape=(n, n))
    _, chain = connected_components(graph, directed=False)
    return chain.astype(np.int64)


def _chain_ends(detections: Detections, chain: Index) -> ChainEnds:
    order = np.lexsort((detections.frame, chain))
    starts = np.flatnonzero(np.r_[True, chain[order][1:] != chain[order][:-1]])
    stops = np.r_[starts[1:], len(order)] - 1
    first, last = order[starts], order[stops]
    position = detections.position
    size = np.log(np.maximum(detections.table["area"].to_numpy(dtype=np.float64), 1e-9))
    length = detections.frame[last] - detections.frame[first] + 1
    return ChainEnds(position[first], position[last], size[first], size[last], length)


def _junctions(detections: Detections, events: Events, chain: Index) -> list[Junction]:
    out = []
    for event in (Event.SPLIT, Event.MERGE):
        for row in events.of(event):
            sources = events.sources[row][events.sources[row] >= 0]
            targets = events.targets[row][events.targets[row] >= 0]
            out.append(
                Junction(
                    int(detections.frame[targets[0]]),
                    tuple(int(c) for c in chain[sources]),
                    tuple(int(c) for c in chain[targets]),
                )
            )
    return out


def _tracks_of_chains(
    detections: Detections, events: Events, chain: Index
) -> tuple[Index, list[tuple[int, int, str]]]:
    """Founding chain of every chain's track, and the links between tracks."""
    if not len(chain):
        return np.zeros(0, dtype=np.int64), []
    junctions = _junctions(detections, events, chain)
    n_chains = int(chain.max()) + 1
    state = resolve_identities(
        n_chains, junctions, _chain_ends(detections, chain), cell_diameter(detections)
    )
    links = list(state.links)
    for row in events.of(Event.DIVIDE):
        mother = int(state.track[chain[events.sources[row, 0]]])
        for daughter in events.targets[row]:
            links.append((int(state.track[chain[daughter]]), mother, "divide"))
    return state.track, links


def _number(
    detections: Detections, kept: NDArray[np.bool_], track: Index, links: list[tuple[int, int, str]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Number tracks from 1 and make the tables of nodes and links."""
    rows = np.flatnonzero(kept)
    found, first = np.unique(track[rows], return_index=True)
    order = found[np.argsort(first, kind="stable")]
    number = np.zeros(int(track.max()) + 1 if len(track) else 1, dtype=np.int64)
    number[order] = np.arange(1, len(order) + 1)
    link = [(int(number[a]), int(number[b]), event) for a, b, event in links]
    table = pd.DataFrame(link, columns=["track_id", "parent_id", "event"])
    table = table[(table["track_id"] > 0) & (table["parent_id"] > 0)]
    table = table.sort_values(["track_id", "parent_id"], ignore_index=True)
    table = table.astype({"track_id": np.int64, "parent_id": np.int64})
    # A table read from a file may have ids of its own; here the id is the detection's row.
    nodes = detections.table.iloc[rows].rename(columns={"id": "file_id"})
    nodes.insert(0, "id", rows)
    nodes["track_id"] = number[track[rows]]
    nodes["lineage_id"] = roots(len(order), table)[nodes["track_id"].to_numpy()]
    return nodes.reset_index(drop=True), table


def roots(n_tracks: int, links: pd.DataFrame) -> Index:
    """Root of every track, following the first parent, shape (n_tracks + 1,)."""
    parent = np.arange(n_tracks + 1)
    first = links.drop_duplicates("track_id")
    parent[first["track_id"].to_numpy()] = first["parent_id"].to_numpy()
    for _ in range(n_tracks + 1):
        grand = parent[parent]
        if (grand == parent).all():
            break
        parent = grand
    return parent


def _edges(events: Events, values: pd.DataFrame) -> pd.DataFrame:
    """One row per link between two detections."""
    parts = []
    for k, m in ((0, 0), (0, 1), (1, 0)):
        source, target = events.sources[:, k], events.targets[:, m]
        there = (source >= 0) & (target >= 0)
        parts.append(
            pd.DataFrame(
                {
                    "source": source[there],
                    "target": target[there],
                    "event": [Event(e).key for e in events.event[there]],
                }
                | {name: values[name].to_numpy()[there] for name in values}
            )
        )
    table = pd.concat(parts, ignore_index=True)
    return table.sort_values(["source", "target"], ignore_index=True)


def _events(events: Events, values: pd.DataFrame, detections: Detections) -> pd.DataFrame:
    """One row per chosen event."""
    frame = detections.frame
    when = np.where(
        events.targets[:, 0] >= 0,
        frame[np.maximum(events.targets[:, 0], 0)],
        frame[np.maximum(events.sources[:, 0], 0)],
    )

    def named(rows: Index) -> list[tuple[int, ...]]:
        return [tuple(int(r) for r in row if r >= 0) for row in rows]

    table = pd.DataFrame(
        {
            "frame": when,
            "event": [Event(e).key for e in events.event],
            "sources": named(events.sources),
            "targets": named(events.targets),
        }
        | {name: values[name].to_numpy() for name in values}
    )
    return table.sort_values(["frame", "event"], kind="stable", ignore_index=True)
