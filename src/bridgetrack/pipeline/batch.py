"""Many movies: every one of a folder, tracked with one model, and a table of all."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from bridgetrack.errors import BridgetrackError, InputError, OutputError
from bridgetrack.files import lent_folder, resolved, writing
from bridgetrack.hypotheses.events import EVERYTHING, EventKinds
from bridgetrack.io.may_write import check_file, check_folder, signed
from bridgetrack.io.tables import TABLES
from bridgetrack.models.library import find_model_file
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie, looks_like_labels
from bridgetrack.movie.opening import open_labels, open_movie
from bridgetrack.movie.tiff import is_tiff
from bridgetrack.movie.writers import label_writer
from bridgetrack.movie.zarr_store import is_zarr
from bridgetrack.notes import Note, NoteKind, collecting_warnings, note_texts
from bridgetrack.pipeline.finding import Finding, find_masks
from bridgetrack.pipeline.inputs import Reading, RunInputs, open_files, open_weights
from bridgetrack.pipeline.result_folder import (
    FOUND_HERE,
    masks_record,
    repair_into,
    save_run,
    write_json,
    write_margins,
)
from bridgetrack.pipeline.summary import count_events
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import track_steps
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.segmentation.settings import Choose, SegmentationSettings
from bridgetrack.tracks.tracks import EDGE_EVENTS, margin_column

TABLE = "batch.csv"
"""Name of the table of all movies."""
DOUBTFUL = 0.9
"""Events that are less probable than this, against their best alternative, are doubtful."""

_MASKS = ("_labels", "_masks", "_cells")
"""Ends of the names of masks that stand beside their movie."""
_NO_MOVIES = re.compile(r"\..*|.*_(GT|ST|RES)|.*\.check\.csv")


@dataclass(frozen=True)
class BatchFiles:
    """One movie of a folder, by name, with the files of its intensities and of its masks."""

    name: str
    image: Path | None
    labels: Path | None  # None: they are to be found


@dataclass(frozen=True)
class BatchRun:
    """What is done to every movie of a folder.

    Parameters
    ----------
    folder
        The movies.
    out
        Where a folder for each result comes to stand, and the table of all.
    model
        Weights, or a file or a name in the library; the shipped ones where None.
    labels
        Folder with masks of the movies, under the same names.
    formats
        What is written, see `write_results`.
    choose, settings
        How masks of movies that have none are chosen, and how cells look.
    channel
        The one that shows the cells.
    repair
        Whether masks of movies that have some are repaired first.
    kinds
        What can happen in the movies.
    reading
        How the files are read.
    memory
        To keep to, see `track_steps`.
    """

    folder: Path
    out: Path
    model: Model | Path | None = None
    labels: Path | None = None
    formats: tuple[str, ...] = ("csv",)
    choose: Choose = "jointly"
    settings: SegmentationSettings = field(default_factory=SegmentationSettings)
    channel: int | str = 0
    repair: bool = False
    kinds: EventKinds = EVERYTHING
    reading: Reading = field(default_factory=Reading)
    memory: str | None = None


@dataclass(frozen=True)
class BatchRow:
    """What came of one movie.

    Parameters
    ----------
    name
        Of the movie, and of its folder among the results.
    problem
        Why there is no result; empty where there is one.
    counts
        What was found, see `count_events`.
    certainty
        Mean probability of the events that join cells, each against its best alternative; at least
        that, where margins are lower bounds.
    doubtful
        Share of them that are less probable than `DOUBTFUL`; at most that, where margins are lower
        bounds.
    seconds
        Time that it took.
    warnings
        What is probably wrong, as sentences without a full stop.
    """

    name: str
    problem: str = ""
    counts: dict[str, int] | None = None
    certainty: float = float("nan")
    doubtful: float = float("nan")
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()


def batch_steps(given: BatchRun) -> Steps[tuple[BatchRow, ...]]:
    """Track every movie of a folder; the rows of the table, least certain first.

    The table is written anew after every movie, so it holds what is done whenever this ends.

    Raises
    ------
    InputError
        Where there are no movies, or a model cannot be used.
    OutputError
        Where the results have no place.
    """
    if resolved(given.out) == resolved(given.folder):
        raise OutputError(f"{given.out}: results need a folder of their own, beside the movies")
    movies = movies_of(given.folder, given.labels)
    if isinstance(given.model, Path):
        file = find_model_file(given.model)
        model = open_weights(file) or shipped_model()
    else:
        file, model = None, given.model or shipped_model()
    place = given.out / TABLE
    check_file(place, *(path for m in movies for path in (m.image, m.labels)), file)
    rows: list[BatchRow] = []
    for k, movie in enumerate(movies):
        told = partial(_told, k, len(movies), movie.name)
        yield told(Progress("Opening", 0.0))
        rows.append((yield from _tried(movie, given, file, model, told)))
        with signed(place) as spare, writing(place, "the table of all movies"):
            table_of(ordered(rows)).to_csv(spare, index=False, lineterminator="\n")
    return ordered(rows)


def _told(k: int, n: int, name: str, step: Progress) -> Progress:
    return Progress(f"{k + 1} of {n}, {name}: {step.stage}", step.done)


def _tried(
    movie: BatchFiles,
    given: BatchRun,
    file: Path | None,
    model: Model,
    told: Callable[[Progress], Progress],
) -> Steps[BatchRow]:
    """Track one movie; a row that says why, where that fails."""
    began = time.perf_counter()
    try:
        row = yield from relayed(_track(movie, given, file, model), told)
        return replace(row, seconds=time.perf_counter() - began)
    except BridgetrackError as error:
        problem = str(error)
    except MemoryError:
        problem = "not enough memory for this movie"
    except Exception as error:
        problem = f"unexpected error: {type(error).__name__}: {error}"
    return BatchRow(movie.name, " ".join(problem.split()), seconds=time.perf_counter() - began)


def _track(movie: BatchFiles, given: BatchRun, file: Path | None, model: Model) -> Steps[BatchRow]:
    out, began, notes = given.out / movie.name, time.perf_counter(), list[Note]()
    found, beside = None, None
    repairs = given.repair and movie.labels is not None and movie.image is not None
    inputs = RunInputs(
        movie.labels or out / FOUND_HERE[0], movie.image, file, None, given.reading,
        given.formats, command="batch", found_here=movie.labels is None, repair=repairs,
        without=given.kinds.words, channel=given.channel, memory=given.memory,
    )  # fmt: skip
    check_folder(out, *inputs.inputs)
    with ExitStack() as temporary:
        with collecting_warnings(notes):  # ends before the record is written, which tells of them
            if inputs.found_here or repairs:
                beside = temporary.enter_context(lent_folder(out))
            cells: Any
            if movie.labels is not None:
                cells, pixels = open_files(movie.labels, movie.image, given.reading, notes)
            else:
                assert movie.image is not None and beside is not None
                pixels = given.reading.open_image(movie.image)
                cells, found = yield from _found_here(pixels, inputs, beside, given, notes)
            if repairs:
                assert beside is not None
                mending = repair_into(beside, out, cells, pixels, model, inputs)
                cells = yield from mending
            elif given.repair and movie.labels is not None:
                words = "the masks were not repaired, as there is no image of them in the folder"
                notes.append(Note(NoteKind.WARNING, words))
            work = track_steps(cells, pixels, model, kinds=given.kinds, memory=given.memory)
            tracking = yield from work
        save_run(tracking, out, inputs, began, notes, beside, found)
    told = tuple(n.words for n in notes if n.kind == NoteKind.WARNING)
    return row_of(movie.name, tracking, told)


def _found_here(
    pixels: Movie, inputs: RunInputs, beside: Path, how: BatchRun, notes: list[Note]
) -> Steps[tuple[Movie, Finding]]:
    """Find the cells of a movie that has no masks; what is doubtful about them goes to `notes`."""
    finding, known = Finding(how.settings, how.choose), pixels.geometry
    with label_writer(beside / FOUND_HERE[0], known) as writer:
        found = yield from find_masks(finding, pixels, writer.write, channel=how.channel)
    told = [Note(NoteKind.WARNING, f"{words}, by bridgetrack segment") for words in found.doubts]
    notes += told
    about = masks_record({"image": str(inputs.image)}, pixels, found, how.channel)
    about |= {"labels": str(inputs.labels), "cells": found.counts, "notes": note_texts(told)}
    write_json(about, beside / FOUND_HERE[1])
    if found.margins is not None:
        write_margins(found.margins, beside / FOUND_HERE[2])
    masks = open_labels(
        writer.path, scale=known.scale, unit=known.unit, frame_interval=known.frame_interval
    )
    return replace(masks, source=str(inputs.labels)), found.finding


# ------------------------------------------------------------------ the table


def row_of(name: str, tracking: Tracking, warnings: tuple[str, ...] = ()) -> BatchRow:
    """The row of a tracked movie."""
    events = tracking.tracks.events
    joining = events.loc[events["event"].isin(EDGE_EVENTS), margin_column(events)]
    margin = joining.to_numpy(dtype=np.float64)
    sure = expit(margin[~np.isnan(margin)])
    known = len(sure) > 0
    return BatchRow(
        name,
        counts=count_events(tracking.tracks),
        certainty=float(sure.mean()) if known else float("nan"),
        doubtful=float((sure < DOUBTFUL).mean()) if known else float("nan"),
        warnings=warnings,
    )


def ordered(rows: Sequence[BatchRow]) -> tuple[BatchRow, ...]:
    """The rows, least certain first and failed ones last."""
    return tuple(sorted(rows, key=lambda r: (bool(r.problem), _first(r.certainty), r.name)))


def _first(certainty: float) -> float:
    return -1.0 if np.isnan(certainty) else certainty


def table_of(rows: Sequence[BatchRow]) -> pd.DataFrame:
    """The rows as a table; numbers of movies without a result are empty."""
    return pd.DataFrame([_cells(row) for row in rows])


def _cells(row: BatchRow) -> dict[str, Any]:
    counts = row.counts or {}
    named = ("frames", "cells", "tracks", "lineages", "divide")
    found = {("divisions" if k == "divide" else k): counts.get(k) for k in named}
    return {
        "movie": _as_text(row.name),
        **{key: pd.NA if value is None else value for key, value in found.items()},
        "certainty": round(row.certainty, 4),
        "doubtful": round(row.doubtful, 4),
        "seconds": round(row.seconds, 1),
        "problem": _as_text(row.problem),
        "warnings": _as_text("; ".join(row.warnings)),
    }


def _as_text(words: str) -> str:
    """Words that no spreadsheet takes for a formula, as names of files may be."""
    return f"'{words}" if words.startswith(("=", "+", "-", "@", "\t", "\r")) else words


# ------------------------------------------------------------------ the movies of a folder


def movies_of(folder: Path, labels: Path | None = None) -> tuple[BatchFiles, ...]:
    """The movies of a folder, in order of their names.

    Parameters
    ----------
    folder
        Holds movies (files, folders of frames, zarr), masks or tables of cells. Folders of the
        Cell Tracking Challenge that end in ``_GT``, ``_ST`` or ``_RES`` are passed over.
    labels
        Folder with masks under the same names. Without it masks are those that stand beside
        their movie (``NAME_labels``, ``NAME_masks``, ``NAME_cells``) and movies whose pixels are
        cell numbers.

    Raises
    ------
    InputError
        Where there are none, or the folder is itself a movie.
    """
    entries = _entries(folder, "movies")
    masks = {} if labels is None else {_stem(p): p for p in _entries(labels, "masks")}
    beside = {_stem(p): p for p in entries}
    names = [_stem(p) for p in entries]
    taken = {name + end for name in names for end in _MASKS}
    found = []
    for path, name in zip(entries, names, strict=True):
        if name in taken and _without(name) in names and not masks:
            continue
        known = masks.get(name) or next(
            (beside[name + end] for end in _MASKS if name + end in beside), None
        )
        own = path.name if names.count(name) > 1 else name
        found.append(_paired(own, path, known))
    if len(found) > 2 and all(_single(f.image or f.labels) for f in found):
        raise InputError(
            f"{folder}: every file holds one frame, so this folder is itself a movie; give the "
            "folder that holds such folders, or track this one by bridgetrack track"
        )
    return tuple(found)


def _paired(name: str, path: Path, labels: Path | None) -> BatchFiles:
    if path.suffix.lower() in TABLES:
        return BatchFiles(name, None, path)
    if labels is not None:
        return BatchFiles(name, path, labels)
    try:
        masks = looks_like_labels(open_movie(path))
    except BridgetrackError:
        masks = False  # told when it is opened again to be tracked
    return BatchFiles(name, None, path) if masks else BatchFiles(name, path, None)


def _single(path: Path | None) -> bool:
    """Whether a file is a TIFF of one frame."""
    try:
        return path is not None and is_tiff(path) and open_movie(path).n_frames == 1
    except BridgetrackError:
        return False


def _entries(folder: Path, what: str) -> list[Path]:
    if not folder.is_dir():
        raise InputError(
            f"{folder}: there is no such folder; give the folder that holds the {what}"
        )

    def movie(path: Path) -> bool:
        if _NO_MOVIES.fullmatch(path.name):
            return False
        if path.is_dir():
            return is_zarr(path) or any(is_tiff(p) for p in path.iterdir())
        return is_tiff(path) or path.suffix.lower() in (".npy", *TABLES)

    found = sorted((p for p in folder.iterdir() if movie(p)), key=lambda p: p.name)
    if not found:
        raise InputError(
            f"{folder}: there are no {what} in this folder; known are TIFF stacks, folders of "
            "TIFFs, zarr, .npy and tables of cells (.csv)"
        )
    return found


def _stem(path: Path) -> str:
    name = path.name if path.is_dir() and path.suffix.lower() != ".zarr" else path.stem
    return name.removesuffix(".ome")


def _without(name: str) -> str:
    return next((name.removesuffix(end) for end in _MASKS if name.endswith(end)), name)
