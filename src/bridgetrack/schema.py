"""JSON files, checked against a schema, or refused with a message in one sentence.

A module that owns a format describes its objects as `FilePart` classes, converts them with
`made_by`, and reads files through a `FileFormat`. The message names the file, the place in it, what
is wrong there and what to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NoReturn, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.files import as_path, check_readable, program_version

T = TypeVar("T")
E = TypeVar("E", bound=BaseModel)

_CURE = "correct it there, or restore the file from a backup"

_EXPECTED = {
    "model": "an object", "dict": "an object", "dataclass": "an object", "list": "a list",
    "string": "text", "int": "a whole number", "float": "a number", "finite": "a finite number",
    "bool": "true or false",
}  # fmt: skip
"""What should stand there, by the first word of the kinds of errors of pydantic."""

_SENTENCES = {
    "missing": "lacks {key}",
    "extra_forbidden": "has the unknown entry {key!r}",
    "unexpected_keyword_argument": "has the unknown entry {key!r}",
    "enum": "{found} is not one of {expected}",
    "literal_error": "{found} is not one of {expected}",
    "greater_than": "must be more than {gt}, not {found}",
    "greater_than_equal": "must be {ge} or more, not {found}",
    "less_than": "must be less than {lt}, not {found}",
    "less_than_equal": "must be {le} or less, not {found}",
    "too_short": "needs {min_length} entries or more, not {actual_length}",
    "too_long": "must have at most {max_length} entries, not {actual_length}",
}
"""Messages for other errors; all others have pydantic's own message."""


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
    """The object that is made from JSON values that fit a schema; for use in validators.

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
    """How a field is read that holds fields of a dataclass, as `dataclasses.asdict` gives them.

    `extra` says what becomes of entries that are none of its fields, as earlier versions had.
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
    """How a field is read whose value is no `FilePart`: ``Annotated[CellRef, made_by(...)]``."""
    return PlainValidator(lambda content: made(content, schema, make))


@dataclass(frozen=True)
class FileFormat(Generic[E, T]):
    """A format of files: an object with ``format``, ``version`` and the entries of a schema."""

    # name, version: as in the file; only this version is read
    name: str
    version: int
    what: str  # for messages, e.g. ``"a model file"``
    schema: type[E]  # of the other entries
    # makes what the program works with; a `BridgetrackError` becomes part of the sentence
    make: Callable[[E], T]
    error: type[BridgetrackError] = InputError  # raised where a file cannot be used
    largest: int = 20_000_000  # bytes of a file beyond which it is refused unread

    @property
    def head(self) -> dict[str, Any]:
        """The entries that a file begins with."""
        return {"format": self.name, "version": self.version}

    @property
    def nested(self) -> PlainValidator:
        """How a field is read that holds the content of such a file."""
        return PlainValidator(self._made)

    def read(self, path: Path | str) -> T:
        """The content of a file.

        Raises a `BridgetrackError` `error`, where it is missing or not valid; the message names the
        file and the place.
        """
        return self.parse(read_text(as_path(path), self.what, self.error, self.largest), str(path))

    def parse(self, text: str, where: str) -> T:
        """The content of a file's text; raises as `read`, with `where` as the file."""
        return self.check(parse_json(text, self.what, where, self.error), where)

    def check(self, content: Any, where: str) -> T:
        """The content of a file as JSON values; raises as `read`, with `where` as the file."""
        value: T = check(Annotated[Any, self.nested], content, where, self.error)
        return value

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


def check(schema: Any, content: Any, where: str, error: type[BridgetrackError] = InputError) -> Any:
    """Content of a file, JSON values, checked and made into what a type says.

    The schema is an `FilePart` class, or a type annotated with `made_by`; `where` is the file, for
    messages. Raises `error` where the content does not fit.
    """
    try:
        return TypeAdapter(schema).validate_python(content)
    except ValidationError as problem:
        raise error(f"{where}: {_sentence(content, problem)}") from None


def read_text(
    path: Path, what: str, error: type[BridgetrackError] = InputError, largest: int = 20_000_000
) -> str:
    """The text of a file that must not be larger than some bytes.

    Raises a `BridgetrackError` `error`, where it is missing, too large or no text.
    """
    try:
        check_readable(path)
    except InputError as problem:
        raise error(str(problem)) from problem
    try:
        if path.stat().st_size > largest:
            raise error(f"{path}: this is not {what} (it is much too large)")
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        why = problem.strerror or problem
        raise error(f"{path}: the file cannot be read ({why})") from problem
    except UnicodeDecodeError as problem:
        raise error(f"{path}: this is not {what} (it is not text in UTF-8)") from problem


def parse_json(text: str, what: str, where: str, error: type[BridgetrackError] = InputError) -> Any:
    """JSON values of a text, without NaN and infinity.

    Raises a `BridgetrackError` `error`, where it is no JSON.
    """
    try:
        return json.loads(text, parse_constant=_constant)
    except (ValueError, RecursionError) as problem:
        if text.lstrip()[:1] in ("{", "["):
            why = f"this is {what} that is damaged or truncated ({problem}); copy it again or "
            raise error(f"{where}: {why}restore it from a backup") from problem
        raise error(f"{where}: this is not {what} ({problem})") from problem


def json_text(
    content: Any, what: str, error: type[BridgetrackError] = InputError, *, ascii_only: bool = True
) -> str:
    """JSON values as the text of a file, with an indent of 1.

    Raises a `BridgetrackError` `error`, where they are not finite JSON values.
    """
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


def in_words(content: Any, problem: ValidationError) -> str:
    """The first problem of some content as a sentence that begins with its place."""
    first = problem.errors(include_url=False)[0]
    kind, place = first["type"], list(first["loc"])
    limits = {
        k: f"{v:.15g}" if isinstance(v, float) else v for k, v in first.get("ctx", {}).items()
    }
    given: dict[str, Any] = {**limits, "found": _shown(first["input"])}
    if kind in ("missing", "extra_forbidden", "unexpected_keyword_argument"):
        given["key"] = str(place.pop())[:40]
    expected = _EXPECTED.get(kind.partition("_")[0])
    usual = first["msg"] if expected is None else f"expected {expected}, found {given['found']}"
    words = _SENTENCES[kind].format_map(given) if kind in _SENTENCES else usual
    at = _place(content, place)
    return f"{at}: {words}" if at else words


def _sentence(content: Any, problem: ValidationError) -> str:
    kind, whole = problem.errors(include_url=False)[0]["type"], in_words(content, problem)
    return whole if kind in ("format", "version") else f"{whole}; {_CURE}"


def _place(content: Any, steps: list[int | str]) -> str:
    """E.g. ``annotations[3] (id 'a7').events[0]``."""
    text = ""
    for step in steps:
        if step == "[key]":
            break
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
        try:
            content = content[step]
        except (TypeError, KeyError, IndexError):
            content = None
        if isinstance(step, int) and isinstance(content, dict):
            name = next((k for k in ("id", "name") if isinstance(content.get(k), str)), None)
            text += f" ({name} {content[name][:64]!r})" if name else ""
    return text.lstrip(".")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "...")
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:60] + "..."
