"""Find the cells of a movie by choosing among candidate regions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie, check_same_extent, label_frame
from bridgetrack.pipeline.joint import (
    FrameChoice,
    MaskSettings,
    choose_jointly,
)
from bridgetrack.pipeline.mask_candidates import GivenMasks, MaskReader, learned_score
from bridgetrack.pipeline.mask_changes import keep_numbers
from bridgetrack.pipeline.sizing import fitted_settings
from bridgetrack.progress import Kept, Progress, Steps
from bridgetrack.regions.propose import label_sources
from bridgetrack.regions.regions import labels_of
from bridgetrack.regions.taught import MovieScore
from bridgetrack.segmentation.movie import SegmentedFrame, movie_settings
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.spread import Here, Workers

Index = NDArray[np.int64]


def choose_masks(
    movie: Movie,
    decided: Callable[[FrameChoice], object],
    segmentation: SegmentationSettings | None = None,
    settings: MaskSettings | None = None,
    given: GivenMasks | None = None,
    model: Model | None = None,
    *,
    channel: int | str = 0,
    frames: range | None = None,
    workers: Workers | None = None,
) -> Steps[float]:
    """Choose the cells of a movie among candidate regions; a window of frames is in memory.

    Parameters
    ----------
    movie
        The image.
    decided
        Called with every frame that is decided, in order.
    segmentation
        Of the built-in segmentation, from which candidates are made.
    settings
        How to choose.
    given
        Labels, probabilities and answers.
    model
        Weights of events; the shipped ones where None.
    channel
        Number or name of the channel that shows the cells.
    frames
        Successive frames to choose in; all where None.
    workers
        Who proposes and describes candidates; this process where None.

    Yields
    ------
    Progress

    Returns
    -------
    float
        By how much the total score may fall short of the best.

    Raises
    ------
    InputError
        Where movies differ in extent, or answers exclude each other.
    """
    settings, model = settings or MaskSettings(), model or shipped_model()
    frames = frames or range(movie.n_frames)
    given = given or GivenMasks()
    if segmentation is not None and segmentation.clear_border:
        decided = _off_the_edge(decided, given)
    reader = yield from _reader(movie, segmentation, given, channel)
    reader = replace(reader, workers=workers or Here())
    score = yield from learned_score(reader, model, settings, frames)
    offered = reader.offered(score, settings, frames)
    return (
        yield from choose_jointly(
            lambda _: next(offered).candidates,
            movie.geometry,
            movie.channels,
            model,
            decided,
            settings,
            frames=frames,
        )
    )


def _off_the_edge(
    decided: Callable[[FrameChoice], object], given: GivenMasks
) -> Callable[[FrameChoice], object]:
    """`decided` without cells at the frame's edge, but for those that people drew or brought.

    They go after the choice: while it is made they keep their own parts from being taken for
    cells, and the movie from looking as if they came and went.
    """
    brought = label_sources(given.labels)

    def without(choice: FrameChoice) -> object:
        regions = choice.candidates.regions
        stays = choice.candidates.pinned > 0
        for name in brought:
            stays |= regions.votes[:, regions.sources.index(name)] > 0
        return decided(replace(choice, chosen=choice.chosen & (stays | ~regions.at_edge())))

    return without


def _reader(
    movie: Movie, segmentation: SegmentationSettings | None, given: GivenMasks, channel: int | str
) -> Steps[MaskReader]:
    for other in (*given.labels, *([given.probability] if given.probability else [])):
        check_same_extent(movie, other)
    number = movie.channel_number(channel)
    if segmentation is not None:  # cells at the edge are left out after the choice
        segmentation = replace(segmentation, clear_border=False)
    if segmentation is not None and segmentation.complete:
        settings = segmentation
    elif given.labels or given.network is not None or given.probability is not None:
        yield Progress("Looking at the movie", 0.0)
        settings = movie_settings(movie, segmentation, channel=number)
    else:
        settings = (yield from fitted_settings(movie, segmentation, channel=number)).settings
    return MaskReader(movie, number, settings, given)


def learn_masks(
    movie: Movie,
    segmentation: SegmentationSettings | None = None,
    settings: MaskSettings | None = None,
    given: GivenMasks | None = None,
    model: Model | None = None,
    *,
    channel: int | str = 0,
    frames: range | None = None,
    workers: Workers | None = None,
) -> Steps[MovieScore]:
    """Learn what `choose_masks` would, to be used for several choices; parameters are as there."""
    settings, given = settings or MaskSettings(), given or GivenMasks()
    reader = yield from _reader(movie, segmentation, given, channel)
    reader = replace(reader, workers=workers or Here())
    model, frames = model or shipped_model(), frames or range(movie.n_frames)
    return (yield from learned_score(reader, model, settings, frames))


def segment_by_choice(
    movie: Movie,
    segmentation: SegmentationSettings | None = None,
    settings: MaskSettings | None = None,
    given: GivenMasks | None = None,
    model: Model | None = None,
    *,
    channel: int | str = 0,
    workers: Workers | None = None,
) -> Generator[Progress | SegmentedFrame, None, float]:
    """As `choose_masks`, giving each frame's labels between the steps of the work.

    Cells of a label movie brought along keep their numbers where they stay as they are.
    """
    done: deque[FrameChoice] = deque()
    brought = given.labels[0] if given and given.labels else None
    work = Kept(
        choose_masks(
            movie,
            done.append,
            segmentation,
            settings,
            given,
            model,
            channel=channel,
            workers=workers,
        )
    )
    for step in work:
        yield step
        while done:
            yield _segmented(done.popleft(), brought, movie.n_frames)
    while done:
        yield _segmented(done.popleft(), brought, movie.n_frames)
    return max(0.0, work.result or 0.0)


def _segmented(choice: FrameChoice, brought: Movie | None, n_frames: int) -> SegmentedFrame:
    regions, rows, t = choice.candidates.regions, np.flatnonzero(choice.chosen), choice.frame
    labels = labels_of(regions, choice.chosen, t)
    if brought is not None:
        labels = keep_numbers(label_frame(brought, t), labels)
    margins = pd.DataFrame(
        {
            "frame": t,
            "label": labels.reshape(-1)[regions.pixels[regions.starts[rows]]],
            "score": choice.candidates.scores[rows],
            "margin_at_least": choice.margin[rows],
        }
    )
    return SegmentedFrame(t, n_frames, labels, margins)
