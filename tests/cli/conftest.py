"""A small movie and a way to run commands on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridgetrack.cli.main import main
from bridgetrack.simulation.ctc import simulate_to_folder
from bridgetrack.simulation.settings import SimulationSettings


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def command(*words: Any) -> Outcome:
        capsys.readouterr()
        status = main([str(w) for w in words])
        shown = capsys.readouterr()
        return Outcome(status, shown.out, shown.err)

    return command


@pytest.fixture(scope="session")
def movie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with images in ``01`` and truth in ``01_GT``: 10 frames, a few dividing cells."""
    folder = tmp_path_factory.mktemp("movie")
    settings = SimulationSettings(frames=10, cells=12, size=160, division_rate=0.02, seed=3)
    simulate_to_folder(settings, folder)
    return folder


@pytest.fixture(scope="session")
def truth(movie: Path) -> Path:
    """Masks of the small movie."""
    return movie / "01_GT" / "TRA"


def one_line(text: str) -> bool:
    """Whether a text is exactly one line."""
    return text.count("\n") == 1 and text.endswith("\n") and len(text) > 2
