"""Tracks with lineages: what the chosen events amount to."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from bridgetrack.movie.geometry import Geometry


@dataclass(frozen=True)
class Tracks:
    """Tracks of a movie as three plain tables.

    Parameters
    ----------
    nodes
        One row per detection that belongs to a track: ``id`` (unique integer, the detection's
        row), ``frame``, ``label`` (in the segmentation), position in pixels (``z``, ``y``,
        ``x``), ``area``, ``track_id`` (from 1), ``lineage_id`` (the track_id of the root).
        Two pieces of one wrongly cut cell have the same ``track_id`` in the same frame. More
        columns are carried along.
    edges
        ``source``, ``target`` (node ids, source earlier), ``event`` (``move``, ``skip``,
        ``divide``, ``split``, ``merge``), ``score``, ``margin`` (NaN where unknown).
    events
        Every chosen event: ``frame`` (of the later cell; of the last sight for ``disappear`` and
        of the detection for ``false``), ``event``, ``sources``, ``targets`` (tuples of
        detection ids), ``score``, ``margin``.
    links
        Which track comes from which: ``track_id``, ``parent_id``, ``event`` (``divide``,
        ``split`` or ``merge``); a track after a merge has two rows.
    geometry
        Extent, scale and units of the movie.
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame
    events: pd.DataFrame
    links: pd.DataFrame
    geometry: Geometry
    notes: tuple[str, ...] = field(default=())

    @property
    def n_tracks(self) -> int:
        """Number of tracks."""
        return int(self.nodes["track_id"].nunique())
