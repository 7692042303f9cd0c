"""A run of the tracker, and the folder that it writes.

A result folder holds tables, masks, and ``run.json``, which says how they were made and from which
a run can be repeated.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import BeforeValidator, Field

from bridgetrack.annotations.files import ENDING, load_mask_answers
from bridgetrack.annotations.mask_answers import MaskAnswers, with_events
from bridgetrack.errors import InputError, Note, NoteKind, collecting_warnings, note_texts
from bridgetrack.files import result_folder, write_text
from bridgetrack.io.results import FORMATS, METHODS, REPLACED, RUN_FILE, stage_results
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels, scale_of
from bridgetrack.movie.writers import label_writer
from bridgetrack.pipeline.finding import CellSearch, Finding, finding_to_json
from bridgetrack.pipeline.inputs import (
    PATHS,
    Opened,
    RunInputs,
    RunOptions,
    left_out,
    open_model,
    repairable,
)  # fmt: skip
from bridgetrack.pipeline.project import judged_sample
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
from bridgetrack.progress import Steps
from bridgetrack.schema import FileFormat, JsonObject, OpenEntry, json_text, of_dataclass

FOUND_HERE = ("labels.tif", "labels.run.json")
"""Masks that were found on the way, and how, written beside the results."""
REPAIRED, REPAIRS = "repaired", "repairs.csv"
"""Repaired masks and the list of what was changed, written beside the results."""

_NAMES = (
    *(name for form in FORMATS.values() for name in form.files),
    *(METHODS, REPAIRED, REPAIRS, *FOUND_HERE),
)
"""Names of possible files of a result, in the order in which they are listed."""


def run_steps(
    given: RunInputs, out: Path, *, how: Finding | None = None, client: Any = None
) -> Steps[tuple[Tracking, dict[str, Any], list[Note]]]:
    """Track files or a project and write the results; cells are found or repaired first if needed.

    Everything is written into one new folder, which replaces an earlier result at the end.

    Parameters
    ----------
    given
        The inputs and options.
    out
        Folder for the results.
    how
        How cells are found if there are no labels.
    client
        Over which frames and windows are spread; this process where None.

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
    notes, began, options = list[Note](), time.perf_counter(), given.options
    repairs: dict[str, int] = {}
    if out.is_dir() and any(out.iterdir()):
        notes.append(Note(NoteKind.REMARK, REPLACED))
    with result_folder(out, *given.files) as folder:
        # ends before the record is written, which contains the warnings
        with collecting_warnings(notes):
            if given.labels is None:
                opened = yield from _find_into(folder, out, given, how or Finding(), notes)
            else:
                notes += [] if given.project else left_out(given.labels, given.image)
                opened = given.open()
            if options.repair:
                opened, repairs = yield from _repair_into(folder, out, opened, client)
            tracking = yield from opened.tracked(client)
        sample = judged_sample(given.project, tracking.tracks)
        checked = None if sample is None or sample.left else sample
        methods = methods_text(
            tracking,
            image=None if given.image is None else str(given.image),
            masks=str(given.labels) if options.repair else None,
            found=opened.found,
            repaired=options.repair,
            checked=checked,
        )
        limits = stage_results(
            tracking.tracks, tracking.scene.labels, folder, options.format, methods
        )
        remarks = (*limits, *tracking.tracks.notes, *unclear_remarks(tracking))
        notes += [Note(NoteKind.REMARK, words) for words in remarks]
        record = _described(tracking, out, given, began, notes)
        if checked is not None and checked.accuracy is not None:
            record["checked"] = checked.accuracy.to_json()
        if options.repair:
            record["repair"] = repairs
        record["files"] = [name for name in _NAMES if (folder / name).exists()]
        write_json(record, folder / RUN_FILE)
    return tracking, record, notes


def _find_into(
    folder: Path, out: Path, given: RunInputs, how: Finding, notes: list[Note]
) -> Steps[Opened]:
    """Find the cells of a movie that has no masks, and write them into a folder."""
    model, image = open_model(given.model), given.options.open_image(given.image)
    search = CellSearch(image, how, channel=given.options.channel)
    cells = yield from _written(search, folder, out, FOUND_HERE[0])
    told = [Note(NoteKind.WARNING, f"{words}, by bridgetrack segment") for words in search.doubts]
    notes += told
    record = masks_record({"image": str(given.image)}, Path(cells.source), search, told)
    write_json(record, folder / FOUND_HERE[1])
    return Opened(given, cells, image, model, found=search.finding)


