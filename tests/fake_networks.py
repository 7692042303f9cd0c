"""A package in the place of Cellpose, whose network sees what a test wants it to see."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bridgetrack.segmentation import segment

Sees = Callable[[np.ndarray], np.ndarray]


def cellpose_that(monkeypatch: pytest.MonkeyPatch, sees: Sees) -> list[np.ndarray]:
    """Install a Cellpose that finds the labels of a frame by `sees`; the frames it looked at."""
    looked: list[np.ndarray] = []

    class Network:
        def __init__(self, **_: Any) -> None:
            pass

        def eval(self, image: np.ndarray, **_: Any) -> tuple[Any, ...]:
            looked.append(image)
            labels = sees(image)
            return labels.astype(np.uint16), [], np.zeros(1)

    install_cellpose(monkeypatch, Network)
    return looked


def install_cellpose(monkeypatch: pytest.MonkeyPatch, network: type[Any]) -> None:
    """Put a package with the parts of Cellpose's interface that are called in its place."""
    package, core, models = (ModuleType(f"cellpose{n}") for n in ("", ".core", ".models"))
    core.use_gpu = lambda: False  # type: ignore[attr-defined]
    models.CellposeModel = network  # type: ignore[attr-defined]
    package.core, package.models = core, models  # type: ignore[attr-defined]
    for module in (package, core, models):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(segment, "find_spec", lambda _: True)
    segment.cellpose_network.cache_clear()
