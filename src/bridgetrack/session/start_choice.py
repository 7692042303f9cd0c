"""What training can start from: the model in use, the shipped one, kept ones, earlier movies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from psygnal import Signal

from bridgetrack.errors import BridgetrackError
from bridgetrack.models.entry import ModelEntry
from bridgetrack.models.library import Library, Removed
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model, untrained_model
from bridgetrack.models.similarity import Ranked, most_suitable, rank
from bridgetrack.models.statistics import FeatureStatistics
from bridgetrack.pipeline.movie_record import statistics_of, statistics_steps
from bridgetrack.pipeline.project import is_project
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.tracked_movie import TrackedMovie
from bridgetrack.session.training import Trainer, sentence
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training
from bridgetrack.training.sources import Source, Strategy, open_source
from bridgetrack.training.train import strategy_steps

PRESENT, SHIPPED, MOVIES = "present", "shipped", "movies"
_LIBRARY = "library/"

LOOK = "compare with kept models"
"""Name of the background work."""

STRATEGIES: dict[Strategy, str] = {
    "transfer": "the movies may differ",
    "union": "the movies are alike",
}
"""How earlier movies are used, in plain words."""


@dataclass(frozen=True)
class Start:
    """One thing to start from.

    Parameters
    ----------
    key
        ``"present"``, ``"shipped"``, ``"movies"``, or that of a model of the library.
    title
        For the list.
    words
        What it is, and why it may or may not suit.
    usable
        Whether training can start from it.
    name
        In the library; empty for others.
    preview
        A picture, where there is one.
    """

    key: str
    title: str
    words: str
    usable: bool = True
    name: str = ""
    preview: Path | None = None


class StartChoice:
    """The library of models and the choice of a start; emits `changed`.

    Attributes
    ----------
    chosen
        Key of what training starts from.
    suited
        Name of the model that was chosen because its movies are very similar; else empty.
    movies
        Project files of earlier movies.
    strategy
        How these are used.
    problem
        What was wrong with the last intent, empty where nothing was.
    """

    changed = Signal()

    def __init__(
        self, movie: TrackedMovie, trainer: Trainer, library: Library | None = None
    ) -> None:
        self._movie, self._trainer = movie, trainer
        self._library = library
        self._ranked: tuple[Ranked, ...] = ()
        self._entries: tuple[ModelEntry, ...] | None = None
        self._statistics: FeatureStatistics | None = None
        self._removed: list[Removed] = []
        self._picked = False
        self.chosen = SHIPPED
        self.suited = ""
        self.movies: tuple[Path, ...] = ()
        self.strategy: Strategy = "transfer"
        self.problem = ""
        movie.movie_changed.connect(self._on_movie)
        movie.scene_changed.connect(self._forget_statistics)
        movie.tracking_changed.connect(self._on_tracking)
        movie.model_changed.connect(self._on_model)

    @property
    def library(self) -> Library:
        """The models that were kept."""
        return self._library if self._library is not None else Library()

    # ------------------------------------------------------------------ what there is

    @property
    def starts(self) -> tuple[Start, ...]:
        """Everything that training can start from."""
        return list_starts(self._movie.model, self._movie.start, self._ranked, self.movies)

    @property
    def start(self) -> Start:
        """What is chosen."""
        starts = self.starts
        return next((s for s in starts if s.key == self.chosen), starts[0])

    @property
    def can_undo(self) -> bool:
        """Whether a removed model can be brought back."""
        return bool(self._removed)

    @property
    def kept(self) -> tuple[ModelEntry, ...]:
        """The models of the library, as they were when last looked at."""
        return self._entries or ()

    @property
    def statistics(self) -> FeatureStatistics | None:
        """Of the movie; None where they are not known yet."""
        return self._statistics

    def refresh(self) -> None:
        """Look at the models and, where the cells are known, compare their movies with this."""
        library, tracking, known = self.library, self._movie.tracking, self._statistics
        self._movie.run(
            LOOK, lambda: survey_steps(library, tracking, known), self._looked, self._failed
        )

    def _looked(self, found: tuple[tuple[ModelEntry, ...], FeatureStatistics | None]) -> None:
        self._entries, self._statistics = found
        self._ranked = rank(self._entries, self._statistics)
        self._preselect()
        self.changed.emit()

    def _preselect(self) -> None:
        """Choose the most suitable model, unless somebody chose already or one is in use."""
        if self._picked and any(s.key == self.chosen for s in self.starts):
            return
        # a model that learned from the answers about this movie would learn from them twice
        answered = bool(self._movie.annotations)
        others = [r for r in self._ranked if not (answered and r.same_movie)]
        best = None if self._statistics is None else most_suitable(others)
        trained = self._movie.model.trained
        self.suited = "" if best is None or trained else best.entry.name
        self.chosen = key_of(self.suited) if self.suited else PRESENT if trained else SHIPPED

    def _failed(self, problem: object) -> None:
        self.problem = str(problem)
        self.changed.emit()

    # ------------------------------------------------------------------ what happens elsewhere

    def _on_movie(self) -> None:
        self._statistics, self._picked, self.problem = None, False, ""
        self._ranked = rank(self._entries or (), None)
        self._preselect()
        self.changed.emit()

    def _forget_statistics(self) -> None:
        self._statistics = None

    def _on_tracking(self) -> None:
        ready = self._movie.tracking is not None and self._statistics is None
        if ready and self._entries != () and not self._movie.busy(LOOK):
            self.refresh()

    def _on_model(self) -> None:
        self._preselect()
        self.changed.emit()

    # ------------------------------------------------------------------ intents

    def choose(self, key: str) -> None:
        """Start from something else."""
        self.chosen, self._picked, self.suited, self.problem = key, True, "", ""
        self.changed.emit()

    def add_movies(self, paths: Sequence[Path]) -> None:
        """Use the answers of earlier movies, by their project files."""
        new, problem = without_others([path for path in paths if path not in self.movies])
        self.movies += new
        self.choose(MOVIES)
        if problem:
            self._failed(problem)

    def forget_movies(self) -> None:
        """Use no earlier movies."""
        self.movies = ()
        self.choose(MOVIES)

    def use_strategy(self, strategy: Strategy) -> None:
        """Use earlier movies in another way."""
        self.strategy = strategy
        self.changed.emit()

    @property
    def ready(self) -> bool:
        """Whether training can begin as far as the start is concerned."""
        return self.start.usable

    @property
    def needs_answers(self) -> bool:
        """Whether training needs answers about this movie."""
        return self.chosen != MOVIES or not self.movies

    def train(self, options: TrainingOptions | None = None) -> None:
        """Begin training from what is chosen."""
        self.problem = ""
        start = self.start
        if not start.usable:
            self._failed(start.words)
        elif start.key == MOVIES:
            steps = training_with(self.movies, self.strategy, options)
            self._trainer.train(options, steps=steps)
        else:
            model = self._model_of(start)
            if model is not None:
                self._trainer.train(options, model)

    def use(self) -> None:
        """Track with the chosen model without training."""
        start = self.start
        model = self._model_of(start) if start.usable else None
        if model is None or start.key == PRESENT:
            return
        self._trainer.use(model)
        what = "the shipped model" if start.key == SHIPPED else f"the model {start.name}"
        self._movie.message.emit("info", f"Using {what}.")

    def _model_of(self, start: Start) -> Model | None:
        """The model of a start; None where it is earlier movies, or cannot be read."""
        if start.key == PRESENT:
            return self._movie.start
        if start.key == SHIPPED:
            scene = self._movie.scene
            return shipped_model(None if scene is None else scene.matrix.features)
        if start.key == MOVIES:
            return None
        return next((r.entry.model for r in self._ranked if r.entry.name == start.name), None)

    # ------------------------------------------------------------------ the library

    def remove(self) -> None:
        """Take the chosen model out of the library; `undo_remove` brings it back."""
        name = self.start.name
        if not name:
            return
        self._at_once(lambda: self._removed.append(self.library.remove(name)))
        if not self.problem:
            self._picked = False
            self._movie.message.emit("info", f"Removed {name}; Undo brings it back.")

    def undo_remove(self) -> None:
        """Bring the model back that was removed last."""
        if self._removed:
            removed = self._removed.pop()
            self._at_once(lambda: self.library.restore(removed))

    def export_file(self, path: Path) -> None:
        """Write the chosen model with what is known of it into a file, to share it."""
        name = self.start.name
        if name:
            self._at_once(lambda: self.library.export_file(name, path))
            if not self.problem:
                self._movie.message.emit("info", f"Wrote {path}.")

    def _at_once(self, act: Callable[[], object]) -> None:
        """Something quick with the library; what is wrong is told."""
        self.problem = ""
        try:
            act()
        except BridgetrackError as error:
            self._failed(error)
            return
        self.refresh()


# ---------------------------------------------------------------------- what there is


def key_of(name: str) -> str:
    """Key of a model of the library."""
    return f"{_LIBRARY}{name}"


def list_starts(
    model: Model, start: Model, ranked: tuple[Ranked, ...], movies: tuple[Path, ...]
) -> tuple[Start, ...]:
    """Everything that can be chosen, in the order of the list.

    `start` is what the model in use began with in this movie, `ranked` the models of the library.
    """
    starts = []
    if model.trained:
        words = "Training goes on from the model in use."
        if start is not model:
            where = "the shipped model" if start.name == SHIPPED else f"the model {start.name!r}"
            words = f"Training starts again from {where}, and learns from all your answers anew."
        starts.append(Start(PRESENT, f"the model in use ({model.name})", words))
    words = "Works on movies of many kinds without any answer; training adapts it to yours."
    starts.append(Start(SHIPPED, "the shipped model", words))
    starts += [_of_library(each) for each in ranked]
    starts.append(Start(MOVIES, "my earlier movies…", _movies_words(movies), bool(movies)))
    return tuple(starts)


def _of_library(ranked: Ranked) -> Start:
    entry, similarity = ranked.entry, ranked.similarity
    key = key_of(entry.name)
    if entry.damaged or entry.card is None:
        words = f"This model is damaged: {entry.problem}. Remove it, or put its files back."
        return Start(key, f"{entry.name} (damaged)", words, False, entry.name, entry.preview)
    card = entry.card
    said = [sentence(similarity.words)]
    if ranked.same_movie:
        said.append("It seems to have learned from this movie: those answers would count twice.")
    more = [d.words for d in similarity.differences[1:3] if d.words]
    if similarity.level in ("similar", "different") and more:
        said.append(f"Also, {' and '.join(more)}.")
    learned = sum(card.counts.values())
    facts = [
        f"kept on {card.created[:10]}" if card.created else "",
        f"{learned} answers" if learned else "",
        f"about {100 * card.accuracy[0]:.0f} % right" if card.accuracy else "",
    ]
    described = [f"“{card.description}”."] if card.description else []
    words = " ".join([*described, *said, sentence(", ".join(f for f in facts if f))]).strip()
    level = "" if similarity.level == "unknown" else f" – {similarity.level}"
    return Start(key, f"{entry.name}{level}", words, True, entry.name, entry.preview)


def _movies_words(movies: tuple[Path, ...]) -> str:
    if not movies:
        return (
            "Add project files of movies that you answered questions about earlier; their "
            "answers help here."
        )
    names = ", ".join(path.name for path in movies)
    return (
        f"Learns from the answers in {names} and from those of this movie. What is learned is "
        "checked with this movie's answers."
    )


def survey_steps(
    library: Library, tracking: Tracking | None, known: FeatureStatistics | None
) -> Steps[tuple[tuple[ModelEntry, ...], FeatureStatistics | None]]:
    """The kept models, and the movie's statistics where these can be compared with theirs."""
    yield Progress("Looking at the kept models", 0.0)
    entries = library.entries()
    comparable = any(e.card is not None and e.card.statistics for e in entries)
    if known is None and tracking is not None and comparable:
        known = yield from look_at(tracking)
    return entries, known


