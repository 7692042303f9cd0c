"""Specks on masks that are not perfect: how many are proposed, and what all answers teach of them.

    python benchmarks/specks.py [--sets "HeLa, 01_AUTO" ...]

Of the things that the truth says are no cells, how many are among the hypotheses as such without
any answer; and wrong events of the second half of a movie with the starting weights, and with what
``bridgetrack train`` learns of all true events of the first half; `imperfect.py` has fewer answers.
"""

from __future__ import annotations

import warnings

import numpy as np

from bridgetrack.hypotheses.events import Event
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import propose
from common import Task, arguments, header, load_task, row, score
from imperfect import SETS, kinds_wrong, trained


def proposed(task: Task) -> tuple[int, int, int]:
    """Specks, those of them that are proposed as none, and all detections that are."""
    events = [part.events for part in (task.train, *task.test)]
    specks = np.concatenate([e.sources[e.of(Event.FALSE), 0] for e in events])
    alone = propose(task.train.scene.evidence).hypotheses
    rows = alone.sources[alone.of(Event.FALSE), 0]
    return len(specks), int(np.isin(specks, rows).sum()), len(rows)


def line(task: Task) -> str:
    """A row of the table."""
    features = task.train.scene.matrix.features
    n, there, rows = proposed(task)
    cells = [f"{there} of {n} ({rows:,})", f"{sum(len(part.events) for part in task.test):,}"]
    for model in (shipped_model(), trained(task, task.clicks(0, fraction=1.0))):
        found = score(task, model.aligned(features))
        kinds = kinds_wrong(task, found)
        cells.append(f"{len(found.wrong)} ({kinds['false']}, {kinds['move']})")
    return row(task.name, *cells)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    given = arguments(__doc__, 1, SETS)
    print(
        header("movie", "specks proposed (of all detections)", "events",
               "wrong untrained (specks, moves)", "after all answers"),
        flush=True,
    )  # fmt: skip
    for name in given.sets:
        task = load_task(name, given.data)
        if task is not None:
            print(line(task), flush=True)


if __name__ == "__main__":
    main()
