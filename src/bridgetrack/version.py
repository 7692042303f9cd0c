"""The version of the program, for files and messages."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def program_version() -> str:
    """Version of the installed package, ``"unknown"`` where it runs from a bare folder."""
    try:
        return version("bridgetrack")
    except PackageNotFoundError:
        return "unknown"
