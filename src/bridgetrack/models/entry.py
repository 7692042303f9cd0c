"""What the library keeps beside a model: description, date, counts, accuracy, statistics.

Entries of the model library as JSON: checked when read, for nobody knows who wrote them.

One model of the library on disk: a folder with three files, and one file to share it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bridgetrack.errors import ModelError
from bridgetrack.files import unreadable
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import Model, from_json, load_model, save_model, to_json
from bridgetrack.models.statistics import QUANTILES, FeatureStatistics

T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """What is known of a model in the library.

    Parameters
    ----------
    description
        The user's words.
    created
        Day and time in ISO form, with its zone.
    counts
        Annotations of every kind that it learned from.
    accuracy
        Estimated share of right events and its 95 % interval, or None.
    statistics
        Of the movies it learned from; None where nobody knows.
    """

    description: str = ""
    created: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    accuracy: tuple[float, float, float] | None = None
    statistics: FeatureStatistics | None = None


def new_record(
    model: Model,
    description: str = "",
    statistics: FeatureStatistics | None = None,
    counts: Mapping[Event, int] | None = None,
) -> Record:
    """A record of a model that is made now.

    Parameters
    ----------
    model
        The model; its estimated accuracy is taken over.
    description
        The user's words.
    statistics
        Of the movies it learned from.
    counts
        Annotations of every kind that it learned from; without them those of its estimate.
    """
    estimate = model.estimate
    accuracy = None
    try:
        figures = [float(estimate[key]) for key in ("accuracy", "low", "high")]
        accuracy = (figures[0], min(figures[1], figures[0]), max(figures[2], figures[0]))
    except (KeyError, TypeError, ValueError):
        pass
    known = dict(_estimated(estimate)) if counts is None else {e.key: n for e, n in counts.items()}
    return Record(
        description.strip(),
        datetime.now(UTC).isoformat(timespec="seconds"),
        {key: n for key, n in known.items() if n},
        accuracy,
        statistics,
    )


def _estimated(estimate: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Annotations of every kind that an accuracy was estimated from."""
    kinds = {event.key for event in Event}
    for row in estimate.get("per_event", ()):
        if isinstance(row, dict) and row.get("event") in kinds:
            yield row["event"], int(row.get("annotations", 0))


FORMAT = "bridgetrack-library-entry"
VERSION = 1

_MOST_COUNTED = 10**15


def statistics_to_json(statistics: FeatureStatistics) -> dict[str, Any]:
    """Feature statistics as JSON values."""
    return {
        "cells": statistics.n_cells,
        "dimensions": statistics.ndim,
        "events": dict(statistics.events),
        "features": [
            {
                "name": key,
                "count": int(statistics.count[k]),
                "mean": float(statistics.mean[k]),
                "deviation": float(statistics.deviation[k]),
                "quantiles": [float(v) for v in statistics.quantiles[k]],
            }
            for k, key in enumerate(statistics.keys)
        ],
    }


def statistics_from_json(content: Any, where: str = "the feature statistics") -> FeatureStatistics:
    """Feature statistics of JSON values that nobody has checked.

    Raises
    ------
    ModelError
        Where they are damaged.
    """
    read = _Reader(where)
    content = read.mapping(content, "the feature statistics")
    entries = content.get("features")
    if not isinstance(entries, list) or not entries:
        raise ModelError(f'{where}: "features" of the statistics must be a list with entries')
    keys, count, numbers = [], [], []
    for k, value in enumerate(entries):
        name = f"feature number {k + 1} of the statistics"
        entry = read.mapping(value, name)
        if not isinstance(entry.get("name"), str):
            raise ModelError(f"{where}: {name} has no name")
        keys.append(entry["name"])
        count.append(read.count(entry.get("count"), name))
        quantiles = entry.get("quantiles")
        if not isinstance(quantiles, list) or len(quantiles) != len(QUANTILES):
            raise ModelError(f"{where}: {name} needs {len(QUANTILES)} quantiles")
        values = [entry.get("mean"), entry.get("deviation"), *quantiles]
        numbers.append([read.number(value, name) for value in values])
    table = np.asarray(numbers, dtype=np.float64)
    ndim = read.count(content.get("dimensions"), '"dimensions"')
    if ndim not in (2, 3):
        raise ModelError(f'{where}: "dimensions" must be 2 or 3')
    try:
        return FeatureStatistics(
            tuple(keys),
            np.asarray(count, dtype=np.int64),
            table[:, 0],
            table[:, 1],
            table[:, 2:],
            read.counts(content.get("events", {}), '"events"'),
            read.count(content.get("cells"), '"cells"'),
            ndim,
        )
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error


def record_to_json(record: Record) -> dict[str, Any]:
    """A record as JSON values."""
    known = record.statistics
    return {
        "format": FORMAT,
        "version": VERSION,
        "description": record.description,
        "created": record.created,
        "counts": dict(record.counts),
        "accuracy": None if record.accuracy is None else list(record.accuracy),
        "statistics": None if known is None else statistics_to_json(known),
    }


def record_from_json(content: Any, where: str) -> Record:
    """A record of JSON values that nobody has checked.

    Raises
    ------
    ModelError
        Where they are damaged, of another kind or of a later version.
    """
    read = _Reader(where)
    content = read.mapping(content, "the entry")
    if content.get("format") != FORMAT:
        raise ModelError(f'{where}: this is no entry of a model library (no "format": "{FORMAT}")')
    version = content.get("version")
    if version != VERSION:
        raise ModelError(
            f"{where}: the entry has file version {version}, this program reads {VERSION}; "
            "update Bridgetrack"
        )
    statistics = content.get("statistics")
    return Record(
        read.text(content.get("description", ""), '"description"'),
        read.date(content.get("created", "")),
        read.counts(content.get("counts", {}), '"counts"'),
        read.accuracy(content.get("accuracy")),
        None if statistics is None else statistics_from_json(statistics, where),
    )


