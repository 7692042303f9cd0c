"""Fixtures shared by all tests."""

from __future__ import annotations

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: "slow" not in item.keywords)
