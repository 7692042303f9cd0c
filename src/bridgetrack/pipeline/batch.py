"""Many movies: every one of a folder, tracked with one model, and a table of all."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridgetrack.errors import BridgetrackError, InputError, Note, NoteKind, OutputError, warn
from bridgetrack.files import check_file, resolved, signed, writing
from bridgetrack.io.tables import TABLES, is_text_table, table_holds
from bridgetrack.movie.movie import looks_like_labels
from bridgetrack.movie.opening import open_movie
from bridgetrack.movie.tiff import is_tiff, one_frame
from bridgetrack.movie.zarr_store import is_zarr
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.inputs import RunInputs, open_model
from bridgetrack.pipeline.runs import run_steps
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.tracks.table import certainty_of
from bridgetrack.tracks.tracks import EDGE_EVENTS, MARGIN

TABLE = "batch.csv"
"""Name of the table of all movies."""
DOUBTFUL = 0.9
"""Events that are less probable than this, against their best alternative, are doubtful."""

_COUNTS = ("frames", "cells", "tracks", "lineages", "divisions")
_COLUMNS = (
    "movie", *_COUNTS, "certainty", "doubtful", "seconds", "problem", "warnings",
)  # fmt: skip
_MASKS = ("_labels", "_masks", "_cells")
"""Endings of the names of masks beside their movie."""
_NO_MOVIES = re.compile(r"\..*|.*_(GT|ST|RES)|.*\.check\.csv")


@dataclass(frozen=True)
class BatchFiles:
    """One movie of a folder, by name, with the files of its intensities and of its masks."""

    name: str
    image: Path | None
    labels: Path | None  # None: they are to be found


def batch_steps(
    folder: Path,
    out: Path,
    given: RunInputs,
    *,
    masks: Path | None = None,
    how: Finding | None = None,
) -> Steps[pd.DataFrame]:
    """Track every movie of a folder; a table with a row for each, least certain first.

    ``certainty`` is the mean probability of the events that join cells, each against its best
    alternative, ``doubtful`` the share of those below `DOUBTFUL`; where margins are lower bounds,
    so are these. ``problem`` says why a movie has no result, ``warnings`` what is probably wrong.

    The table is written anew after every movie, so it is complete up to the last finished movie. It
    stands in `out`, beside a folder for each result. What is `given` is done to every movie, but
    for its labels and image. `masks` is a folder with masks of the movies, under the same names;
    `how` says how cells of those that have none are found.

    Raises an `InputError` where there are no movies (see `movies_of`), a `ModelError` where the
    model cannot be used, and an `OutputError` where the results have no place.
    """
    if resolved(out) == resolved(folder):
        raise OutputError(f"{out}: results need a folder of their own, beside the movies")
    movies = movies_of(folder, masks, given.options.columns)
    open_model(given.model)  # refused before the work
    place = out / TABLE
    check_file(place, *given.files, *(path for m in movies for path in (m.image, m.labels)))
    rows: list[dict[str, Any]] = []
    for k, movie in enumerate(movies):
        told = partial(_told, k, len(movies), movie.name)
        yield told(Progress("Opening", 0.0))
        both = movie.labels is not None and movie.image is not None
        mine = replace(
            given,
            labels=movie.labels,
            image=movie.image,
            options=replace(given.options, repair=both and given.options.repair),
        )
        work = _tried(movie.name, run_steps(mine, out / movie.name, how=how))
        row = yield from relayed(work, told)
        if given.options.repair and movie.image is None and not row["problem"]:
            words = "the masks were not repaired, as there is no image of them in the folder"
            row["warnings"] = "; ".join(filter(None, [words, row["warnings"]]))
        rows.append(row)
        with signed(place) as spare, writing(place, "the table of all movies"):
            written = _ordered(rows).map(_no_formula)
            written.to_csv(spare, index=False, lineterminator="\n")
    return _ordered(rows)


def _told(k: int, n: int, name: str, step: Progress) -> Progress:
    return Progress(f"{k + 1} of {n}, {name}: {step.stage}", step.done)


def _tried(
    name: str, work: Steps[tuple[Tracking, dict[str, Any], list[Note]]]
) -> Steps[dict[str, Any]]:
    """Track one movie; returns its row, with the reason if that fails."""
    began, problem = time.perf_counter(), ""
    row: dict[str, Any] = {"warnings": ""}
    try:
        tracking, record, notes = yield from work
        warned = [n.words for n in notes if n.kind == NoteKind.WARNING]
        row = {**record["counts"], **_certainty(tracking), "warnings": "; ".join(warned)}
    except BridgetrackError as error:
        problem = str(error)
    except MemoryError:
        problem = "not enough memory for this movie"
    except Exception as error:
        problem = f"unexpected error: {type(error).__name__}: {error}"
    seconds = round(time.perf_counter() - began, 1)
    return {"movie": name, "seconds": seconds, "problem": " ".join(problem.split()), **row}


# ------------------------------------------------------------------ the table


def _certainty(tracking: Tracking) -> dict[str, float]:
    """Certainty of the events of a tracked movie that join cells."""
    events = tracking.tracks.events
    joining = events.loc[events["event"].isin(EDGE_EVENTS), MARGIN].dropna()
    sure = certainty_of(joining.to_numpy(dtype=np.float64))
    if not len(sure):
        return {}
    doubtful = (sure < DOUBTFUL).mean()
    return {"certainty": round(float(sure.mean()), 4), "doubtful": round(float(doubtful), 4)}


def _ordered(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows as a table, least certain first and failed ones last; unknown values are empty."""
    table = pd.DataFrame(rows).rename(columns={"divide": "divisions"})
    table = table.reindex(columns=list(_COLUMNS)).astype(dict.fromkeys(_COUNTS, "Int64"))
    table = table.assign(failed=table["problem"] != "")
    order = ["failed", "certainty", "movie"]
    table = table.sort_values(order, na_position="first", ignore_index=True)
    return table.drop(columns="failed")


