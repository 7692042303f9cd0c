"""Output of commands: results on the standard output, progress on the standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd
import typer

from bridgetrack.errors import Note, NoteKind, plural
from bridgetrack.progress import Progress, Steps, run

Result = TypeVar("Result")

_FEW = 5


@dataclass(frozen=True)
class Answer:
    """The result of a command, as JSON and in words.

    Parameters
    ----------
    record
        JSON values.
    lines
        The same in words.
    problem
        The problem if something failed although there is a result; else empty.
    """

    record: Any
    lines: Sequence[str]
    problem: str = ""

    def show(self, as_json: bool) -> None:
        """Print it; ends the program with status 1 if there is a problem."""
        if as_json:
            typer.echo(json.dumps(self.record, indent=1, allow_nan=False))
        for line in () if as_json else self.lines:
            typer.echo(printable(line))
        if self.problem:
            typer.echo(f"error: {printable(self.problem)}", err=True)
            raise typer.Exit(1)


def show(steps: Steps[Result]) -> Result:
    """Run long work to its end, with a progress bar on a terminal."""
    with reporting() as report:
        return run(steps, report)


@contextmanager
def reporting() -> Iterator[Callable[[Progress], None]]:
    """A function that takes reports of progress, for work that calls back."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description:<18}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def draw(step: Progress) -> None:
            if step.stage not in tasks:
                for task in tasks.values():
                    bar.update(task, completed=1.0)
                tasks[step.stage] = bar.add_task(step.stage, total=1.0)
            bar.update(tasks[step.stage], completed=step.done)

        yield draw


def printable(line: str) -> str:
    """A line without control characters, which names in files may contain."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in line)


def note_lines(notes: Sequence[Note]) -> list[str]:
    """Notes as lines, warnings first; only a few about annotations that were not used."""
    notes = list(dict.fromkeys(notes))
    hidden = set([n for n in notes if n.kind == NoteKind.UNUSED][_FEW:])
    lines = [str(n) for n in notes if n.kind == NoteKind.WARNING]
    lines += [f"note: {n}" for n in notes if n.kind != NoteKind.WARNING and n not in hidden]
    if hidden:
        lines.append(
            f"note: ... and {plural(len(hidden), 'more annotation')} not used (--json lists all)"
        )
    return lines


def table(rows: pd.DataFrame) -> list[str]:
    """Lines of a plain table."""
    shown = rows.to_string(index=False, float_format="{:.4f}".format, na_rep="-")
    return [line.rstrip() for line in shown.splitlines()]
