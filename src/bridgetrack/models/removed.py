"""Models that were taken off the list: the last `KEPT_REMOVED` of them are kept."""

from __future__ import annotations

import shutil
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

KEPT_REMOVED = 20


@dataclass(frozen=True)
class Removed:
    """A model that was removed and can be restored."""

    name: str
    folder: Path


class Bin:
    """The removed models in a folder, which need not exist.

    The name of each tells when it was removed and what it was called.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, folder: Path, name: str) -> Removed:
        """Move the folder of a model here, and drop the oldest if there are too many.

        Raises
        ------
        OSError
            Where it cannot be moved.
        """
        place = self.folder / f"{time.time_ns():020d}~{uuid.uuid4().hex[:8]}~{name}"
        self.folder.mkdir(exist_ok=True)
        folder.rename(place)
        for old in self.contents()[KEPT_REMOVED:]:
            shutil.rmtree(old.folder, ignore_errors=True)
        return Removed(name, place)

    def contents(self) -> tuple[Removed, ...]:
        """What can be restored, the last removed first."""
        try:
            found = [p for p in self.folder.iterdir() if p.name.count("~") >= 2]
        except OSError:
            return ()
        found.sort(key=lambda p: p.name, reverse=True)
        return tuple(Removed(p.name.split("~", 2)[2], p) for p in found)
