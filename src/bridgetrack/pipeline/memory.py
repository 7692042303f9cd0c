"""How many frames of a movie are tracked at a time, so that the memory suffices."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
from pydantic import ByteSize, TypeAdapter, ValidationError

from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.hypotheses.events import Events
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.hypotheses.generate import events_between

_PROGRAM, _PER_CELL, _PER_HYPOTHESIS = 3.2e8, 1000.0, 400.0
"""Bytes that the program takes; a cell in tables and evidence; and a hypothesis while it is chosen.
See benchmarks/memory.py."""
_USED = 0.8
"""Share of the free memory that is used."""


def parse_memory(text: str | float) -> float:
    """Bytes, from a number of them or words such as ``"4GB"`` or ``"800 MB"``.

    Raises an `InputError` where it is no amount of memory.
    """
    found = 0
    with suppress(ValidationError):
        found = TypeAdapter(ByteSize).validate_python(text)
    if not found:
        raise InputError(f"{text!r} is not an amount of memory such as 4GB or 800MB")
    if found < 1000:
        raise InputError(f"a memory of {text!r} has no unit; write one, such as {found}GB")
    return float(found)


def even_windows(n_frames: int, frames: int) -> list[range]:
    """Windows of at most so many frames, about equally long; each begins where the last ends."""
    count = max(-(-(n_frames - 1) // max(frames - 1, 1)), 1)
    return _between(np.linspace(0, n_frames - 1, count + 1).round().astype(int).tolist())


def _between(ends: list[int]) -> list[range]:
    return [range(a, b + 1) for a, b in pairwise(ends)]


def windows_within(evidence: Evidence, memory: float | None, together: int) -> list[range]:
    """As few windows as the memory allows (None: what is free), of about as many cells each.

    Some frames `together` must fit. Raises a `BridgetrackError` where the memory is too little.
    """
    asked = memory is not None
    memory = free_memory() if memory is None else memory
    detections = evidence.detections
    offsets, n_frames = detections.offsets, detections.geometry.n_frames
    tables, per_cell = _bytes_needed(evidence)
    if tables + per_cell * len(detections) <= memory:
        return [range(n_frames)]
    few = min(together, n_frames)
    least = tables + per_cell * float((offsets[few:] - offsets[:-few]).max())
    if least > memory:
        enough = f"{np.ceil(1.1 * least / 1e7) / 100:g}GB"
        raise BridgetrackError(
            f"{memory / 1e9:.2g} GB of memory {'are given' if asked else 'are free here'}, but "
            f"{len(detections):,} cells, {few} frames at a time, need about {enough}: give "
            f"--memory {enough}, close other programs, or take a larger machine or a part of the "
            "movie"
        )
    # Windows end with a frame, and so hold some cells more than their share.
    room = (memory - tables) / per_cell - float(np.diff(offsets).max())
    shares = np.linspace(0, len(detections), int(np.ceil(len(detections) / room)) + 1)[1:-1]
    return _between([0, *np.searchsorted(offsets, shares).tolist(), n_frames - 1])


def _bytes_needed(evidence: Evidence) -> tuple[float, float]:
    """Bytes for the program and its tables, and for every cell of a window."""
    counts = np.diff(evidence.detections.offsets)
    hypotheses = 1.0
    if len(counts) > 1:  # where there are the most cells
        t = min(int(np.argmax(counts)), len(counts) - 2)
        few = events_between(evidence, range(t, t + 2), Events.join([]))
        hypotheses = max(len(few) / max(int(counts[t]), 1), 1.0)
    return _PROGRAM + _PER_CELL * len(evidence.detections), _PER_HYPOTHESIS * hypotheses


def free_memory() -> float:
    """Bytes that may be used here; infinite if the system does not say."""
    found = np.inf
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        found = 1024 * float(text.split("MemAvailable:")[1].split()[0])
    if not np.isfinite(found):
        with suppress(OSError, ValueError, AttributeError):
            found = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return _USED * found
