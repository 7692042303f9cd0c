"""A run of the tracker: what it is given, how that is opened, and the folder that it writes.

A result folder holds tables, masks, and ``run.json``, which says how they were made and from which
a run can be repeated.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from bridgetrack.annotations.anchor import Anchored
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import load_annotations, load_mask_answers
from bridgetrack.annotations.mask_answers import MaskAnswers, with_events
from bridgetrack.detections.table import Detections
from bridgetrack.errors import (
    InputError,
    Note,
    NoteKind,
    collecting_warnings,
    note_texts,
    warn,
)
from bridgetrack.features.default import with_link_scores
from bridgetrack.features.feature import FeatureSet, LinkScores, needs_link_scores
from bridgetrack.files import result_folder, write_text
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.io.results import FORMATS, METHODS, RUN_FILE, read_link_scores, stage_results
from bridgetrack.io.tables import TABLES, read_detections_csv
from bridgetrack.models.library import find_model
from bridgetrack.models.model import Model, check_usable
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels, open_movie, scale_of, scaled_like
from bridgetrack.movie.writers import label_writer
from bridgetrack.pipeline.finding import Finding, FoundMasks, find_masks, finding_to_json, how_found
from bridgetrack.pipeline.project import load_project
from bridgetrack.pipeline.report import (
    count_events,
    inference_words,
    least_certain,
    methods_text,
    unclear_remarks,
    use_of_annotations,
    versions,
)
from bridgetrack.pipeline.scene import Scene, measure, prepare
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import track_steps
from bridgetrack.progress import Steps
from bridgetrack.schema import FileFormat, JsonObject, OpenEntry, json_text

FOUND_HERE = ("labels.tif", "labels.run.json")
"""Masks that were found on the way, and how, written beside the results."""
REPAIRED, REPAIRS = "repaired", "repairs.csv"
"""Repaired masks and the list of what was changed, written beside the results."""

_NAMES = (
    *(name for form in FORMATS.values() for name in form.files),
    *(METHODS, REPAIRED, REPAIRS, *FOUND_HERE),
)
"""Names of what may stand in a result, in the order in which they are told."""

_PATHS = ("labels", "image", "model", "annotations", "project", "link_scores")
_SETTINGS = ("without", "memory", "window", "channel")
"""Fields of `RunInputs` that stand in the record."""

# ------------------------------------------------------------------ what is given


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
        return open_movie(image, axes=self.image_axes or self.axes, **scale_of(self))


@dataclass(frozen=True)
class RunInputs:
    """What a run was given, and what it was asked for."""

    labels: Path | None  # None: they are found on the way, and stand among the results
    image: Path | None
    model: Model | Path | None
    annotations: Path | None
    reading: OpenOptions = field(default_factory=OpenOptions)
    formats: tuple[str, ...] = ()
    project: Path | None = None  # holds the model and the answers
    command: str = "track"
    repair: bool = False  # the labels were repaired first
    channel: int | str = 0  # of the image, by which they were
    link_scores: Path | None = None  # scores of links that another program gave
    without: tuple[str, ...] = ()  # kinds of events that do not occur, see `EventKinds`
    memory: str | None = None  # to keep to
    window: int | None = None  # frames tracked at a time

    @classmethod
    def of_project(cls, path: Path) -> RunInputs:
        """What a project holds: its movie, and in place of other files its model and answers."""
        project = load_project(path)
        check_usable(project.model, f"{path}, model")
        cells, image, movie = project.labels, project.image, project.geometry
        known = movie.scale, movie.unit, movie.frame_interval
        reading = OpenOptions(cells.axes, *known, None if image is None else image.axes)
        return cls(
            cells.path, None if image is None else image.path, None, None, reading,
            project.formats, path, "run", without=project.settings.kinds.words,
        )  # fmt: skip

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """All files that are read."""
        model = self.model if isinstance(self.model, Path) else None
        return (self.labels, self.image, model, self.annotations, self.project, self.link_scores)


def open_cells(
    labels: Any, image: Any = None, reading: OpenOptions | None = None
) -> tuple[Movie | Detections, Movie | None]:
    """Open labels, or a table of detections, and the image; cells without a scale take its one.

    `reading` says how they are read where they do not say it. Raises an `InputError` where one of
    them cannot be read.
    """
    reading = reading or OpenOptions()
    known = scale_of(reading)
    pixels = None if image is None else open_movie(image, axes=reading.image_axes, **known)
    if is_table(labels):
        if pixels is not None and reading.scale is None and pixels.geometry.unit != "pixel":
            known = scale_of(pixels.geometry)
        labels = read_detections_csv(labels, reading.columns, **known)
    elif reading.columns:
        raise InputError("columns are those of a table (.csv, .tsv, .txt), and this is none")
    if isinstance(labels, Detections):
        return labels if pixels is None else labels.within(pixels.geometry), pixels
    cells = open_labels(labels, axes=reading.axes, **scale_of(reading))
    if pixels is not None and reading.unit is None:
        cells = scaled_like(cells, pixels)
    return cells, pixels


def repairable(cells: Movie | Detections, image: Movie | None) -> tuple[Movie, Movie]:
    """Labels and image of a movie, by which they are repaired; refused where one is missing."""
    if not isinstance(cells, Movie) or image is None:
        raise InputError(
            "repairing masks needs the image that they were made from: give a label movie, not a "
            "table, and the image (--image)"
        )
    return cells, image


def left_out(labels: Path, image: Path | None) -> list[Note]:
    """What cannot be measured for want of masks or of an image."""
    if is_table(labels):
        words = "a table of detections: cells are taken for discs, without shape and intensity"
    elif image is None:
        words = "no image: features of intensity are left out"
    else:
        return []
    return [Note(NoteKind.REMARK, words)]


def is_table(labels: Any) -> bool:
    """Whether this is the path of a table of detections."""
    return isinstance(labels, Path | str) and Path(labels).suffix.lower() in TABLES


def open_answers(file: Path | None) -> AnnotationSet | None:
    """Answers about events, where a file holds some; one of answers about masks holds none."""
    return None if file is None else load_annotations(file) or None


def open_mask_answers(
    file: Path | None, movie: Movie, *, needed: bool = False
) -> MaskAnswers | None:
    """Answers about masks of the file given; where they are `needed`, it must hold some.

    Raises an `InputError` where the file cannot be read, is about another movie, or holds none that
    are needed.
    """
    found = None if file is None else load_mask_answers(file, movie.geometry)
    if found is not None and needed and not len(found):
        raise InputError(f"{file} holds no answers about masks; give the file that does")
    return found or None


def open_model(given: Model | Path | str | None) -> Model | None:
    """A model: as given, or from a file or the library."""
    return check_usable(find_model(given), given) if isinstance(given, Path | str) else given


def _link_scores(
    given: LinkScores | Path | str | None, model: Model | None = None
) -> LinkScores | None:
    """Link scores, if some are given; warns if `model` needs them and none are given."""
    if given is None and model is not None and needs_link_scores(model.keys):
        warn(
            f"the model {model.name!r} was trained with link scores of another program "
            f"({', '.join(k for k in model.keys if needs_link_scores([k]))}), but none are given: "
            "links are scored without them; give them with --link-scores (in Python link_scores=)"
        )
    return read_link_scores(given) if isinstance(given, Path | str) else given


def _check_link_scores(scores: LinkScores | None, scene: Scene) -> None:
    """Refuse scores if most of them match no cell of a movie; warn if some do not.

    Raises an `InputError` if most do not, or frames count from 1.
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
        warn(f"{said}they are left out")