def look_at(tracking: Tracking) -> Steps[FeatureStatistics]:
    """Statistics of a movie, from its tracking where that is with the hand-set weights."""
    features = tracking.scene.matrix.features
    same = np.array_equal(tracking.model.aligned(features), untrained_model(features).weights)
    if same:
        return statistics_of(tracking.scene, tracking.solution.chosen)
    return (yield from statistics_steps(tracking.scene))


def without_others(paths: Sequence[Path]) -> tuple[tuple[Path, ...], str]:
    """The project files among some files, and what is wrong with the others (else empty)."""
    wrong = [path.name for path in paths if not is_project(path)]
    right = tuple(path for path in paths if path.name not in wrong)
    problem = (
        f"{', '.join(wrong)}: this is no project file. Save a project in the step Track "
        "of the earlier movie, and choose that file."
    )
    return right, problem if wrong else ""


def training_with(
    movies: tuple[Path, ...], strategy: Strategy, options: TrainingOptions | None
) -> Callable[[Scene], Steps[Training]]:
    """Training on a movie together with earlier ones."""

    def steps(scene: Scene) -> Steps[Training]:
        sources: list[Source] = []
        for path in movies:
            yield Progress(f"Opening {path.name}", 0.0)
            sources.append((yield from open_source(path)))
        return (yield from strategy_steps(strategy, scene, sources, None, options))

    return steps
