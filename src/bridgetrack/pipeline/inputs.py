"""What a run of the tracker is given, and how it is opened: labels or a table, image, answers."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridgetrack.annotations.anchor import Anchored
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import is_mask_file, load_annotations, load_mask_answers
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.features.feature import needs_link_scores
from bridgetrack.features.link_scores import LinkScores
from bridgetrack.io.results import read_link_scores
from bridgetrack.io.tables import TABLES, read_detections_csv
from bridgetrack.models.library import find_model
from bridgetrack.models.model import Model, check_usable
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels, open_movie, scaled_like
from bridgetrack.notes import Note, NoteKind, collecting_warnings
from bridgetrack.pipeline.scene import Scene


@dataclass(frozen=True)
class OpenOptions:
    """How a movie is read, where its files do not say it; see `open_movie`."""

    axes: str | None = None  # of the label movie
    scale: tuple[float, ...] | None = None
    unit: str | None = None
    frame_interval: float | None = None
    image_axes: str | None = None
    columns: dict[str, str] | None = None  # of a table, by what they hold

    def open_image(self, image: Path) -> Movie:
        """A movie that has no labels."""
        return open_movie(
            image, axes=self.image_axes or self.axes, scale=self.scale, unit=self.unit,
            frame_interval=self.frame_interval,
        )  # fmt: skip


@dataclass(frozen=True)
class RunInputs:
    """What a run was given, and what it was asked for."""

    labels: Path
    image: Path | None
    model: Path | None
    annotations: Path | None
    reading: OpenOptions = field(default_factory=OpenOptions)
    formats: tuple[str, ...] = ()
    project: Path | None = None  # holds the model and the answers
    command: str = "track"
    repair: bool = False  # the labels were repaired first
    channel: int | str = 0  # of the image, by which they were
    link_scores: Path | None = None  # scores of links that another program gave
    found_here: bool = False  # the labels were found on the way and stand among the results
    without: tuple[str, ...] = ()  # kinds of events that do not occur, see `EventKinds`
    memory: str | None = None  # to keep to
    window: int | None = None  # frames tracked at a time

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """All files that are read."""
        labels = None if self.found_here else self.labels
        more = (self.project, self.link_scores)
        return (labels, self.image, self.model, self.annotations, *more)


def open_cells(
    labels: Any,
    image: Any = None,
    reading: OpenOptions | None = None,
    notes: list[Note] | None = None,
) -> tuple[Movie | Detections, Movie | None]:
    """Open labels, or a table of detections, and the image; labels without a scale take its one.

    Parameters
    ----------
    labels, image
        See `bridgetrack.api.track`.
    reading
        How they are read, where they do not say it.
    notes
        What was left out or assumed is added to these; it is warned of where None.

    Raises
    ------
    InputError
        Where one of them cannot be read.
    """
    reading, table = reading or OpenOptions(), is_table(labels)
    if reading.columns and not table:
        raise InputError("columns are those of a table (.csv, .tsv, .txt), and this is none")
    if notes is not None:
        if table:
            words = "a table of detections: cells are taken for discs, without shape and intensity"
            notes.append(Note(NoteKind.REMARK, words))
        elif image is None:
            notes.append(Note(NoteKind.REMARK, "no image: features of intensity are left out"))
    with nullcontext() if notes is None else collecting_warnings(notes):
        known = {name: getattr(reading, name) for name in ("scale", "unit", "frame_interval")}
        if table:
            labels = read_detections_csv(labels, reading.columns, **known)
        pixels = None if image is None else open_movie(image, axes=reading.image_axes, **known)
        if isinstance(labels, Detections):
            return labels, pixels
        cells = open_labels(labels, axes=reading.axes, **known)
        if pixels is not None and reading.unit is None:
            cells = scaled_like(cells, pixels)
        return cells, pixels


def is_table(labels: Any) -> bool:
    """Whether this is the path of a table of detections."""
    return isinstance(labels, Path | str) and Path(labels).suffix.lower() in TABLES


def open_answers(file: Path | None) -> AnnotationSet | None:
    """Answers about events, where a file holds some; one of answers about masks holds none."""
    return None if file is None or is_mask_file(file) else load_annotations(file)


def open_mask_answers(
    file: Path | None, movie: Movie, *, needed: bool = False
) -> MaskAnswers | None:
    """Answers about masks of the file given; where they are `needed`, it must hold some.

    Raises
    ------
    InputError
        Where the file cannot be read, is about another movie, or holds none that are needed.
    """
    found = None if file is None else load_mask_answers(file, movie.geometry)
    if found is not None and needed and not len(found):
        raise InputError(f"{file} holds no answers about masks; give the file that does")
    return found or None


def open_weights(model: Path | None) -> Model | None:
    """A model out of a file or of the library, where one is given."""
    return None if model is None else check_usable(find_model(model), model)


def open_link_scores(
    given: LinkScores | Path | str | None, model: Model | None = None
) -> LinkScores | None:
    """Link scores, if some are given; warns if `model` needs them and none are given."""
    if given is None and model is not None and needs_link_scores(model.keys):
        warnings.warn(
            f"the model {model.name!r} was trained with link scores of another program "
            f"({', '.join(k for k in model.keys if needs_link_scores([k]))}), but none are given: "
            "links are scored without them; give them with --link-scores (in Python link_scores=)",
            BridgetrackWarning,
            stacklevel=3,
        )
    return read_link_scores(given) if isinstance(given, Path | str) else given


def check_link_scores(scores: LinkScores | None, scene: Scene) -> None:
    """Refuse scores if most of them match no cell of a movie; warn if some do not.

    Raises
    ------
    InputError
        If most do not, or frames count from 1.
    """
    if scores is None or not len(scores):
        return
    missed = len(scores) - scores.matched(scene.detections)
    last = scene.detections.geometry.n_frames - 1
    # Links start before the last frame, so this one is named only if frames count from 1.
    from_one = missed and scores.frame.min() == 1 and scores.frame.max() == last
    said = f"{scores.name}: {missed} of {len(scores)} links name cells that do not exist; "
    if from_one or 2 * missed > len(scores):
        counted = "seem to be counted from 1; count them" if from_one else "are counted"
        raise InputError(f"{said}frames {counted} from 0, and source and target must be labels")
    if missed:
        warnings.warn(f"{said}they are left out", BridgetrackWarning, stacklevel=3)


def check_belonging(
    anchored: Anchored, labels: Path, answers: Path, notes: list[Note], *, some: bool = False
) -> None:
    """Note where most answers miss the cells of a movie: cause and cure.

    Raises
    ------
    InputError
        Where all miss, although `some` should not.
    """
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
    if some and missed == given:
        raise InputError(said)
    notes.append(Note(NoteKind.WARNING, said))
