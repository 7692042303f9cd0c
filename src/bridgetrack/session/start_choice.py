"""What training can start from: the model in use, the shipped one, kept ones, earlier movies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from psygnal import Signal

from bridgetrack.errors import BridgetrackError
from bridgetrack.models.library import SHIPPED, Library
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.project import is_project
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.tracked_movie import TrackedMovie
from bridgetrack.session.training import Trainer
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training
from bridgetrack.training.sources import Source, Strategy, open_source
from bridgetrack.training.train import strategy_steps

PRESENT, MOVIES = "present", "movies"
"""Keys of the model in use and of earlier movies; `SHIPPED` is that of the shipped model."""
_LIBRARY = "library/"

STRATEGIES: dict[Strategy, str] = {
    "transfer": "the movies may differ",
    "union": "the movies are alike",
}
"""How earlier movies are used, in plain words."""


@dataclass(frozen=True)
class Start:
    """One thing to start from: its key, a title for the list, and what it is in words."""

    key: str
    title: str
    words: str


class StartChoice:
    """The choice of what training starts from; emits `changed`.

    Attributes
    ----------
    names
        Of the models in the library, as they were when last looked at.
    chosen
        Key of what training starts from.
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
        self._picked = False
        self.names: tuple[str, ...] = ()
        self.chosen = SHIPPED
        self.movies: tuple[Path, ...] = ()
        self.strategy: Strategy = "transfer"
        self.problem = ""
        movie.movie_changed.connect(self._on_movie)
        movie.model_changed.connect(self._on_model)

    @property
    def library(self) -> Library:
        """The models that were kept."""
        return self._library if self._library is not None else Library()

    # ------------------------------------------------------------------ what there is

    @property
    def starts(self) -> tuple[Start, ...]:
        """Everything that training can start from, in the order of the list."""
        model, start, starts = self._movie.model, self._movie.start, []
        if model.trained:
            words = "Training goes on from the model in use."
            if start is not model:
                where = "the shipped model" if start.name == SHIPPED else f"the model {start.name}"
                words = f"Training starts again from {where}, and learns from all your answers."
            starts.append(Start(PRESENT, f"the model in use ({model.name})", words))
        words = "Works on movies of many kinds without any answer; training adapts it to yours."
        starts.append(Start(SHIPPED, "the shipped model", words))
        words = f"A model in the folder {self.library.folder}."
        starts += [Start(key_of(name), name, words) for name in self.names]
        starts.append(Start(MOVIES, "my earlier movies…", _movies_words(self.movies)))
        return tuple(starts)

    @property
    def start(self) -> Start:
        """What is chosen."""
        starts = self.starts
        return next((s for s in starts if s.key == self.chosen), starts[0])

    def refresh(self) -> None:
        """Look which models there are."""
        try:
            self.names = self.library.names()
        except BridgetrackError as error:
            self._failed(error)
        self._on_model()

    def _failed(self, problem: object) -> None:
        self.problem = str(problem)
        self.changed.emit()

    def _on_movie(self) -> None:
        self._picked, self.problem = False, ""
        self._on_model()

    def _on_model(self) -> None:
        """Go on with the model in use, unless somebody chose something else."""
        if not (self._picked and any(s.key == self.chosen for s in self.starts)):
            self.chosen = PRESENT if self._movie.model.trained else SHIPPED
        self.changed.emit()

    # ------------------------------------------------------------------ intents

    def choose(self, key: str) -> None:
        """Start from something else."""
        self.chosen, self._picked, self.problem = key, True, ""
        self.changed.emit()

    def add_movies(self, paths: Sequence[Path]) -> None:
        """Use the answers of earlier movies, by their project files."""
        wrong = [path.name for path in paths if not is_project(path)]
        self.movies += tuple(p for p in paths if p.name not in wrong and p not in self.movies)
        self.choose(MOVIES)
        if wrong:
            self._failed(
                f"{', '.join(wrong)}: this is no project file. Save a project in the step Track "
                "of the earlier movie, and choose that file."
            )

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
        return self.chosen != MOVIES or bool(self.movies)

    @property
    def needs_answers(self) -> bool:
        """Whether training needs answers about this movie."""
        return self.chosen != MOVIES or not self.movies

    def train(self, options: TrainingOptions | None = None) -> None:
        """Begin training from what is chosen."""
        self.problem = ""
        if not self.ready:
            self._failed(self.start.words)
        elif self.chosen == MOVIES:
            steps = training_with(self.movies, self.strategy, options)
            self._trainer.train(options, steps=steps)
        else:
            model = self._model()
            if model is not None:
                self._trainer.train(options, model)

    def use(self) -> None:
        """Track with the chosen model without training."""
        model = None if self.chosen in (PRESENT, MOVIES) else self._model()
        if model is not None:
            self._trainer.use(model)
            self._movie.message.emit("info", f"Using {self.start.title}.")

    def _model(self) -> Model | None:
        """The chosen model; None where it cannot be read, which is told."""
        if self.chosen == PRESENT:
            return self._movie.start
        if self.chosen == SHIPPED:
            scene = self._movie.scene
            return shipped_model(None if scene is None else scene.matrix.features)
        try:
            return self.library.load(self.chosen.removeprefix(_LIBRARY))
        except BridgetrackError as error:
            self._failed(error)
            return None


def key_of(name: str) -> str:
    """Key of a model of the library."""
    return f"{_LIBRARY}{name}"


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
