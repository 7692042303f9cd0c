"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("however slow the machine", deadline=None)
settings.load_profile("however slow the machine")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real annotated movies; the test is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no real movies: {SHARED.name} is not beside the project")
    return SHARED


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only repeats others at length, unless all tests are asked for."""
    if os.environ.get("BRIDGETRACK_ALL_TESTS"):
        return
    left = [item for item in items if "thorough" in item.keywords]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if "thorough" not in item.keywords]