def _repair_into(
    folder: Path, out: Path, opened: Opened, client: Any
) -> Steps[tuple[Opened, dict[str, int]]]:
    """Repair labels, write them with a list of what was changed into a folder, and count that."""
    given, (cells, image) = opened.given, repairable(opened.cells, opened.image)
    said = MaskAnswers(cells.geometry)
    if isinstance(given.annotations, Path):
        said = load_mask_answers(given.annotations, cells.geometry)
    if opened.answers:
        detections = yield from measure(cells, client=client)
        said = yield from with_events(said, opened.answers, detections, cells)
    how, channel = Finding(given=cells), given.options.channel
    search = CellSearch(image, how, said, opened.model, channel, client)
    repaired = yield from _written(search, folder, out, REPAIRED)
    rows = [
        (c.frame, c.kind.value, " ".join(map(str, c.before)), " ".join(map(str, c.after)), *c.place)
        for c in search.changes
    ]
    columns = ["frame", "change", "before", "after", *cells.geometry.axes]
    pd.DataFrame(rows, columns=columns).to_csv(folder / REPAIRS, index=False)
    counts = sorted(Counter(c.kind.value for c in search.changes).items())
    return replace(opened, cells=repaired), dict(counts)


def _written(search: CellSearch, folder: Path, out: Path, name: str) -> Steps[Movie]:
    """The labels of a search, written into a folder, whose content will stand in `out`."""
    geometry = (search.finding.given or search.movie).geometry
    with label_writer(folder / name, geometry) as write:
        yield from search.steps(write)
    labels = open_labels(folder / name, **scale_of(geometry))
    return replace(labels, source=str(out / name))


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
    paths = {name: getattr(given, name) for name in PATHS}
    paths["labels"] = given.labels or out / FOUND_HERE[0]
    return {
        **_RUN.head,
        "command": given.command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": {k: str(p.absolute()) if isinstance(p, Path) else None for k, p in paths.items()},
        "out": str(out),
        "settings": asdict(given.options),
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
    files: dict[str, Any], labels: Path, found: CellSearch, notes: Sequence[Note]
) -> dict[str, Any]:
    """How labels were found, as JSON values; `files` are those that it took."""
    readings = [] if found.estimate is None else found.estimate.readings
    return {
        **finding_to_json(found.finding),
        "command": "segment",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": files,
        "labels": str(labels),
        "channel": found.channel,
        "geometry": geometry_record(found.movie.geometry),
        "cells": found.counts,
        "readings": [{**asdict(reading), "worth": reading.worth} for reading in readings],
        "notes": note_texts(notes),
        "versions": versions(),
    }


# ------------------------------------------------------------------ reading


def _as_numbers(settings: Any) -> Any:
    """Settings with a scale that earlier versions wrote as one text."""
    scale = settings.get("scale") if isinstance(settings, dict) else None
    if isinstance(scale, str):
        settings = settings | {"scale": [float(part) for part in scale.split(",")]}
    return settings


class _Extent(OpenEntry):
    scale: list[float]
    unit: str
    frame_interval_minutes: float | None = None


class _Record(OpenEntry):
    input: dict[str, str | None]
    settings: Annotated[
        RunOptions, of_dataclass(RunOptions, "ignore"), BeforeValidator(_as_numbers)
    ]
    geometry: _Extent
    files: list[str] = Field(default_factory=list)
    repair: JsonObject | None = None

    def inputs(self) -> RunInputs:
        options, known = replace(self.settings, repair=False), self.geometry
        paths: dict[str, Any] = {
            k: Path(v) for k, v in self.input.items() if k in PATHS and v is not None
        }
        # Labels that a run repaired or found are among its results, and go with them.
        own = next((Path(n) for n in (REPAIRED, FOUND_HERE[0]) if n in self.files), None)
        labels = own or paths.get("labels")
        if labels is None:
            raise InputError("it names no labels")
        if self.repair is not None:  # in our own order of axes, with the scale that was known
            options = replace(
                options, axes=None, columns=None, scale=tuple(known.scale), unit=known.unit,
                frame_interval=known.frame_interval_minutes,
            )  # fmt: skip
        return RunInputs(**paths | {"labels": labels}, options=options)


_RUN = FileFormat("bridgetrack-run", 1, "the record of a run", _Record, _Record.inputs)


def given_run(folder: Path) -> RunInputs:
    """The inputs of the run whose results are in a folder, by its ``run.json``.

    The labels are those that were tracked: the repaired ones where the run repaired what it was
    given. Raises an `InputError` where the record is missing or damaged.
    """
    if not (folder / RUN_FILE).is_file():
        cure = "give the folder of a result"
        if (folder / METHODS).is_file():
            cure = "it was exported from the window, or saved in Python; to get a result that has "
            cure += f"one: bridgetrack run NAME{ENDING} --out DIR"
        raise InputError(f"{folder}: there is no {RUN_FILE} in it; {cure}")
    known = _RUN.read(folder / RUN_FILE)
    return replace(known, labels=folder / known.labels)  # as they are where they are named whole
