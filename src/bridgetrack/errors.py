"""Errors of the package: one root, so that callers can catch everything at once.

A message says what was wrong, where (file, layer, frame, cell), and what to do about it.
"""

from __future__ import annotations

from pathlib import Path


class BridgetrackError(Exception):
    """Root of every error that Bridgetrack raises on purpose."""


class InputError(BridgetrackError):
    """A file, an array or a table cannot be used as it is."""


class OutputError(BridgetrackError):
    """A result cannot be written where it was asked for."""


class NotWrittenError(OutputError):
    """A file or folder cannot be written: its name, and then why not and what to do."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        """The sentence."""
        return f"{self.path}: {self.why}"


class ContradictionError(BridgetrackError):
    """Annotations or pinned events exclude each other."""


class ModelError(BridgetrackError):
    """A model file cannot be used with this program or this movie."""


class SolverError(BridgetrackError):
    """A solver is missing or returned something that is not a solution."""


class InfeasibleError(SolverError):
    """The allowed events cannot explain every cell once."""


class DependencyError(BridgetrackError):
    """An optional package that a chosen option needs is not installed."""


class BridgetrackWarning(UserWarning):
    """Something in the input is odd, but the work goes on."""
