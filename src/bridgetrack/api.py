"""The main functions of the package: arrays, movies or paths in; tracks, a model or masks out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.features.feature import FeatureSet, LinkScores
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels, open_movie, scale_of
from bridgetrack.pipeline.finding import CellSearch, Finding, usual_choice
from bridgetrack.pipeline.inputs import (
    READING,
    RunInputs,
    RunOptions,
    open_answers,
    open_cells,
    open_mask_answers,
    open_model,
    repairable,
)
from bridgetrack.pipeline.mask_changes import MaskChange
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.pipeline.tracking import Tracking, track_scene
from bridgetrack.progress import Progress, run
from bridgetrack.segmentation.settings import Choose, SegmentationSettings
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.sources import Source, Strategy, open_source
from bridgetrack.training.train import Training, train_steps

Report = Callable[[Progress], object]


@dataclass(frozen=True)
class TrainedModel(Model):
    """A model with the outcome of its training.

    Parameters
    ----------
    training
        The estimated accuracy, unusual annotations and more.
    """

    training: Training | None = field(default=None, compare=False, repr=False)


def track(
    labels: Any,
    image: Any = None,
    model: Model | Path | str | None = None,
    annotations: AnnotationSet | Path | str | None = None,
    features: FeatureSet | None = None,
    *,
    without: Sequence[str] = (),
    memory: str | float | None = None,
    window: int | None = None,
    client: Any = None,
    link_scores: LinkScores | Path | str | None = None,
    progress: Report | None = None,
    **reading: Any,
) -> Tracking:
    """Track the cells of a movie.

    Parameters
    ----------
    labels
        Label movie: an array of shape (T, [Z,] Y, X) (numpy, dask), a path (see `open_labels`) or
        an opened movie. Or a table of detections: `Detections`, or the path of a CSV file. Or a
        `Tracking` or a `Scene`, whose movie is tracked again.
    image
        Intensities of the same movie, in any of these forms; optional.
    model
        Weights: a model, its file, or its name in the library; the shipped ones if None.
    annotations
        Events that must or must not hold, or a file of them; optional.
    features
        The features; the built-in ones if None.
    without
        Kinds of events that do not occur in the movie, such as ``"merges"`` or ``"gaps"``; see
        `EventKinds`.
    memory
        Memory limit, such as ``"4GB"`` or a number of bytes; by default the free memory of the
        computer. A movie that needs more is tracked in windows of frames.
    window
        Number of frames in a window; by default as many as fit into the memory.
    client
        A dask client (``distributed.Client``) or other executor that runs the work; this does
        not change the result.
    link_scores
        Scores, 0 to 1, that another program gave to links: `LinkScores`, or a file of them (see
        `read_link_scores`). They are used with the weights that the model has learned for them,
        or as probabilities.
    progress
        Called with every step, for example ``print``.
    **reading
        ``scale``, ``unit``, ``frame_interval``, ``axes`` and ``image_axes``, if the files do
        not contain them, see `open_movie`; ``columns`` of a table, see `read_detections_csv`.

    Returns
    -------
    Tracking
        With ``graph``, ``tables`` and ``save``.

    Raises
    ------
    BridgetrackError
        If the input cannot be used; the message says why and what to do.
    """
    weights = open_model(model)
    more = image, features, without, memory, window, client, link_scores, reading
    known = _known_scene(labels, annotations, more)
    if known is not None:
        return run(track_scene(known, weights), progress)
    how = RunOptions(
        **_named(track, reading), without=tuple(_listed(without)), memory=memory, window=window
    )
    given = RunInputs(labels, image, weights, annotations, link_scores, how, features=features)
    return run(given.open().tracked(client), progress)


def train(
    labels: Any,
    image: Any = None,
    clicks: AnnotationSet | Path | str | None = None,
    sources: Sequence[Source | Tracking | Path | str] = (),
    *,
    start: Model | Path | str | None = None,
    link_scores: LinkScores | Path | str | None = None,
    strategy: Strategy | None = None,
    options: TrainingOptions | None = None,
    without: Sequence[str] = (),
    progress: Report | None = None,
    **reading: Any,
) -> TrainedModel:
    """Learn from annotations how the cells of a movie behave.

    Parameters
    ----------
    labels, image
        The movie, see `track`. Or, without an image, a `Tracking` or a `Scene`.
    clicks
        Annotations of this movie, or a file of them; by default those of the `Tracking` or
        `Scene`.
    sources
        Earlier data: models (also files, and names in the library), or annotated movies
        (`Tracking`, `Scene`, projects).
    start
        Weights to start from and to stay close to; the shipped ones if None.
    link_scores
        Scores that another program gave to links of this movie, see `track`; their weight is
        learned. Not possible with sources that are movies.
    strategy
        How to use the sources; by default ``"transfer"`` for movies and ``"prior"`` for a model.
        See `bridgetrack.training.train`.
    options
        Choices; the defaults suit most cases.
    without
        Kinds of events that do not occur in the movie; a `Tracking` or a `Scene` knows its own.
    progress
        Called with every step, for example ``print``.
    **reading
        See `track`.

    Returns
    -------
    TrainedModel
        ``model.training`` has its estimated accuracy.

    Raises
    ------
    BridgetrackError
        If there is nothing to learn from, or the input cannot be used.
    """
    sources = _listed(sources)
    found = [run(open_source(s), progress) if isinstance(s, Path | str) else s for s in sources]
    opened = [s.scene if isinstance(s, Tracking) else s for s in found]
    scene = _known_scene(labels, clicks, (image, without, link_scores, reading))
    if scene is None:
        how = RunOptions(**_named(train, reading), without=tuple(_listed(without)))
        given = RunInputs(labels, image, start, clicks, link_scores, how)
        scene = run(given.open().prepared(), progress)
    if strategy is None:
        movies = any(isinstance(s, Scene) for s in opened)
        strategy = "transfer" if movies else "prior" if opened else "target"
    steps = train_steps(scene, open_model(start), options, strategy=strategy, sources=opened)
    training = run(steps, progress)
    learned = {f.name: getattr(training.model, f.name) for f in fields(Model)}
    return TrainedModel(**learned, training=training)


def _known_scene(
    given: Any, answers: AnnotationSet | Path | str | None, more: Sequence[Any]
) -> Scene | None:
    """The scene of a movie that was tracked or prepared, with `answers`; None for other movies."""
    scene = given.scene if isinstance(given, Tracking) else given
    if not isinstance(scene, Scene):
        return None
    left_open = [v is None or (isinstance(v, list | tuple | dict) and not v) for v in more]
    if not all(left_open):
        raise InputError(
            "a tracked or prepared movie already has its image, kinds of events and link scores; "
            "to change them, give labels instead"
        )
    said = open_answers(answers)
    return scene if said is None else annotate(scene, said)


def _named(
    function: Callable[..., Any], given: dict[str, Any], ways: Sequence[str] = READING
) -> dict[str, Any]:
    """Options for opening a movie; refuses names that neither these nor `function` have."""
    for name in given:
        if name not in ways:
            near = get_close_matches(name, {*signature(function).parameters, *ways}, 1)
            cure = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function.__name__}() has no argument {name!r}{cure}")
    return given


def _listed(given: Any) -> Any:
    """Several files, also where only one was given."""
    return [given] if isinstance(given, Path | str) else given


# ---------------------------------------------------------------------- masks


@dataclass(frozen=True)
class Masks:
    """Masks of a movie, and how they were found.

    Parameters
    ----------
    labels
        A number for every cell in every frame, as a label movie in memory; `track` and
        `save_labels` take it.
    finding
        How they were found, with the settings that suited the movie.
    channel
        Number or name of the channel that showed the cells.
    changes
        Changes made by a repair (cells cut, joined, added, dropped or outlined again), by frame.
    """

    labels: Movie
    finding: Finding
    channel: int | str = 0
    changes: tuple[MaskChange, ...] = ()

    @property
    def words(self) -> str:
        """How they were found, as a sentence."""
        return self.finding.sentence


def find_cells(
    image: Any,
    settings: SegmentationSettings | None = None,
    *,
    choose: Choose | None = None,
    answers: MaskAnswers | Path | str | None = None,
    labels: Sequence[Any] = (),
    backend: str = "builtin",
    network: str | None = None,
    model: Model | Path | str | None = None,
    channel: int | str = 0,
    client: Any = None,
    progress: Report | None = None,
    **reading: Any,
) -> Masks:
    """Find the cells of a movie, as ``bridgetrack segment`` does.

    Where one segmentation of a frame would join two cells and another would cut one in two, both
    are candidates. Masks are chosen together with their tracks so that they explain the whole
    movie best.

    Parameters
    ----------
    image
        The movie: an array of shape (T, [Z,] Y, X) (numpy, dask), a path (see `open_movie`) or an
        opened movie.
    settings
        What cells look like; settings that are not given are estimated from the movie.
    choose
        ``"jointly"``: among candidates, together with their tracks; ``"plain"``: a single
        segmentation of each frame, five to nine times as fast. By default ``"jointly"``, but
        ``"plain"`` for the cells of a network.
    answers
        Annotations of masks, or a file of them: the masks agree with them, and the score of a
        cell is learned from them.
    labels
        Label movies from other programs, see `open_labels`; their cells become candidates. Cells
        chosen from the first one keep their numbers.
    backend, network
        ``"cellpose"`` where installed, and the name of its network.
    model
        Weights of events: a model, its file, or its name in the library; the shipped ones where
        None.
    channel
        Number or name of the channel that shows the cells.
    client
        A dask client or other executor that runs the work.
    progress
        Called with every step, for example ``print``.
    **reading
        ``scale``, ``unit``, ``frame_interval`` and ``axes``, if the file does not contain them.

    Returns
    -------
    Masks
        Labels are unique within a frame; the same cell may have other labels in other frames.

    Raises
    ------
    BridgetrackError
        If the input cannot be used; the message says why and what to do.
    """
    movie = open_movie(image, **_named(find_cells, reading, READING[:4]))
    beside = tuple(map(open_labels, _listed(labels)))
    how = Finding(settings, choose or usual_choice(backend), backend, network, beside=beside)
    said, weights = open_mask_answers(answers, movie), open_model(model)
    search = CellSearch(movie, how, said, weights, channel, client)
    return _masks(run(search.in_memory(), progress), search)


def repair(
    labels: Any,
    image: Any,
    *,
    answers: MaskAnswers | Path | str | None = None,
    model: Model | Path | str | None = None,
    channel: int | str = 0,
    client: Any = None,
    progress: Report | None = None,
    **reading: Any,
) -> Masks:
    """Repair masks of a movie by its image, as ``bridgetrack track --repair`` does.

    Cells are cut, joined, added and dropped where the image and the neighbouring frames show that
    this is needed; all others keep their masks and numbers.

    Parameters
    ----------
    labels, image
        The masks and what they were made from, see `track`.
    answers, model, channel, client, progress
        See `find_cells`.
    **reading
        See `track`.

    Returns
    -------
    Masks
        With what was changed.

    Raises
    ------
    BridgetrackError
        If the input cannot be used; the message says why and what to do.
    """
    options = RunOptions(**_named(repair, reading))
    cells, movie = repairable(*open_cells(labels, image, options))
    said = open_mask_answers(answers, movie)
    how, weights = Finding(given=cells), open_model(model)
    search = CellSearch(movie, how, said, weights, channel, client)
    return _masks(run(search.in_memory(), progress), search)


def _masks(labels: Any, search: CellSearch) -> Masks:
    finding = search.finding
    scale = scale_of((finding.given or search.movie).geometry)
    masks = open_labels(labels, **scale)
    return Masks(masks, finding, search.channel, tuple(search.changes))
