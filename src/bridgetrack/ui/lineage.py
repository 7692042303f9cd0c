"""Where the branches of a family tree are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from bridgetrack.tracks.tracks import Tracks


@dataclass(frozen=True)
class Branch:
    """A track as a vertical line at `x` from its first to its last frame."""

    track_id: int
    x: float
    first: int
    last: int
    parent: int | None
    event: str = ""


def family_of(tracks: Tracks, node: int) -> int | None:
    """Lineage of a node (row of a detection), None where it belongs to no track."""
    found = tracks.nodes.loc[tracks.nodes["id"] == node, "lineage_id"]
    return int(found.iloc[0]) if len(found) else None


def branches(tracks: Tracks, lineage: int) -> list[Branch]:
    """Layout of one family: leaves side by side, mothers between their daughters.

    Parameters
    ----------
    tracks
        All tracks.
    lineage
        Which family.

    Returns
    -------
    list of Branch
        Mothers before daughters.
    """
    own = tracks.nodes[tracks.nodes["lineage_id"] == lineage]
    spans = own.groupby("track_id")["frame"].agg(["min", "max"])
    links = tracks.links[tracks.links["track_id"].isin(spans.index)]
    links = links.drop_duplicates("track_id").set_index("track_id")
    children: dict[int, list[int]] = {}
    for child, parent in links["parent_id"].items():
        children.setdefault(int(parent), []).append(int(str(child)))
    place = _place(lineage, children, spans)
    first: dict[Any, int] = spans["min"].to_dict()
    last: dict[Any, int] = spans["max"].to_dict()
    mother: dict[Any, int] = links["parent_id"].to_dict()
    event: dict[Any, str] = links["event"].to_dict()
    found = [
        Branch(track, x, first[track], last[track], mother.get(track), event.get(track, ""))
        for track, x in place.items()
    ]
    return sorted(found, key=lambda b: b.first)


def _place(root: int, children: dict[int, list[int]], spans: pd.DataFrame) -> dict[int, float]:
    """Horizontal place of every track, depth first without recursion."""
    place: dict[int, float] = {}
    free = 0.0
    stack: list[tuple[int, bool]] = [(root, False)]
    seen: set[int] = set()
    while stack:
        track, done = stack.pop()
        below = [c for c in sorted(children.get(track, [])) if c in spans.index]
        if done:
            xs = [place[c] for c in below if c in place]
            if xs:
                place[track] = sum(xs) / len(xs)
                continue
            place[track], free = free, free + 1
        elif track not in seen and track in spans.index:
            seen.add(track)
            stack.append((track, True))
            stack += [(c, False) for c in reversed(below) if c not in seen]
    return place
