"""From chosen events to tracks with lineages.

A *chain* is a run of detections joined by moves and skips. Splits and merges are never
divisions: pieces of one cell keep one identity; cells that were drawn as one region regain
theirs when the region parts again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.detections.table import Detections, cell_diameter
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.paged import Pages
from bridgetrack.tracks.cell_tuples import CellTuples
from bridgetrack.tracks.tracks import AT_LEAST, EXACT, Tracks, components

Array = NDArray[np.float64]
Index = NDArray[np.int64]

PART_AFTER = 5
"""Frames that both parts of a split must live apart to be taken for two touching cells."""
_KEYS = np.array([event.key for event in Event], dtype=object)
_RANK = np.argsort(np.argsort(_KEYS)).astype(np.int8)
"""Of the kinds by their names."""


def build_tracks(
    detections: Detections,
    hypotheses: Events,
    chosen: NDArray[np.bool_],
    scores: Array | None = None,
    margins: Array | None = None,
    *,
    exact: bool = False,
    pages: Pages | None = None,
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
    exact
        Whether the margins are that, and not lower bounds.
    pages
        Where the tables lie; in memory where None.

    Returns
    -------
    Tracks
        Track numbers count from 1 in the order of first frame and label. A false detection
        belongs to no track.
    """
    pages = pages or Pages()
    picked = np.flatnonzero(chosen)
    events = pages.take(hypotheses, picked)
    pages.let_go()
    unknown = np.broadcast_to(np.nan, len(picked))
    values = {
        "score": unknown if scores is None else pages.take(scores, picked),
        EXACT if exact else AT_LEAST: unknown if margins is None else pages.take(margins, picked),
    }
    kept = np.ones(len(detections), dtype=bool)
    kept[events.sources[events.of(Event.FALSE), 0]] = False
    linking = pages.take(events, (events.event == Event.MOVE) | (events.event == Event.SKIP))
    chain = components(len(detections), linking.sources[:, 0], linking.targets[:, 0])
    pages.let_go()
    track, links = _tracks_of_chains(detections, events, chain)
    pages.let_go()
    nodes, table = _number(detections, kept, track[chain], links, pages)
    del chain, linking
    pages.let_go()
    edges = _edges(events, values, pages)
    pages.let_go()
    happened = _events(events, values, detections, pages)
    notes = tuple(_blanks(detections, nodes))
    return Tracks(nodes, edges, happened, table, detections.geometry, notes, pages)


_BRIDGED = 2
"""Successive frames without a cell that a skip bridges."""


def _blanks(detections: Detections, nodes: pd.DataFrame) -> Iterable[str]:
    """Where identities are lost because there is no cell in too many successive frames."""
    seen = np.unique(detections.frame)
    for k in np.flatnonzero(np.diff(seen) > _BRIDGED + 1).tolist():
        before, after = int(seen[k]), int(seen[k + 1])
        here, there = (set(nodes.loc[nodes["frame"] == t, "track_id"]) for t in (before, after))
        if not here & there:
            yield (
                f"frames {before + 1} to {after - 1} hold no cell: tracks go on across "
                f"{_BRIDGED} such frames at most, so the {len(here)} that end in frame {before} "
                f"and the {len(there)} that begin in frame {after} are not joined"
            )


class Junction(NamedTuple):
    """A split or merge: frame of the later cells, chains that end and chains that begin."""

    frame: int
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class ChainEnds:
    """First and last detection of every chain: positions, log areas, and frames in between."""

    first_position: Array
    last_position: Array
    first_size: Array
    last_size: Array
    length: NDArray[np.int64]


def _tracks_of_chains(
    detections: Detections, events: Events, chain: Index
) -> tuple[Index, list[tuple[int, int, str]]]:
    """Founding chain of every chain's track, and the links between tracks."""
    if not len(chain):
        return np.zeros(0, dtype=np.int64), []
    order = np.lexsort((detections.frame, chain))
    starts = np.flatnonzero(np.r_[True, chain[order][1:] != chain[order][:-1]])
    first, last = order[starts], order[np.r_[starts[1:], len(order)] - 1]
    position, frame = detections.position, detections.frame
    size = np.log(np.maximum(detections.table["area"].to_numpy(dtype=np.float64), 1e-9))
    ends = ChainEnds(
        position[first], position[last], size[first], size[last], frame[last] - frame[first] + 1
    )
    junctions = []
    for row in (*events.of(Event.SPLIT), *events.of(Event.MERGE)):
        sources, targets = (side[row][side[row] >= 0] for side in (events.sources, events.targets))
        before, after = tuple(chain[sources].tolist()), tuple(chain[targets].tolist())
        junctions.append(Junction(int(frame[targets[0]]), before, after))
    state = resolve_identities(len(starts), junctions, ends, cell_diameter(detections))
    links = list(state.links)
    for row in events.of(Event.DIVIDE):
        mother = int(state.track[chain[events.sources[row, 0]]])
        for daughter in events.targets[row]:
            links.append((int(state.track[chain[daughter]]), mother, "divide"))
    return state.track, links


