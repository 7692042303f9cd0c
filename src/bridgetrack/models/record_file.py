"""Entries of the model library as JSON: checked when read, for nobody knows who wrote them."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any

import numpy as np

from bridgetrack.errors import ModelError
from bridgetrack.files import unreadable
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.record import Record
from bridgetrack.models.statistics import QUANTILES, FeatureStatistics

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
