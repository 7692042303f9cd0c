"""``bridgetrack suggest``: which events to answer next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.active.suggester import suggest_steps
from bridgetrack.active.suggestion import Suggestion, SuggestOptions
from bridgetrack.cli.console import answer, note_lines, show
from bridgetrack.cli.options import (
    Image,
    Json,
    Labels,
    Weights,
    Without,
    answers_option,
    at_least,
    make,
    one_option_each,
    parse_kinds,
    reads_movie,
)
from bridgetrack.cli.sources import open_scene
from bridgetrack.models.shipped import shipped_model
from bridgetrack.notes import Note, collecting_warnings, note_texts
from bridgetrack.pipeline.inputs import Reading, open_weights

HOW = ("strategy", "random_share", "seed")
"""What may be chosen about suggestions."""


@one_option_each(SuggestOptions, *HOW)
@reads_movie
def suggest(
    labels: Labels,
    *,
    image: Image = None,
    model: Weights = None,
    annotations: Annotated[
        Path | None,
        answers_option("Answers so far; they are not asked again."),
    ] = None,
    count: Annotated[
        int, typer.Option("-n", "--count", metavar="N", help="Number of suggestions.")
    ] = 20,
    without: Without = "",
    reading: Reading,
    json: Json = False,
    **how: Any,
) -> None:
    """List the events that are most worth an answer.

    The most uncertain come first; none is a neighbour of another, and a share is drawn at random.
    """
    at_least(1, count, "-n")
    options, kinds, notes = make(SuggestOptions, **how), parse_kinds(without), list[Note]()
    with collecting_warnings(notes):
        weights = open_weights(model) or shipped_model()
        scene = open_scene(labels, image, annotations, reading, notes, kinds=kinds)
        answered = len(scene.anchored.annotations)
        found = show(suggest_steps(scene, weights, count, options, answered=answered))
    record = {"suggestions": [_to_json(s) for s in found], "notes": note_texts(notes)}
    answer(json, record, lambda: [*suggestion_lines(found), *note_lines(notes)])


def _to_json(suggestion: Suggestion) -> dict[str, Any]:
    """A suggestion as JSON values; its margin is called what it is in tables, a lower bound."""
    found = suggestion.to_json()
    return {("margin_at_least" if key == "margin" else key): v for key, v in found.items()}


def suggestion_lines(found: list[Suggestion]) -> list[str]:
    """Suggestions for people, one paragraph each."""
    if not found:
        return ["nothing is left to ask"]
    lines = []
    for number, s in enumerate(found, 1):
        lines.append(f"{number:>3}. {s.question}")
        place = ", ".join(f"{p:.0f}" for p in s.position)
        only = s.margin == float("inf")
        sure = "nothing else is possible" if only else f"margin at least {s.margin:.2f}"
        lines.append(f"     frames {s.frame} and {s.last_frame}, at {place}; {sure}")
        lines.append(f"     because {s.reason}" if not s.random else f"     {s.reason}")
    return lines
