"""From chosen events to tracks with lineages.

A *chain* is a run of detections joined by moves and skips. Splits and merges are never
divisions: pieces of one cell keep one identity; cells that were drawn as one region regain
theirs when the region parts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections, cell_diameter, equivalent_diameter
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.tracks.tracks import MARGIN, Tracks, chains

PART_AFTER = 5
"""Frames for which both parts of a split must exist to be taken for two touching cells."""
_KEYS = np.array([event.key for event in Event], dtype=object)
_RANK = np.argsort(np.argsort(_KEYS)).astype(np.int8)
"""Rank of the kinds in the order of their names."""


def build_tracks(
    detections: Detections,
    hypotheses: Events,
    chosen: Mask,
    scores: Array | None = None,
    margins: Array | None = None,
    *,
    merges: bool = True,
) -> Tracks:
    """Join chosen events into tracks.

    Parameters
    ----------
    detections, hypotheses
        The movie's cells and candidate events.
    chosen
        Which hypotheses hold, shape (H,); every active slot covered once.
    scores, margins
        Per hypothesis, the margins as lower bounds, shape (H,); NaN in the tables if None.
    merges
        Whether cells may share a mask; where they may not, none is told that seems to.

    Returns
    -------
    Tracks
        Track numbers count from 1 in the order of first frame and label. A false detection
        belongs to no track.
    """
    events = hypotheses.take(chosen)
    unknown = np.broadcast_to(np.nan, len(events))
    values = {
        "score": unknown if scores is None else scores[chosen],
        MARGIN: unknown if margins is None else margins[chosen],
    }
    kept = np.ones(len(detections), dtype=bool)
    kept[events.sources[events.of(Event.FALSE), 0]] = False
    linking = events.take((events.event == Event.MOVE) | (events.event == Event.SKIP))
    src, tgt = linking.sources[:, 0], linking.targets[:, 0]
    chain = chains(len(detections), src, tgt, np.ones(len(linking), dtype=bool)) - 1
    first = np.unique(chain, return_index=True)[1]
    last = np.zeros(len(first), dtype=np.int64)
    last[chain] = np.arange(len(chain))
    state = resolve_identities(detections, first, last, _junctions(detections, events, chain))
    track, links = state.track, list(state.links)
    for row in events.of(Event.DIVIDE):
        mother = int(track[chain[events.sources[row, 0]]])
        links += [(int(track[chain[d]]), mother, "divide") for d in events.targets[row]]
    number, table = _numbered(kept, track, first, links)
    nodes = _nodes(detections, kept, number[track], chain, roots(int(number.max()), table))
    edges = _edges(events, values)
    happened = _events(events, values, detections)
    notes = (*_blanks(detections, nodes), *_more_than_two(detections, events, merges))
    return Tracks(nodes, edges, happened, table, detections.geometry, notes)


_BRIDGED = 2
"""Successive frames without a cell that a skip bridges."""


def _blanks(detections: Detections, nodes: pd.DataFrame) -> Iterable[str]:
    """Notes about successive frames without cells, too many for tracks to continue."""
    seen = np.flatnonzero(np.diff(detections.offsets))
    for k in np.flatnonzero(np.diff(seen) > _BRIDGED + 1).tolist():
        before, after = int(seen[k]), int(seen[k + 1])
        here, there = (set(nodes.loc[nodes["frame"] == t, "track_id"]) for t in (before, after))
        if not here & there:
            yield (
                f"frames {before + 1} to {after - 1} contain no cell: tracks continue across at "
                f"most {_BRIDGED} such frames, so the {len(here)} that end in frame {before} and "
                f"the {len(there)} that begin in frame {after} are not joined"
            )


_WITHIN = np.log(1.35)
"""Logarithm of the factor by which parts must add up to the whole."""
_NAMED = 3
"""Most cases that are listed; only the number of others is given."""


def _more_than_two(detections: Detections, events: Events, merges: bool) -> Iterable[str]:
    """Remarks on chosen events that are more likely one division, or one fusion, of three or more.

    The sizes must agree: cells that appear beside two daughters add up to the mother with them, or
    cells that disappear, with one that becomes a much larger one, add up to that.
    """
    area = detections.table["area"].to_numpy(dtype=np.float64)
    if not len(area) or area.max() == area.min():
        return
    frame, label, radius = detections.frame, detections.label, equivalent_diameter(detections) / 2
    position = detections.position

    def together(whole: int, parts: Index, others: Index, reach: float) -> str:
        """Labels of the parts of a cell and of others within some radii that add up to it."""
        away = np.linalg.norm(position[others] - position[whole], axis=1)
        near = others[(away < reach * radius[whole]) & (others != whole)]
        own = area[parts].sum()
        without, whole_of = np.log(np.array([own, own + area[near].sum()]) / area[whole])
        found = np.r_[parts, near] if abs(whole_of) < min(_WITHIN, abs(without)) else parts
        return ", ".join(map(str, sorted(label[found].tolist()))) if len(found) > 2 else ""

    came = events.targets[events.of(Event.APPEAR), 0]
    gone = events.sources[events.of(Event.DISAPPEAR), 0]
    divided, fused = [], []
    for mother, *daughters in np.c_[events.sources[:, 0], events.targets][events.of(Event.DIVIDE)]:
        others = came[np.isin(frame[came], frame[daughters])]
        if cells := together(mother, np.array(daughters), others, 2.5):
            divided.append(f"cell {label[mother]} in frame {frame[mother]} into cells {cells}")
    first, region = events.sources[:, 0], events.targets[:, 0]
    joins = (events.event == Event.MOVE) | (events.event == Event.MERGE)
    joins &= np.isin(frame[first], frame[gone]) & (area[region] > 1.5 * area[first])
    for k in np.flatnonzero(joins & merges).tolist():
        parents = events.sources[k][events.sources[k] >= 0]
        others = gone[frame[gone] == frame[parents[0]]]
        if cells := together(region[k], parents, others, 1.5):
            fused.append(f"cells {cells} as cell {label[region[k]]} in frame {frame[region[k]]}")
    for found, words in (
        (
            divided,
            "three or more daughters: {}; two of them are linked to the mother, the others appear",
        ),
        (
            fused,
            "three or more cells share one mask: {}; two of them are followed through it, the "
            "tracks of the others end there",
        ),
    ):
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        if found:
            yield words.format("; ".join(found[:_NAMED]) + more)


class Junction(NamedTuple):
    """A split or merge: frame of the later cells, chains that end and chains that begin."""

    frame: int
    before: tuple[int, ...]
    after: tuple[int, ...]


def _junctions(detections: Detections, events: Events, chain: Index) -> list[Junction]:
    """The splits and merges, in order of time."""
    found = []
    for row in (*events.of(Event.SPLIT), *events.of(Event.MERGE)):
        sources, targets = (side[row][side[row] >= 0] for side in (events.sources, events.targets))
        before, after = tuple(chain[sources].tolist()), tuple(chain[targets].tolist())
        found.append(Junction(int(detections.frame[targets[0]]), before, after))
    return sorted(found, key=lambda j: (j.frame, j.before))


def resolve_identities(
    detections: Detections, first: Index, last: Index, junctions: Sequence[Junction]
) -> Identities:
    """Decide which chains are one cell, junction by junction in the order of time.

    `first` and `last` are the rows of the first and last cells of the chains, shapes (chains,).
    """
    joins = {frozenset(j.before) for j in junctions if len(j.before) == 2}
    state = Identities(detections, first, last)
    for junction in junctions:
        if len(junction.before) == 2:
            (one, two), (region,) = junction.before, junction.after
            state.merge(one, two, region)
        else:
            (whole,), (one, two) = junction.before, junction.after
            state.split(whole, one, two, join_again=frozenset(junction.after) in joins)
    return state


class Identities:
    """Track of every chain, filled in time order.

    Attributes
    ----------
    track
        Track of each chain (named by the chain that founded it), shape (chains,).
    links
        (track, parent track, event) of tracks founded by a merge or a parting.
    """

    def __init__(self, detections: Detections, first: Index, last: Index) -> None:
        self.track = np.arange(len(first))
        self.links: list[tuple[int, int, str]] = []
        # For merged regions: the tracks inside, with the chain on which each was last seen alone.
        self._occupants: dict[int, dict[int, int]] = {}
        self._first, self._last = first, last
        self._length = detections.frame[last] - detections.frame[first] + 1
        # Distances in diameters can be compared with differences of log areas.
        self._position, self._diameter = detections.position, cell_diameter(detections)
        area = detections.table["area"].to_numpy(dtype=np.float64)
        self._size = np.log(np.maximum(area, 1e-9))

    def _inside(self, chain: int) -> dict[int, int]:
        """Tracks drawn as this chain, each with the chain it was last seen alone on."""
        return self._occupants.get(chain, {int(self.track[chain]): chain})

    def merge(self, one: int, two: int, region: int) -> None:
        """Two chains are segmented as one region from here on."""
        if self.track[one] == self.track[two]:
            self.track[region] = self.track[one]
            return
        self._occupants[region] = {**self._inside(one), **self._inside(two)}
        self.links += [(region, int(self.track[c]), "merge") for c in (one, two)]

    def split(self, whole: int, one: int, two: int, join_again: bool) -> None:
        """A chain parts: cells that were in it, or two that touched all along, or pieces of one."""
        inside = self._inside(whole)
        if len(inside) > 1:
            self._part(inside, one, two)
        elif min(self._length[one], self._length[two]) >= PART_AFTER and not join_again:
            one_is_larger = self._size[self._first[one]] >= self._size[self._first[two]]
            larger, smaller = (one, two) if one_is_larger else (two, one)
            self.track[larger] = self.track[whole]
            self.links.append((smaller, int(self.track[whole]), "split"))
        else:
            self.track[one] = self.track[two] = self.track[whole]

    def _part(self, inside: dict[int, int], one: int, two: int) -> None:
        """Give the parts of a merged region back to the cells that were in it."""

        def unlike(track: int, part: int) -> float:
            before, after = self._last[inside[track]], self._first[part]
            shift = float(np.linalg.norm(self._position[after] - self._position[before]))
            return shift / self._diameter + abs(float(self._size[after] - self._size[before]))

        preference = sorted(inside, key=lambda t: unlike(t, one) - unlike(t, two))
        half = max(1, len(preference) // 2)
        for part, tracks in ((one, preference[:half]), (two, preference[half:])):
            if len(tracks) == 1:
                self.track[part] = tracks[0]
            else:
                self._occupants[part] = {t: inside[t] for t in tracks}
                self.links += [(part, t, "merge") for t in tracks]


def _numbered(
    kept: Mask, track: Index, first: Index, links: list[tuple[int, int, str]]
) -> tuple[Index, pd.DataFrame]:
    """Number from 1 of every founding chain, 0 for others; and the table of links."""
    begin = np.full(int(track.max()) + 1 if len(track) else 1, len(kept), dtype=np.int64)
    real = kept[first]
    np.minimum.at(begin, track[real], first[real])
    found = np.flatnonzero(begin < len(kept))
    order = found[np.argsort(begin[found], kind="stable")]
    number = np.zeros(len(begin), dtype=np.int64)
    number[order] = np.arange(1, len(order) + 1)
    link = [(int(number[a]), int(number[b]), event) for a, b, event in links]
    table = pd.DataFrame(link, columns=["track_id", "parent_id", "event"])
    table = table[(table["track_id"] > 0) & (table["parent_id"] > 0)]
    table = table.sort_values(["track_id", "parent_id"], ignore_index=True)
    return number, table.astype({"track_id": np.int64, "parent_id": np.int64})


def _nodes(
    detections: Detections, kept: Mask, number: Index, chain: Index, root: Index
) -> pd.DataFrame:
    """One row per cell; `number` is that of the track of every chain."""
    # A table read from a file may have ids of its own; here the id is the detection's row.
    columns: dict[str, Any] = {"id": np.flatnonzero(kept)}
    for name in detections.table:
        columns["file_id" if name == "id" else str(name)] = detections.table[name][kept].array
    columns["track_id"] = number[chain[kept]]
    columns["lineage_id"] = root[columns["track_id"]]
    return pd.DataFrame(columns, copy=False)


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


def _edges(events: Events, values: dict[str, Array]) -> pd.DataFrame:
    """One row per link between two detections."""
    # All events three times: with their first target, their second one, and their second source.
    source = np.concatenate([events.sources[:, k] for k in (0, 0, 1)])
    target = np.concatenate([events.targets[:, k] for k in (0, 1, 0)])
    there = np.flatnonzero((source >= 0) & (target >= 0))
    order = there[np.lexsort((target[there], source[there]))]
    row = order % max(len(events), 1)  # in whichever of the three copies
    columns: dict[str, Any] = {"source": source[order], "target": target[order]}
    columns["event"] = _KEYS[events.event[row]]
    columns |= {name: value[row] for name, value in values.items()}
    return pd.DataFrame(columns, copy=False)


def _tuples(cells: Index) -> Array:
    """The cells of each event as a tuple, without the -1 behind them."""
    named, count = np.empty(len(cells), dtype=object), (cells >= 0).sum(axis=1)
    named.fill(())
    for n in range(1, cells.shape[1] + 1):
        rows = np.flatnonzero(count == n)
        columns = cells[rows, :n].T.tolist()
        named[rows] = np.fromiter(zip(*columns, strict=True), dtype=object, count=len(rows))
    return named


def _events(events: Events, values: dict[str, Array], detections: Detections) -> pd.DataFrame:
    """One row per chosen event, by frame of the later cell and then the name of its kind."""
    first, cause = events.targets[:, 0], events.sources[:, 0]
    frame = detections.frame[np.where(first >= 0, first, cause)]
    order = np.argsort(frame * len(Event) + _RANK[events.event], kind="stable")
    columns: dict[str, Any] = {"frame": frame[order], "event": _KEYS[events.event[order]]}
    for name, cells in (("sources", events.sources), ("targets", events.targets)):
        columns[name] = _tuples(cells[order])
    columns |= {name: value[order] for name, value in values.items()}
    return pd.DataFrame(columns, copy=False)
