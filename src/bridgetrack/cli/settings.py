"""One option on the command line for every field of a dataclass of settings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import Field, fields
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer

Command = TypeVar("Command", bound=Callable[..., None])


def one_option_each(settings: type[Any]) -> Callable[[Command], Command]:
    """Give a command that takes ``**settings`` an option for every field.

    Parameters
    ----------
    settings
        A dataclass in which every field has a default; its docstring is the help.
    """
    help_of = described_parameters(settings)

    def decorate(command: Command) -> Command:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        named = [p for p in own if p.kind is not p.VAR_KEYWORD]
        kinds = get_type_hints(settings)
        added = [_parameter(f, kinds[f.name], help_of[f.name]) for f in fields(settings)]
        signature = inspect.Signature([*named, *added])
        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        return command

    return decorate


def described_parameters(settings: type[Any]) -> dict[str, str]:
    """What a numpydoc docstring says of each parameter, as one line of plain text."""
    text = inspect.getdoc(settings) or ""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\nRaises\n")[0]
    found: dict[str, str] = {}
    for names, description in re.findall(
        r"^(\w[\w, ]*)\n((?:    .*\n?|\n)+)", section, re.MULTILINE
    ):
        plain = " ".join(description.split()).replace("``", "").replace("`", "")
        found |= dict.fromkeys((name.strip() for name in names.split(",")), plain)
    return found


def _parameter(field: Field[Any], kind: Any, text: str) -> inspect.Parameter:
    flag = f"--{field.name.replace('_', '-')}"
    if get_origin(kind) is Literal:
        text = f"{text.rstrip('.')}: {', '.join(get_args(kind))}."
        kind = str
    if kind is bool:
        option = typer.Option(f"{flag}/--no-{flag[2:]}", help=text)
    else:
        option = typer.Option(flag, help=text, metavar=_metavar(kind))
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[kind, option],
    )


def _metavar(kind: Any) -> str:
    plain = {k for k in get_args(kind) or (kind,) if k is not NoneType}
    return {int: "N", float: "X", str: "WORD"}.get(plain.pop(), "X")
