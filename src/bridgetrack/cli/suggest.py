"""``bridgetrack suggest``: which events to answer next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridgetrack.cli.console import emit, note_lines, say, show
from bridgetrack.cli.options import (
    Image,
    Json,
    Labels,
    Reading,
    Weights,
    answers_option,
    at_least,
    reads_movie,
    seed_option,
)
from bridgetrack.cli.sources import (
    collecting_warnings,
    open_answers,
    open_scene,
    open_weights,
)

if TYPE_CHECKING:
    from bridgetrack.active.suggestion import Suggestion


@reads_movie
def suggest(
    labels: Labels,
    *,
    image: Image = None,
    model: Weights = None,
    annotations: Annotated[
        Path | None, answers_option("Answers so far; they are not asked again.")
    ] = None,
    count: Annotated[
        int, typer.Option("-n", "--count", metavar="N", help="Number of suggestions.")
    ] = 20,
    random_share: Annotated[
        float,
        typer.Option(
            "--random-share",
            metavar="F",
            help="Share drawn at random from all cells, 0 to 1, to know the accuracy.",
        ),
    ] = 0.2,
    seed: Annotated[int, seed_option("Seed of the random ones.")] = 0,
    reading: Reading,
    json: Json = False,
) -> None:
    """List the events that are most worth an answer.

    They are uncertain, rare and unlike each other and what was answered before; none is a
    neighbour of another.
    """
    at_least(1, count, "-n")
    if not 0 <= random_share <= 1:
        raise typer.BadParameter(f"--random-share {random_share} must be between 0 and 1")
    at_least(0, seed, "--seed")
    notes: list[str] = []
    with collecting_warnings(notes):
        found = _suggestions(
            labels, image, model, annotations, count, random_share, seed, reading, notes
        )
    if json:
        emit({"suggestions": [s.to_json() for s in found], "notes": notes})
        return
    say(*suggestion_lines(found))
    say(*note_lines(notes))


def _suggestions(
    labels: Path,
    image: Path | None,
    model: Path | None,
    annotations: Path | None,
    count: int,
    random_share: float,
    seed: int,
    reading: Reading,
    notes: list[str],
) -> list[Suggestion]:
    from bridgetrack.active.suggester import SuggestOptions, suggest_steps
    from bridgetrack.models.shipped import shipped_model

    weights = open_weights(model) or shipped_model()
    answers = open_answers(annotations)
    scene = open_scene(labels, image, answers, reading, notes, named=annotations)
    options = SuggestOptions(random_share=random_share, seed=seed)
    answered = 0 if answers is None else len(answers)
    return show(suggest_steps(scene, weights, count, options, answered=answered))


def suggestion_lines(found: list[Suggestion]) -> list[str]:
    """Suggestions for people, one paragraph each."""
    if not found:
        return ["nothing is left to ask"]
    lines = []
    for number, s in enumerate(found, 1):
        lines.append(f"{number:>3}. {s.question}")
        place = ", ".join(f"{p:.0f}" for p in s.position)
        only = s.margin == float("inf")
        sure = "nothing else is possible" if only else f"margin {s.margin:.2f}"
        lines.append(f"     frames {s.frame} and {s.last_frame}, at {place}; {sure}")
        lines.append(f"     because {s.reason}" if not s.random else f"     {s.reason}")
    return lines
