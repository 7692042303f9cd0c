"""One option on the command line for every field of a dataclass of settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from bridgetrack.option import Option, options_of

Command = TypeVar("Command", bound=Callable[..., None])


def one_option_each(
    settings: type[Any], *names: str, panel: str | None = None
) -> Callable[[Command], Command]:
    """Give a command that takes ``**settings`` an option for every field.

    Parameters
    ----------
    settings
        A dataclass of settings, see `options_of`.
    names
        The fields; all of them where none are given.
    panel
        Heading of the options in the help.
    """

    def decorate(command: Command) -> Command:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        named = [p for p in own if p.kind is not p.VAR_KEYWORD]
        added = [_parameter(each, panel) for each in options_of(settings, *names)]
        signature = inspect.Signature([*named, *added])
        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        return command

    return decorate


def _parameter(each: Option, panel: str | None) -> inspect.Parameter:
    flag, text = f"--{each.name.replace('_', '-')}", each.help
    if each.choices and each.kind is str:
        text = f"{text.rstrip('.')}: {', '.join(each.choices)}."
    if each.kind is bool:
        shown = typer.Option(f"{flag}/--no-{flag[2:]}", help=text, rich_help_panel=panel)
    else:
        metavar = {int: "N", float: "X", str: "WORD"}[each.kind]
        shown = typer.Option(flag, help=text, metavar=metavar, rich_help_panel=panel)
    kind = each.kind | None if each.may_be_none else each.kind
    return inspect.Parameter(
        each.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=each.default,
        annotation=Annotated[kind, shown],
    )
