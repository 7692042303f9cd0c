"""Fixtures for tests on files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def unprivileged(tmp_path: Path) -> Iterator[None]:
    """Act as a user for whom access rights count, in a temporary folder of one's own."""
    if os.geteuid() != 0:
        yield
        return
    parents = [p for p in (tmp_path, *tmp_path.parents) if p.stat().st_mode & 0o055 != 0o055]
    modes = [(p, p.stat().st_mode) for p in parents]
    for path in parents:
        path.chmod(0o755)
    os.chown(tmp_path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for path, mode in modes:
            path.chmod(mode)
