"""Divisions into three and fusions of three, which no event can say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bridgetrack.arrays import Index
from bridgetrack.detections.table import Detections, equivalent_diameter
from bridgetrack.hypotheses.events import Event, Events

_WITHIN = np.log(1.35)
"""Logarithm of the factor by which parts must add up to the whole."""
_NAMED = 3
"""Cases that are named; of others their number is told."""


def more_than_two(detections: Detections, events: Events) -> Iterator[str]:
    """Remarks on chosen events that are more likely one division, or one fusion, of three or more.

    Sizes must say so: the cells that appear beside two daughters make up the mother with them, or
    those that disappear beside a cell that becomes a much larger one make up that one with it.
    """
    area = detections.table["area"].to_numpy(dtype=np.float64)
    if not len(area) or area.max() == area.min():
        return
    frame, label, radius = detections.frame, detections.label, equivalent_diameter(detections) / 2
    position = detections.position

    def completing(whole: int, parts: Index, others: Index, reach: float) -> Index:
        """Which others, within so many radii of a cell, make it up together with its parts."""
        away = np.linalg.norm(position[others] - position[whole], axis=1)
        near = others[(away < reach * radius[whole]) & (others != whole)]
        own = area[parts].sum()
        alone, together = np.log(np.array([own, own + area[near].sum()]) / area[whole])
        return near if abs(together) < min(_WITHIN, abs(alone)) else near[:0]

    came, gone = events.targets[events.of(Event.APPEAR), 0], events.sources[:, 0]
    gone = gone[events.of(Event.DISAPPEAR)]
    divided, fused = [], []
    for k in events.of(Event.DIVIDE).tolist():
        mother, daughters = int(events.sources[k, 0]), events.targets[k]
        others = came[np.isin(frame[came], frame[daughters])]
        parts = completing(mother, daughters, others, 2.5)
        if len(parts):
            named = ", ".join(f"{c}" for c in sorted(label[np.r_[daughters, parts]].tolist()))
            divided.append(f"cell {label[mother]} in frame {frame[mother]} into cells {named}")
    joins = np.flatnonzero((events.event == Event.MOVE) | (events.event == Event.MERGE))
    last = np.unique(frame[gone])
    joins = joins[np.isin(frame[events.sources[joins, 0]], last)]
    joins = joins[area[events.targets[joins, 0]] > 1.5 * area[events.sources[joins, 0]]]
    for k in joins.tolist():
        region = int(events.targets[k, 0])
        parents = events.sources[k][events.sources[k] >= 0]
        others = gone[frame[gone] == frame[parents[0]]]
        parts = completing(region, parents, others, 1.5)
        if len(parents) + len(parts) > 2:
            named = ", ".join(f"{c}" for c in sorted(label[np.r_[parents, parts]].tolist()))
            fused.append(f"cells {named} as cell {label[region]} in frame {frame[region]}")
    yield from _remark(divided, "three or more daughters: {}; two are kept, the others appear")
    yield from _remark(
        fused, "three or more cells are drawn as one: {}; two are kept, the others disappear"
    )


def _remark(found: list[str], words: str) -> Iterator[str]:
    """One remark for all cases of a kind."""
    if found:
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        yield words.format("; ".join(found[:_NAMED]) + more)
