"""Who asks questions about events, as far as keys and clicks need to know."""

from __future__ import annotations

from typing import Protocol

from bridgetrack.ui.picking import Mode


class Asker(Protocol):
    """Gets the answers while it asks."""

    def next(self) -> None:
        """Ask something, or something else."""

    def choose(self, number: int) -> None:
        """The event with this number holds, from 1, the proposed one."""

    def point(self, row: int) -> None:
        """A cell was clicked (-1: none)."""

    def reject(self) -> None:
        """The proposed event does not hold."""

    def cannot_tell(self) -> None:
        """Somebody looked and could not say."""

    def turn(self) -> None:
        """Show the other frame."""

    def subject(self, mode: Mode) -> int:
        """Row of the cell to begin another kind of event with, -1 where there is none."""
