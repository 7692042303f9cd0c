"""Data that is checked: settings, and JSON files, refused with a message in one sentence.

Settings are dataclasses whose fields have limits: ``edge: Annotated[float, Field(ge=0, lt=1)] =
0.3``. Help texts are in their numpydoc docstrings; the options of the command line and the forms of
the window are made from them.

A module that owns a format of files describes its objects as `FilePart` classes, converts them with
`made_by`, and reads files through a `FileFormat`. The message names the file, the place in it, what
is wrong there and what to do.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import NoneType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NoReturn,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic_core import PydanticCustomError

from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.files import as_path, check_readable, program_version

T = TypeVar("T")
E = TypeVar("E", bound=BaseModel)

_CURE = "correct it there, or restore the file from a backup"

_SAID_BY_PLACE = ("missing", "extra_forbidden", "unexpected_keyword_argument")
"""Kinds of errors whose place identifies the entry."""
_OURS = ("refused", "format", "version")
"""Kinds of errors with messages of our own."""


class FilePart(BaseModel):
    """An object in a file; nothing is converted, and unknown entries are refused."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class OpenEntry(FilePart):
    """An object in a file that may hold entries which this program does not know."""

    model_config = ConfigDict(extra="ignore")


Count = Annotated[int, Field(ge=0, lt=2**63)]
"""A whole number, not negative."""

Share = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""

JsonObject = dict[str, Any]
"""An object that is kept as it is, whatever it holds."""


def made(content: Any, schema: type[E], make: Callable[[E], T]) -> T:
    """Make an object from JSON values that fit a schema; for use in validators.

    A `BridgetrackError` of `make` becomes part of the sentence.
    """
    try:
        return make(schema.model_validate(content))
    except BridgetrackError as error:
        raise _refusal("refused", str(error)) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def to_json(content: Any) -> Any:
    """A dataclass as the JSON values that `of_dataclass` reads, without what is None."""
    kind: Any = type(content)
    return _adapter(kind).dump_python(content, mode="json", exclude_none=True)


def of_dataclass(kind: type[T], extra: Literal["forbid", "ignore"] = "forbid") -> PlainValidator:
    """Validator of a field that holds a dataclass as `dataclasses.asdict` gives it.

    `extra` says how to treat entries that are no fields of it, such as those of earlier versions.
    """

    known: Any = kind

    def read(content: Any) -> T:
        try:
            text = json.dumps(content)
            made: T = _adapter(known).validate_json(text, strict=True, extra=extra)
            return made
        except BridgetrackError as error:
            raise _refusal("refused", str(error)) from None

    return PlainValidator(read)


def made_by(schema: type[E], make: Callable[[E], T]) -> PlainValidator:
    """Validator of a field whose value is no `FilePart`: ``Annotated[CellRef, made_by(...)]``."""
    return PlainValidator(lambda content: made(content, schema, make))


