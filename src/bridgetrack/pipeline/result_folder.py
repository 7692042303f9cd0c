"""A result in a folder: tables, masks, and ``run.json``, which says how they were made."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from bridgetrack.annotations.mask_answers import MaskAnswers, with_events
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.features.link_scores import with_link_scores
from bridgetrack.files import write_text
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.io.results import FILES, FORMATS, METHODS, RUN_FILE, stage_results
from bridgetrack.may_write import result_folder
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels
from bridgetrack.movie.writers import label_writer
from bridgetrack.notes import Note, NoteKind, collecting_warnings, note_texts
from bridgetrack.pipeline.finding import (
    Finding,
    FoundMasks,
    find_masks,
    finding_to_json,
    how_found,
)
from bridgetrack.pipeline.inputs import (
    OpenOptions,
    RunInputs,
    check_belonging,
    check_link_scores,
    open_answers,
    open_cells,
    open_link_scores,
    open_mask_answers,
    open_weights,
)
from bridgetrack.pipeline.project import Project, load_project, run_project
from bridgetrack.pipeline.report import (
    count_events,
    inference_words,
    least_certain,
    methods_text,
    unclear_remarks,
    use_of_annotations,
    versions,
)
from bridgetrack.pipeline.scene import measure
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import track_steps
from bridgetrack.progress import Steps

FOUND_HERE = ("labels.tif", "labels.run.json", "labels.masks.csv")
"""Masks that were found on the way, how, and how sure each is, written beside the results."""
REPAIRED, REPAIRS = "repaired", "repairs.csv"
"""Repaired masks and the list of what was changed, written beside the results."""

_NAMES = (
    *(name for kind in FORMATS for name in FILES[kind]), METHODS, REPAIRED, REPAIRS, *FOUND_HERE,
)  # fmt: skip
"""Names of what may stand in a result, in the order in which they are told."""

_PATHS = ("labels", "image", "model", "annotations", "project", "link_scores")
_SETTINGS = ("without", "memory", "window", "channel")
"""Fields of `RunInputs` that stand in the record."""

_BROKEN = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading a record raises that is damaged, or none at all."""


# ------------------------------------------------------------------ a run


