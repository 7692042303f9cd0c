"""Errors of the package: one root, so that callers can catch everything at once.

A message says what was wrong, where (file, layer, frame, cell), and what to do about it.
"""

from __future__ import annotations


class BridgetrackError(Exception):
    """Root of every error that Bridgetrack raises on purpose."""


class InputError(BridgetrackError):
    """A file, an array or a table cannot be used as it is."""


class OutputError(BridgetrackError):
    """A result cannot be written where it was asked for."""


class ContradictionError(BridgetrackError):
    """Annotations or fixed events contradict each other."""


class ModelError(BridgetrackError):
    """A model file cannot be used with this program or this movie."""


class SolverError(BridgetrackError):
    """A solver is missing or returned something that is not a solution."""


class InfeasibleError(SolverError):
    """The allowed events cannot explain every cell exactly once."""


class DependencyError(BridgetrackError):
    """An optional package that a chosen option needs is not installed."""


class BridgetrackWarning(UserWarning):
    """Something in the input is unusual, but the work continues."""
