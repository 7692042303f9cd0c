"""What several commands open: a prepared movie with its answers, and a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from bridgetrack.annotations.mask_answers import is_mask_file
from bridgetrack.api import check_link_scores, open_link_scores
from bridgetrack.cli.console import show
from bridgetrack.errors import ModelError
from bridgetrack.features.link_scores import with_link_scores
from bridgetrack.hypotheses.kinds import EVERYTHING, EventKinds
from bridgetrack.models.library import find_model_file
from bridgetrack.notes import Note
from bridgetrack.pipeline.inputs import Reading, check_belonging, open_answers, open_files
from bridgetrack.pipeline.project import is_project, load_project
from bridgetrack.pipeline.scene import Scene, prepare
from bridgetrack.progress import Progress
from bridgetrack.spread import ClusterError, connect, worth_it


def refuse_masks_alone(answers: Path | None, flag: str, given: bool) -> None:
    """Refuse a file of answers about masks where the option that takes them is not given."""
    if answers is not None and is_mask_file(answers) and not given:
        raise typer.BadParameter(
            f"--annotations {answers}: these are answers about masks, which count with {flag}"
        )


def files_behind(given: Path | None) -> tuple[Path, ...]:
    """The files that a model (also by its name in the library) or a project is read from."""
    if given is None:
        return ()
    if is_project(given):
        project = load_project(given)
        movies = (project.labels, project.image)
        return (given, *(movie.path for movie in movies if movie is not None))
    with suppress(ModelError):  # told when it is opened
        file = find_model_file(given)
        return () if file is None else (file,)
    return (given,)


def open_scene(
    labels: Path,
    image: Path | None,
    annotations: Path | None,
    reading: Reading,
    notes: list[Note],
    watch: Callable[[Progress], None] | None = None,
    *,
    kinds: EventKinds = EVERYTHING,
    link_scores: Path | None = None,
) -> Scene:
    """Open and prepare a movie with its answers; adds to `notes`."""
    answers, scores = open_answers(annotations), open_link_scores(link_scores)
    features = None if scores is None else with_link_scores(scores)
    cells, pixels = open_files(labels, image, reading, notes)
    scene = show(prepare(cells, pixels, answers, features, kinds), watch)
    check_link_scores(scores, scene)
    if answers is not None and annotations is not None:
        check_belonging(scene, labels, annotations, notes)
    return scene


@contextmanager
def cluster_at(scheduler: str | None, pixels: int = 0) -> Iterator[Any]:
    """A dask client while it is used, or None.

    Where no scheduler is named, there is none, or this machine where so many ``pixels`` are to be
    segmented that it is worth it; ``here`` means none in any case.
    """
    client = None
    if scheduler is None and worth_it(pixels):
        with suppress(ClusterError):  # nobody asked for it
            client = connect("local")
    elif scheduler not in (None, "here"):
        client = connect(str(scheduler))
    if client is None:
        yield None
        return
    with client:
        try:
            yield client
        finally:
            if client.cluster is not None:  # a cluster of our own ends with the work
                client.cluster.close()
