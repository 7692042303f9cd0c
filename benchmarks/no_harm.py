"""Whether learning does harm: wrong events after training, in all and as far as is vouched for.

    python benchmarks/no_harm.py [--seeds 4] [--wrong 0.05] [--whole 1] [--sets S ...]

A simulated annotator answers a session's questions about the first half of a movie; after 10, 20,
50 and 100 of them ``bridgetrack train`` learns, and the other half is scored, no answer honoured.
With ``--whole 1`` the questions are about the whole movie, as in the window, and all events are
scored that nobody was asked about. *Session* is what the session itself tracks with.

The bundled sample, with its true masks or with masks that the program found (chosen together with
their tracks, or frame by frame: *plain*), is answered as when the pictures of the documentation are
made: thirty questions, of which those without the right answer among the listed ones are passed
over, and then 14 moves and 6 events of every other kind that truly happened. The whole movie is
scored.

*All the way* are the learned weights where training keeps them (`training/reach.py` left out).
Means over seeds, with the standard error of the difference from untrained, and the worst seed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import bridgetrack as bt
from active_events import frames_of, prior_for
from bridgetrack.active.options import SessionOptions
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.simulated_annotator import SimulatedAnnotator, answer_by
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.truth import read_events
from bridgetrack.evaluation.match import match_detections
from bridgetrack.evaluation.true_events import true_events
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import Model
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.scene import annotate, prepare
from bridgetrack.progress import run
from bridgetrack.sample import sample_folder
from bridgetrack.segmentation.movie import SegmentedFrame
from bridgetrack.segmentation.settings import Choose
from bridgetrack.training.train import train_steps
from common import (
    DATA,
    SETS,
    Array,
    Task,
    header,
    load_movie,
    load_task,
    option,
    part_of,
    row,
    score,
    with_truth,
)

COUNTS = (10, 20, 50, 100)
SAMPLE: dict[str, Choose | None] = {
    "sample, true masks": None,
    "sample, masks found": "jointly",
    "sample, plain masks": "plain",
}
ASKED = 30
MOVES, OTHERS = 14, 6


@dataclass(frozen=True)
class Run:
    """Wrong events of one training."""

    start: int
    whole: int  # all the way
    now: int
    session: int  # with the weights of the session
    step: float


def sample_task(choose: Choose | None) -> Task:
    """The bundled sample, all of it to learn from and to score."""
    folder = sample_folder()
    image, truth = bt.open_movie(folder / "01"), bt.read_ctc(folder / "01_GT" / "TRA")
    labels = truth.labels
    if choose is not None:
        finding = run(Finding(choose=choose).taught(image))
        frames = [s for s in finding.steps(image) if isinstance(s, SegmentedFrame)]
        frames.sort(key=lambda each: each.frame)
        labels = bt.open_labels(np.stack([np.asarray(each.labels) for each in frames]))
    scene = run(prepare(labels, image))
    match = match_detections(scene.detections, labels, truth.tracks, truth.labels)
    events = read_events(true_events(scene.detections, truth.tracks, match), scene.detections)
    part = part_of(replace(scene, labels=None), events)
    return Task("sample", part, (part,))


def whole_task(name: str) -> Task | None:
    """A movie, all of it to learn from and to score."""
    if not (DATA / SETS[name].folder).is_dir():
        return None
    scene, events = load_movie(SETS[name])
    part = part_of(with_truth(scene, events), events)
    return Task(name, part, (part,))


def session_of(task: Task, seed: int, whole: bool, start: Model | None = None) -> ActiveSession:
    """A session that has its first questions."""
    options = SessionOptions()
    asking = replace(options.suggest, seed=seed, frames=None if whole else frames_of(task))
    # judging random answers anew takes time and changes no question
    options = replace(options, suggest=asking, rejudge_every=10_000)
    session = ActiveSession(task.train.scene, start or prior_for(task.name), options=options)
    session.adopt(run(session.update()))
    return session


def suggested(
    task: Task,
    seed: int,
    wrong: float = 0.0,
    whole: bool = False,
    start: Model | None = None,
    counts: Sequence[int] = COUNTS,
) -> Iterator[tuple[int, AnnotationSet, Array]]:
    """Number of questions, the answers, and the weights of the session."""
    cells = task.train.scene.detections
    annotator = SimulatedAnnotator(task.train.events, cells, wrong=wrong, seed=seed)
    session = session_of(task, seed, whole, start)
    for clicks in range(1, max(counts) + 1):
        question = session.next()
        if question is None:
            return
        answer_by(session, annotator, question)
        if session.wants_update:
            session.adopt(run(session.update()))
        if clicks in counts:
            yield clicks, session.annotations, session.model.aligned(session.scene.matrix.features)


def as_in_the_window(
    task: Task, seed: int, wrong: float
) -> Iterator[tuple[int, AnnotationSet, Array]]:
    """Answers to questions, and then some of every kind."""
    cells, events = task.train.scene.detections, task.train.events
    annotator = SimulatedAnnotator(events, cells, wrong=wrong, seed=seed)
    session = session_of(task, seed, True)
    for _ in range(ASKED):
        question = session.next()
        if question is None:
            break
        said = annotator.reply(question).event
        listed = {e.key for e in (question.event, *question.alternatives)}
        if said is None or said.key not in listed:
            session.cannot_tell(question)
        else:
            session.answer(question, said)
        if session.wants_update:
            session.adopt(run(session.update()))
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(np.flatnonzero(events.event == kind)) for kind in Event]
    drawn = [r[: MOVES if k == Event.MOVE else OTHERS] for k, r in zip(Event, rows, strict=True)]
    taken = {slot for a in session.annotations for e in a.events for slot in e.slots}
    more = []
    for k, ref in enumerate(event_refs(cells, events.take(np.concatenate(drawn)))):
        if not taken & set(ref.slots):
            taken |= set(ref.slots)
            more.append(Annotation(f"w{k}", Kind.CONFIRM, (ref,), source="click"))
    given = session.annotations.add(*more)
    weights = session.model.aligned(session.scene.matrix.features)
    yield 0, given, weights


def measured(task: Task, given: AnnotationSet, weights: Array, unasked: bool) -> Run:
    """Train, and count wrong events; where ``unasked``, of those that nobody spoke of."""
    scene, prior = annotate(task.train.scene, given), prior_for(task.name)
    features = scene.matrix.features
    training = run(train_steps(scene, prior))
    start, kept = prior.aligned(features), training.kept == "trained"
    said = {slot for a in given for e in a.events for slot in e.slots} if unasked else set()
    refs = event_refs(scene.detections, task.test[0].events)
    spoken = {k for k, ref in enumerate(refs) if said & set(ref.slots)}

    def wrong(w: Array) -> int:
        return len(set(score(task, w).wrong) - spoken)

    return Run(
        wrong(start),
        wrong(training.result.w if kept else start),
        wrong(training.model.aligned(features)),
        wrong(weights),
        training.step if kept else 0.0,
    )


def told(runs: list[Run], key: str) -> str:
    """Mean, standard error of the difference from untrained, and the worst seed."""
    values = np.array([getattr(each, key) for each in runs], dtype=float)
    more = values - [each.start for each in runs]
    error = more.std(ddof=1) / np.sqrt(len(more)) if len(more) > 1 else 0.0
    return f"{values.mean():.1f} ± {error:.1f} ({more.max():+.0f})"


def main() -> None:
    """Print a row for every number of answers about every movie."""
    warnings.simplefilter("ignore")
    seeds, wrong = int(option("--seeds", 4)), option("--wrong", 0.0)
    whole = bool(option("--whole", 0))
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else list(SAMPLE)
    columns = ("untrained", "all the way", "now", "session", "shortened", "start kept")
    print(header("movie", "answers", *columns))
    for name in names:
        if name in SAMPLE:
            task: Task | None = sample_task(SAMPLE[name])
        else:
            task = whole_task(name) if whole else load_task(name)
        if task is None:
            continue
        found: dict[str, list[Run]] = {}
        for seed in range(seeds):
            if name in SAMPLE:
                answers = as_in_the_window(task, seed, wrong)
            else:
                answers = suggested(task, seed, wrong, whole)
            for count, given, weights in answers:
                one = measured(task, given, weights, whole)
                found.setdefault(str(count) if count else "as in the window", []).append(one)
                print(f"{name}, seed {seed}, {count}: {one}", file=sys.stderr, flush=True)
        for count, runs in found.items():
            plain = np.mean([each.start for each in runs])
            short = sum(0 < each.step < 1 for each in runs)
            kept = sum(each.step == 0 for each in runs)
            figures = [told(runs, key) for key in ("whole", "now", "session")]
            tail = (f"{short} of {len(runs)}", f"{kept} of {len(runs)}")
            print(row(name, count, f"{plain:.1f}", *figures, *tail), flush=True)


if __name__ == "__main__":
    main()