@dataclass(frozen=True)
class FileFormat(Generic[E, T]):
    """A format of files: an object with ``format``, ``version`` and the entries of a schema."""

    # name, version: as in the file; only this version is read
    name: str
    version: int
    what: str  # for messages, e.g. ``"a model file"``
    schema: type[E]  # of the other entries
    # makes the object that the program uses; a `BridgetrackError` becomes part of the sentence
    make: Callable[[E], T]
    error: type[BridgetrackError] = InputError  # raised where a file cannot be used

    @property
    def head(self) -> dict[str, Any]:
        """The entries that a file begins with."""
        return {"format": self.name, "version": self.version}

    @property
    def nested(self) -> PlainValidator:
        """Validator of a field that holds the content of such a file."""
        return PlainValidator(self._made)

    def read(self, path: Path | str) -> T:
        """The content of a file.

        Raises an `error` where it is missing or not valid; the message names the file and the
        place.
        """
        with self._raising():
            return self.parse(read_text(as_path(path), self.what), str(path))

    def parse(self, text: str, where: str) -> T:
        """The content of a file's text; raises as `read`, with `where` as the file."""
        with self._raising():
            return self.check(parse_json(text, self.what, where), where)

    def check(self, content: Any, where: str) -> T:
        """The content of a file as JSON values; raises as `read`, with `where` as the file."""
        with self._raising():
            value: T = check(Annotated[Any, self.nested], content, where)
            return value

    @contextmanager
    def _raising(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise self.error(str(error)) from error

    def _made(self, content: Any) -> T:
        if not isinstance(content, dict) or content.get("format") != self.name:
            raise _refusal("format", f'this is not {self.what} (no "format": "{self.name}")')
        version = content.get("version")
        if version != self.version or isinstance(version, bool):
            raise _refusal("version", self._other_version(version))
        rest = {key: value for key, value in content.items() if key not in self.head}
        return made(rest, self.schema, self.make)

    def _other_version(self, version: Any) -> str:
        cure = "no release wrote such files: restore the file from a backup"
        if isinstance(version, int) and version > self.version:
            cure = "it was written by a later release: update Bridgetrack (with pip)"
        return (
            f"{self.what} with file version {_shown(version)}, but this program (bridgetrack "
            f"{program_version()}) reads version {self.version}; {cure}"
        )


def check(schema: Any, content: Any, where: str) -> Any:
    """Check JSON values of a file and convert them to a type.

    The type is a `FilePart` class, or one annotated with `made_by`; `where` is the file, for
    messages. Raises an `InputError` where the content does not fit.
    """
    try:
        return TypeAdapter(schema).validate_python(content)
    except ValidationError as problem:
        kind = problem.errors(include_url=False)[0]["type"]
        cure = "" if kind in _OURS[1:] else f"; {_CURE}"
        raise InputError(f"{where}: {in_words(problem)}{cure}") from None


def read_text(path: Path, what: str) -> str:
    """The text of a file; an `InputError` where it is missing or no text."""
    check_readable(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: this is not {what} (it is not text in UTF-8)") from error


def parse_json(text: str, what: str, where: str) -> Any:
    """JSON values of a text, without NaN and infinity; an `InputError` where it is no JSON."""
    try:
        return json.loads(text, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        if text.lstrip()[:1] in ("{", "["):
            why = f"this is {what} that is damaged or truncated ({error}); copy it again or "
            raise InputError(f"{where}: {why}restore it from a backup") from error
        raise InputError(f"{where}: this is not {what} ({error})") from error


def json_text(
    content: Any, what: str, error: type[BridgetrackError] = InputError, *, ascii_only: bool = True
) -> str:
    """JSON values as the text of a file, with an indent of 1; raises `error` if invalid."""
    try:
        text = json.dumps(content, indent=1, ensure_ascii=ascii_only, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as problem:
        raise error(f"{what} contains values that JSON cannot represent ({problem})") from problem
    return text + "\n"


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _refusal(kind: str, why: str) -> PydanticCustomError:
    return PydanticCustomError(kind, "{why}", {"why": why})


def in_words(problem: ValidationError) -> str:
    """The first problem as a sentence that begins with its place, e.g. ``annotations.3.kind``."""
    first = problem.errors(include_url=False)[0]
    words, place = first["msg"], ".".join(str(part).rstrip("_") for part in first["loc"])
    for theirs, ours in (("Input should", "should"), ("Field required", "is missing")):
        words = words.replace(theirs, ours)
    if first["type"] not in (*_SAID_BY_PLACE, *_OURS, "value_error"):
        words = f"{words}, not {_shown(first['input'])}"
    return f"{place}: {words}" if place else words


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "...")
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:60] + "..."


# ---------------------------------------------------------------------- settings


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
                raise InputError(f"{what} {in_words(problem)}") from None

        made.__init__ = checked
        return made

    return make


@dataclass(frozen=True)
class Option:
    """A setting that a user can choose; limits are infinite if there are none."""

    name: str  # of the field
    kind: type[Any]  # int, float, bool or str
    default: Any
    help: str  # its description in the docstring of the settings, as one line
    may_be_none: bool  # may be left open
    choices: tuple[Any, ...]  # all allowed values; empty if any within the limits is allowed
    least: float
    most: float


def options_of(kind: type[Any], *names: str) -> tuple[Option, ...]:
    """The options of a class of settings: those in `names`, or all."""
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