def resolve_identities(
    n_chains: int, junctions: Iterable[Junction], ends: ChainEnds, diameter: float
) -> Identities:
    """Decide which chains are one cell, junction by junction in the order of time.

    Distances count in diameters, which makes them comparable with differences of log areas.
    """
    junctions = sorted(junctions, key=lambda j: (j.frame, j.before))
    joins = {frozenset(j.before) for j in junctions if len(j.before) == 2}
    state = Identities(np.arange(n_chains), ends, diameter)
    for junction in junctions:
        if len(junction.before) == 2:
            (one, two), (region,) = junction.before, junction.after
            state.merge(one, two, region)
        else:
            (whole,), (one, two) = junction.before, junction.after
            state.split(whole, one, two, join_again=frozenset(junction.after) in joins)
    return state


@dataclass
class Identities:
    """Track of every chain, filled in time order."""

    track: Index  # track of each chain (named by the chain that founded it), shape (chains,)
    # ends, diameter: what chains look like at their ends, how large a cell is
    ends: ChainEnds
    diameter: float
    # for merged regions: the tracks inside, with the chain on which each was last seen alone
    occupants: dict[int, dict[int, int]] = field(default_factory=dict)
    # (track, parent track, event) of tracks founded by a merge or a parting
    links: list[tuple[int, int, str]] = field(default_factory=list)

    def _inside(self, chain: int) -> dict[int, int]:
        """Tracks drawn as this chain, each with the chain it was last seen alone on."""
        return self.occupants.get(chain, {int(self.track[chain]): chain})

    def merge(self, one: int, two: int, region: int) -> None:
        """Two chains are drawn as one region from here on."""
        if self.track[one] == self.track[two]:
            self.track[region] = self.track[one]
            return
        self.occupants[region] = {**self._inside(one), **self._inside(two)}
        self.links += [(region, int(self.track[c]), "merge") for c in (one, two)]

    def split(self, whole: int, one: int, two: int, join_again: bool) -> None:
        """A chain parts: cells that were in it, or two that touched all along, or pieces of one."""
        inside, ends = self._inside(whole), self.ends
        if len(inside) > 1:
            self._part(inside, one, two)
        elif min(ends.length[one], ends.length[two]) >= PART_AFTER and not join_again:
            larger = one if ends.first_size[one] >= ends.first_size[two] else two
            self.track[larger] = self.track[whole]
            self.links.append((two if larger == one else one, int(self.track[whole]), "split"))
        else:
            self.track[one] = self.track[two] = self.track[whole]

    def _part(self, inside: dict[int, int], one: int, two: int) -> None:
        """Give the parts of a merged region back to the cells that were in it."""

        def unlike(track: int, part: int) -> float:
            last, ends = inside[track], self.ends
            shift = ends.first_position[part] - ends.last_position[last]
            size = abs(float(ends.first_size[part] - ends.last_size[last]))
            return float(np.linalg.norm(shift)) / self.diameter + size

        preference = sorted(inside, key=lambda t: unlike(t, one) - unlike(t, two))
        half = max(1, len(preference) // 2)
        for part, tracks in ((one, preference[:half]), (two, preference[half:])):
            if len(tracks) == 1:
                self.track[part] = tracks[0]
            else:
                self.occupants[part] = {t: inside[t] for t in tracks}
                self.links += [(part, t, "merge") for t in tracks]


def _number(
    detections: Detections,
    kept: NDArray[np.bool_],
    track: Index,
    links: list[tuple[int, int, str]],
    pages: Pages,
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
    columns: dict[str, Any] = {"id": pages.put(rows)}
    for name in detections.table:
        column = detections.table[name]
        named = "file_id" if name == "id" else str(name)
        columns[named] = pages.put_column(column if kept.all() else column.iloc[rows])
    columns["track_id"] = pages.take(number, pages.take(track, rows))
    columns["lineage_id"] = pages.take(roots(len(order), table), columns["track_id"])
    return pd.DataFrame(columns, copy=False), table


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


def _edges(events: Events, values: dict[str, Array], pages: Pages) -> pd.DataFrame:
    """One row per link between two detections."""
    rows, ends = [], []
    for k, m in ((0, 0), (0, 1), (1, 0)):
        both = np.flatnonzero((events.sources[:, k] >= 0) & (events.targets[:, m] >= 0))
        rows.append(both)
        ends.append((events.sources[both, k], events.targets[both, m]))
    row = np.concatenate(rows)
    source, target = (np.concatenate(side) for side in zip(*ends, strict=True))
    order = np.lexsort((target, source))
    row = row[order]
    columns: dict[str, Any] = {"source": pages.take(source, order)}
    columns["target"] = pages.take(target, order)
    columns["event"] = _KEYS[events.event[row]]
    columns |= {name: pages.take(value, row) for name, value in values.items()}
    return pd.DataFrame(columns, copy=False)


def _events(
    events: Events, values: dict[str, Array], detections: Detections, pages: Pages
) -> pd.DataFrame:
    """One row per chosen event."""
    first, cause = events.targets[:, 0], events.sources[:, 0]
    frame = detections.frame[np.where(first >= 0, first, cause)]
    order = np.lexsort((_RANK[events.event], frame))
    columns: dict[str, Any] = {"frame": pages.take(frame, order)}
    columns["event"] = _KEYS[events.event[order]]
    columns["sources"] = CellTuples(pages.take(events.sources, order))
    columns["targets"] = CellTuples(pages.take(events.targets, order))
    columns |= {name: pages.take(value, order) for name, value in values.items()}
    return pd.DataFrame(columns, copy=False)
