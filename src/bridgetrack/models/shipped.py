"""The starting model that comes with the program."""

from __future__ import annotations

from importlib import resources

from bridgetrack.models.model import Model
from bridgetrack.models.store import from_json


def shipped_model() -> Model:
    """Where every user starts: the hand-set weights, and how tightly each is tied.

    The weights are those of `untrained_model`; how much each varies between movies was learned
    from movies of many kinds (``benchmarks/pretrain.py``), so that training from a few clicks
    changes first what differs between movies.
    """
    file = resources.files("bridgetrack.models").joinpath("pretrained.json")
    return from_json(file.read_text(encoding="utf-8"), "the shipped model")
