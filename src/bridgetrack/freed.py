"""Give memory that was freed back to the system."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def give_back() -> None:
    """Hand memory that was freed back to the system, where the C library keeps it for later.

    Solvers run in short-lived threads, and glibc keeps what each of them freed.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_together() -> None:
    """Let all threads share one store of freed memory: of its own, each takes far more addresses.

    Called before any thread begins; slower where many allocate at once.
    """
    with suppress(OSError, AttributeError, TypeError):
        arena_max = -8  # M_ARENA_MAX
        ctypes.CDLL(None).mallopt(arena_max, 1)