@dataclass(frozen=True)
class Opened:
    """A movie that was opened, with what tracking it and learning from it need."""

    cells: Movie | Detections
    image: Movie | None
    model: Model | None = None  # None: the shipped one
    answers: AnnotationSet | None = None
    link_scores: LinkScores | Path | str | None = None
    features: FeatureSet | None = None  # None: the built-in ones
    found: Finding | None = None  # how the cells were found, where that is known

    def tracked(self, kinds: EventKinds, **how: Any) -> Steps[Tracking]:
        """The tracks; see `track_steps`, also for the rest of the arguments."""
        scores, features = self._scored()
        tracking = yield from track_steps(
            self.cells, self.image, self.model, self.answers, features, kinds=kinds, **how
        )
        _check_link_scores(scores, tracking.scene)
        return tracking

    def prepared(self, kinds: EventKinds) -> Steps[Scene]:
        """The movie ready for inference, see `prepare`."""
        scores, features = self._scored()
        scene = yield from prepare(self.cells, self.image, self.answers, features, kinds)
        _check_link_scores(scores, scene)
        return scene

    def _scored(self) -> tuple[LinkScores | None, FeatureSet | None]:
        """The link scores, and the features with them."""
        scores = _link_scores(self.link_scores, self.model)
        return scores, self.features if scores is None else with_link_scores(scores, self.features)


