"""Which kinds of events the untrained program finds on true masks, and how many there truly are.

    python benchmarks/absent_kinds.py [--sets S ...]

Whole movies (the epidermis and PSC in parts), true masks or centroids, the shipped weights, every
kind of event allowed. A pair of numbers is *found / true*.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np

from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.inference.solve import solve
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import Scene
from common import DATA, SETS, frame_pair, header, load_movie, row
from domains import load_domain
from unseen import UNSEEN

KINDS = (
    Event.APPEAR,
    Event.DISAPPEAR,
    Event.DIVIDE,
    Event.SKIP,
    Event.MERGE,
    Event.SPLIT,
    Event.FALSE,
)
MOVIES = ("HeLa", "HeLa, every 4th", "bacteria", "DIC", "SIM+", "iPSC 01", "iPSC 01, every 2nd")


def movies(names: list[str]) -> Iterator[tuple[str, Scene, Events]]:
    """Scenes with their true events; those that are not here are left out."""
    for name in names:
        if name in UNSEEN:
            part = load_domain(UNSEEN[name])
            if part is not None:
                yield name, part.scene, part.events
        elif (DATA / SETS[name].folder).is_dir():
            yield name, *load_movie(SETS[name], DATA)


def main() -> None:
    """Print a row a movie."""
    warnings.simplefilter("ignore")
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else []
    print(header("movie", "true events", *(kind.key for kind in KINDS)))
    for name, scene, true in movies(names or [*MOVIES, *UNSEEN]):
        weights = shipped_model().aligned(scene.matrix.features)
        chosen = solve(scene.problem, scene.matrix.scores(weights)).chosen
        picked = scene.hypotheses.take(np.flatnonzero(chosen))
        pairs = np.unique(frame_pair(scene, true))
        picked = picked.take(np.flatnonzero(np.isin(frame_pair(scene, picked), pairs)))
        cells = [f"{(picked.event == k).sum()} / {(true.event == k).sum()}" for k in KINDS]
        print(row(name, f"{len(true):,}", *cells), flush=True)


if __name__ == "__main__":
    main()
