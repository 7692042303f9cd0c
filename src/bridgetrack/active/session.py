"""Active learning on one movie: questions, answers, updates of the model, and when to stop.

    session = ActiveSession(scene, model)
    learn = lambda: session.adopt(run(session.update()))
    learn()                                 # the first questions
    while (suggestion := session.next()) is not None:
        session.answer(suggestion)          # yes, that is right
        if session.wants_update:
            learn()                         # in a program with a window: in the background

Only `update` takes long. It works on a snapshot that is taken when it is called, touches nothing of
the session, and may run in another thread; `adopt` (on the thread that owns the session) takes
over its result. A question is open as long as no annotation settles it: what was answered meanwhile
is not asked again, and is once its answer is taken back.

000 uses a perceptron pass after each label because max-margin training was too slow to wait for.
Here the bounds and outputs found before are recycled and only annotated components are looked at,
which takes a fraction of a second. The objective is that of `training.train`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bridgetrack.active.accuracy import advice, estimate_so_far
from bridgetrack.active.suggester import believe_steps, n_doubtful, rank_steps
from bridgetrack.active.suggestion import Suggestion, SuggestOptions
from bridgetrack.annotations.annotation import (
    RANDOM,
    SUGGESTED,
    Annotation,
    EventRef,
    Kind,
    describe_event,
)
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.history import AnswerHistory
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.arrays import Array
from bridgetrack.errors import InputError, plural, sentence
from bridgetrack.inference.problem import Solution
from bridgetrack.inference.solve import solve
from bridgetrack.learning import TrainingStep
from bridgetrack.models.model import Model, shipped_model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.pipeline.tracking import Tracking, known_solution
from bridgetrack.progress import Progress, Steps, begin
from bridgetrack.training.estimate import FEWEST, ErrorEstimate
from bridgetrack.training.fit import Learned, Objective, errors_of, learn
from bridgetrack.training.options import TrainingOptions, default_lambda
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import population_of
from bridgetrack.training.training_set import balanced, build_training_set

QUEUE = 12
"""Questions that are computed ahead."""

UPDATE_EVERY = 5
"""Answers after which an update is worth while."""

_PRECISION = 5e-3
"""Sufficient duality gap, in task loss per annotation."""

_MOST_CALLS, _MOST_CALLS_ANEW = 60, 300
"""Inferences over all annotated components at most, of a fit that goes on from the last update and
of one that begins at the starting weights."""


@dataclass(frozen=True)
class Update:
    """Result of `ActiveSession.update`, to be given to `ActiveSession.adopt`."""

    annotations: AnnotationSet  # what it learned from
    scene: Scene  # the movie with these annotations
    suggestions: tuple[Suggestion, ...]  # the next questions
    doubtful: int  # open events that may be less than 90 % certain
    errors: dict[str, float]  # on the answers that it learned from, by annotation id
    solution: Solution = field(repr=False)  # the tracking with the annotations honoured
    learned: Learned = field(repr=False)


def learn_answers(
    scene: Scene, prior: Model, population: Array | None, last: Learned | None = None
) -> Steps[Learned]:
    """Fit the annotations of a scene, staying close to the starting weights.

    `population` is how often each kind of event occurs in the movie, shape (len(Event),); None: as
    often as the starting weights find it. Bounds of the `last` update are used again.
    """
    yield Progress("Learning", 0.0)
    features = scene.matrix.features
    start, state = prior.aligned(features), None if last is None else last.state
    if not len(scene.constraints):
        return Learned(start, 0.0, None, None)
    data = build_training_set(scene)
    if population is None:
        chosen = solve(scene.problem, scene.matrix.scores(start)).chosen
        population = population_of(scene, chosen)
    model = TrackingModel(balanced(data, population))
    most = _MOST_CALLS_ANEW if state is None else _MOST_CALLS
    metric, lambda_ = prior.tightness_for(features), default_lambda(data.n_annotations)
    options = TrainingOptions(precision=_PRECISION, max_inferences=most)
    objective = Objective(model, (), start, metric, lambda_, options=options)

    def told(step: TrainingStep) -> Progress:
        return Progress("Learning", min(step.n_inferences / most, 1.0))

    return (yield from learn(objective, scene, told, state))


def errors_on_answers(scene: Scene, learned: Learned) -> dict[str, float]:
    """Errors of weights on the answers that they were learned from, 0 to 1, by annotation id."""
    if learned.objective is None or learned.objective.target is None:
        return {}
    errors = errors_of(learned.objective.target, learned.weights)
    return dict(zip(scene.constraints.ids, errors.tolist(), strict=True))


class ActiveSession:
    """State of active learning on one movie: questions, answers, and what comes next.

    It stays close to the model that it starts from, the shipped one if None. Answers are kept in
    the store of the window or, if None, in memory, beginning with the scene's annotations; answers
    given in other ways are learned from too.
    """

    def __init__(
        self,
        scene: Scene,
        prior: Model | None = None,
        answers: AutosavingStore | None = None,
        options: SuggestOptions | None = None,
    ) -> None:
        self.options = options or SuggestOptions()
        self.prior = prior or shipped_model(scene.matrix.features)
        self.scene = scene  # with the annotations of the last update
        annotations = scene.anchored.annotations
        self.answers = answers or AutosavingStore(
            None, annotations.geometry, AnswerHistory(annotations)
        )
        self.queue: tuple[Suggestion, ...] = ()  # questions computed ahead, the best first
        self._answered: tuple[Suggestion, ...] = ()  # questions that were answered, the latest last
        self.last: Update | None = None  # what was adopted last
        self.curve: dict[int, ErrorEstimate] = {}  # estimates, by the questions answered till then

    # ------------------------------------------------------------------ questions and answers

    @property
    def annotations(self) -> AnnotationSet:
        """All annotations that hold now."""
        return self.answers.annotations

    @property
    def counted(self) -> tuple[Annotation, ...]:
        """The annotations that are answers to questions."""
        return tuple(a for a in self.annotations if a.source in (RANDOM, SUGGESTED))

    @property
    def open(self) -> list[Suggestion]:
        """Precomputed questions that are not settled, in their order."""
        return [s for s in self.queue if self.settled_by(s) is None]

    def next(self) -> Suggestion | None:
        """The next question; None if an `update` must find more.

        A random one comes first if it is due because answers arrived during an update.
        """
        left, counted = self.open, self.counted
        due = int((len(counted) + 1) * self.options.random_share + 1e-9)
        if sum(a.source == RANDOM for a in counted) < due:
            left.sort(key=lambda s: not s.random)
        return left[0] if left else None

    def settled_by(self, asked: Suggestion) -> Annotation | None:
        """The annotation that answers a question; None if it is open.

        A rejection answers only the question about the very event that it rejects.
        """
        slots = set(asked.event.slots)
        for cell in dict.fromkeys(c.cell for c in asked.cells):
            for a in self.annotations.at(*cell):
                if a.kind == Kind.REJECT:
                    if any(e.key == asked.event.key for e in a.events):
                        return a
                elif any(slots.intersection(e.slots) for e in a.events):
                    return a
        return None

    def remember(self, asked: Suggestion) -> None:
        """Ask a settled question again if its answer is undone."""
        self._answered = (*_without(self._answered, asked), asked)

    def reopened(self) -> Suggestion | None:
        """The first of the latest questions whose answers are gone, which come first then."""
        back = None
        while self._answered and self.settled_by(self._answered[-1]) is None:
            *others, back = self._answered
            self._answered = tuple(others)
            self.queue = (back, *_without(self.queue, back))
        return back

    def postpone(self, asked: Suggestion) -> None:
        """Put a question behind the others."""
        self.queue = (*_without(self.queue, asked), asked)

    def answer(
        self,
        suggestion: Suggestion,
        event: EventRef | None = None,
        kind: Kind = Kind.CONFIRM,
        *,
        seconds: float | None = None,
    ) -> Annotation:
        """Record the answer to a question, in place of a no to it just before.

        `event` is what happens instead, with all its cells; None: the answer is about the proposal.
        By `kind` it holds, does not hold (without saying what does), or cannot be told, which
        labels nothing and is not asked again. Raises an `InputError` if the event does not fit the
        movie, or says nothing of what is asked.
        """
        chosen = event or suggestion.event
        if suggestion.slot not in chosen.slots:
            what, (frame, label) = suggestion.slot
            asked = "becomes of" if what == "fate" else "comes before"
            raise InputError(
                f"{describe_event(chosen)}: the question is what {asked} cell {label} of frame "
                f"{frame}; give an event of that cell, or answer that you cannot tell"
            )
        said, past = self.settled_by(suggestion), self.answers.history.past
        if said is not None and said.kind == Kind.REJECT and past and past[-1].added == (said,):
            self.answers.undo()
        holds = kind == Kind.CONFIRM and chosen.key == suggestion.event.key
        right = None if kind == Kind.CANNOT_TELL else holds
        source = RANDOM if suggestion.random else SUGGESTED
        [noted], _ = self.answers.answer([(kind, chosen)], source, seconds, right)
        self.remember(suggestion)
        return noted

    # ------------------------------------------------------------------ updates

    @property
    def wants_update(self) -> bool:
        """Whether an update is due: none yet, enough changes, or few questions left."""
        if self.last is None:
            return True
        now, before = self.annotations, self.last.annotations
        changes = sum(a.id not in before for a in now) + sum(a.id not in now for a in before)
        return changes >= UPDATE_EVERY or (changes > 0 and len(self.open) < 2)

    @property
    def exhausted(self) -> bool:
        """Whether an update found nothing to ask, and nothing was answered since."""
        last = self.last
        return last is not None and last.annotations == self.annotations and not self.open

    def begin_anew(self, scene: Scene, prior: Model) -> None:
        """Start from another model; a running update must not be adopted afterwards."""
        self.scene, self.prior, self.last, self.queue = scene, prior, None, ()

    def update(self, tracking: Tracking | None = None) -> Steps[Update]:
        """Learn from all answers so far and find the next questions.

        ``tracking`` is the movie as it is tracked now: where it was tracked with the very weights
        that are learned, it is not tracked again. The session is read when this is called, not
        while the generator runs: it may be driven by another thread, closed at any time to cancel,
        and its result goes to `adopt`.
        """
        scene, answers, options = self.scene, self.annotations, self.options
        last, prior, n = self.last, self.prior, len(self.counted)

        def steps() -> Steps[Update]:
            yield begin("Collecting answers")
            now = annotate(scene, answers)
            population, earlier = None, None
            if last is not None:
                population = population_of(last.scene, last.solution.chosen)
                earlier = last.learned
            learned = yield from learn_answers(now, prior, population, earlier)
            known = known_solution(tracking, now, learned.weights)
            beliefs = yield from believe_steps(now, learned.weights, known)
            asked = yield from rank_steps(now, beliefs, QUEUE, options, n)
            return Update(
                annotations=answers,
                scene=now,
                suggestions=tuple(asked),
                doubtful=n_doubtful(now, beliefs),
                errors=errors_on_answers(now, learned),
                solution=beliefs.solution,
                learned=learned,
            )

        return steps()

    def adopt(self, update: Update) -> None:
        """Take over an update."""
        self.last, self.scene, self.queue = update, update.scene, update.suggestions
        now, estimate = len(self.counted), self.estimate()
        self.curve = {n: known for n, known in self.curve.items() if n < now}  # others are undone
        if estimate is not None and estimate.says_something:
            self.curve[now] = estimate

    # ------------------------------------------------------------------ how good, how long

    def estimate(self) -> ErrorEstimate | None:
        """Share of right events in the tracking as it is now, with its 95 % interval.

        From answers to random questions only; None while there are none.
        """
        seen = {} if self.last is None else self.last.errors
        return estimate_so_far(self.scene, self.annotations, seen, self.options.seed)

    @property
    def report(self) -> str:
        """Progress, accuracy of the tracking, and whether to go on, in words."""
        counted, estimate = self.counted, self.estimate()
        if not counted:
            return ""
        words = [f"{plural(len(counted), 'question')} answered."]
        if self.last is not None and self.last.doubtful:
            words.append(f"Events less than 90 % certain: at most {self.last.doubtful:,}.")
        elif self.last is not None:
            words.append("Every event is at least 90 % certain.")
        if estimate is not None and estimate.says_something:
            words.append(sentence(estimate.words))
        else:
            few = plural(0 if estimate is None else estimate.n_annotations, "random question")
            least = f"at least {FEWEST} are needed to say how accurate it is"
            words.append(f"{few} so far: {least}.")
        return " ".join([*words, sentence(advice(counted, estimate))])


def _without(questions: tuple[Suggestion, ...], asked: Suggestion) -> tuple[Suggestion, ...]:
    """The others about other slots."""
    return tuple(s for s in questions if s.slot != asked.slot)