def check_belonging(anchored: Anchored, labels: Path, answers: Path, notes: list[Note]) -> None:
    """Note where most answers miss the cells of a movie: cause and cure.

    Raises an `InputError` where all miss.
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
    if missed == given:
        raise InputError(said)
    notes.append(Note(NoteKind.WARNING, said))


# ------------------------------------------------------------------ a run


def run_steps(
    given: RunInputs,
    out: Path,
    *,
    how: Finding | None = None,
    client: Any = None,
    noted: Sequence[Note] = (),
) -> Steps[tuple[Tracking, dict[str, Any], list[Note]]]:
    """Track files, or a project, and write the results; cells are found, or repaired, on the way.

    All or nothing: everything is written into one new folder, which takes the place of an earlier
    result in the end.

    Parameters
    ----------
    given
        What the run has, and what it was asked for.
    out
        Folder for the results.
    how
        How cells are found where there are no labels.
    client
        Over which frames and windows are spread; this process where None.
    noted
        What is known of the input already.

    Returns
    -------
    tracking, record, notes
        The tracks, the content of ``run.json``, and what was left out, assumed, or could not be
        held by a format.

    Raises
    ------
    BridgetrackError
        Where the input cannot be used, or the results have no place.
    """
    notes, began = list(noted), time.perf_counter()
    repairs: dict[str, int] = {}
    with result_folder(out, *given.inputs) as folder:
        # ends before the record is written, which tells of the warnings
        with collecting_warnings(notes):
            if given.labels is None:
                opened = yield from _find_into(folder, out, given, how, notes)
            else:
                notes += [] if given.project else left_out(given.labels, given.image)
                opened = _opened(given)
            if given.repair:
                opened, repairs = yield from _repair_into(folder, out, opened, given, client)
            tracking = yield from _tracked(given, opened, client)
        if given.annotations is not None and given.labels is not None:
            check_belonging(tracking.scene.anchored, given.labels, given.annotations, notes)
        tracks = tracking.tracks
        methods = methods_text(
            tracking,
            image=None if given.image is None else str(given.image),
            masks=str(given.labels) if given.repair else None,
            found=opened.found,
            repaired=given.repair,
        )
        limits = stage_results(tracks, tracking.scene.labels, folder, given.formats, methods)
        remarks = (*limits, *tracks.notes, *unclear_remarks(tracking))
        notes += [Note(NoteKind.REMARK, words) for words in remarks]
        record = _described(tracking, out, given, began, notes)
        if given.repair:
            record["repair"] = repairs
        record["files"] = [name for name in _NAMES if (folder / name).exists()]
        write_json(record, folder / RUN_FILE)
    return tracking, record, notes


def track_again(given: RunInputs) -> Steps[Tracking]:
    """Track what a run was given; nothing is written."""
    return (yield from _tracked(given, _opened(given)))


def _tracked(given: RunInputs, opened: Opened, client: Any = None) -> Steps[Tracking]:
    kinds = EventKinds.without(given.without)
    return opened.tracked(kinds, memory=given.memory, window=given.window, client=client)


def _opened(given: RunInputs) -> Opened:
    """What is given; of a project what it holds, where no other model or answers are given."""
    model, answers = open_model(given.model), open_answers(given.annotations)
    if given.project is None:
        opened = open_cells(given.labels, given.image, given.reading)
        found = None if given.labels is None else how_found(given.labels)
        weights = model or shipped_model()
        return Opened(*opened, weights, answers, given.link_scores, found=found)
    project = load_project(given.project)
    cells, image = project.open()
    if isinstance(cells, Detections):
        image = None  # without masks there is nothing to measure it in
    answers = project.history.annotations if answers is None else answers
    return Opened(
        cells, image, model or project.model, answers, given.link_scores, found=project.found
    )


def _find_into(
    folder: Path, out: Path, given: RunInputs, how: Finding | None, notes: list[Note]
) -> Steps[Opened]:
    """Find the cells of a movie that has no masks, and write them into a folder.

    The labels name `out` as their source, where the folder's content will stand in the end. What is
    doubtful about them goes to `notes`.
    """
    assert given.image is not None
    model = open_model(given.model) or shipped_model()
    answers = open_answers(given.annotations)
    image = given.reading.open_image(given.image)
    labels = out / FOUND_HERE[0]
    with label_writer(folder / labels.name, image.geometry) as write:
        found = yield from find_masks(how or Finding(), image, write, channel=given.channel)
    told = [Note(NoteKind.WARNING, f"{words}, by bridgetrack segment") for words in found.doubts]
    notes += told
    about = masks_record({"image": str(given.image)}, image, found, given.channel)
    about |= {"labels": str(labels), "cells": found.counts, "notes": note_texts(told)}
    write_json(about, folder / FOUND_HERE[1])
    cells = open_labels(folder / labels.name, **scale_of(image.geometry))
    cells = replace(cells, source=str(labels))
    return Opened(cells, image, model, answers, given.link_scores, found=found.finding)


def _repair_into(
    folder: Path, out: Path, opened: Opened, given: RunInputs, client: Any
) -> Steps[tuple[Opened, dict[str, int]]]:
    """Repair labels, write them with a list of what was changed into a folder, and count that.

    The labels name `out` as their source, see `_find_into`. What the given answers say of masks
    holds, and what they say of events.
    """
    (cells, image), events = repairable(opened.cells, opened.image), opened.answers
    said = open_mask_answers(given.annotations, cells)
    if events is not None and len(events):
        detections = yield from measure(cells, client=client)
        known = said or MaskAnswers(cells.geometry)
        said = yield from with_events(known, events, detections, cells)
    with label_writer(folder / REPAIRED, cells.geometry) as write:
        found = yield from find_masks(
            Finding(given=cells), image, write, said, opened.model,
            channel=given.channel, client=client,
        )  # fmt: skip
    rows = [
        (c.frame, c.kind.value, " ".join(map(str, c.before)), " ".join(map(str, c.after)), *c.place)
        for c in found.changes
    ]
    columns = ["frame", "change", "before", "after", *cells.geometry.axes]
    pd.DataFrame(rows, columns=columns).to_csv(folder / REPAIRS, index=False)
    repaired = open_labels(folder / REPAIRED, **scale_of(cells.geometry))
    repaired = replace(repaired, source=str(out / REPAIRED))
    counts = sorted(Counter(c.kind.value for c in found.changes).items())
    return replace(opened, cells=repaired), dict(counts)


# ------------------------------------------------------------------ records


def _described(
    tracking: Tracking, out: Path, given: RunInputs, began: float, notes: Sequence[Note]
) -> dict[str, Any]:
    """Everything about a run, as JSON values."""
    solution, windows = tracking.solution, tracking.windows
    inference: dict[str, Any] = {
        "hypotheses": tracking.proposed, "objective": solution.value, "gap": solution.gap,
    }  # fmt: skip
    if windows is not None:
        inference["windows"] = {"count": windows.count, "frames": windows.frames}
    paths = {name: getattr(given, name) for name in _PATHS}
    paths["labels"] = given.labels or out / FOUND_HERE[0]
    scale = given.reading.scale
    return {
        **_RUN.head,
        "command": given.command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": {k: str(p.absolute()) if isinstance(p, Path) else None for k, p in paths.items()},
        "out": str(out),
        "settings": {
            "format": list(given.formats),
            **{name: getattr(given, name) for name in _SETTINGS},
            **asdict(given.reading),
            "scale": None if scale is None else ",".join(f"{s!r}" for s in scale),
        },
        "geometry": geometry_record(tracking.tracks.geometry),
        "model": {"name": tracking.model.name, "features": len(tracking.model.keys)},
        "counts": count_events(tracking.tracks),
        "words": inference_words(tracking),
        "annotations": use_of_annotations(tracking),
        "inference": inference,
        "least_certain": least_certain(tracking),
        "seconds": round(time.perf_counter() - began, 3),
        "notes": note_texts(notes),
        "versions": versions(),
    }


def write_json(content: dict[str, Any], path: Path) -> None:
    """Write a record under its final name in one step."""
    write_text(path, json_text(content, "the record"), "the record")


def geometry_record(geometry: Geometry) -> dict[str, Any]:
    """The extent of a movie, as JSON values."""
    return {
        "frames": geometry.n_frames,
        "shape": None if geometry.shape is None else list(geometry.shape),
        "axes": list(geometry.axes),
        "scale": list(geometry.scale),
        "unit": geometry.unit,
        "frame_interval_minutes": geometry.frame_interval,
    }


def masks_record(
    given: dict[str, Any], image: Movie, found: FoundMasks, channel: int | str = 0
) -> dict[str, Any]:
    """What was done, as JSON values; `given` names the files."""
    readings = [] if found.estimate is None else found.estimate.readings
    return {
        **finding_to_json(found.finding),
        "command": "segment",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": given,
        "channel": channel,
        "geometry": geometry_record(image.geometry),
        "readings": [{**asdict(reading), "worth": reading.worth} for reading in readings],
        "versions": versions(),
    }


# ------------------------------------------------------------------ reading


class _Settings(OpenEntry):
    axes: str | None = None
    scale: str | None = None
    unit: str | None = None
    frame_interval: float | None = None
    image_axes: str | None = None
    columns: dict[str, str] | None = None
    without: list[str] = Field(default_factory=list)
    memory: str | None = None
    window: int | None = None
    channel: int | str = 0


class _Extent(OpenEntry):
    scale: list[float]
    unit: str
    frame_interval_minutes: float | None = None


class _Record(OpenEntry):
    input: dict[str, str | None]
    settings: _Settings
    geometry: _Extent
    files: list[str] = Field(default_factory=list)
    repair: JsonObject | None = None

    def inputs(self) -> RunInputs:
        asked, known = self.settings, self.geometry
        paths = {k: Path(v) for k, v in self.input.items() if k in _PATHS and v is not None}
        # Labels that a run repaired or found are among its results, and go with them.
        own = next((Path(n) for n in (REPAIRED, FOUND_HERE[0]) if n in self.files), None)
        labels = own or paths.get("labels")
        if labels is None:
            raise InputError("it names no labels")
        EventKinds.without(asked.without)  # refuses others
        scale = None if asked.scale is None else tuple(map(float, asked.scale.split(",")))
        columns, interval = asked.columns, asked.frame_interval
        reading = OpenOptions(asked.axes, scale, asked.unit, interval, asked.image_axes, columns)
        if self.repair is not None:  # in our own order of axes, with the scale that was known
            scale, interval = tuple(known.scale), known.frame_interval_minutes
            reading = OpenOptions(None, scale, known.unit, interval, asked.image_axes)
        return RunInputs(
            labels, paths.get("image"), paths.get("model"), paths.get("annotations"), reading,
            project=paths.get("project"), channel=asked.channel,
            link_scores=paths.get("link_scores"), without=tuple(asked.without),
            memory=asked.memory, window=asked.window,
        )  # fmt: skip


_RUN = FileFormat("bridgetrack-run", 1, "the record of a run", _Record, _Record.inputs)


def given_run(folder: Path) -> RunInputs:
    """What the run had whose results are in a folder, by its ``run.json``.

    The labels are those that were tracked: the repaired ones where the run repaired what it was
    given. Raises an `InputError` where the record is missing or damaged.
    """
    if not (folder / RUN_FILE).is_file():
        raise InputError(f"{folder}: there is no {RUN_FILE} in it; give the folder of a result")
    known = _RUN.read(folder / RUN_FILE)
    # as they are where they are named whole
    return replace(known, labels=None if known.labels is None else folder / known.labels)
