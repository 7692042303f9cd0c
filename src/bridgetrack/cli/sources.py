"""What a command is given, and how it is opened: labels or a table, image, answers, weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bridgetrack.cli.console import show
from bridgetrack.cli.options import MovieOptions, parse_scale
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackWarning, InputError, ModelError
from bridgetrack.hypotheses.kinds import EVERYTHING, EventKinds
from bridgetrack.movie.movie import Movie
from bridgetrack.notes import Note, NoteKind

if TYPE_CHECKING:
    from bridgetrack.annotations.annotation_set import AnnotationSet
    from bridgetrack.annotations.mask_answers import MaskAnswers
    from bridgetrack.features.feature import FeatureSet
    from bridgetrack.features.link_scores import LinkScores
    from bridgetrack.models.model import Model
    from bridgetrack.pipeline.scene import Scene
    from bridgetrack.progress import Progress
    from bridgetrack.spread import Workers


FOUND_HERE = ("labels.tif", "labels.run.json", "labels.masks.csv")
"""Masks that were found on the way, how, and how sure each is, written beside the results."""


@dataclass(frozen=True)
class RunInputs:
    """What a tracking command was given."""

    labels: Path
    image: Path | None
    model: Path | None
    annotations: Path | None
    reading: MovieOptions = field(default_factory=MovieOptions)
    formats: tuple[str, ...] = ()
    project: Path | None = None  # holds the model and the answers
    command: str = "track"
    repair: bool = False  # the labels were mended first, see `cli.repair`
    outlines: bool = False  # cells that stayed were outlined anew as well
    channel: int | str = 0  # of the image, by which they were
    link_scores: Path | None = None  # scores of links that another program gave
    found_here: bool = False  # the labels were found on the way and stand among the results
    without: tuple[str, ...] = ()  # kinds of events that do not occur, see `EventKinds`

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """All files that are read."""
        labels = None if self.found_here else self.labels
        more = (self.project, self.link_scores)
        return (labels, self.image, self.model, self.annotations, *more)


def open_sources(
    labels: Path, image: Path | None, reading: MovieOptions, notes: list[Note]
) -> tuple[Movie | Detections, Movie | None]:
    """Open labels and image; what was left out or assumed is added to `notes`."""
    from bridgetrack.api import open_cells
    from bridgetrack.io.tables import TABLES

    table = labels.suffix.lower() in TABLES
    if table and image is not None:
        raise typer.BadParameter(
            "--image needs a label movie: a table of detections says nothing of pixels"
        )
    if table:
        words = "a table of detections: cells are taken for discs, without shape and intensity"
        notes.append(Note(NoteKind.REMARK, words))
    elif image is None:
        notes.append(Note(NoteKind.REMARK, "no image: features of intensity are left out"))
    with collecting_warnings(notes):
        how = {**asdict(reading), "scale": parse_scale(reading.scale)}
        return open_cells(labels, image, **how)


def open_answers(path: Path | None) -> AnnotationSet | None:
    """Answers, where a file of them is given."""
    from bridgetrack.annotations.store import load_annotations

    return None if path is None else load_annotations(path)


def about_events(answers: Path | None) -> Path | None:
    """The file, where it is not one of answers about masks."""
    from bridgetrack.annotations.mask_store import is_mask_file

    return None if answers is None or is_mask_file(answers) else answers


def refuse_masks_alone(answers: Path | None, flag: str = "", given: bool = False) -> None:
    """Refuse a file of answers about masks where no option that takes them is given."""
    if about_events(answers) != answers and not given:
        where = f"with {flag}" if flag else "for segment and track --repair"
        raise typer.BadParameter(
            f"--annotations {answers}: these are answers about masks, which count {where}"
        )


def about_masks(answers: Path | None) -> Path | None:
    """The file of answers about masks: the one given, or what the window keeps beside it."""
    from bridgetrack.annotations.mask_store import is_mask_file
    from bridgetrack.session.answers import masks_path

    if answers is None or is_mask_file(answers):
        return answers
    beside = masks_path(answers)
    return beside if beside.exists() else None


def open_mask_answers(
    answers: Path | None, movie: Movie, *, needed: bool = False
) -> MaskAnswers | None:
    """Answers about the masks of a movie, where there are some; see `about_masks`.

    Where they are `needed`, a file that neither holds any nor has any beside it is refused.
    """
    from bridgetrack.annotations.mask_store import load_mask_answers

    file = about_masks(answers) or (answers if needed else None)
    return None if file is None else load_mask_answers(file, movie.geometry)


def open_weights(path: Path | None) -> Model | None:
    """A model out of a file or of the library, where one is given."""
    from bridgetrack.models.library import find_model
    from bridgetrack.models.model import check_usable

    return None if path is None else check_usable(find_model(path), path)


def open_scores(
    path: Path | None, model: Model | None = None
) -> tuple[LinkScores | None, FeatureSet | None]:
    """Scores of links and the features with them, where a file of them is given."""
    from bridgetrack.api import open_link_scores
    from bridgetrack.features.link_scores import with_link_scores

    scores = open_link_scores(path, model)
    return scores, None if scores is None else with_link_scores(scores)


def files_behind(given: Path | None) -> tuple[Path, ...]:
    """The files that a model (also by its name in the library) or a project is read from."""
    from bridgetrack.models.library import find_model_file
    from bridgetrack.pipeline.project import is_project, load_project

    if given is None:
        return ()
    if is_project(given):
        project = load_project(given)
        movies = (project.labels, project.image)
        return (given, *(movie.path for movie in movies if movie is not None))
    with suppress(ModelError):  # told when it is opened
        file = find_model_file(given)
        return () if file is None else (file,)
    return (given,)


def open_scene(
    labels: Path,
    image: Path | None,
    answers: AnnotationSet | None,
    reading: MovieOptions,
    notes: list[Note],
    watch: Callable[[Progress], None] | None = None,
    *,
    named: Path | None = None,
    kinds: EventKinds = EVERYTHING,
    link_scores: Path | None = None,
) -> Scene:
    """Open and prepare a movie with its answers, out of the file `named`; adds to `notes`."""
    from bridgetrack.api import check_link_scores
    from bridgetrack.pipeline.scene import prepare

    scores, features = open_scores(link_scores)
    cells, pixels = open_sources(labels, image, reading, notes)
    scene = show(prepare(cells, pixels, answers, features, kinds), watch)
    check_link_scores(scores, scene)
    if named is not None:
        check_belonging(scene, labels, named, notes)
    return scene


def check_belonging(scene: Scene, labels: Path, answers: Path, notes: list[Note]) -> None:
    """Note where most answers are about another movie; refuse where all are."""
    from bridgetrack.pipeline.summary import all_miss, misfit

    said = misfit(scene.anchored, str(labels), str(answers))
    if all_miss(scene.anchored):
        raise InputError(said)
    notes += [Note(NoteKind.WARNING, said)] if said else []


@contextmanager
def cluster_at(scheduler: str | None, pixels: int = 0) -> Iterator[Workers]:
    """The workers of a dask cluster while it is used.

    Where none is named, this process, or its like on all cores where so many ``pixels`` are to be
    segmented that it is worth it; ``here`` is this process in any case.
    """
    from bridgetrack.spread import ClusterError, connect, on, worth_it

    client = None
    if scheduler is None and worth_it(pixels):
        with suppress(ClusterError):  # nobody asked for it
            client = connect("local")
    elif scheduler not in (None, "here"):
        client = connect(str(scheduler))
    if client is None:
        yield on(None)
        return
    with client:
        try:
            yield on(client)
        finally:
            if client.cluster is not None:  # a cluster of our own ends with the work
                client.cluster.close()


@contextmanager
def collecting_warnings(notes: list[Note]) -> Iterator[None]:
    """Keep the warnings of the library as notes; others stay off the terminal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    found = (str(w.message) for w in caught if issubclass(w.category, BridgetrackWarning))
    notes += [Note(NoteKind.REMARK, words) for words in dict.fromkeys(found)]
