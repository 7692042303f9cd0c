"""What was set and learned about a movie, which stands in the journal of its answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.models.model import MODEL_FILE, Model
from bridgetrack.movie.geometry import Geometry
from bridgetrack.schema import OpenEntry, check, made_by, of_dataclass


@dataclass(frozen=True)
class Scale:
    """Length of a pixel along each axis of space, its unit, and minutes of a frame if known."""

    pixel: tuple[Annotated[float, Field(gt=0)], ...]
    unit: str
    minutes: Annotated[float, Field(gt=0)] | None = None

    @classmethod
    def of(cls, geometry: Geometry) -> Scale:
        """The scale of a movie."""
        return cls(tuple(geometry.scale), geometry.unit, geometry.frame_interval)

    def like(self, other: Scale) -> bool:
        """Whether both say the same, but for rounding."""
        here, there = ((*s.pixel, s.minutes or 0.0) for s in (self, other))
        alike = len(here) == len(there) and all(map(math.isclose, here, there))
        return alike and self.unit == other.unit


@dataclass(frozen=True)
class Outcome:
    """What came of a training, as it is told to people.

    Parameters
    ----------
    words
        What it brought, as sentences.
    suited
        Whether the starting model suits the movie, see `Training`.
    doubtful
        Ids of answers that contradict the starting model clearly.
    """

    words: tuple[str, ...]
    suited: bool = True
    doubtful: tuple[str, ...] = ()


class Settings(OpenEntry):
    """What was set and learned about a movie.

    Parameters
    ----------
    model, start
        The model in use, None for the shipped one; what it began with, where it learned from the
        answers about this movie.
    without
        What cannot happen, in the words of `EventKinds`.
    read, given
        The scale that the movie came with, and the one that was set in its place.
    training
        What came of the last training; None where the model in use was not trained on it.
    formats
        What is ticked for exports.
    """

    model: Annotated[Model, MODEL_FILE.nested] | None = None
    start: Annotated[Model, MODEL_FILE.nested] | None = None
    without: list[str] = Field(default_factory=list)
    read: Annotated[Scale, of_dataclass(Scale)] | None = None
    given: Annotated[Scale, of_dataclass(Scale)] | None = None
    training: Annotated[Outcome, of_dataclass(Outcome)] | None = None
    formats: list[str] = Field(default_factory=lambda: ["csv"])

    @property
    def kinds(self) -> EventKinds:
        """What can happen."""
        return EventKinds.without(self.without)

    def checked(self) -> Settings:
        """These; an `InputError` where what cannot happen is unknown."""
        EventKinds.without(self.without)
        return self


def settings_of(content: Mapping[str, Any], where: str) -> Settings:
    """Settings out of JSON values.

    Raises
    ------
    InputError
        Where they are damaged; the message names the entry of `where`.
    """

    made = Annotated[Any, made_by(Settings, Settings.checked)]
    settings: Settings = check(made, dict(content), where)
    return settings
