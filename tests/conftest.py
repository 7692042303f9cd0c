"""Fixtures shared by all tests."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("however slow the machine", deadline=None)
settings.load_profile("however slow the machine")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data():
    """Folder of real annotated movies; the test is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no real movies: {SHARED.name} is not beside the project")
    return SHARED


@pytest.fixture(scope="session")
def quick_scores():
    """Scores without what traccuracy compiles for seconds where it is imported."""
    if find_spec("traccuracy") is None:
        return
    import numba

    def later(*given, **how):
        """A list of signatures says that a function is compiled at once."""
        return (
            (lambda function: function)
            if given and isinstance(given[0], list)
            else jit(*given, **how)
        )

    jit = numba.njit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba, "njit", later)
        import_module("traccuracy.matchers")


def pytest_collection_modifyitems(items):
    """Long tests come first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: "slow" not in item.keywords)
