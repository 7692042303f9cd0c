"""Giving memory back to the system between updates."""

from __future__ import annotations

import ctypes
import sys


def give_back_memory() -> None:
    """Return freed memory to the system, where the C library can be told to (glibc).

    Solvers run in short-lived threads, and glibc keeps what each of them freed for later, so that
    a long session would seem to need more and more.
    """
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
