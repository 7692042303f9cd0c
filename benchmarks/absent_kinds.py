"""Which kinds of events the untrained program finds, how many there are, and what it notices.

    python benchmarks/absent_kinds.py [--sets S ...]

Whole movies (the epidermis and PSC in parts), true masks or centroids, and three movies whose masks
the program or a peer found; the shipped weights, every kind of event allowed. A pair of numbers is
*found / true*. *Largest margin* is that of the clearest event (a lower bound) of every kind that
may be absent and of which three or more were found; *noticed* are kinds of which none is clear
(`session.unclear_kinds`). The last columns are wrong events before and after they are left out. The
rule was made on the movies above the line of dashes, those below it were looked at afterwards.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bridgetrack.hypotheses.events import ODD, Event, Events
from bridgetrack.hypotheses.kinds import kind_words
from bridgetrack.inference.solve import solve
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.progress import run
from bridgetrack.session.unclear_kinds import LEAST, unclear_kinds
from common import DATA, SETS, frame_pair, header, load_movie, part_of, row
from domains import Domain, load_domain
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
FIRST = {"epidermis, first half": Domain("epidermis", "MouseEpidermis-01-masks", stop=8)}
MOVIES = (
    "HeLa", "HeLa, every 4th", "bacteria", "DIC", "SIM+", "iPSC 01", "iPSC 01, every 2nd", *FIRST,
    "HeLa, 01_AUTO", "HeLa, plain masks", "PSC, plain masks",
)  # fmt: skip


def load(name: str) -> tuple[Scene, Events] | None:
    """A scene with its true events; None where the movie is not here."""
    if name in SETS:
        there = (DATA / SETS[name].folder).is_dir()
        return load_movie(SETS[name], DATA) if there else None
    part = load_domain((FIRST | UNSEEN)[name])
    return None if part is None else (part.scene, part.events)


def movies(names: list[str]) -> Iterator[tuple[str, Scene, Events]]:
    """Scenes with their true events; those that are not here are left out."""
    for name in names:
        loaded = load(name)
        if loaded is not None:
            yield name, *loaded


def measured(name: str, scene: Scene, true: Events) -> str:
    """The row of a movie."""
    tracking = run(track_scene(scene, shipped_model()))
    event, chosen = scene.hypotheses.event, tracking.solution.chosen
    picked = scene.hypotheses.take(np.flatnonzero(chosen))
    pairs = np.unique(frame_pair(scene, true))
    picked = picked.take(np.flatnonzero(np.isin(frame_pair(scene, picked), pairs)))
    counts = [f"{(picked.event == k).sum()} / {(true.event == k).sum()}" for k in KINDS]
    column = part_of(replace(scene, labels=None), true).column
    unclear = unclear_kinds(tracking)
    rest = ~np.isin(event, list(unclear))
    without = solve(scene.problem, tracking.scores, rest).chosen if unclear else chosen
    wrong = [int((~(c[column] & (column >= 0))).sum()) for c in (chosen, without)]
    noticed = ", ".join(kind_words(kind) for kind in unclear) or "–"
    clear = []
    for kind in ODD:
        margins = tracking.margins[chosen & (event == kind)]
        clear += [f"{kind_words(kind)} {margins.max():.1f}"] if len(margins) >= LEAST else []
    return row(name, f"{len(true):,}", *counts, ", ".join(clear) or "–", noticed, *wrong)


def main() -> None:
    """Print a row a movie."""
    warnings.simplefilter("ignore")
    given = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else []
    columns = [kind.key for kind in KINDS]
    print(header("movie", "true events", *columns, "largest margin", "noticed", "wrong", "without"))
    for name, scene, true in movies(given or list(MOVIES)):
        print(measured(name, scene, true), flush=True)
    if given:
        return
    print(row(*("–" for _ in range(len(KINDS) + 6))))
    for name, scene, true in movies(list(UNSEEN)):
        print(measured(name, scene, true), flush=True)


if __name__ == "__main__":
    main()