def run_steps(
    given: RunInputs,
    out: Path,
    *,
    model: Model | None = None,
    how: Finding | None = None,
    project: Project | None = None,
    client: Any = None,
    noted: Sequence[Note] = (),
) -> Steps[tuple[Tracking, dict[str, Any], list[Note]]]:
    """Track files and write the results; cells are found, or repaired, on the way.

    All or nothing: everything is written into one new folder, which takes the place of an earlier
    result in the end.

    Parameters
    ----------
    given
        What the run has, and what it was asked for.
    out
        Folder for the results.
    model
        Weights; those of the file that is given where None, else the shipped ones.
    how
        How cells are found where there are no labels.
    project
        What is tracked in place of files, if that is a project.
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
    found = None if project is None else project.found
    cells: Movie | Detections
    image: Movie | None
    with result_folder(out, *given.inputs) as folder:
        # ends before the record is written, which tells of the warnings
        with collecting_warnings(notes):
            if project is not None:
                tracking = yield from run_project(project)
            else:
                model = model or open_weights(given.model) or shipped_model()
                if given.found_here:
                    cells, image, found = yield from _find_into(folder, given, how, notes)
                else:
                    cells, image = open_cells(given.labels, given.image, given.reading, notes)
                if given.repair:
                    cells = yield from _repair_into(folder, out, cells, image, model, given, client)
                tracking = yield from _tracked(given, cells, image, model, client)
        if given.annotations is not None:
            check_belonging(tracking.scene.anchored, given.labels, given.annotations, notes)
        tracks, doubts = tracking.tracks, least_certain(tracking)
        methods = _methods(tracking, given, found)
        limits = stage_results(tracks, tracking.scene.labels, folder, given.formats, methods)
        remarks = (*limits, *tracks.notes, *unclear_remarks(tracking))
        notes += [Note(NoteKind.REMARK, words) for words in remarks]
        record = _described(tracking, out, given, began, notes, doubts)
        if given.repair:
            record["repair"] = _repairs(folder)
        record["files"] = [name for name in _NAMES if (folder / name).exists()]
        write_json(record, folder / RUN_FILE)
    return tracking, record, notes


def track_again(given: RunInputs) -> Steps[Tracking]:
    """Track what a run was given; nothing is written."""
    model = open_weights(given.model)
    if given.project is not None:
        answers = open_answers(given.annotations)
        return (yield from run_project(load_project(given.project), model, answers))
    cells, image = open_cells(given.labels, given.image, given.reading, [])
    return (yield from _tracked(given, cells, image, model or shipped_model()))


def _tracked(
    given: RunInputs,
    cells: Movie | Detections,
    image: Movie | None,
    model: Model,
    client: Any = None,
) -> Steps[Tracking]:
    """Track opened files as a run was asked to."""
    scores = open_link_scores(given.link_scores, model)
    tracking = yield from track_steps(
        cells, image, model, open_answers(given.annotations),
        None if scores is None else with_link_scores(scores),
        kinds=EventKinds.without(given.without), memory=given.memory, window=given.window,
        client=client,
    )  # fmt: skip
    check_link_scores(scores, tracking.scene)
    return tracking


def _find_into(
    folder: Path, given: RunInputs, how: Finding | None, notes: list[Note]
) -> Steps[tuple[Movie, Movie, Finding]]:
    """Find the cells of a movie that has no masks, and write them into a folder.

    What is doubtful about them goes to `notes`. Gives cells, image, and how they were found.
    """
    assert given.image is not None
    image = given.reading.open_image(given.image)
    known = image.geometry
    with label_writer(folder / FOUND_HERE[0], known) as write:
        found = yield from find_masks(how or Finding(), image, write, channel=given.channel)
    told = [Note(NoteKind.WARNING, f"{words}, by bridgetrack segment") for words in found.doubts]
    notes += told
    about = masks_record({"image": str(given.image)}, image, found, given.channel)
    about |= {"labels": str(given.labels), "cells": found.counts, "notes": note_texts(told)}
    write_json(about, folder / FOUND_HERE[1])
    if found.margins is not None:
        write_margins(found.margins, folder / FOUND_HERE[2])
    return _written(folder / FOUND_HERE[0], given.labels, known), image, found.finding


def _repair_into(
    folder: Path,
    out: Path,
    cells: Movie | Detections,
    image: Movie | None,
    model: Model,
    given: RunInputs,
    client: Any = None,
) -> Steps[Movie]:
    """Repair labels and write them, with a list of what was changed, into a folder.

    The labels name `out` as their source, where the folder's content will stand in the end. What
    the given answers say of masks holds, and what they say of events.
    """
    if not isinstance(cells, Movie) or image is None:
        raise InputError(
            "--repair needs labels and the image that they were made from: give a label movie, "
            "not a table, and --image"
        )
    said, events = open_mask_answers(given.annotations, cells), open_answers(given.annotations)
    if events is not None and len(events):
        detections = yield from measure(cells, client=client)
        known = said or MaskAnswers(cells.geometry)
        said = yield from with_events(known, events, detections, cells)
    with label_writer(folder / REPAIRED, cells.geometry) as write:
        found = yield from find_masks(
            Finding(given=cells), image, write, said, model,
            channel=given.channel, client=client,
        )  # fmt: skip
    axes = cells.geometry.axes
    rows = [
        (c.frame, c.kind.value, " ".join(map(str, c.before)), " ".join(map(str, c.after)), *c.place)
        for c in found.changes
    ]
    columns = ["frame", "change", "before", "after", *axes]
    pd.DataFrame(rows, columns=columns).to_csv(folder / REPAIRS, index=False)
    return _written(folder / REPAIRED, out / REPAIRED, cells.geometry)


def _written(labels: Path, place: Path, known: Geometry) -> Movie:
    """Labels that were written just now, by the name of the place where they will stand."""
    movie = open_labels(
        labels, scale=known.scale, unit=known.unit, frame_interval=known.frame_interval
    )
    return replace(movie, source=str(place))


def _repairs(folder: Path) -> dict[str, int]:
    """How many changes of each kind stand in the list of a folder."""
    kinds = pd.read_csv(folder / REPAIRS)["change"].value_counts()
    return {str(kind): int(count) for kind, count in kinds.sort_index().items()}


# ------------------------------------------------------------------ records


def _methods(tracking: Tracking, given: RunInputs, found: Finding | None) -> str:
    """How the result was made, in sentences; of repaired masks it tells what they were before."""
    image = None if given.image is None else str(given.image)
    masks = str(given.labels) if given.repair else None
    if given.repair and found is None:
        found = how_found(given.labels)
    return methods_text(tracking, image=image, masks=masks, found=found, repaired=given.repair)


def _described(
    tracking: Tracking,
    out: Path,
    given: RunInputs,
    began: float,
    notes: Sequence[Note],
    doubts: list[dict[str, Any]],
) -> dict[str, Any]:
    """Everything about a run, as JSON values."""
    solution, windows = tracking.solution, tracking.windows
    inference: dict[str, Any] = {
        "hypotheses": len(tracking.scene.hypotheses) if windows is None else windows.hypotheses,
        "objective": solution.value,
        "gap": solution.gap,
    }
    if windows is not None:
        shown = {"count": windows.count, "frames": windows.frames, "overlap": windows.overlap}
        inference["windows"] = shown
    paths = {name: getattr(given, name) for name in _PATHS}
    scale = given.reading.scale
    return {
        "format": "bridgetrack-run",
        "version": 1,
        "command": given.command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": {k: None if p is None else str(p.absolute()) for k, p in paths.items()},
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
        "least_certain": doubts,
        "seconds": round(time.perf_counter() - began, 3),
        "notes": note_texts(notes),
        "versions": versions(),
    }


def write_json(content: dict[str, Any], path: Path) -> None:
    """Write a record under its final name in one step."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n", "the record")


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


