"""Test loss against the annotated share of a new movie: the analogue of 000, Figure 1.10.

    python -m papers.transfer [--seeds 5] [--pairs "HeLa to bacteria" ...]

A *source* movie is annotated; a share of the events of the *target's* training part is annotated
too, every kind alike; scored are the events of the target's other part, which no strategy learns
from. All strategies (Table 1.4) are those of `train_steps` with its defaults and start from the
hand-set weights. Printed are wrong events in percent over seeds, and at the end whether transfer is
within a tenth of all of the target with 5, 10 and 20 %.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bridgetrack.annotations.from_tracks import draw_annotations
from bridgetrack.models.model import untrained_model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import (
    DATA,
    SETS,
    DataSet,
    Task,
    header,
    load,
    load_task,
    row,
    score,
    spread,
    with_truth,
)

SHARES = (0, 2, 5, 10, 20, 35, 50, 100)
LABELS = {"target": "partial target", "union": "union", "transfer": "transfer"}


@dataclass(frozen=True)
class Pair:
    """A source movie, the annotated share of its events, and the name of the target's data set."""

    source: DataSet
    share: float
    target: str


_HELA_START = replace(SETS["HeLa"], stop=44)
PAIRS = {
    "HeLa to bacteria": Pair(_HELA_START, 1.0, "bacteria"),
    "iPSC 03 to iPSC 01": Pair(replace(SETS["iPSC 03"], test=()), 0.2, "iPSC 01"),
    "bacteria to HeLa, every 4th": Pair(SETS["bacteria"], 1.0, "HeLa, every 4th"),
    "iPSC 03 to iPSC 04": Pair(replace(SETS["iPSC 03"], test=()), 0.2, "iPSC 04"),
    "HeLa to epidermis": Pair(_HELA_START, 1.0, "epidermis"),
}


def source_scene(pair: Pair, root: Path) -> Scene | None:
    """The annotated source movie."""
    part = load(pair.source, root)
    if part is None:
        return None
    scene = with_truth(part.scene, part.events)
    cells = scene.detections
    return annotate(scene, draw_annotations(part.events, cells, seed=0, fraction=pair.share))


def loss(task: Task, source: Scene, strategy: str, share: int, seed: int) -> float:
    """Share of wrong events after one training."""
    target = task.annotated(seed, fraction=share / 100) if share else task.train.scene
    sources = [] if strategy == "target" else [source]
    model = untrained_model()
    if share or sources:
        model = run(train_steps(target, model, strategy=strategy, sources=sources)).model
    return score(task, model.aligned(task.train.scene.matrix.features)).loss


def measure(task: Task, source: Scene, seeds: int) -> dict[tuple[str, int], list[float]]:
    """Losses over seeds, by strategy and share; one seed where nothing is drawn."""
    found: dict[tuple[str, int], list[float]] = {}
    for seed in range(seeds):
        for share in SHARES if seed == 0 else SHARES[1:-1]:
            for strategy in LABELS:
                found.setdefault((strategy, share), []).append(
                    loss(task, source, strategy, share, seed)
                )
        print(f"{task.name}, seed {seed} is done", file=sys.stderr, flush=True)
    return found


def table(name: str, found: dict[tuple[str, int], list[float]], source_alone: float) -> str:
    """The table of one pair."""
    lines = [
        f"### {name}",
        "",
        f"All of the source and nothing of the target: {100 * source_alone:.2f} % wrong.",
        "",
        header("annotated", *LABELS.values()),
    ]
    for share in SHARES:
        lines.append(row(f"{share} %", *(spread(found[strategy, share]) for strategy in LABELS)))
    whole = found["target", 100][0]
    near = [s for s in (5, 10, 20) if np.mean(found["transfer", s]) <= 1.1 * whole]
    told = ", ".join(f"{share} %" for share in near) or "none of 5, 10 and 20 %"
    lines += ["", f"Transfer is within a tenth of all of the target with {told}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print a table for every pair."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the movies")
    parser.add_argument("--seeds", type=int, default=5, help="repetitions")
    parser.add_argument("--pairs", nargs="*", default=list(PAIRS), choices=PAIRS, metavar="PAIR")
    given = parser.parse_args()
    for name in given.pairs:
        task = load_task(PAIRS[name].target, given.data)
        source = source_scene(PAIRS[name], given.data)
        if task is not None and source is not None:
            found = measure(task, source, given.seeds)
            print(table(name, found, loss(task, source, "source", 0, 0)), flush=True)


if __name__ == "__main__":
    main()
