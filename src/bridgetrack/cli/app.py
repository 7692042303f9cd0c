"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from bridgetrack.cli.annotate import annotate
from bridgetrack.cli.demo import demo
from bridgetrack.cli.evaluate import evaluate
from bridgetrack.cli.explain import explain
from bridgetrack.cli.models import models
from bridgetrack.cli.open_window import open_
from bridgetrack.cli.run_project import run
from bridgetrack.cli.segment import segment
from bridgetrack.cli.simulate import simulate
from bridgetrack.cli.simulate_annotator import simulate_annotator
from bridgetrack.cli.suggest import suggest
from bridgetrack.cli.track import track
from bridgetrack.cli.train import train

app = typer.Typer(
    name="bridgetrack",
    help="Track dividing cells in movies, and learn to do it better from a few clicks.",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from bridgetrack.files import program_version

        typer.echo(f"bridgetrack {program_version()}")
        raise typer.Exit()


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; works anywhere.")
    ] = False,
) -> None:
    pass


for command in (demo, simulate, segment, track, annotate, train, explain, evaluate, run):
    app.command()(command)
app.command()(suggest)
app.command(name="simulate-annotator")(simulate_annotator)
app.command(name="open")(open_)
app.add_typer(models)
