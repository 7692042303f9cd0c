"""Tables of edges and of events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.importing.columns import plain_name
from bridgetrack.importing.csv_file import TextTable, read_text_table
from bridgetrack.tracks.graph_events import EDGE_EVENTS, EVENT_COLUMNS

_SOURCE = ("source", "source_id", "spot_source_id", "parent", "from")
_TARGET = ("target", "target_id", "spot_target_id", "child", "to")


def read_edges(path: Path) -> pd.DataFrame:
    """Read ``source`` and ``target``, and ``event``, ``score``, ``margin`` where they are there.

    Raises
    ------
    InputError
        Where the columns are missing, a number is unreadable or an event is unknown.
    """
    text = read_text_table(path)
    plain = {plain_name(c): c for c in reversed(text.header)}
    source = next((plain[n] for n in _SOURCE if n in plain), None)
    target = next((plain[n] for n in _TARGET if n in plain), None)
    if source is None or target is None:
        raise InputError(f"{path}: needs the columns source and target, found {text.header}")
    edges = pd.DataFrame({"source": text.integers(source), "target": text.integers(target)})
    if "event" in plain:
        edges["event"] = text.cells[plain["event"]].str.strip().astype(object)
        wrong = ~edges["event"].isin(EDGE_EVENTS)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise InputError(
                f"{path}, row {text.first_line + k}: {edges['event'].iloc[k]!r} is not an event "
                f"of edges; known are {', '.join(EDGE_EVENTS)}"
            )
    for name in ("score", "margin"):
        if name in plain:
            # an event that answers settle has no rival, and an infinite margin
            edges[name] = text.numbers(plain[name], empty=np.nan, infinite=name == "margin")
    return edges


def own_events(detections: Path) -> pd.DataFrame | None:
    """The ``events.csv`` beside a table that this program wrote, None where there is none.

    Raises
    ------
    InputError
        Where it is unreadable.
    """
    text = _beside(detections, "events.csv", EVENT_COLUMNS)
    if text is None:
        return None
    kinds = text.cells["event"].astype(object)
    unknown = ~kinds.isin([e.key for e in Event])
    if unknown.any():
        k = int(np.argmax(unknown))
        raise InputError(
            f"{text.source}, row {text.first_line + k}: {kinds.iloc[k]!r} is not an event"
        )
    named = {column: _id_lists(text, column) for column in ("sources", "targets")}
    return pd.DataFrame(
        {
            "frame": text.integers("frame"),
            "event": kinds,
            **named,
            "score": text.numbers("score", empty=np.nan),
            "margin": text.numbers("margin", empty=np.nan, infinite=True),
        }
    )


def own_links(detections: Path) -> pd.DataFrame | None:
    """Links between tracks from the ``tracks.csv`` beside a table that this program wrote.

    Raises
    ------
    InputError
        Where it is unreadable.
    """
    text = _beside(detections, "tracks.csv", ("track_id", "parent_id", "link"))
    if text is None:
        return None
    parents = _id_lists(text, "parent_id")
    events = [tuple(cell.split()) for cell in text.cells["link"]]
    rows = []
    for track, ids, kinds in zip(text.integers("track_id").tolist(), parents, events, strict=True):
        if len(ids) != len(kinds):
            raise InputError(
                f"{text.source}: the track {track} has {len(ids)} parents, {len(kinds)} links"
            )
        rows += [(track, parent, kind) for parent, kind in zip(ids, kinds, strict=True)]
    links = pd.DataFrame(rows, columns=["track_id", "parent_id", "event"])
    return links.astype({"track_id": np.int64, "parent_id": np.int64, "event": object})


def _beside(detections: Path, name: str, columns: Sequence[str]) -> TextTable | None:
    """A table beside another one, where it is there, that must have some columns."""
    path = detections.with_name(name)
    if not path.is_file():
        return None
    text = read_text_table(path)
    missing = [c for c in columns if c not in text.header]
    if missing:
        raise InputError(f"{path}: the columns {missing} are missing")
    return text


def _id_lists(text: TextTable, column: str) -> list[tuple[int, ...]]:
    try:
        return [tuple(int(word) for word in cell.split()) for cell in text.cells[column]]
    except ValueError as error:
        raise InputError(f"{text.source}: {column} must be ids ({error})") from error
