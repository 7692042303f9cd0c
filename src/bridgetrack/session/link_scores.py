"""Scores that another program gave to links: taken for the open movie, as one more feature."""

from __future__ import annotations

from pathlib import Path

from psygnal import Signal

from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.features.feature import needs_link_scores
from bridgetrack.features.link_scores import LinkScores, with_link_scores
from bridgetrack.importing.link_scores import read_link_scores
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.tracked_movie import TrackedMovie

JOB = "link scores"
"""Name of the background work: reading scores."""

_ZARR = ("zarr.json", ".zgroup", ".zattrs", ".zarray")


class GivenLinkScores:
    """Reads scores of links and has the movie tracked with them; emits `changed`.

    Attributes
    ----------
    path
        Where they are, also where they could not be read; None where none are given.
    problem
        What was wrong with the last ones, empty where nothing was.
    """

    changed = Signal()

    def __init__(self, movie: TrackedMovie) -> None:
        self._movie = movie
        self.path: Path | None = None
        self.problem = ""
        self._scores: LinkScores | None = None
        self._used: Path | None = None  # where those in use are
        movie.movie_changed.connect(self._on_movie)
        movie.scene_changed.connect(self._on_scene)
        movie.model_changed.connect(self.changed.emit)

    @property
    def words(self) -> str:
        """How many are in use, or that the model misses them, as a sentence."""
        movie, scores = self._movie, self._scores
        if movie.busy(JOB):
            return "Reading the scores."
        if scores is not None and movie.scene is not None and movie.partial is None:
            found = scores.matched(movie.scene.detections)
            return f"{found:,} of {len(scores):,} scored links join cells of this movie."
        if scores is None and needs_link_scores(movie.model.keys):
            return (
                "The model in use learned from such scores, and none are given for this movie: "
                "links are scored without."
            )
        return ""

    def use(self, path: Path) -> None:
        """Read scores in the background and track with them."""
        path = path.parent if path.name in _ZARR else path
        if self._movie.movie is None:
            self._failed(InputError("there is no movie to use scores for; choose one first"))
            return
        self.path, self.problem = path, ""

        def work() -> Steps[LinkScores]:
            yield Progress("Reading scores of links", 0.0)
            return read_link_scores(path)

        self._movie.run(
            JOB,
            work,
            self._take,
            self._failed,
            unfinished=f"Reading {path.name} ended before it was done, as its movie or its cells "
            "are not open any more; the scores are not used.",
        )
        self.changed.emit()

    def drop(self) -> None:
        """Do without."""
        self._movie.cancel(JOB)
        self.path, self._used, self._scores, self.problem = None, None, None, ""
        self._movie.use_features(None)
        self.changed.emit()

    def _take(self, scores: LinkScores) -> None:
        self._scores, self._used = scores, self.path
        if self._fits(scores):
            self._movie.use_features(with_link_scores(scores))
            self.changed.emit()

    def _fits(self, scores: LinkScores) -> bool:
        """Whether they name cells of the movie, as far as those are known; told where not."""
        movie = self._movie
        if movie.scene is None or movie.partial is not None or not len(scores):
            return True
        if scores.matched(movie.scene.detections):
            return True
        self.drop()
        words = (
            f"{scores.name}: none of its {len(scores):,} links joins cells of this movie; frames "
            "count from 0, and source and target are the numbers of cells in the masks"
        )
        self._failed(InputError(words))
        movie.message.emit("error", words)
        return False

    def _failed(self, error: Exception) -> None:
        if self._scores is not None:
            self.path = self._used  # those stay in use
        self.problem = str(error) if isinstance(error, BridgetrackError) else ""
        self.changed.emit()

    def _on_movie(self) -> None:
        self.path, self._used, self._scores, self.problem = None, None, None, ""
        self.changed.emit()

    def _on_scene(self) -> None:
        if self._scores is None or self._fits(self._scores):
            self.changed.emit()
