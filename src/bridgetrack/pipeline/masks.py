"""Find the cells of a movie by choosing among candidate regions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import SOURCE, MaskAnswers, as_candidates, targets
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie, check_same_extent, label_frame
from bridgetrack.option import option
from bridgetrack.pipeline.joint import (
    Candidates,
    FrameChoice,
    JointSettings,
    choose_jointly,
    measure_regions,
)
from bridgetrack.pipeline.mask_changes import keep_numbers
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.choose import choose_by_frame
from bridgetrack.regions.describe import Described, describe_frame, described
from bridgetrack.regions.propose import cell_probability, label_sources, propose_frame
from bridgetrack.regions.regions import Regions, concatenate, labels_of
from bridgetrack.regions.score import RegionScore, prune, starting_score, teach
from bridgetrack.regions.size import CellSize, usual_size
from bridgetrack.segmentation.movie import SegmentedFrame, movie_settings
from bridgetrack.segmentation.pixels import PixelModel
from bridgetrack.segmentation.probability import cell_and_edge
from bridgetrack.segmentation.settings import SegmentationSettings

Index = NDArray[np.int64]

_BLOCKS = 4
"""Places of a movie at which the size of its cells is looked at."""
_WORTH = 8.0
"""Candidates that one answer counts for, though it speaks of many that are alike."""


@dataclass(frozen=True)
class MaskSettings:
    """How cells are chosen among candidate regions.

    Parameters
    ----------
    choose
        ``jointly``: together with what happens to them in time; ``frame``: frame by frame.
    per_cell
        Candidates among which to choose, for every cell.
    loyalty
        Added to the log-odds of labels brought along.
    trust, bias, window, overlap, doubts
        See `JointSettings`; window counts frames.
    """

    choose: Literal["jointly", "frame"] = "jointly"
    per_cell: float = option(4.0, least=1)
    loyalty: float = option(2.0, least=0)
    trust: float = option(1.5, above=0)
    bias: float = -0.5
    window: int = option(8, least=2)
    overlap: int = option(3, least=1)
    doubts: int = option(0, least=0)

    @property
    def joint(self) -> JointSettings:
        """Those of the integer program."""
        overlap = min(self.overlap, self.window - 1)
        return JointSettings(self.window, overlap, self.trust, self.bias, self.doubts)


@dataclass(frozen=True)
class Given:
    """What is known of the masks of a movie besides its image.

    Parameters
    ----------
    labels
        Label movies brought along; each of their cells is a candidate.
    probability
        How probably each pixel belongs to a cell, see `cell_probability`.
    pixels
        What strokes taught; gives the probability where no movie of it is there.
    answers
        What people said of masks. It holds, and the score learns from it.
    score
        How regions are scored before that; the shipped score where None.
    """

    labels: Sequence[Movie] = ()
    probability: Movie | None = None
    pixels: PixelModel | None = None
    answers: MaskAnswers | None = None
    score: RegionScore | None = None


def choose_masks(
    movie: Movie,
    decided: Callable[[FrameChoice], object],
    segmentation: SegmentationSettings | None = None,
    settings: MaskSettings | None = None,
    given: Given | None = None,
    model: Model | None = None,
    *,
    channel: int | str = 0,
    frames: range | None = None,
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
    settings, given = settings or MaskSettings(), given or Given()
    frames = frames or range(movie.n_frames)
    for other in (*given.labels, *([given.probability] if given.probability else [])):
        check_same_extent(movie, other)
    yield Progress("Looking at the movie", 0.0)
    number = movie.channel_number(channel)
    complete = movie_settings(movie, segmentation, channel=number)
    reader = _Reader(movie, number, complete, given)
    score = given.score or starting_score()
    if given.answers is not None and len(given.answers):
        yield Progress("Learning from answers", 0.0)
        score = _taught(score, reader, given.answers)
    yield Progress("Looking at the movie", 0.0)
    size = _size(reader, score, settings)
    source = _candidates(reader, score, size, settings, frames)
    if settings.choose == "frame":
        for t, one in zip(frames, source, strict=True):
            yield Progress("Choosing masks", (t - frames.start) / len(frames))
            scores = np.where(one.pinned == 0, settings.trust * one.scores - settings.bias, 0)
            scores = scores + 1e6 * one.pinned
            decided(FrameChoice(t, one, choose_by_frame(one.regions, scores), np.abs(scores), ()))
        return 0.0
    return (
        yield from choose_jointly(
            lambda _: next(source),
            movie.geometry,
            movie.channels,
            model or shipped_model(),
            decided,
            settings.joint,
            frames=frames,
        )
    )


def segment_by_choice(
    movie: Movie,
    segmentation: SegmentationSettings | None = None,
    settings: MaskSettings | None = None,
    given: Given | None = None,
    model: Model | None = None,
    *,
    channel: int | str = 0,
) -> Iterator[Progress | SegmentedFrame]:
    """As `choose_masks`, giving each frame's labels between the steps of the work.

    Cells of a label movie brought along keep their numbers where they stay as they are.
    """
    done: deque[FrameChoice] = deque()
    brought = given.labels[0] if given and given.labels else None
    work = choose_masks(movie, done.append, segmentation, settings, given, model, channel=channel)
    for step in work:
        yield step
        while done:
            yield _segmented(done.popleft(), brought, movie.n_frames)
    while done:
        yield _segmented(done.popleft(), brought, movie.n_frames)


def _segmented(choice: FrameChoice, brought: Movie | None, n_frames: int) -> SegmentedFrame:
    labels = labels_of(choice.candidates.regions, choice.chosen, choice.frame)
    if brought is not None:
        labels = keep_numbers(label_frame(brought, choice.frame), labels)
    return SegmentedFrame(choice.frame, n_frames, labels)


@dataclass(frozen=True)
class _Reader:
    """Proposes and describes the candidates of single frames."""

    movie: Movie
    channel: int
    segmentation: SegmentationSettings
    given: Given

    @cached_property
    def drawn(self) -> Regions | None:
        """Cells that people drew or mended."""
        return None if self.given.answers is None else as_candidates(self.given.answers)

    def frame(self, t: int) -> Described:
        """Candidates of a frame, with cells that people drew among them."""
        given, scale = self.given, self.movie.geometry.scale
        image = self.movie.channel_frame(t, self.channel)
        probability = None
        if given.probability is not None:
            probability = cell_probability(given.probability, t)
        elif given.pixels is not None:
            cell, edge = cell_and_edge(image, given.pixels)
            probability = np.nan_to_num(cell if edge is None else cell - edge)
        named = zip(label_sources(given.labels), given.labels, strict=True)
        brought = {name: label_frame(labels, t) for name, labels in named}
        regions = propose_frame(
            image, self.segmentation, scale=scale, labels=brought, probability=probability, t=t
        )
        if self.drawn is not None:
            rows = self.drawn.rows(t)
            drawn = self.drawn.select(np.arange(rows.start, rows.stop))
            regions = concatenate([regions, drawn])
        features = describe_frame(
            regions, image, self.segmentation, scale=scale, probability=probability
        )
        return Described(regions, features)

    def said(self, regions: Regions) -> Index:
        """What people said of candidates: 1 for cells, -1 for none, else 0, shape (R,)."""
        if self.given.answers is None:
            return np.zeros(len(regions), dtype=np.int64)
        return targets(regions, self.given.answers)


def _taught(score: RegionScore, reader: _Reader, answers: MaskAnswers) -> RegionScore:
    """The score after answers about masks."""
    features, known = [], []
    for t in sorted({answer.frame for answer in answers}):
        beside = [s for s in (t - 1, t, t + 1) if 0 <= s < reader.movie.n_frames]
        for regions, found in described(reader.frame(s) for s in beside):
            if len(regions) and regions.frame[0] == t:
                said = reader.said(regions)
                features.append(found)
                known.append(np.where(said == 0, -1, said > 0).astype(np.int8))
    if not known:  # all answers are in frames without a candidate
        return score
    wanted = np.concatenate(known)
    n_right = sum(len(answer.right) for answer in answers)
    n_wrong = n_right + sum(len(answer.wrong) for answer in answers)
    worth = np.ones(len(wanted))
    for kind, n_answers in ((1, n_right), (0, n_wrong)):
        rows = wanted == kind
        worth[rows] = min(1.0, _WORTH * n_answers / max(1, int(rows.sum())))
    return teach(score, np.concatenate(features), wanted, worth)


def _size(reader: _Reader, score: RegionScore, settings: MaskSettings) -> CellSize | None:
    """How large cells are in some frames from all over the movie, as they are chosen there."""
    n = reader.movie.n_frames
    middle = np.unique(np.linspace(min(1, n - 1), max(n - 2, 0), _BLOCKS).astype(np.int64))
    areas, scores = [], []
    for t in middle.tolist():
        block = range(max(0, t - 1), min(n, t + 2))
        for regions, features in described(reader.frame(s) for s in block):
            if len(regions) and regions.frame[0] == t:
                odds = score.log_odds(features)
                keep = prune(regions, odds, settings.per_cell)
                chosen = keep[choose_by_frame(regions.select(keep), odds[keep] - settings.bias)]
                areas.append(regions.area[chosen].astype(np.float64))
                scores.append(odds[chosen])
    return usual_size(areas, scores)


def _candidates(
    reader: _Reader,
    score: RegionScore,
    size: CellSize | None,
    settings: MaskSettings,
    frames: range,
) -> Iterator[Candidates]:
    """Candidates of every frame in order, scored and pruned; three frames are in memory."""
    movie, names = reader.movie, label_sources(reader.given.labels)
    found = described(reader.frame(t) for t in frames)
    for t, (regions, features) in zip(frames, found, strict=True):
        scores = score.log_odds(features)
        if size is not None:
            scores = scores - size.doubt(regions.area.astype(np.float64))
        own = np.zeros(len(regions), dtype=bool)
        for name in names:
            own |= regions.votes[:, regions.sources.index(name)] > 0
        scores = scores + settings.loyalty * own
        said = reader.said(regions)
        drawn = np.zeros(len(regions), dtype=bool)
        if SOURCE in regions.sources:
            drawn = regions.source == regions.sources.index(SOURCE)
        wrong = (said < 0) & ~drawn
        sure = drawn | (own & ~wrong)  # what was brought along is always among the choices
        keep = prune(regions, np.where(wrong, -np.inf, scores), settings.per_cell, sure=sure)
        kept = regions.select(keep)
        table = measure_regions(kept, movie.frame(t), movie.geometry.scale)
        yield Candidates(kept, table, scores[keep], drawn[keep].astype(np.int8), features[keep])
