"""Give memory that was freed back to the system."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress


def give_back() -> None:
    """Hand memory that was freed back to the system, where libraries keep it for later.

    Solvers run in short-lived threads, and glibc keeps what each of them freed; pandas holds text
    by pyarrow, which keeps what a table took that was read.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(AttributeError, KeyError):
        sys.modules["pyarrow"].default_memory_pool().release_unused()


def keep_together() -> None:
    """Let all threads share one store of freed memory: of its own, each takes far more addresses.

    Called before any thread begins; slower where many allocate at once.
    """
    with suppress(OSError, AttributeError, TypeError):
        arena_max = -8  # M_ARENA_MAX
        ctypes.CDLL(None).mallopt(arena_max, 1)
