"""Find and repair masks in one call: arrays, movies or paths in, masks out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers, load_mask_answers
from bridgetrack.api import Report, open_model
from bridgetrack.errors import InputError
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels, open_movie
from bridgetrack.pipeline.finding import Finding, open_beside
from bridgetrack.pipeline.found_masks import find_masks
from bridgetrack.pipeline.inputs import open_cells
from bridgetrack.pipeline.mask_changes import MaskChange
from bridgetrack.pipeline.repair import repair_masks
from bridgetrack.progress import run
from bridgetrack.segmentation.probability import open_probability
from bridgetrack.segmentation.settings import Choose, MaskChoice, SegmentationSettings
from bridgetrack.spread import on

Answers = MaskAnswers | Path | str | None


@dataclass(frozen=True)
class Masks:
    """Masks of a movie, and how they came about.

    Parameters
    ----------
    labels
        A number for every cell in every frame, as a label movie in memory; `track` and
        `save_labels` take it.
    finding
        How they were found, with the settings that suited the movie.
    channel
        Number or name of the channel that showed the cells.
    changes
        What a repair cut, joined, added, dropped and outlined anew, in order of time.
    margins
        How sure each cell is, where masks were found by choosing: a table of ``frame``, ``label``,
        ``score`` and ``margin_at_least``, see `SegmentedFrame`.
    """

    labels: Movie
    finding: Finding
    channel: int | str = 0
    changes: tuple[MaskChange, ...] = ()
    margins: pd.DataFrame | None = None

    @property
    def words(self) -> str:
        """How they were found, as a sentence."""
        return self.finding.sentence


def find_cells(
    image: Any,
    settings: SegmentationSettings | None = None,
    *,
    choose: Choose | None = None,
    answers: Answers = None,
    labels: Sequence[Any] = (),
    probability: Any = None,
    backend: str = "builtin",
    network: str | None = None,
    model: Model | Path | str | None = None,
    channel: int | str = 0,
    client: Any = None,
    progress: Report | None = None,
    **reading: Any,
) -> Masks:
    """Find the cells of a movie, as ``bridgetrack segment`` does.

    Where one reading of a frame would join two cells and another cut one in two, both are
    candidates, and those are chosen that make the best movie together with their tracks.

    Parameters
    ----------
    image
        The movie: an array of shape (T, [Z,] Y, X) (numpy, dask), a path (see `open_movie`) or an
        opened movie.
    settings
        What cells look like; what they leave open is decided by the movie.
    choose
        ``"jointly"``: among candidates, together with their tracks; ``"plain"``: one reading of
        each frame, five to nine times as fast. None is ``"jointly"``, and ``"plain"`` for the
        cells of a network.
    answers
        Answers about masks, which hold and teach what a cell looks like; or their file.
    labels
        Label movies of other programs, see `open_labels`; their cells are candidates, too. Cells
        that stay keep the numbers of the first.
    probability
        How probably each pixel belongs to a cell, as another program says; see
        `bridgetrack.segmentation.probability.open_probability`.
    backend, network
        ``"cellpose"`` where installed, and the name of its network.
    model
        Weights of events: a model, its file, or its name in the library; the shipped ones where
        None.
    channel
        Number or name of the channel that shows the cells.
    client
        A dask client, over whose cluster the frames are spread.
    progress
        Called with every step, ``print`` for instance.
    **reading
        ``scale``, ``unit``, ``frame_interval`` and ``axes``, where the file does not say them.

    Returns
    -------
    Masks
        With numbers of their own in every frame.

    Raises
    ------
    BridgetrackError
        Where the input cannot be used; the message says why and what to do.
    """
    movie, way = open_movie(image, **reading), choose or _usual(backend)
    MaskChoice(way)  # refuses others
    beside = tuple(open_beside(each, movie) for each in labels)
    foreign = None if probability is None else open_probability(probability, movie)
    if way == "plain" and (beside or foreign is not None):
        raise InputError("labels and probability give candidates to choose among; choose 'jointly'")
    how = Finding(settings, way, backend, network, beside=beside, probability=foreign)
    said, weights = _answers(answers, movie), open_model(model)

    masks, keep = _empty(movie)
    work = find_masks(how, movie, keep, said, weights, channel=channel, workers=on(client))
    found = run(work, progress)
    return Masks(_labels(masks, movie), found.finding, channel, margins=found.margins)


def repair(
    labels: Any,
    image: Any,
    *,
    answers: Answers = None,
    outlines: bool = False,
    model: Model | Path | str | None = None,
    channel: int | str = 0,
    client: Any = None,
    progress: Report | None = None,
    **reading: Any,
) -> Masks:
    """Repair masks of a movie by its image, as ``bridgetrack track --repair`` does.

    Cells are cut, joined, added and dropped where the image and the frames before and after say
    so; all others keep their numbers.

    Parameters
    ----------
    labels, image
        The masks and what they were made from, see `track`.
    answers, model, channel, client, progress
        See `find_cells`.
    outlines
        Whether cells that stay may be outlined anew; else they are drawn as they were.
    **reading
        See `track`.

    Returns
    -------
    Masks
        With what was changed.

    Raises
    ------
    BridgetrackError
        Where the input cannot be used; the message says why and what to do.
    """
    cells, movie = _opened(labels, image, reading)
    said = _answers(answers, movie)
    masks, keep = _empty(movie)
    work = repair_masks(
        cells, movie, keep, open_model(model) or shipped_model(), said, on(client),
        channel=channel, outlines=outlines,
    )  # fmt: skip
    mended = run(work, progress)
    finding = Finding(given=cells, gap=mended.gap)
    return Masks(_labels(masks, cells), finding, channel, mended.changes)


def _usual(backend: str) -> Choose:
    """A network's cells stay as they are, unless somebody asks for more."""
    return "jointly" if backend == "builtin" else "plain"


def _opened(labels: Any, image: Any, reading: dict[str, Any]) -> tuple[Movie, Movie]:
    cells, movie = open_cells(labels, image, **reading)
    if not isinstance(cells, Movie) or movie is None:
        raise InputError(
            "masks are judged by the image that they were made from: give a label movie, not a "
            "table, and the image (--image)"
        )
    return cells, movie


def _answers(given: Answers, movie: Movie) -> MaskAnswers | None:
    return load_mask_answers(given, movie.geometry) if isinstance(given, Path | str) else given


def _empty(movie: Movie) -> tuple[NDArray[np.int32], Callable[[NDArray[np.int32]], None]]:
    """Room for the masks of a movie, and what puts the next frame there."""
    masks = np.zeros((movie.n_frames, *(movie.geometry.shape or ())), dtype=np.int32)
    free = iter(masks)

    def keep(frame: NDArray[np.int32]) -> None:
        next(free)[...] = frame

    return masks, keep


def _labels(masks: NDArray[np.int32], movie: Movie) -> Movie:
    """Masks as a movie like another one."""
    known = movie.geometry
    return open_labels(
        masks, scale=known.scale, unit=known.unit, frame_interval=known.frame_interval
    )
