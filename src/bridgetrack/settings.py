"""Settings: dataclasses whose fields have limits, which are checked when one is made.

A field's name, type, limits and default are in the dataclass, its help text in the numpydoc
docstring: ``edge: Annotated[float, Field(ge=0, lt=1)] = 0.3``. The options of the command line and
the forms of the window are made from them.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import NoneType
from typing import Any, Literal, TypeVar, dataclass_transform, get_args, get_origin

from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from bridgetrack.errors import InputError
from bridgetrack.schema import in_words

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def settings(what: str) -> Callable[[type[T]], type[T]]:
    """Make a class a frozen dataclass that refuses values outside its limits.

    It raises an InputError that begins with `what`, e.g. ``"segmentation:"``, and names the field.
    """

    def make(kind: type[T]) -> type[T]:
        made: Any = checked_dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))(kind)
        init, parameters = made.__init__, inspect.signature(made)

        @wraps(init)
        def checked(self: T, *given: Any, **named: Any) -> None:
            named = parameters.bind(*given, **named).arguments  # so that each is named
            try:
                init(self, **named)
            except ValidationError as problem:
                raise InputError(f"{what} {in_words(named, problem)}") from None

        made.__init__ = checked
        return made

    return make


@dataclass(frozen=True)
class Option:
    """A setting that a user can choose; limits are infinite if there are none."""

    name: str  # of the field
    kind: type[Any]  # int, float, bool or str
    default: Any
    help: str  # what the docstring of the settings says of it, as one line
    may_be_none: bool  # may be left open
    choices: tuple[Any, ...]  # all values there are; empty if any in the limits will do
    least: float
    most: float


def options_of(kind: type[Any], *names: str) -> tuple[Option, ...]:
    """The options that a class of settings has: those of `names`, or all."""
    words, known, found = _described(kind), kind.__pydantic_fields__, []
    for name in names or known:
        field = known[name]
        parts = [field.annotation, *get_args(field.annotation)]
        choices = next((get_args(part) for part in parts if get_origin(part) is Literal), ())
        plain = next((k for k in parts if k in (bool, int, float, str)), str)
        limits = {type(limit).__name__: limit for limit in field.metadata}
        least = limits["Ge"].ge if "Ge" in limits else -math.inf
        most = limits["Le"].le if "Le" in limits else math.inf
        found.append(
            Option(
                name, plain, field.default, words.get(name, ""), NoneType in parts, choices,
                least, most,
            )
        )  # fmt: skip
    return tuple(found)


def _described(settings: type[Any]) -> dict[str, str]:
    """The text of each parameter in a numpydoc docstring, as one line."""
    text = inspect.getdoc(settings) or ""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\nRaises\n")[0]
    found: dict[str, str] = {}
    for names, description in re.findall(
        r"^(\w[\w, ]*)\n((?:    .*\n?|\n)+)", section, re.MULTILINE
    ):
        plain = " ".join(description.split()).replace("``", "").replace("`", "")
        found |= dict.fromkeys((name.strip() for name in names.split(",")), plain)
    return found
