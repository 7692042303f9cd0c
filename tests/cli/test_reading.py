"""A command that takes a `MovieOptions` has its options instead, in its place."""

from __future__ import annotations

import inspect

import typer
from typer.testing import CliRunner

from bridgetrack.cli.options import Image, Json, MovieOptions, reads_movie


def test_options_stand_in_the_place_of_the_reading() -> None:
    given: list[MovieOptions] = []

    @reads_movie
    def look(*, image: Image = None, reading: MovieOptions, json: Json = False) -> None:
        """Look at a movie."""
        given.append(reading)

    assert list(inspect.signature(look).parameters) == ["image", *vars(MovieOptions()), "json"]
    app = typer.Typer()
    app.command()(look)
    assert CliRunner().invoke(app, []).exit_code == 0
    words = ["--scale", "1,2", "--unit", "pixel", "--frame-interval", "5", "--axes", "TYX"]
    assert CliRunner().invoke(app, [*words, "--image-axes", "TCYX", "--json"]).exit_code == 0
    assert given == [MovieOptions(), MovieOptions("TYX", "1,2", "pixel", 5.0, "TCYX")]
    assert CliRunner().invoke(app, ["--unit", "inch"]).exit_code == 2
    assert len(given) == 2
