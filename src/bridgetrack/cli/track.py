"""``bridgetrack track`` and ``run``: from labels, or from a project, to tables of tracks."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, get_args

import typer

from bridgetrack.cli.console import Stopwatch, answer, show
from bridgetrack.cli.options import (
    ExactMargins,
    Formats,
    Image,
    Json,
    Labels,
    LinkScoresFile,
    MovieOptions,
    OutFolder,
    Repair,
    Scheduler,
    Weights,
    Without,
    answers_option,
    channel_option,
    check_channel,
    parse_channel,
    parse_choice,
    parse_choices,
    parse_kinds,
    reads_movie,
)
from bridgetrack.cli.sources import (
    RunInputs,
    about_events,
    cluster_at,
    collecting_warnings,
    open_answers,
    open_scores,
    open_sources,
    open_weights,
    refuse_masks_alone,
)
from bridgetrack.files import lent_folder
from bridgetrack.notes import Note, NoteKind


@reads_movie
def track(
    labels: Labels,
    out: OutFolder,
    *,
    image: Image = None,
    model: Weights = None,
    annotations: Annotated[
        Path | None,
        answers_option(
            "Answers that the tracks must honour; with --repair, those about masks, too, given "
            "here or kept beside."
        ),
    ] = None,
    formats: Formats = "csv",
    margins: ExactMargins = "bounds",
    repair: Repair = False,
    repair_outlines: Annotated[
        bool,
        typer.Option(
            "--repair-outlines",
            help="With --repair, outline cells that stay anew as well; without it they are drawn "
            "as they were.",
        ),
    ] = False,
    channel: Annotated[str | None, channel_option(" that --repair goes by")] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Memory to keep to, such as 4GB: a movie that needs more is tracked a few frames "
            "at a time. Without it, what the machine has free counts.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option("--window", metavar="N", min=2, help="Frames to look at at a time."),
    ] = None,
    gap: Annotated[
        float,
        typer.Option(
            "--gap",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Share of the objective that windows may lose against the whole movie tracked at "
            "once; they look farther into each other until it is no more.",
        ),
    ] = 0.0,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            metavar="N",
            min=0.0,
            help="How long it may take to choose where many events are equally good, as where "
            "cells cannot be told apart; what another choice could win is then reported.",
        ),
    ] = 600.0,
    scheduler: Scheduler = None,
    without: Without = "",
    link_scores: LinkScoresFile = None,
    reading: MovieOptions,
    json: Json = False,
) -> None:
    """Track the cells of a label movie, or of a table of detections.

    Writes tables of cells, links and events into DIR, and run.json with everything that is
    needed to repeat the run.
    """
    from bridgetrack.api import check_link_scores
    from bridgetrack.cli.record import check_run, finish
    from bridgetrack.cli.repair import remarks_on_repair, repaired_labels
    from bridgetrack.io.results import FORMATS
    from bridgetrack.models.library import find_model_file
    from bridgetrack.models.shipped import shipped_model
    from bridgetrack.pipeline.room import parse_memory
    from bridgetrack.pipeline.summary import misfit
    from bridgetrack.pipeline.tracking import Margins
    from bridgetrack.pipeline.windows import InPieces, track_movie

    wanted = parse_choices(formats, FORMATS, "--format")
    exact: Margins = (
        "exact" if parse_choice(margins, get_args(Margins), "--margins") == "exact" else "bounds"
    )
    limit = None if memory is None else parse_memory(memory)
    kinds = parse_kinds(without)
    check_channel(channel, "--repair", repair)
    if repair_outlines and not repair:
        raise typer.BadParameter("--repair-outlines says how to repair; give --repair as well")
    refuse_masks_alone(annotations, "--repair", repair)
    model = None if model is None else find_model_file(model)
    given = RunInputs(
        labels,
        image,
        model,
        annotations,
        reading,
        wanted,
        repair=repair,
        outlines=repair_outlines,
        without=kinds.words,
        link_scores=link_scores,
        channel=parse_channel(channel),
    )
    check_run(out, given)
    notes: list[Note] = []
    with collecting_warnings([]), ExitStack() as temporary:
        weights = open_weights(model) or shipped_model()
        answers = open_answers(about_events(annotations))
        cells, pixels = open_sources(labels, image, reading, notes)
        watch = Stopwatch()
        beside, repair_gap = None, None
        with collecting_warnings(notes):
            workers = temporary.enter_context(cluster_at(scheduler))
        if repair:
            beside = temporary.enter_context(lent_folder(out))
            mending = repaired_labels(
                cells, pixels, weights, beside, out,
                answers=annotations, workers=workers, channel=given.channel,
                outlines=given.outlines,
            )  # fmt: skip
            cells, repair_gap = show(mending, watch)
            notes += remarks_on_repair(cells, repair_gap)
        with collecting_warnings(notes):
            pieces = InPieces(limit, window, gap, workers, seconds)
            scores, features = open_scores(link_scores, weights)
            work = track_movie(
                cells, pixels, weights, answers, features, pieces, margins=exact, kinds=kinds
            )
            tracking = show(work, watch)
            check_link_scores(scores, tracking.scene)
        said = misfit(tracking.scene.anchored, str(labels), str(annotations))
        notes += [Note(NoteKind.WARNING, said)] if said else []
        done = finish(tracking, out, given, watch, notes, beside, repair_gap=repair_gap)
    answer(json, done.record, done.lines)


def run(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="Project file saved from the plugin.")
    ],
    out: OutFolder,
    margins: ExactMargins = "bounds",
    json: Json = False,
) -> None:
    """Track the movie of a project with its model and its answers, and write what it asks for.

    The result is the one that the plugin exports, with run.json beside it.
    """
    from bridgetrack.cli.record import check_run, finish
    from bridgetrack.models.model import check_usable
    from bridgetrack.pipeline.project import load_project, run_project
    from bridgetrack.pipeline.tracking import Margins, exact_steps
    from bridgetrack.session.project import found_of

    exact = parse_choice(margins, get_args(Margins), "--margins") == "exact"
    loaded = load_project(project)
    check_usable(loaded.model, f"{project}, model")
    image = loaded.image
    reading = MovieOptions(
        axes=loaded.labels.axes,
        scale=",".join(f"{s!r}" for s in loaded.scale),
        unit=loaded.unit,
        frame_interval=loaded.frame_interval,
        image_axes=None if image is None else image.axes,
    )
    pixels = None if image is None else image.path
    given = RunInputs(
        loaded.labels.path, pixels, None, None, reading, loaded.formats, project,
        "run", without=loaded.without,
    )  # fmt: skip
    check_run(out, given)
    notes: list[Note] = []
    watch = Stopwatch()
    with collecting_warnings(notes):
        tracking = show(run_project(loaded), watch)
        tracking = show(exact_steps(tracking), watch) if exact else tracking
    done = finish(tracking, out, given, watch, notes, found=found_of(loaded, project))
    summary = {
        "tracks": tracking.tracks.n_tracks,
        "objective": tracking.solution.value,
        "formats": list(loaded.formats),
    }
    answer(json, summary | done.record, done.lines)
