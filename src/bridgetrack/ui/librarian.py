"""What training starts from, among it the models that were kept: the controller, without Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from psygnal import Signal

from bridgetrack.errors import BridgetrackError
from bridgetrack.models.choice import Ranked, most_suitable, rank
from bridgetrack.models.library import Entry, Library, Removed
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.models.statistics import FeatureStatistics
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.strategies import Strategy
from bridgetrack.ui.earlier_movies import training_with, without_others
from bridgetrack.ui.session import Session
from bridgetrack.ui.starts import MOVIES, PRESENT, SHIPPED, Start, key_of, list_starts
from bridgetrack.ui.survey import Survey, survey_steps
from bridgetrack.ui.trainer import Trainer

LOOK = "compare with kept models"
"""Name of the background work."""


class Librarian:
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

    def __init__(self, session: Session, trainer: Trainer, library: Library | None = None) -> None:
        self._session, self._trainer = session, trainer
        self._library = library
        self._ranked: tuple[Ranked, ...] = ()
        self._entries: tuple[Entry, ...] | None = None
        self._statistics: FeatureStatistics | None = None
        self._removed: list[Removed] = []
        self._picked = False
        self.chosen = SHIPPED
        self.suited = ""
        self.movies: tuple[Path, ...] = ()
        self.strategy: Strategy = "transfer"
        self.problem = ""
        session.source_changed.connect(self._on_movie)
        session.scene_changed.connect(self._on_scene)
        session.tracking_changed.connect(self._on_tracking)
        session.model_changed.connect(self._on_model)

    @property
    def library(self) -> Library:
        """The models that were kept."""
        return self._library if self._library is not None else Library()

    # ------------------------------------------------------------------ what there is

    @property
    def starts(self) -> tuple[Start, ...]:
        """Everything that training can start from."""
        return list_starts(self._session.model, self._session.start, self._ranked, self.movies)

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
    def kept(self) -> tuple[Entry, ...]:
        """The models of the library, as they were when last looked at."""
        return self._entries or ()

    @property
    def statistics(self) -> FeatureStatistics | None:
        """Of the movie; None where they are not known yet."""
        return self._statistics

    def refresh(self) -> None:
        """Look at the models and, where the cells are known, compare their movies with this."""
        session, library = self._session, self.library
        tracking, known = session.tracking, self._statistics

        session.run(
            LOOK, lambda: survey_steps(library, tracking, known), self._looked, self._failed
        )

    def _looked(self, found: Survey) -> None:
        self._entries, self._statistics = found.entries, found.statistics
        self._ranked = rank(self._entries, self._statistics)
        self._preselect()
        self.changed.emit()

    def _preselect(self) -> None:
        """Choose the most suitable model, unless somebody chose already or one is in use."""
        if self._picked and any(s.key == self.chosen for s in self.starts):
            return
        # a model that learned from the answers about this movie would learn from them twice
        answered = bool(self._session.annotations)
        others = [r for r in self._ranked if not (answered and r.same_movie)]
        best = None if self._statistics is None else most_suitable(others)
        trained = bool(self._session.model.loss)
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

    def _on_scene(self) -> None:
        self._statistics = None

    def _on_tracking(self) -> None:
        ready = self._session.tracking is not None and self._statistics is None
        if ready and self._entries != () and not self._session.busy(LOOK):
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
        self._session.message.emit("info", f"Using {what}.")

    def _model_of(self, start: Start) -> Model | None:
        """The model of a start; None where it is earlier movies, or cannot be read."""
        if start.key == PRESENT:
            return self._session.start
        if start.key == SHIPPED:
            scene = self._session.scene
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
            self._session.message.emit("info", f"Removed {name}; Undo brings it back.")

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
                self._session.message.emit("info", f"Wrote {path}.")

    def _at_once(self, act: Callable[[], object]) -> None:
        """Something quick with the library; what is wrong is told."""
        self.problem = ""
        try:
            act()
        except BridgetrackError as error:
            self._failed(error)
            return
        self.refresh()
