"""What masks that waver around an event say, before anything is learned.

    python benchmarks/wavering.py [--sets "HeLa, 01_AUTO" ...]

Pieces that are one cell again some frames later were never two, and what was two shortly before is
two now: *wavering* (`docs/features.md`) says how surely. Wrong events of both parts of a movie with
the starting weights, and with the same but for those of wavering, which are 0; and of how many true
wrong cuts and divisions it says anything.
"""

from __future__ import annotations

import warnings

import numpy as np

from bridgetrack.hypotheses.events import Event
from bridgetrack.models.shipped import untrained_model
from common import Part, Task, arguments, header, load_task, row, score_parts

SETS = (
    "HeLa, plain masks",
    "HeLa, 01_AUTO",
    "PSC, plain masks",
    "HeLa",
    "HeLa, every 4th",
    "epidermis",
    "bacteria",
    "iPSC 01",
    "iPSC 01, every 2nd",
    "iPSC 03",
    "DIC",
    "SIM+",
)
SHOWN = (Event.MOVE, Event.DIVIDE, Event.SPLIT, Event.MERGE)


def wrong_of(parts: tuple[Part, ...], wavering: bool) -> tuple[int, str]:
    """How many events are wrong, and those of some kinds as words."""
    features = parts[0].scene.matrix.features
    weights = untrained_model().aligned(features)
    if not wavering:
        weights = np.where([key.endswith(".wavering") for key in features.keys], 0.0, weights)
    wrong = list(score_parts(parts, lambda scene: scene.matrix.scores(weights)).wrong)
    kinds = np.concatenate([part.events.event for part in parts])[wrong]
    return len(wrong), " ".join(str(int((kinds == kind).sum())) for kind in SHOWN)


def said(part: Part, event: Event) -> tuple[int, int]:
    """How many true events of a kind wavering says something of, and how many there are."""
    columns = part.column[(part.events.event == event) & (part.column >= 0)]
    place = part.scene.matrix.features.keys.index(f"{event.key}.wavering")
    values = [part.scene.matrix.row(int(column))[place] for column in columns]
    return int((np.asarray(values) > 0).sum()), len(columns)


def lines_of(task: Task) -> list[str]:
    """Rows of a movie, one for each part."""
    lines = []
    for name, parts in (("first", (task.train,)), ("second", task.test)):
        counts = [wrong_of(parts, wavering) for wavering in (False, True)]
        shares = [np.sum([said(p, e) for p in parts], axis=0) for e in (Event.SPLIT, Event.DIVIDE)]
        lines.append(
            row(
                task.name,
                name,
                f"{sum(len(p.events) for p in parts):,}",
                *(f"{wrong} ({kinds})" for wrong, kinds in counts),
                *(f"{there} of {n}" if n else "" for there, n in shares),
            )
        )
    return lines


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    given = arguments(__doc__, 1, SETS)
    kinds = ", ".join(kind.key for kind in SHOWN)
    print(
        header("movie", "part", "events", f"wrong without ({kinds})", "with",
               "wrong cuts it speaks of", "divisions"),
        flush=True,
    )  # fmt: skip
    for name in given.sets:
        task = load_task(name, given.data)
        if task is not None:
            print("\n".join(lines_of(task)), flush=True)


if __name__ == "__main__":
    main()
