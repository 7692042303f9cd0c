"""A model of the library on disk: a folder with the model, its card and a picture; or one file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from bridgetrack.errors import ModelError
from bridgetrack.hypotheses.events import Event, EventName
from bridgetrack.models.model import Model, load_model, model_text, save_model
from bridgetrack.models.statistics import QUANTILES, FeatureStatistics
from bridgetrack.schema import (
    Count,
    FileFormat,
    OpenEntry,
    Share,
    json_text,
    made_by,
)

MODEL, CARD, PREVIEW = "model.json", "entry.json", "preview.png"
"""Names of the files of a model in the library."""

_IN_PROVENANCE = "library"
_LARGEST = 20_000_000
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class ModelCard:
    """What is known of a model besides its weights."""

    description: str = ""  # the user's words
    created: str = ""  # day and time in ISO form, with its zone
    # annotations of every kind that it learned from
    counts: dict[str, int] = field(default_factory=dict)
    # estimated share of right events and its 95 % interval, or None
    accuracy: tuple[float, float, float] | None = None
    # of the movies it learned from; None where nobody knows
    statistics: FeatureStatistics | None = None


def new_card(
    model: Model,
    description: str = "",
    statistics: FeatureStatistics | None = None,
    counts: Mapping[Event, int] | None = None,
) -> ModelCard:
    """The card of a model that is made now.

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
    return ModelCard(
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


def _day(text: str) -> str:
    if text:
        datetime.fromisoformat(text)
    return text


class _Feature(OpenEntry):
    name: str
    count: Count
    mean: float
    deviation: float = Field(ge=0)
    quantiles: list[float] = Field(min_length=len(QUANTILES), max_length=len(QUANTILES))


class _Statistics(OpenEntry):
    cells: Count
    dimensions: int = Field(ge=2, le=3)
    events: dict[EventName, Count] = Field(default_factory=dict)
    features: list[_Feature] = Field(min_length=1)

    def statistics(self) -> FeatureStatistics:
        return FeatureStatistics(
            tuple(f.name for f in self.features),
            np.asarray([f.count for f in self.features], dtype=np.int64),
            np.asarray([f.mean for f in self.features], dtype=np.float64),
            np.asarray([f.deviation for f in self.features], dtype=np.float64),
            np.asarray([f.quantiles for f in self.features], dtype=np.float64),
            {str(key): n for key, n in self.events.items()},
            self.cells,
            self.dimensions,
        )


StatisticsField = Annotated[FeatureStatistics, made_by(_Statistics, _Statistics.statistics)]
"""What `statistics_to_json` wrote, as a field of a schema."""


class _Content(OpenEntry):
    description: str = ""
    created: Annotated[str, AfterValidator(_day)] = ""
    counts: dict[EventName, Count] = Field(default_factory=dict)
    accuracy: list[Share] | None = Field(default=None, min_length=3, max_length=3)
    statistics: StatisticsField | None = None

    def card(self) -> ModelCard:
        accuracy = None
        if self.accuracy is not None:
            value, low, high = self.accuracy
            if not low <= value <= high:
                raise ModelError(f"accuracy: {value} lies outside its interval {low} to {high}")
            accuracy = value, low, high
        counts = {str(key): n for key, n in self.counts.items()}
        return ModelCard(self.description, self.created, counts, accuracy, self.statistics)


CARD_FILE = FileFormat(
    "bridgetrack-library-entry",
    1,
    "an entry of a model library",
    _Content,
    _Content.card,
    ModelError,
)
"""Files of cards; `card_to_json` makes their content."""


def card_to_json(card: ModelCard) -> dict[str, Any]:
    """A card as the JSON values of its file."""
    known = card.statistics
    return {
        **CARD_FILE.head,
        "description": card.description,
        "created": card.created,
        "counts": dict(card.counts),
        "accuracy": None if card.accuracy is None else list(card.accuracy),
        "statistics": None if known is None else statistics_to_json(known),
    }


def statistics_to_json(statistics: FeatureStatistics) -> dict[str, Any]:
    """Feature statistics as JSON values."""
    columns = {
        "name": statistics.keys,
        "count": statistics.count.tolist(),
        "mean": statistics.mean.tolist(),
        "deviation": statistics.deviation.tolist(),
        "quantiles": statistics.quantiles.tolist(),
    }
    rows = zip(*columns.values(), strict=True)
    return {
        "cells": statistics.n_cells,
        "dimensions": statistics.ndim,
        "events": dict(statistics.events),
        "features": [dict(zip(columns, row, strict=True)) for row in rows],
    }


@dataclass(frozen=True)
class ModelEntry:
    """A model of the library, or what is left of one.

    Parameters
    ----------
    name
        What to call it by.
    folder
        Where it is.
    model, card
        What was read; None where it is damaged.
    preview
        File of a picture, None where there is none.
    problem
        Why it is damaged; None where it is not.
    """

    name: str
    folder: Path
    model: Model | None
    card: ModelCard | None
    preview: Path | None
    problem: str | None = None

    @property
    def damaged(self) -> bool:
        """Whether it cannot be used."""
        return self.problem is not None


def read_entry(folder: Path) -> ModelEntry:
    """What is in a folder of the library; where it is damaged, why."""
    preview = folder / PREVIEW
    shown = preview if _is_picture(preview) else None
    try:
        model = replace(load_model(folder / MODEL), name=folder.name)
        return ModelEntry(folder.name, folder, model, CARD_FILE.read(folder / CARD), shown)
    except ModelError as error:
        return ModelEntry(folder.name, folder, None, None, shown, str(error))


def write_entry(folder: Path, model: Model, card: ModelCard, preview: bytes | None) -> None:
    """Make a folder that holds a model."""
    text = json_text(card_to_json(card), "the card of the model", ModelError, ascii_only=False)
    files = {MODEL: model_text(model).encode("utf-8"), CARD: text.encode("utf-8")}
    if preview is not None:
        files[PREVIEW] = preview
    folder.mkdir()
    for name, content in files.items():
        _write(folder / name, content)


def write_model_file(model: Model, card: ModelCard | None, path: Path | str) -> Path:
    """A model file that holds the card of the model, too, among its provenance."""
    more = {} if card is None else {_IN_PROVENANCE: card_to_json(card)}
    return save_model(replace(model, provenance={**model.provenance, **more}), path)


def read_model_file(path: Path | str) -> tuple[Model, ModelCard | None]:
    """A model file and, where `write_model_file` wrote it, the card of the model.

    Raises
    ------
    ModelError
        Where the file cannot be read or is damaged.
    """
    model = load_model(path)
    provenance = dict(model.provenance)
    content = provenance.pop(_IN_PROVENANCE, None)
    card = None if content is None else CARD_FILE.check(content, f"{path}: the card")
    return replace(model, provenance=provenance), card


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _is_picture(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_SIGNATURE)) == _SIGNATURE and path.stat().st_size <= _LARGEST
    return False
