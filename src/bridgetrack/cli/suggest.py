"""``bridgetrack suggest``: which events to answer next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.active.options import SuggestOptions
from bridgetrack.cli.console import answer, note_lines, note_texts, show
from bridgetrack.cli.options import (
    Image,
    Json,
    Labels,
    MovieOptions,
    Weights,
    Without,
    answers_option,
    at_least,
    channel_option,
    check_channel,
    make,
    one_option_each,
    parse_channel,
    parse_kinds,
    reads_movie,
)
from bridgetrack.cli.sources import (
    RunInputs,
    about_events,
    collecting_warnings,
    open_answers,
    open_mask_answers,
    open_scene,
    open_sources,
    open_weights,
    refuse_masks_alone,
)
from bridgetrack.errors import InputError
from bridgetrack.notes import Note

if TYPE_CHECKING:
    from bridgetrack.active.mask_questions import MaskQuestion
    from bridgetrack.active.suggestion import Suggestion
    from bridgetrack.models.model import Model

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
        answers_option(
            "Answers so far; they are not asked again. With --masks, those about masks, too, given "
            "here or kept beside."
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("-n", "--count", metavar="N", help="Number of suggestions.")
    ] = 20,
    masks: Annotated[
        bool,
        typer.Option(
            "--masks", help="List, too, where the image says that masks may be wrong, and how."
        ),
    ] = False,
    channel: Annotated[str | None, channel_option(" that --masks goes by")] = None,
    without: Without = "",
    reading: MovieOptions,
    json: Json = False,
    **how: Any,
) -> None:
    """List the events that are most worth an answer.

    The most uncertain come first; none is a neighbour of another, and a share is drawn at random.
    """
    from bridgetrack.active.suggester import suggest_steps
    from bridgetrack.models.shipped import shipped_model

    at_least(1, count, "-n")
    check_channel(channel, "--masks", masks)
    refuse_masks_alone(annotations, "--masks", masks)
    options = make(SuggestOptions, **how)
    notes: list[Note] = []
    kinds = parse_kinds(without)
    with collecting_warnings(notes):
        weights = open_weights(model) or shipped_model()
        events = about_events(annotations)
        answers = open_answers(events)
        scene = open_scene(labels, image, answers, reading, notes, named=events, kinds=kinds)
        answered = 0 if answers is None else len(answers)
        found = show(suggest_steps(scene, weights, count, options, answered=answered))
        doubted: list[MaskQuestion] = []
        if masks:
            given = RunInputs(labels, image, model, annotations, reading)
            number = None if channel is None else parse_channel(channel)
            doubted = _about_masks(given, weights, number)[:count]
    record: dict[str, Any] = {"suggestions": [_to_json(s) for s in found]}
    if masks:
        record["masks"] = [q.to_json() for q in doubted]
    record["notes"] = note_texts(notes)
    lines = [*suggestion_lines(found), *(mask_lines(doubted) if masks else [])]
    answer(json, record, lambda: [*lines, *note_lines(notes)])


def _to_json(suggestion: Suggestion) -> dict[str, Any]:
    """A suggestion as JSON values; its margin is called what it is in tables, a lower bound."""
    found = suggestion.to_json()
    return {("margin_at_least" if key == "margin" else key): v for key, v in found.items()}


def _about_masks(given: RunInputs, weights: Model, channel: int | str | None) -> list[MaskQuestion]:
    """Questions about masks that nobody answered yet; they are chosen again as they were found."""
    from bridgetrack.active.mask_questions import mask_questions
    from bridgetrack.movie.movie import Movie
    from bridgetrack.pipeline.finding import chosen_as
    from bridgetrack.pipeline.finding_record import channel_found, how_found
    from bridgetrack.pipeline.mask_doubts import mask_doubts, settled
    from bridgetrack.pipeline.masks import MaskSettings
    from bridgetrack.segmentation.movie import movie_settings

    cells, pixels = open_sources(given.labels, given.image, given.reading, [])
    if not isinstance(cells, Movie) or pixels is None:
        raise InputError(
            "--masks needs masks and the image that they were made from: give a label movie, not "
            "a table, and --image"
        )
    answers, frames = open_mask_answers(given.annotations, cells), range(cells.n_frames)
    if channel is None:
        channel = channel_found(given.labels)
    how = chosen_as(cells, how_found(given.labels))
    settings = movie_settings(pixels, how.settings, channel=channel)
    how = show(replace(how, settings=settings).taught(pixels, answers, weights, channel=channel))
    steps = mask_doubts(
        pixels, cells, frames, settings, MaskSettings(loyalty=how.loyalty), how.known(answers),
        weights, channel=channel,
    )  # fmt: skip
    doubts = show(steps)
    return mask_questions(d for d in doubts if answers is None or not settled(d, answers))


def mask_lines(found: list[MaskQuestion]) -> list[str]:
    """Questions about masks for people, one paragraph each."""
    lines = ["", "about masks:" if found else "no mask is doubtful"]
    for number, asked in enumerate(found, 1):
        place = ", ".join(f"{p:.0f}" for p in asked.position)
        sides = zip(asked.answers, asked.beliefs, strict=True)
        lines.append(f"{number:>3}. {asked.question}")
        lines.append(f"     frame {asked.frame}, at {place}")
        lines.append("     " + "; ".join(f"{words}: {belief:.0%}" for words, belief in sides))
        lines.append(f"     because {asked.reason}")
    return lines


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
