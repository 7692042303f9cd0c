"""How much memory tracking takes, before it begins; and how long windows may be within it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.hypotheses.events import Events
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.hypotheses.generate import events_between
from bridgetrack.pipeline.window import REACH

_PROGRAM, _PER_CELL, _PER_HYPOTHESIS = 3.2e8, 800.0, 400.0
"""Bytes that the program takes; a cell in tables and evidence; and a hypothesis while it is chosen.
See benchmarks/memory.py."""
_SHORTEST = 2 * (2 * REACH + 1)
"""Frames that a window must hold at least."""
_USED = 0.8
"""Share of the free memory that is used."""
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def parse_memory(text: str) -> float:
    """Bytes, from words such as ``"4GB"`` or ``"800 MB"``.

    Raises
    ------
    InputError
        Where it is no amount of memory.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if found is None or not float(found[1]):
        raise InputError(f"{text!r} is no amount of memory; give one such as 4GB or 800MB")
    return float(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Room:
    """The memory for a movie.

    Parameters
    ----------
    evidence
        The movie.
    memory
        Bytes that there are.
    each
        Hypotheses for each cell, where there are the most cells.
    asked
        Whether somebody asked to keep to it, or it is what the machine has.
    """

    evidence: Evidence
    memory: float
    each: float
    asked: bool

    @classmethod
    def of(cls, evidence: Evidence, memory: float | None) -> Room:
        """So many bytes, or what the machine has free, for a movie."""
        counts = np.diff(evidence.detections.offsets)
        each = 1.0
        if len(counts) > 1:
            t = min(int(np.argmax(counts)), len(counts) - 2)
            few = events_between(evidence, range(t, t + 2), Events.join([]))
            each = max(len(few) / max(int(counts[t]), 1), 1.0)
        return cls(evidence, free_memory() if memory is None else memory, each, memory is not None)

    @property
    def at_once(self) -> float:
        """Bytes that the whole movie takes."""
        return self.needed(len(self.evidence.detections))

    def needed(self, cells: int) -> float:
        """Bytes that it takes to look at so many cells at a time."""
        fixed = _PROGRAM + _PER_CELL * len(self.evidence.detections)
        return fixed + self.each * _PER_HYPOTHESIS * cells

    def windows(self) -> list[range]:
        """As few windows as the memory allows; each begins where the last ends.

        Raises
        ------
        BridgetrackError
            Where they would be too short.
        """
        detections = self.evidence.detections
        offsets, n_frames = detections.offsets, detections.geometry.n_frames
        if self.at_once <= self.memory:
            return [range(n_frames)]
        if self.needed(0) >= self.memory:
            raise self._too_little(self.needed(0), f"the tables of {len(detections):,} cells")
        size = int((self.memory - self.needed(0)) / (self.each * _PER_HYPOTHESIS))
        found: list[range] = []
        start = 0
        while start < n_frames - 1:
            room = int(offsets[start]) + size
            stop = min(int(np.searchsorted(offsets, room, side="right")) - 1, n_frames)
            if stop < n_frames and stop - start < _SHORTEST:
                least = int(offsets[min(start + _SHORTEST, n_frames)] - offsets[start])
                raise self._too_little(self.needed(least), f"{_SHORTEST} frames at a time")
            found.append(range(start, stop))
            start = stop - 1
        # The rest may be too short to stand alone.
        if len(found) > 1 and len(found[-1]) < _SHORTEST:
            middle = (found[-2].start + found[-1].stop) // 2
            found[-2:] = [range(found[-2].start, middle + 1), range(middle, n_frames)]
        return found

    def _too_little(self, least: float, what: str) -> BridgetrackError:
        enough = f"{np.ceil(1.1 * least / 1e7) / 100:g}GB"
        here = f"{self.memory / 1e9:.2g} GB"
        if self.asked:
            return BridgetrackError(
                f"{here} are not enough for {what}; about {enough} are: give --memory {enough}"
            )
        return BridgetrackError(
            f"this machine has {here} free, which are not enough for {what}; about {enough} are: "
            "close other programs, take a larger machine or a part of the movie"
        )


def free_memory() -> float:
    """Bytes that may be used here; a lot where the system does not say."""
    found = [np.inf]
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        found.append(1024 * float(text.split("MemAvailable:")[1].split()[0]))
    if not np.isfinite(min(found)):
        with suppress(OSError, ValueError, AttributeError):
            found.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return max(_USED * min(found), 0.0)
