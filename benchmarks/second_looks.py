"""How well unexpected answers tell slips from surprises.

    python benchmarks/second_looks.py [--seeds 5] [--sets "HeLa, every 4th" ...]

Sixty suggestions are answered by a simulated annotator who is wrong in a tenth of them. Of answers
other than the proposal, it counts how many would be asked about once more
(`suggestion.unexpected`): of the slips that should be most, of the true answers few. Nothing is
asked again meanwhile.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

from active_events import SETS, frames_of
from bridgetrack.active.options import SessionOptions
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.simulated_annotator import SimulatedAnnotator
from bridgetrack.active.suggestion import unexpected
from bridgetrack.progress import run
from common import Task, arguments, header, load_task, row

CLICKS = 60
WRONG = 0.1


def count(task: Task, seed: int) -> list[tuple[bool, bool]]:
    """Of every answer other than the proposal: whether it was wrong, and whether unexpected."""
    annotator = SimulatedAnnotator(
        task.train.events, task.train.scene.detections, wrong=WRONG, seed=seed
    )
    options = SessionOptions(second_looks=False, rejudge_every=10_000)
    suggest = replace(options.suggest, seed=seed, frames=frames_of(task))
    session = ActiveSession(task.train.scene, options=replace(options, suggest=suggest))
    session.adopt(run(session.update()))
    found = []
    for _ in range(CLICKS):
        asked = session.next()
        if asked is None:
            break
        reply = annotator.reply(asked)
        if reply.event is None:
            session.cannot_tell(asked)
        else:
            if reply.event.key != asked.event.key:
                found.append((reply.wrong, unexpected(asked, reply.event)))
            session.answer(asked, reply.event)
        if session.wants_update:
            session.adopt(run(session.update()))
    return found


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    given = arguments(__doc__, 5, SETS)
    print(header("movie", "answers", "slips", "asked again", "true ones", "asked again"))
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        all_ = [pair for seed in range(given.seeds) for pair in count(task, seed)]
        slips = [again for wrong, again in all_ if wrong]
        true = [again for wrong, again in all_ if not wrong]
        answers = CLICKS * given.seeds
        print(row(name, answers, len(slips), sum(slips), len(true), sum(true)), flush=True)


if __name__ == "__main__":
    main()
