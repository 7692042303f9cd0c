"""``bridgetrack suggest``: which events to answer next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridgetrack.cli.console import emit, say, show
from bridgetrack.cli.options import Axes, FrameInterval, Image, ImageAxes, Json, Labels, Scale, Unit
from bridgetrack.cli.sources import Reading, collecting_warnings, open_sources

if TYPE_CHECKING:
    from bridgetrack.active.suggestion import Suggestion


def suggest(
    labels: Labels,
    image: Image = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Weights: a file, or a name in the library; without it the shipped ones.",
        ),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            "--annotations", metavar="A.json", help="Answers so far; they are not asked again."
        ),
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
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Seed of the random ones.")] = 0,
    scale: Scale = None,
    unit: Unit = None,
    frame_interval: FrameInterval = None,
    axes: Axes = None,
    image_axes: ImageAxes = None,
    json: Json = False,
) -> None:
    """List the events that are most worth an answer.

    They are uncertain, rare and unlike each other and what was answered before; none is a
    neighbour of another.
    """
    if count < 1:
        raise typer.BadParameter(f"-n {count} must be 1 or more")
    if not 0 <= random_share <= 1:
        raise typer.BadParameter(f"--random-share {random_share} must be between 0 and 1")
    if seed < 0:
        raise typer.BadParameter(f"--seed {seed} must be 0 or more")
    notes: list[str] = []
    with collecting_warnings(notes):
        reading = Reading(axes, scale, unit, frame_interval, image_axes)
        found = _suggestions(
            labels, image, model, annotations, count, random_share, seed, reading, notes
        )
    if json:
        emit({"suggestions": [s.to_json() for s in found], "notes": notes})
        return
    say(*suggestion_lines(found))
    say(*(f"note: {note}" for note in notes))


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
    from bridgetrack.annotations.store import load_annotations
    from bridgetrack.models.find import find_model
    from bridgetrack.models.shipped import shipped_model
    from bridgetrack.pipeline.scene import prepare

    weights = shipped_model() if model is None else find_model(model)
    answers = None if annotations is None else load_annotations(annotations)
    sources = open_sources(labels, image, reading)
    notes += sources.notes
    scene = show(prepare(sources.cells, sources.image, answers))
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