def write_margins(margins: pd.DataFrame, path: Path) -> Path:
    """Write how sure masks are, the least sure first; returns where."""
    ordered = margins.sort_values(["margin_at_least", "frame", "label"])
    ordered.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")
    return path


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


def tracked_labels(run: Path) -> Path | None:
    """The labels that a run tracked, by its record; None where that names none."""
    try:
        return _labels_of(_content(run), run)
    except _BROKEN:
        return None


def _content(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(run.read_text(encoding="utf-8"))
    return content


def _labels_of(content: dict[str, Any], run: Path) -> Path | None:
    """Labels that a run repaired or found are among its results, and go with them."""
    own = next((n for n in (REPAIRED, FOUND_HERE[0]) if n in content.get("files", ())), None)
    if own is not None:
        return run.parent / own
    named = content["input"]["labels"]
    return None if named is None else Path(named)


def given_run(
    source: Path,
    image: Path | None = None,
    model: Path | None = None,
    annotations: Path | None = None,
) -> RunInputs:
    """What the run had whose folder is named, else what is named itself.

    The labels are those that were tracked: the repaired ones where the run repaired what it was
    given.

    Raises
    ------
    InputError
        Where the record of the run is damaged.
    """
    run = source / RUN_FILE
    if not run.is_file():
        return RunInputs(source, image, model, annotations)
    try:
        known = _inputs(_content(run), run)
    except _BROKEN as error:
        raise InputError(f"{run}: this is not the record of a run") from error
    return replace(
        known,
        image=image or known.image,
        model=model or known.model,
        annotations=annotations or known.annotations,
    )


def _inputs(content: dict[str, Any], run: Path) -> RunInputs:
    paths = {k: None if v is None else Path(v) for k, v in content["input"].items() if k in _PATHS}
    settings, labels = content["settings"], _labels_of(content, run)
    if labels is None:
        raise ValueError("no labels")
    asked = {name: settings[name] for name in _SETTINGS if name in settings}
    asked["without"] = tuple(asked.get("without", ()))
    EventKinds.without(asked["without"])  # refuses others
    reading = {each.name: settings.get(each.name) for each in fields(OpenOptions)}
    if "repair" in content:  # in our own order of axes, with the scale that was known
        known = content["geometry"]
        interval = known["frame_interval_minutes"]
        reading |= {"axes": None, "columns": None, "unit": known["unit"]}
        reading |= {"scale": tuple(known["scale"]), "frame_interval": interval}
    elif reading["scale"] is not None:
        reading["scale"] = tuple(map(float, reading["scale"].split(",")))
    return RunInputs(**{**paths, **asked, "labels": labels, "reading": OpenOptions(**reading)})
