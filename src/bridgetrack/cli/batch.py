"""``bridgetrack batch``: every movie of a folder, tracked with one model, and a table of all."""

from __future__ import annotations

import json as json_library
import math
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import Stopwatch, answer, note_texts, show, table
from bridgetrack.cli.options import (
    Formats,
    Json,
    MovieOptions,
    OutFolder,
    Repair,
    Weights,
    Without,
    channel_option,
    check_file,
    make,
    one_option_each,
    parse_channel,
    parse_choices,
    parse_kinds,
)
from bridgetrack.cli.record import check_run, finish, write_json
from bridgetrack.cli.repair import remarks_on_repair, repaired_labels
from bridgetrack.cli.segment import described, segmenting, write_margins
from bridgetrack.cli.sources import (
    FOUND_HERE,
    RunInputs,
    collecting_warnings,
    open_sources,
    open_weights,
)
from bridgetrack.errors import BridgetrackError, InputError, OutputError
from bridgetrack.files import lent_folder, replacing, resolved
from bridgetrack.hypotheses.kinds import EVERYTHING, EventKinds
from bridgetrack.io.may_write import signed
from bridgetrack.notes import Note, NoteKind, plural
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.segmentation.settings import MaskChoice, SegmentationSettings

if TYPE_CHECKING:
    from bridgetrack.models.model import Model
    from bridgetrack.movie.movie import Movie
    from bridgetrack.pipeline.batch import BatchRow
    from bridgetrack.pipeline.finding import Finding