def _no_formula(value: Any) -> Any:
    """Text that a spreadsheet does not take for a formula, as it might the name of a file."""
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if formula else value


# ------------------------------------------------------------------ the movies of a folder


def movies_of(
    folder: Path, labels: Path | None = None, columns: Mapping[str, str] | None = None
) -> tuple[BatchFiles, ...]:
    """The movies of a folder, in order of their names.

    It holds movies (files, folders of frames, zarr), masks or tables of cells. Folders of the Cell
    Tracking Challenge that end in ``_GT``, ``_ST`` or ``_RES`` are passed over, and so are tables
    that hold no cells, after a warning; `columns` are those of tables, by role. `labels` is a
    folder with masks under the same names. Without it masks are those that stand beside their movie
    (``NAME_labels``, ``NAME_masks``, ``NAME_cells``) and movies whose pixels are cell numbers.

    Raises an `InputError` where there are none, or the folder is itself a movie.
    """
    entries = _entries(folder, "movies", columns)
    masks = {} if labels is None else {_stem(p): p for p in _entries(labels, "masks", columns)}
    names = [_stem(p) for p in entries]
    beside = dict(zip(names, entries, strict=True))
    of_movies = set() if masks else {name + end for name in names for end in _MASKS}
    found = []
    for path, name in zip(entries, names, strict=True):
        if name in of_movies:
            continue
        known = (masks.get(name), *(beside.get(name + end) for end in _MASKS))
        own = path.name if names.count(name) > 1 else name
        found.append(_paired(own, path, next(filter(None, known), None)))
    if len(found) > 2 and all(_holds_one_frame(f) for f in found):
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
        masks = False  # reported when it is opened again to be tracked
    return BatchFiles(name, None, path) if masks else BatchFiles(name, path, None)


def _holds_one_frame(movie: BatchFiles) -> bool:
    path = movie.image or movie.labels
    return path is not None and is_tiff(path) and one_frame(path)


def _entries(folder: Path, what: str, columns: Mapping[str, str] | None) -> list[Path]:
    if not folder.is_dir():
        wrong = "this is a file" if folder.exists() else "there is no such folder"
        raise InputError(f"{folder}: {wrong}; give the folder that holds the {what}")

    def movie(path: Path) -> bool:
        if _NO_MOVIES.fullmatch(path.name):
            return False
        if path.is_dir():
            return is_zarr(path) or any(is_tiff(p) for p in path.iterdir())
        return is_tiff(path) or path.suffix.lower() == ".npy" or is_text_table(path)

    found = sorted((p for p in folder.iterdir() if movie(p)), key=lambda p: p.name)
    other = [p for p in found if is_text_table(p) and not table_holds(p, columns)]
    found = [p for p in found if p not in other]
    if other:
        warn(
            f"{folder}: left alone, as they have no columns of frames and positions (if they do, "
            f"name them with --columns): {', '.join(p.name for p in other)}"
        )
    if not found:
        raise InputError(
            f"{folder}: there are no {what} in this folder; known are TIFF stacks, folders of "
            "TIFFs, zarr, .npy and tables of cells (.csv) with frames and positions"
        )
    return found


def _stem(path: Path) -> str:
    name = path.name if path.is_dir() and path.suffix.lower() != ".zarr" else path.stem
    return name.removesuffix(".ome")
