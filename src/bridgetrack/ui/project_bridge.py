"""Between a session and a project file."""

from __future__ import annotations

from pathlib import Path

from bridgetrack.errors import OutputError
from bridgetrack.ui.session import Session


def save_session(session: Session, path: Path) -> list[str]:
    """Save what is needed to go on or to repeat the run; returns notes for people."""
    raise OutputError(f"{path}: projects cannot be saved yet")
