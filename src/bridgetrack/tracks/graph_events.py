"""The events that the edges of a lineage graph amount to."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.hypotheses.events import Event

EDGE_EVENTS = ("move", "skip", "divide", "split", "merge")
EVENT_COLUMNS = ["frame", "event", "sources", "targets", "score", "margin"]

Rows = NDArray[np.int64]


def events_from_edges(
    nodes: pd.DataFrame, edges: pd.DataFrame, src: Rows, tgt: Rows, n_frames: int
) -> pd.DataFrame:
    """The events that a graph amounts to (see `Tracks.events`).

    Edges of one ``divide`` or ``split`` share the source, those of one ``merge`` the target. The
    frame of an event with several later cells is that of the earliest.

    Parameters
    ----------
    nodes
        ``id``, ``frame``.
    edges
        ``event``, ``score``, ``margin``.
    src, tgt
        Rows of `nodes` that every edge joins, shapes (E,) and (E,).
    n_frames
        Number of frames of the movie.
    """
    ids = nodes["id"].to_numpy(dtype=np.int64)
    frame = nodes["frame"].to_numpy(dtype=np.int64)
    ends = pd.DataFrame(
        {
            "source": ids[src],
            "target": ids[tgt],
            "frame": frame[tgt],
            "event": edges["event"].to_numpy(dtype=object),
            "score": edges["score"].to_numpy(),
            "margin": edges["margin"].to_numpy(),
        }
    ).sort_values(["source", "target"], kind="stable")
    parts = [_grouped(kind, ends[ends["event"] == kind]) for kind in EDGE_EVENTS]
    n = len(nodes)
    orphan = (np.bincount(tgt, minlength=n) == 0) & (frame > 0)
    leaf = (np.bincount(src, minlength=n) == 0) & (frame < n_frames - 1)
    parts.append(_lonely("appear", ids[orphan], frame[orphan]))
    parts.append(_lonely("disappear", ids[leaf], frame[leaf]))
    return sort_events(pd.concat(parts, ignore_index=True))


def sort_events(table: pd.DataFrame) -> pd.DataFrame:
    """Events by frame, kind and the first detection they name."""
    pairs = zip(table["sources"], table["targets"], strict=True)
    first = np.asarray([(s or t)[0] for s, t in pairs], dtype=np.int64)
    rank = table["event"].map({e.key: int(e) for e in Event}).to_numpy(dtype=np.int64)
    order = np.lexsort((first, rank, table["frame"].to_numpy(dtype=np.int64)))
    return table.iloc[order][EVENT_COLUMNS].reset_index(drop=True)


def _grouped(kind: str, ends: pd.DataFrame) -> pd.DataFrame:
    if kind in ("move", "skip"):
        spans = np.arange(len(ends) + 1)
    else:
        by = "target" if kind == "merge" else "source"
        ends = ends.sort_values(by, kind="stable")
        spans = np.r_[0, np.flatnonzero(np.diff(ends[by].to_numpy())) + 1, len(ends)]
        spans = spans[: len(spans) if len(ends) else 1]
    pairs = list(zip(spans[:-1].tolist(), spans[1:].tolist(), strict=True))
    sources, targets = ends["source"].tolist(), ends["target"].tolist()
    one_source, one_target = kind != "merge", kind in ("move", "skip", "merge")
    starts = spans[:-1]
    frame = ends["frame"].to_numpy(dtype=np.int64)
    return pd.DataFrame(
        {
            "frame": np.minimum.reduceat(frame, starts) if len(starts) else frame,
            "event": np.full(len(starts), kind, dtype=object),
            "sources": [tuple(sources[a : a + 1 if one_source else b]) for a, b in pairs],
            "targets": [tuple(targets[a : a + 1 if one_target else b]) for a, b in pairs],
            "score": ends["score"].to_numpy(dtype=np.float64)[starts],
            "margin": ends["margin"].to_numpy(dtype=np.float64)[starts],
        }
    )


def _lonely(kind: str, ids: Rows, frame: Rows) -> pd.DataFrame:
    named = [(i,) for i in ids.tolist()]
    nobody: list[tuple[int, ...]] = [()] * len(ids)
    return pd.DataFrame(
        {
            "frame": frame,
            "event": np.full(len(ids), kind, dtype=object),
            "sources": named if kind == "disappear" else nobody,
            "targets": named if kind == "appear" else nobody,
            "score": np.full(len(ids), np.nan),
            "margin": np.full(len(ids), np.nan),
        }
    )
