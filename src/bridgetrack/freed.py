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
