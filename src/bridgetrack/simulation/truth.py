"""Which track each visible cell belongs to, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.simulation.cells import Cells

_MAX_LABEL = 65_535


@dataclass
class Register:
    """Gives out track ids: one for each unbroken sight of a cell.

    A cell that leaves the field and comes back is a new track without a parent. Where only one
    daughter of a division is in sight, what can be seen is a move, so she keeps her mother's
    track.
    """

    tracks: list[list[int]] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    fates: list[str] = field(default_factory=list)
    _in_sight: dict[int, int] = field(default_factory=dict)

    def see(self, t: int, cells: Cells, visible: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Track id of every cell of frame `t`, 0 for those out of sight, shape (n,)."""
        before = self._in_sight
        seen = np.flatnonzero(visible)
        ids, mothers = cells.id[seen].tolist(), cells.mother[seen].tolist()
        sisters: dict[int, int] = {}
        for cell, mother in zip(ids, mothers, strict=True):
            if cell not in before and mother in before:
                sisters[mother] = sisters.get(mother, 0) + 1
        now: dict[int, int] = {}
        for cell, mother in zip(ids, mothers, strict=True):
            known = cell if cell in before else mother
            if cell in before or sisters.get(mother) == 1:
                now[cell] = before[known]
                self.tracks[now[cell] - 1][2] = t
            else:
                now[cell] = self._begin(t, before.get(mother, 0))
        self._end(before, now, set(cells.id.tolist()), sisters)
        self._in_sight = now
        labels = np.zeros(len(cells), dtype=np.int64)
        labels[seen] = [now[c] for c in ids]
        return labels

    def _begin(self, t: int, parent: int) -> int:
        label = len(self.tracks) + 1
        if label > _MAX_LABEL:
            raise InputError(
                f"the simulated movie has more than {_MAX_LABEL} tracks (frame {t}), which label "
                "images of 16 bits cannot hold; ask for fewer cells or frames"
            )
        self.tracks.append([label, t, t, parent])
        self.origins.append("divide" if parent else "enter" if t else "start")
        self.fates.append("end")
        return label

    def _end(
        self,
        before: dict[int, int],
        now: dict[int, int],
        alive: set[int],
        sisters: dict[int, int],
    ) -> None:
        for cell, label in before.items():
            if cell in now or sisters.get(cell) == 1:
                continue
            divided = sisters.get(cell, 0) == 2
            self.fates[label - 1] = "divide" if divided else "leave" if cell in alive else "die"

    def table(self) -> pd.DataFrame:
        """One row per track: label, begin, end, parent (CTC's L B E P), origin and fate.

        ``origin`` is ``start``, ``divide`` or ``enter``; ``fate`` is ``end`` (of the movie),
        ``divide``, ``leave`` or ``die`` (also where a cell divides out of sight).
        """
        rows = np.array(self.tracks, dtype=np.int64).reshape(-1, 4)
        table = pd.DataFrame(rows, columns=["label", "begin", "end", "parent"])
        return table.assign(origin=self.origins, fate=self.fates)
