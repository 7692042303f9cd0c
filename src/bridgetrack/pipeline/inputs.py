"""The inputs of tracking and training, files or objects, and how they are opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridgetrack.annotations.anchor import Anchored
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import folder_of, load_annotations, load_mask_answers
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError, Note, NoteKind, WrongInputWarning, warn
from bridgetrack.features.default import with_link_scores
from bridgetrack.features.feature import FeatureSet, LinkScores, needs_link_scores
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.io.results import read_link_scores
from bridgetrack.io.tables import TABLES, read_detections_csv
from bridgetrack.models.library import find_model
from bridgetrack.models.model import Model, check_usable
from bridgetrack.movie.movie import Movie, looks_like_labels
from bridgetrack.movie.opening import open_labels, open_movie, scale_of, scaled_like
from bridgetrack.pipeline.finding import Finding, how_found
from bridgetrack.pipeline.memory import parse_memory
from bridgetrack.pipeline.project import load_project
from bridgetrack.pipeline.scene import Scene, prepare
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import track_steps
from bridgetrack.progress import Steps

PATHS = ("labels", "image", "model", "annotations", "project", "link_scores")
"""Fields of `RunInputs` that may be files."""
READING = ("axes", "scale", "unit", "frame_interval", "image_axes", "columns")
"""Fields of `RunOptions` that say how a movie is opened."""


@dataclass(frozen=True)
class RunOptions:
    """How a movie is opened and tracked, and what is written; the settings in ``run.json``.

    Raises
    ------
    InputError
        Where events that do not occur, the memory or the window cannot be meant.
    """

    # metadata that files may lack, see `open_movie`
    axes: str | None = None  # of the label movie
    scale: tuple[float, ...] | None = None
    unit: str | None = None
    frame_interval: float | None = None
    image_axes: str | None = None
    columns: dict[str, str] | None = None  # of a table, by role
    without: tuple[str, ...] = ()  # kinds of events that do not occur, see `EventKinds`
    memory: str | float | None = None  # limit
    window: int | None = None  # frames tracked at a time
    channel: int | str = 0  # of the image, by which cells are found and repaired
    repair: bool = False  # whether the labels are repaired first
    format: tuple[str, ...] = ("csv",)  # see `FORMATS`

    def __post_init__(self) -> None:
        object.__setattr__(self, "without", EventKinds.without(self.without).words)
        if self.memory is not None:
            parse_memory(self.memory)
        if self.window is not None and self.window < 2:
            raise InputError(f"window: frames are tracked two or more at a time, not {self.window}")

    @property
    def of_movie(self) -> dict[str, Any]:
        """Arguments about the movie, as `bridgetrack.track` and others take them."""
        return {name: getattr(self, name) for name in (*READING, "without")}

    @property
    def kinds(self) -> EventKinds:
        """Kinds of events that occur."""
        return EventKinds.without(self.without)

    def open_image(self, image: Path) -> Movie:
        """A movie that has no labels."""
        return open_movie(image, axes=self.image_axes or self.axes, **scale_of(self))


@dataclass(frozen=True)
class RunInputs:
    """The inputs of tracking or training, files or objects, and the options."""

    labels: Any  # None: they are found first, and are part of the result
    image: Any = None
    model: Model | Path | str | None = None  # None: the shipped one
    annotations: AnnotationSet | Path | str | None = None
    link_scores: LinkScores | Path | str | None = None  # that another program gave
    options: RunOptions = field(default_factory=RunOptions)
    project: Path | None = None  # holds the model and the answers
    command: str = "track"
    features: FeatureSet | None = None  # None: the built-in ones

    @classmethod
    def of_project(cls, path: Path) -> RunInputs:
        """The inputs of a project: its movie, and its model and answers in place of files."""
        path = folder_of(path) or path
        project = load_project(path)
        check_usable(project.model, f"{path}, model")
        options = RunOptions(without=project.settings.kinds.words, format=project.formats)
        image = None if project.image is None else project.image.path
        return cls(project.labels.path, image, options=options, project=path, command="run")

    @property
    def files(self) -> tuple[Path | None, ...]:
        """All files that are read."""
        given = (getattr(self, name) for name in PATHS)
        return tuple(path for path in given if isinstance(path, Path))

    def open(self) -> Opened:
        """Open the files, or the content of a project. Raises an `InputError` if one is bad."""
        model, answers = open_model(self.model), open_answers(self.annotations)
        if self.project is None:
            cells, image = open_cells(self.labels, self.image, self.options)
            found = how_found(self.labels) if isinstance(self.labels, Path) else None
            return Opened(self, cells, image, model, answers, found)
        project = load_project(self.project)
        cells, image = project.open()
        if isinstance(cells, Detections):
            image = None  # without masks there is nothing to measure it in
        model, answers = model or project.model, answers or project.history.annotations
        return Opened(self, cells, image, model, answers, project.found)


def open_cells(
    labels: Any, image: Any = None, options: RunOptions | None = None
) -> tuple[Movie | Detections, Movie | None]:
    """Open labels, or a table of detections, and the image, whose scale cells without one get.

    Raises an `InputError` where one of them cannot be read.
    """
    options = options or RunOptions()
    known = scale_of(options)
    pixels = None if image is None else open_movie(image, axes=options.image_axes, **known)
    if pixels is not None and looks_like_labels(pixels):
        warn(
            f"{pixels.source}: this image's pixels look like the numbers of cells, not like a "
            "picture; give the picture that the masks were made from, or no image",
            WrongInputWarning,
        )
    if is_table(labels):
        if pixels is not None and options.scale is None and pixels.geometry.unit != "pixel":
            known = scale_of(pixels.geometry)
        labels = read_detections_csv(labels, options.columns, **known)
    elif options.columns:
        raise InputError("columns are those of a table (.csv, .tsv, .txt), and this is none")
    if isinstance(labels, Detections):
        return labels if pixels is None else labels.within(pixels.geometry), pixels
    cells = open_labels(labels, axes=options.axes, **scale_of(options))
    if pixels is not None and options.unit is None:
        cells = scaled_like(cells, pixels)
    return cells, pixels


def repairable(cells: Movie | Detections, image: Movie | None) -> tuple[Movie, Movie]:
    """Labels and image of a movie for a repair; raises an `InputError` if one is missing."""
    if not isinstance(cells, Movie) or image is None:
        raise InputError(
            "repairing masks needs the image that they were made from: give a label movie, not a "
            "table, and the image (--image)"
        )
    return cells, image


def left_out(labels: Path, image: Path | None) -> list[Note]:
    """Notes about features that cannot be measured without masks or image."""
    if is_table(labels):
        words = "a table of detections: cells are taken as discs, without shape and intensity"
    elif image is None:
        words = "no image: features of intensity are left out"
    else:
        return []
    return [Note(NoteKind.REMARK, words)]


def is_table(labels: Any) -> bool:
    """Whether this is the path of a table of detections."""
    return isinstance(labels, Path | str) and Path(labels).suffix.lower() in TABLES


def open_answers(given: AnnotationSet | Path | str | None) -> AnnotationSet | None:
    """Answers about events, as given or from a file; empty if it has answers about masks only."""
    return load_annotations(given) if isinstance(given, Path | str) else given


def open_mask_answers(given: MaskAnswers | Path | str | None, movie: Movie) -> MaskAnswers | None:
    """Answers about masks, as given or from a file.

    Raises an `InputError` where the file cannot be read, is about another movie, or holds none.
    """
    if not isinstance(given, Path | str):
        return given
    found = load_mask_answers(given, movie.geometry)
    if not len(found):
        raise InputError(f"{given} holds no answers about masks; give the file that does")
    return found


def open_model(given: Model | Path | str | None) -> Model | None:
    """A model: as given, or from a file or the library."""
    return check_usable(find_model(given), given) if isinstance(given, Path | str) else given


@dataclass(frozen=True)
class Opened:
    """An opened movie with everything that tracking and training need."""

    given: RunInputs
    cells: Movie | Detections
    image: Movie | None
    model: Model | None = None  # None: the shipped one
    answers: AnnotationSet | None = None
    found: Finding | None = None  # how the cells were found, where that is known

    def tracked(self, client: Any = None) -> Steps[Tracking]:
        """The tracks; frames and windows are spread over a client, see `track_steps`."""
        (scores, features), how = self._scored(), self.given.options
        tracking = yield from track_steps(
            self.cells, self.image, self.model, self.answers, features,
            kinds=how.kinds, memory=how.memory, window=how.window, client=client,
        )  # fmt: skip
        self._check(tracking.scene, scores)
        return tracking

    def prepared(self) -> Steps[Scene]:
        """The movie ready for inference, see `prepare`."""
        scores, features = self._scored()
        kinds = self.given.options.kinds
        scene = yield from prepare(self.cells, self.image, self.answers, features, kinds)
        self._check(scene, scores)
        return scene

    def _scored(self) -> tuple[LinkScores | None, FeatureSet | None]:
        """The link scores, if some are given, and the features with them."""
        given, features, model = self.given.link_scores, self.given.features, self.model
        if given is None:
            if model is not None and needs_link_scores(model.keys):
                keys = ", ".join(k for k in model.keys if needs_link_scores([k]))
                warn(
                    f"the model {model.name!r} was trained with link scores of another program "
                    f"({keys}), but none are given: links are scored without them; give them to "
                    "bridgetrack track or suggest with --link-scores (in Python link_scores=)",
                    WrongInputWarning,
                )
            return None, features
        scores = read_link_scores(given) if isinstance(given, Path | str) else given
        return scores, with_link_scores(scores, features)

    def _check(self, scene: Scene, scores: LinkScores | None) -> None:
        """Check that link scores, and answers from a file, belong to the cells of this movie."""
        _check_link_scores(scores, scene)
        answers, labels = self.given.annotations, self.given.labels
        if labels is not None and isinstance(answers, Path | str):
            named = str(labels) if isinstance(labels, Path | str) else "this movie"
            _check_belonging(scene.anchored, named, answers)


def _check_link_scores(scores: LinkScores | None, scene: Scene) -> None:
    """Refuse scores if most of them match no cell, or frames count from 1; warn if some do not."""
    if scores is None or not len(scores):
        return
    missed = len(scores) - scores.matched(scene.detections)
    last = scene.detections.geometry.n_frames - 1
    # Links start before the last frame, so this one is named only if frames count from 1.
    from_one = missed and scores.frame.min() == 1 and scores.frame.max() == last
    said = f"{scores.name}: {missed} of {len(scores)} links name cells that do not exist; "
    if from_one or 2 * missed > len(scores):
        counted = "seem to be counted from 1; count them" if from_one else "are counted"
        named = "source and target must be labels"
        if scores.cells is not None:
            named = "positions must be those of the cells, in pixels"
        raise InputError(f"{said}frames {counted} from 0, and {named}")
    if missed:
        warn(f"{said}they are left out")


def _check_belonging(anchored: Anchored, labels: str, answers: Path | str) -> None:
    """Warn where most answers miss the cells; refuse them if all do, or the extents differ, too."""
    missed, given = len(anchored.lost), len(anchored.annotations)
    if not given or 2 * missed <= given:
        return
    first, extents = anchored.lost[0], ""
    theirs, ours = anchored.annotations.geometry, anchored.detections.geometry
    if (theirs.n_frames, theirs.shape) != (ours.n_frames, ours.shape):
        extents = f" (made on {theirs.extent}, this movie has {ours.extent})"
    many = "1 annotation points" if given == 1 else f"{given} annotations point"
    said = (
        f"{answers}: {missed} of {many} at places where {labels} has no such cell (e.g. "
        f"{first.cell}: {first.reason}); they probably belong to another movie or another "
        f"segmentation{extents}: give the annotations made on these labels, or the "
        "labels that these annotations were made on"
    )
    if missed == given or extents:
        raise InputError(said)
    warn(said, WrongInputWarning)
