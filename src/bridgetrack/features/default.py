"""The features that models use unless told otherwise."""

from __future__ import annotations

from bridgetrack.features.divide import DIVIDE
from bridgetrack.features.feature import FeatureSet
from bridgetrack.features.move import MOVE
from bridgetrack.features.parts import MERGE, SPLIT
from bridgetrack.features.single import APPEAR, DISAPPEAR, FALSE, SKIP


def default_features() -> FeatureSet:
    """All built-in features, sorted by event."""
    return FeatureSet((*MOVE, *DIVIDE, *SPLIT, *MERGE, *APPEAR, *DISAPPEAR, *SKIP, *FALSE))