TABLE = "batch.csv"
"""Name of the table of all movies."""

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
        Whether masks of movies that have some are mended first.
    kinds
        What can happen in the movies.
    reading
        How the files are read.
    """

    folder: Path
    out: Path
    model: Model | Path | None = None
    labels: Path | None = None
    formats: tuple[str, ...] = ("csv",)
    choose: MaskChoice = field(default_factory=MaskChoice)
    settings: SegmentationSettings = field(default_factory=SegmentationSettings)
    channel: int | str = 0
    repair: bool = False
    kinds: EventKinds = EVERYTHING
    reading: MovieOptions = field(default_factory=MovieOptions)


@one_option_each(MaskChoice)
@one_option_each(SegmentationSettings, "diameter")
def batch(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder of movies: raw ones, masks, or tables of cells; NAME.tif goes with "
            "NAME_labels.tif, _masks or _cells.",
            show_default=False,
        ),
    ],
    out: OutFolder,
    *,
    model: Weights = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels", metavar="DIR", help="Folder with the masks, named as their movies are."
        ),
    ] = None,
    formats: Formats = "csv",
    channel: Annotated[str | None, channel_option()] = None,
    repair: Repair = False,
    without: Without = "",
    reading: MovieOptions,
    json: Json = False,
    **settings: Any,
) -> None:
    """Track every movie of a folder with one model.

    Movies without masks are segmented first. Every movie gets a folder of results in DIR, and
    DIR/batch.csv lists them all, the least certain first. A movie that fails does not stop the
    others; the exit status is 1 then.
    """
    from bridgetrack.io.results import FORMATS

    wanted, kinds = parse_choices(formats, FORMATS, "--format"), parse_kinds(without)
    choose = make(MaskChoice, choose=settings.pop("choose"))
    given = BatchRun(
        folder, out, model, labels, wanted, choose, make(SegmentationSettings, **settings),
        parse_channel(channel), repair, kinds, reading,
    )  # fmt: skip
    rows = show(batch_steps(given))
    failed = [r for r in rows if r.problem]
    record = {
        "table": str(out / TABLE),
        "movies": records_of(rows),
        "failed": len(failed),
    }
    answer(json, record, lambda: lines_of(rows, out))
    if failed:
        first = failed[0]
        typer.echo(
            f"error: {len(failed)} of {plural(len(rows), 'movie')} failed; {first.name}: "
            f"{first.problem}",
            err=True,
        )
        raise typer.Exit(1)


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
    from bridgetrack.models.library import find_model_file
    from bridgetrack.models.shipped import shipped_model
    from bridgetrack.pipeline.batch import ordered

    if resolved(given.out) == resolved(given.folder):
        raise OutputError(f"{given.out}: results need a folder of their own, beside the movies")
    movies = movies_of(given.folder, given.labels)
    named = given.model if isinstance(given.model, Path) else None
    file = None if named is None else find_model_file(named)
    own = None if isinstance(given.model, Path) else given.model
    model = own or open_weights(file) or shipped_model()
    place, read = given.out / TABLE, [path for m in movies for path in (m.image, m.labels)]
    check_file(place, *read, file)
    rows: list[BatchRow] = []
    done: tuple[BatchRow, ...] = ()
    for k, movie in enumerate(movies):
        told = partial(_told, k, len(movies), movie.name)
        yield told(Progress("Opening", 0.0))
        row = yield from _tried(movie, given, file, model, told)
        rows.append(row)
        done = ordered(rows)
        _write_table(done, place)
    return done


def _told(k: int, n: int, name: str, step: Progress) -> Progress:
    return Progress(f"{k + 1} of {n}, {name}: {step.stage}", step.done)


def _tried(
    movie: BatchFiles, given: BatchRun, file: Path | None, model: Model, told: Any
) -> Steps[BatchRow]:
    """Track one movie; a row that says why, where that fails."""
    from bridgetrack.pipeline.batch import BatchRow

    began = time.perf_counter()
    work = _track(movie, given, file, model, began)
    try:
        return (yield from relayed(work, told))
    except BridgetrackError as error:
        problem = str(error)
    except MemoryError:
        problem = "not enough memory for this movie"
    except Exception as error:
        problem = f"unexpected error: {type(error).__name__}: {error}"
    return BatchRow(movie.name, " ".join(problem.split()), seconds=time.perf_counter() - began)


def _track(
    movie: BatchFiles, given: BatchRun, file: Path | None, model: Model, began: float
) -> Steps[BatchRow]:
    from bridgetrack.pipeline.batch import row_of
    from bridgetrack.pipeline.tracking import track_steps

    out, watch, notes = given.out / movie.name, Stopwatch(), list[Note]()
    found, gap, beside = None, None, None
    with ExitStack() as temporary:
        labels = movie.labels or out / FOUND_HERE[0]
        repairs = given.repair and movie.labels is not None and movie.image is not None
        inputs = RunInputs(
            labels, movie.image, file, None, given.reading, given.formats, command="batch",
            found_here=movie.labels is None, repair=repairs, without=given.kinds.words,
            channel=given.channel,
        )  # fmt: skip
        check_run(out, inputs)
        with collecting_warnings(notes):  # ends before the record is written, which tells of them
            if inputs.found_here or repairs:
                beside = temporary.enter_context(lent_folder(out))
            if movie.labels is not None:
                cells, pixels = open_sources(labels, movie.image, given.reading, notes)
            else:
                assert movie.image is not None and beside is not None
                pixels = _opened(movie.image, given.reading)
                work = _found_here(pixels, inputs, beside, given, notes)
                cells, found = yield from _watched(work, watch)
            if repairs:
                assert beside is not None
                mending = repaired_labels(cells, pixels, model, beside, out, channel=given.channel)
                cells, gap = yield from _watched(mending, watch)
                notes += remarks_on_repair(cells, gap)
            elif given.repair and movie.labels is not None:
                words = "the masks were not repaired, as there is no image of them in the folder"
                notes.append(Note(NoteKind.WARNING, words))
            tracked = track_steps(cells, pixels, model, kinds=given.kinds)
            tracking = yield from _watched(tracked, watch)
        finish(tracking, out, inputs, watch, notes, beside, found, gap)
    told = tuple(n.words for n in notes if n.kind == NoteKind.WARNING)
    return row_of(movie.name, tracking, time.perf_counter() - began, told)


def _found_here(
    pixels: Movie, inputs: RunInputs, beside: Path, how: BatchRun, notes: list[Note]
) -> Steps[tuple[Movie, Finding]]:
    """Find the cells of a movie that has no masks; what is doubtful about them goes to `notes`."""
    from bridgetrack.movie.opening import open_labels

    found = yield from segmenting(
        pixels, beside / FOUND_HERE[0], how.settings, channel=how.channel,
        choose=how.choose.choose,
    )  # fmt: skip
    doubts = () if found.estimate is None else found.estimate.doubts
    told = [Note(NoteKind.WARNING, f"{words}, by bridgetrack segment") for words in doubts]
    notes += told
    about = described({"image": inputs.image}, pixels, found, how.channel)
    about |= {"labels": str(inputs.labels), "cells": found.counts, "notes": note_texts(told)}
    write_json(about, beside / FOUND_HERE[1])
    if found.margins is not None:
        write_margins(found.margins, beside / FOUND_HERE[2])
    known = pixels.geometry
    masks = open_labels(
        found.path, scale=known.scale, unit=known.unit, frame_interval=known.frame_interval
    )
    return replace(masks, source=str(inputs.labels)), found.finding


def _watched(steps: Steps[Any], watch: Stopwatch) -> Steps[Any]:
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            watch.stop()
            return end.value
        watch(step)
        yield step


def _opened(image: Path, reading: MovieOptions) -> Any:
    from bridgetrack.cli.options import parse_scale
    from bridgetrack.movie.opening import open_movie

    return open_movie(
        image, axes=reading.image_axes or reading.axes, scale=parse_scale(reading.scale),
        unit=reading.unit, frame_interval=reading.frame_interval,
    )  # fmt: skip


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
    from bridgetrack.io.tables import TABLES
    from bridgetrack.movie.movie import looks_like_labels
    from bridgetrack.movie.opening import open_movie

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
    from bridgetrack.movie.opening import open_movie
    from bridgetrack.movie.tiff import is_tiff

    try:
        return path is not None and is_tiff(path) and open_movie(path).n_frames == 1
    except BridgetrackError:
        return False


def _entries(folder: Path, what: str) -> list[Path]:
    from bridgetrack.io.tables import TABLES
    from bridgetrack.movie.tiff import is_tiff
    from bridgetrack.movie.zarr_store import is_zarr

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


def _write_table(rows: Sequence[BatchRow], path: Path) -> None:
    from bridgetrack.pipeline.batch import table_of

    with signed(path) as spare, replacing(spare, "the table of all movies") as file:
        table_of(rows).to_csv(file, index=False, lineterminator="\n")


def records_of(rows: Sequence[BatchRow]) -> list[dict[str, Any]]:
    """The rows as JSON values."""
    from bridgetrack.pipeline.batch import table_of

    found: list[dict[str, Any]] = json_library.loads(table_of(rows).to_json(orient="records"))
    return found


def lines_of(rows: Sequence[BatchRow], out: Path) -> list[str]:
    """The table for people, and what to look at first."""
    good = [r for r in rows if not r.problem]
    cells = [
        [
            r.name,
            *(f"{(r.counts or {}).get(key, 0):,}" for key in ("cells", "tracks", "divide")),
            "-" if r.certainty != r.certainty else f"{100 * r.certainty:.1f} %",
            "-" if r.doubtful != r.doubtful else f"{100 * r.doubtful:.1f} %",
        ]
        for r in good
    ]
    header = ["movie", "cells", "tracks", "divisions", "certain", "doubtful"]
    lines = table(header, cells) if good else []
    lines += [f"warning: {r.name}: {words}" for r in good for words in r.warnings]
    return [*lines, f"{plural(len(good), 'movie')} tracked; table of all: {out / TABLE}"]


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f} %"
