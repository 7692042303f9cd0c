"""The same answers of sessions learned from in several ways.

    python benchmarks/same_answers.py [--seeds 10] [--sets S ...] [--wrong 0.05]

Sessions are those of ``active_events.py``; their answers are then fitted in other ways, and tested
on the other half of the movie. *As shipped*: λ = 0.2 with fifty clicks, falling with the root of
their number, weights tied as the shipped model says, events it is sure of held. *Nothing held*:
without the last. *Four times λ*: the same with another λ. *Sure from 3*, *from 2*: with a smaller
margin that counts as sure. *Untied*: as sessions once learned, λ = 5 / clicks, all weights held
alike, balance 0.5, nothing held.
"""

from __future__ import annotations

import warnings
from typing import Any
from unittest.mock import patch

from active_events import CLICKS, SETS, answers, loss_of
from bridgetrack.pipeline.scene import annotate
from bridgetrack.training import sure
from bridgetrack.training.options import default_strength
from common import arguments, header, load_task, option, row, spread

WAYS = ("as shipped", "nothing held", "four times λ", "sure from 3", "sure from 2", "untied")


def learning(way: str, clicks: int) -> dict[str, Any]:
    """Choices of `LearnOptions`."""
    if way == "nothing held":
        return {"hold_sure": False}
    if way == "four times λ":
        return {"strength": 4 * default_strength(clicks), "hold_sure": False}
    if way == "untied":
        strength = min(max(5 / clicks, 0.03), 0.3)
        return {"strength": strength, "tied": False, "balance": 0.5, "hold_sure": False}
    return {}


def main() -> None:
    """Print a table per movie."""
    warnings.simplefilter("ignore")
    wrong = option("--wrong", 0.0)
    given = arguments(__doc__, 10, SETS)
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        found: dict[tuple[str, int], list[float]] = {}
        for seed in range(given.seeds):
            for clicks, said in answers(task, seed, wrong):
                scene = annotate(task.train.scene, said)
                for way in WAYS:
                    margin = {"sure from 3": 3.0, "sure from 2": 2.0}.get(way, sure.SURE)
                    with patch.object(sure, "SURE", margin):
                        loss = loss_of(task, scene, **learning(way, clicks))
                    found.setdefault((way, clicks), []).append(loss)
        print(f"### {name}, {100 * wrong:g} % of the answers wrong, {given.seeds} seeds\n")
        print(header("wrong events, %", *map(str, CLICKS)))
        for way in WAYS:
            print(row(way, *(spread(found.get((way, c), [])) for c in CLICKS)))
        print(flush=True)


if __name__ == "__main__":
    main()
