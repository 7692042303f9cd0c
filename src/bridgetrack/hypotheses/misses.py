"""Skips over missed detections, and false detections.

Both tie neighbouring frame pairs together, so they are proposed only where no direct event is
plausible (design: components must not grow through the movie).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.detections.size import equivalent_diameter
from bridgetrack.hypotheses.candidates import Limits, nearest
from bridgetrack.hypotheses.evidence import Evidence

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def _plausible(evidence: Evidence) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether every cell has a plausible direct successor and predecessor, shapes (n,)."""
    reach = max(4.0 * evidence.motion.step, 0.5 * evidence.motion.diameter)
    size = np.log(np.maximum(equivalent_diameter(evidence.detections), 1e-9))
    size = size * evidence.detections.geometry.ndim

    def similar(match: Index, residual: Array) -> NDArray[np.bool_]:
        change = np.abs(size[np.maximum(match, 0)] - size)
        return np.asarray((match >= 0) & (residual <= reach) & (change < np.log(2.0)))

    return (
        similar(evidence.match_next, evidence.residual_next),
        similar(evidence.match_previous, evidence.residual_previous),
    )


def skip_pairs(evidence: Evidence, limits: Limits) -> tuple[Index, Index]:
    """Cells lost in one frame and found again a few frames later.

    Returns
    -------
    source, target
        Rows, shapes (S,).
    """
    followed, preceded = _plausible(evidence)
    detections, motion = evidence.detections, evidence.motion
    offsets, position = detections.offsets, detections.position
    drift = [pair.drift for pair in motion.pairs]
    sources: list[Index] = [np.zeros(0, dtype=np.int64)]
    targets: list[Index] = [np.zeros(0, dtype=np.int64)]
    for t in range(detections.geometry.n_frames - 2):
        lost = offsets[t] + np.flatnonzero(~followed[offsets[t] : offsets[t + 1]])
        here = evidence.predicted[lost]
        for gap in range(2, min(limits.max_gap, detections.geometry.n_frames - 1 - t) + 1):
            here = here + drift[t + gap - 1]
            rows = slice(offsets[t + gap], offsets[t + gap + 1])
            new = rows.start + np.flatnonzero(~preceded[rows])
            gate = 0.75 * motion.diameter + 4.0 * motion.step * np.sqrt(gap)
            i, j, _ = nearest(here, position[new], limits.skips, float(gate))
            sources.append(lost[i])
            targets.append(new[j])
    return np.concatenate(sources), np.concatenate(targets)


def false_detections(evidence: Evidence) -> Index:
    """Rows of detections that nothing before or after explains, or that are tiny."""
    followed, preceded = _plausible(evidence)
    frame = evidence.detections.frame
    last = evidence.detections.geometry.n_frames - 1
    alone = ~followed & ~preceded & ((frame > 0) | (frame < last))
    diameter = equivalent_diameter(evidence.detections)
    tiny = diameter < 0.45 * np.median(diameter) if len(diameter) else np.zeros(0, bool)
    return np.flatnonzero(alone | (tiny & ~(followed & preceded)))
