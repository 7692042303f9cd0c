"""Options of the command line and of forms, made from a dataclass of settings.

A field's name, type and default are in the dataclass, its help text in the numpydoc docstring, and
its limits beside the default: ``edge: float = option(0.3, least=0, below=1)``.
"""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from bridgetrack.errors import InputError


@dataclass(frozen=True)
class Option:
    """A setting that a user can choose; limits are infinite if there are none."""

    name: str  # of the field
    kind: type[Any]  # int, float, bool or str
    default: Any
    help: str  # what the docstring of the settings says of it, as one line
    may_be_none: bool = False  # may be left open
    choices: tuple[Any, ...] = ()  # all values there are; empty if any in the limits will do
    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf  # itself out of range, as is `below`
    below: float = math.inf

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, as ``"is 3; it must be at most 2"``; None if it is fine.

        Numbers must be finite.
        """
        if value is None and self.may_be_none:
            return None
        if self.choices:
            known = ", ".join(map(str, self.choices))
            return None if value in self.choices else f"is {value!r}; choose from {known}"
        if self.kind not in (int, float):
            return None
        finite = math.isfinite(value)
        if finite and self.least <= value <= self.most and self.above < value < self.below:
            return None
        words = {"at least": self.least, "above": self.above, "at most": self.most}
        words["below"] = self.below
        limits = [f"{word} {limit:.15g}" for word, limit in words.items() if math.isfinite(limit)]
        return f"is {value:g}; it must be {' and '.join(limits) or 'a finite number'}"


def option(default: Any, **declared: Any) -> Any:
    """A field of settings with limits or choices; see `Option` for these words.

    Choices are needed only where the field's type is no ``Literal``.
    """
    return field(default=default, metadata={"option": declared})


def options_of(settings: type[Any], *names: str) -> tuple[Option, ...]:
    """The options that a dataclass of settings has.

    Parameters
    ----------
    settings
        A dataclass in which every field that is asked for has a default.
    names
        Fields to take, in this order; where none are given, all that hold a plain value.
    """
    words, kinds = _described(settings), get_type_hints(settings)
    known = {f.name: f for f in fields(settings)}
    found = []
    for name in names or tuple(known):
        declared = dict(known[name].metadata.get("option", {}))
        parts = [kinds[name], *get_args(kinds[name])]
        literal = next((get_args(part) for part in parts if get_origin(part) is Literal), ())
        choices = declared.pop("choices", ()) or literal
        may_be_none = NoneType in get_args(kinds[name])
        plain = [k for k in parts if k in (bool, int, float, str)]
        if not plain and not choices:
            continue
        kind = plain[0] if plain else type(choices[0])
        default, text = known[name].default, words.get(name, "")
        found.append(Option(name, kind, default, text, may_be_none, choices, **declared))
    return tuple(found)


def check_options(settings: Any, what: str, *names: str) -> None:
    """Refuse settings that are outside their limits.

    Parameters
    ----------
    settings
        A dataclass of settings.
    what
        Beginning of the message, e.g. ``"the training option"``.
    names
        Fields to look at; all of them where none are given.

    Raises
    ------
    InputError
        Naming the field, its value and its limits.
    """
    for each in options_of(type(settings), *names):
        problem = each.problem(getattr(settings, each.name))
        if problem is not None:
            raise InputError(f"{what} {each.name} {problem}")


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