def record_from_text(text: str, where: str) -> Record:
    """A record from the text of its file; see `record_from_json`."""
    try:
        content = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        kind = "an entry of a model library"
        raise ModelError(f"{where}: {unreadable(text, kind, error)}") from error
    return record_from_json(content, where)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


def record_text(record: Record) -> str:
    """A record as the text of its file.

    Raises
    ------
    ModelError
        Where it holds what JSON cannot say.
    """
    try:
        text = json.dumps(record_to_json(record), indent=1, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise ModelError(f"the entry of the library cannot be written ({error})") from error
    return text + "\n"


class _Reader:
    """Checks values and says where they are wrong."""

    def __init__(self, where: str) -> None:
        self._where = where

    def mapping(self, value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ModelError(f"{self._where}: {what} must be an object")
        return value

    def text(self, value: Any, what: str) -> str:
        if not isinstance(value, str):
            raise ModelError(f"{self._where}: {what} must be text")
        return value

    def number(self, value: Any, what: str) -> float:
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or abs(value) > 1e15 or not math.isfinite(value):
            raise ModelError(f"{self._where}: {what} needs finite numbers")
        return float(value)

    def count(self, value: Any, what: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ModelError(f"{self._where}: {what} needs a whole number")
        if not 0 <= value <= _MOST_COUNTED:
            raise ModelError(f"{self._where}: {what} needs a number that is not negative")
        return value

    def counts(self, value: Any, what: str) -> dict[str, int]:
        known = {event.key for event in Event}
        table = self.mapping(value, what)
        for key in table:
            if key not in known:
                raise ModelError(f"{self._where}: {what} names the unknown event {key!r}")
        return {key: self.count(number, what) for key, number in table.items()}

    def date(self, value: Any) -> str:
        text = self.text(value, '"created"')
        if text:
            try:
                datetime.fromisoformat(text)
            except ValueError as error:
                raise ModelError(f'{self._where}: "created" is no date ({error})') from error
        return text

    def accuracy(self, value: Any) -> tuple[float, float, float] | None:
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 3:
            raise ModelError(f'{self._where}: "accuracy" must be three numbers or null')
        a, low, high = (self.number(v, '"accuracy"') for v in value)
        if not 0 <= low <= a <= high <= 1:
            raise ModelError(f'{self._where}: "accuracy" must be between 0 and 1, in its interval')
        return a, low, high


MODEL, RECORD, PREVIEW = "model.json", "entry.json", "preview.png"

_LARGEST = 20_000_000
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EMBEDDED = "library"


@dataclass(frozen=True)
class Entry:
    """A model of the library, or what is left of one.

    Parameters
    ----------
    name
        What to call it by.
    folder
        Where it is.
    model, record
        What was read; None where it is damaged.
    preview
        File of a picture, None where there is none.
    problem
        Why it is damaged; empty where it is not.
    """

    name: str
    folder: Path
    model: Model | None
    record: Record | None
    preview: Path | None
    problem: str = ""

    @property
    def damaged(self) -> bool:
        """Whether it cannot be used."""
        return bool(self.problem)


def read_entry(folder: Path) -> Entry:
    """What is in a folder of the library; where it is damaged, why."""
    preview = folder / PREVIEW
    shown = preview if _is_picture(preview) else None
    try:
        model = replace(_file(folder / MODEL, from_json), name=folder.name)
        record = _file(folder / RECORD, record_from_text)
    except ModelError as error:
        return Entry(folder.name, folder, None, None, shown, str(error))
    return Entry(folder.name, folder, model, record, shown)


def write_entry(folder: Path, model: Model, record: Record, preview: bytes | None) -> None:
    """Make a folder that holds a model.

    Raises
    ------
    ModelError
        Where something is not made of finite JSON values; nothing is written then.
    OSError
        Where it cannot be written.
    """
    texts = {MODEL: to_json(model), RECORD: record_text(record)}
    folder.mkdir()
    for name, text in texts.items():
        _write(folder / name, text.encode("utf-8"))
    if preview is not None:
        _write(folder / PREVIEW, preview)


def write_model_file(model: Model, record: Record | None, path: Path | str) -> Path:
    """A model file that holds what is known of the model too."""
    known = {} if record is None else {_EMBEDDED: record_to_json(record)}
    return save_model(replace(model, provenance={**model.provenance, **known}), path)


def read_model_file(path: Path | str) -> tuple[Model, Record | None]:
    """A model file and, where `write_model_file` wrote it, what is known of the model.

    Raises
    ------
    ModelError
        Where the file cannot be read or is damaged.
    """
    model = load_model(path)
    provenance = dict(model.provenance)
    embedded = provenance.pop(_EMBEDDED, None)
    record = None if embedded is None else record_from_json(embedded, str(path))
    return replace(model, provenance=provenance), record


def _file(path: Path, parse: Callable[[str, str], T]) -> T:
    """Read a small text file.

    Raises
    ------
    ModelError
        Where it is missing, too large, not text, or `parse` refuses it.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise ModelError(f"{path}: the file is far too large for what it should hold")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelError(f"{path}: the file cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: the file is damaged (it is not text)") from error
    return parse(text, str(path))


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _is_picture(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_SIGNATURE)) == _SIGNATURE and path.stat().st_size <= _LARGEST
    return False
