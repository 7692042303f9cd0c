"""Find the cells of a movie, or repair its masks, by choosing among candidate regions.

Candidates depend on the size of cells, which is estimated from the foreground, split into cells.
Where cells lie side by side they do not come apart, and where their texture tells them apart from
the background, they fall into pieces. Candidates of other sizes show that: at the right one more of
the picture is surely cells.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.annotations.mask_targets import as_candidates
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie, check_same_extent, label_frame
from bridgetrack.pipeline.joint import FrameChoice, MaskSettings, choose_jointly
from bridgetrack.pipeline.mask_candidates import (
    GivenMasks,
    MaskReader,
    best_start,
    learned_score,
)
from bridgetrack.pipeline.mask_changes import (
    MaskChange,
    changes,
    check_some_left,
    keep_numbers,
    with_outlines_of,
)
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.regions.describe import Described, described
from bridgetrack.regions.propose import label_sources
from bridgetrack.regions.regions import labels_of
from bridgetrack.regions.score import KINDS, RegionScore, starting_score
from bridgetrack.segmentation.builtin import complete_settings
from bridgetrack.segmentation.readings import SettingsEstimate, estimate_settings
from bridgetrack.segmentation.segment import SegmentedFrame
from bridgetrack.segmentation.settings import SegmentationSettings

_STEP = 1.4
_UP, _DOWN = 1, 6
"""Steps at most. Estimates are too large, rather than too small, where cells lie side by side."""
_LEAST = 5.0
"""Pixels; smaller cells have no shape."""
_BETTER = 1.25
"""How many times as much another size must show. Up to 1.2 on HeLa, PSC and simulated nuclei, where
other sizes find as many cells; five times where long dark ones fall into pieces, and more where
bright rods side by side are taken for one cell."""
_ACROSS, _LEAST_SIDE, _LARGEST_SIDE = 15, 300, 700
"""Cells side by side, and pixels, along y and x that are looked at in the middle of frames."""
_WIDTH, _PIXELS = 0, 1
_PER_CELL = 4.0


def choose_masks(
    movie: Movie,
    segmentation: SegmentationSettings | None = None,
    settings: MaskSettings | None = None,
    given: GivenMasks | None = None,
    model: Model | None = None,
    *,
    channel: int | str = 0,
    client: Any = None,
) -> Generator[Progress | FrameChoice, None, None]:
    """Choose the cells of a movie among candidate regions; a window of frames is in memory.

    Parameters
    ----------
    movie
        The image.
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
    client
        A dask client, over whose cluster the frames are spread; this process where None.

    Yields
    ------
    Progress, FrameChoice
        Every frame in order, as soon as it is decided.

    Raises
    ------
    InputError
        Where movies differ in extent, or answers exclude each other.
    """
    settings, model = settings or MaskSettings(), model or shipped_model()
    given = given or GivenMasks()
    reader = yield from mask_reader(movie, segmentation, given, channel=channel, client=client)
    score = yield from learned_score(reader, settings)
    candidates = reader.candidates(score, settings)
    work = choose_jointly(candidates, movie.geometry, movie.channels, model, settings)
    if segmentation is not None and segmentation.clear_border:
        work = relayed(work, partial(_off_the_edge, label_sources(given.labels)))
    yield from work


def _off_the_edge(brought: tuple[str, ...], step: Progress | FrameChoice) -> Progress | FrameChoice:
    """A choice without cells at the frame's edge, but for those that people drew or brought.

    They go after the choice: while it is made they keep their own parts from being taken for
    cells, and the movie from looking as if they came and went.
    """
    if not isinstance(step, FrameChoice):
        return step
    regions, stays = step.candidates.regions, step.candidates.pinned > 0
    for name in brought:
        stays |= regions.votes[:, regions.sources.index(name)] > 0
    return replace(step, chosen=step.chosen & (stays | ~regions.at_edge()))


def mask_reader(
    movie: Movie,
    segmentation: SegmentationSettings | None,
    given: GivenMasks,
    *,
    channel: int | str = 0,
    client: Any = None,
) -> Steps[MaskReader]:
    """What proposes candidates, with settings that suit the movie; as for `choose_masks`."""
    for other in (*given.labels, *([given.probability] if given.probability else [])):
        check_same_extent(movie, other)
    number = movie.channel_number(channel)
    if segmentation is not None:  # cells at the edge are left out after the choice
        segmentation = replace(segmentation, clear_border=False)
    if segmentation is not None and segmentation.complete:
        settings = segmentation
    elif given.labels or given.network is not None or given.probability is not None:
        yield Progress("Looking at the movie", 0.0)
        settings = estimate_settings(movie, segmentation, channel=number).settings
    else:
        settings = (yield from fitted_settings(movie, segmentation, channel=number)).settings
    return MaskReader(movie, number, settings, given, client)


def segment_by_choice(
    movie: Movie,
    segmentation: SegmentationSettings | None = None,
    settings: MaskSettings | None = None,
    given: GivenMasks | None = None,
    model: Model | None = None,
    *,
    channel: int | str = 0,
    client: Any = None,
) -> Generator[Progress | SegmentedFrame, None, None]:
    """As `choose_masks`, giving the labels of every frame.

    Cells of a label movie brought along keep their numbers where they stay as they are.
    """
    brought = given.labels[0] if given and given.labels else None

    def segmented(step: Progress | FrameChoice) -> Progress | SegmentedFrame:
        if not isinstance(step, FrameChoice):
            return step
        regions, rows, t = step.candidates.regions, np.flatnonzero(step.chosen), step.frame
        labels = labels_of(regions, step.chosen, t)
        if brought is not None:
            labels = keep_numbers(label_frame(brought, t), labels)
        margins = pd.DataFrame(
            {
                "frame": t,
                "label": labels.reshape(-1)[regions.pixels[regions.starts[rows]]],
                "score": step.candidates.scores[rows],
                "margin_at_least": step.margin[rows],
            }
        )
        return SegmentedFrame(t, movie.n_frames, labels, margins)

    work = choose_masks(movie, segmentation, settings, given, model, channel=channel, client=client)
    yield from relayed(work, segmented)


def repair_masks(
    labels: Movie,
    image: Movie,
    repaired: Callable[[NDArray[np.int32]], Any],
    model: Model,
    answers: MaskAnswers | None = None,
    client: Any = None,
    *,
    channel: int | str = 0,
) -> Steps[tuple[MaskChange, ...]]:
    """Repair the masks of a movie; they stay where the image does not object.

    Cells that stay are drawn as they were given, but for those that somebody drew or called right.

    Parameters
    ----------
    labels, image
        The masks, and what they were made from.
    repaired
        Called with the labels of every frame, in order.
    model
        Weights of events.
    answers
        What people said of masks.
    client
        A dask client, over whose cluster the frames are spread; this process where None.
    channel
        Number or name of the channel that shows the cells.

    Yields
    ------
    Progress

    Returns
    -------
    tuple of MaskChange
        What was cut, joined, added, dropped and outlined anew, in order of time.

    Raises
    ------
    InputError
        Where the movies differ in extent, answers exclude each other, or no cell would be left.
    """
    found: list[MaskChange] = []
    had = left = False
    given = GivenMasks(labels=(labels,), answers=answers)
    work = segment_by_choice(image, given=given, model=model, channel=channel, client=client)
    for step in work:
        if isinstance(step, Progress):
            yield step
            continue
        before = label_frame(labels, step.frame)
        sure = _said_right(step.labels, answers, step.frame)
        masks = with_outlines_of(before, step.labels, sure)
        repaired(masks)
        found += changes(before, masks, step.frame)
        had, left = had or bool(before.any()), left or bool(masks.any())
    check_some_left(labels, had, left)
    return tuple(found)


def _said_right(masks: NDArray[np.int32], answers: MaskAnswers | None, t: int) -> NDArray[Any]:
    """Labels of the cells of a frame that somebody drew or called right."""
    if answers is None:
        return np.zeros(0, dtype=np.int32)
    said = as_candidates(answers, {t})
    return masks.reshape(-1)[said.pixels[said.starts[:-1]]]


# ---------------------------------------------------------------------- the size of cells


def fitted_settings(
    movie: Movie, settings: SegmentationSettings | None = None, *, channel: int | str = 0
) -> Steps[SettingsEstimate]:
    """Decide for a whole movie what settings leave open, its size of cells by their candidates.

    Parameters
    ----------
    movie, settings, channel
        See `estimate_settings`, which decides all but the size; one that is given is kept.
    """
    yield Progress("Looking at the movie", 0.0)
    settings = settings or SegmentationSettings()
    estimate = estimate_settings(movie, settings, channel=channel)
    if settings.diameter is not None:
        return estimate
    # Frames are looked at in the middle, whose edge is not that of the frame.
    known = replace(settings, foreground=estimate.settings.foreground, clear_border=False)
    size = float(estimate.settings.diameter or 20.0)
    starts = tuple(starting_score(kind) for kind in KINDS)
    sight = _Sight(_middle(movie, size), movie.channel_number(channel), known, size, starts)
    late, *early = _pairs(movie.n_frames)
    shown = {0: (yield from sight.explained(0, late))}
    for side, most in ((1, _UP), (-1, _DOWN)):
        # The weight that favours the estimate: several cells taken for one have more pixels than
        # these, and pieces of cells have more width.
        weight = _WIDTH if side > 0 else _PIXELS
        for step in range(side, side * (most + 1), side):
            if sight.diameter(step) < _LEAST:
                break
            shown[step] = yield from sight.explained(step, late)
            past = [shown[k][weight] for k in (step, step - side, step - 2 * side) if k in shown]
            if abs(step) > 1 and past[0] < past[1] < past[2]:
                break
    best = _best(shown)
    for pair in early if best else ():
        for step in (0, best):
            more = yield from sight.explained(step, pair)
            shown[step] = (shown[step][0] + more[0], shown[step][1] + more[1])
        best = _best({step: shown[step] for step in (0, best)})
    if not best:
        return estimate
    first, *others = estimate.readings
    first = replace(first, diameter=sight.diameter(best))
    found = replace(sight.settings_at(best), clear_border=settings.clear_border)
    return SettingsEstimate(found, (first, *others))


def _best(shown: dict[int, tuple[float, float]]) -> int:
    """The step that shows clearly more than the estimate; 0 where none does."""
    better = []
    for side, weight in ((1, _WIDTH), (-1, _PIXELS)):
        step = max((k for k in shown if k * side >= 0), key=lambda k: shown[k][weight])
        if shown[step][weight] > _BETTER * max(shown[0][weight], 0.0):
            better.append(step)
    return max(better, key=lambda k: shown[k][_WIDTH] * shown[k][_PIXELS], default=0)


@dataclass(frozen=True)
class _Sight:
    """Some frames of a movie, looked at with several sizes."""

    movie: Movie
    channel: int
    known: SegmentationSettings  # all but the size
    size: float
    starts: tuple[RegionScore, ...]

    def diameter(self, step: int) -> float:
        return self.size * _STEP**step

    def settings_at(self, step: int) -> SegmentationSettings:
        return complete_settings([], replace(self.known, diameter=self.diameter(step)))

    def explained(self, step: int, frames: list[int]) -> Steps[tuple[float, float]]:
        """How much of width, and of pixels, is a cell by the log-odds of the best score."""
        reader = MaskReader(self.movie, self.channel, self.settings_at(step), GivenMasks())
        taken: list[Described] = []
        for one in described(reader.frames(frames)):
            yield Progress("Looking at the movie", 0.0)
            taken.append(one)
        _, _, areas, odds = best_start([taken], self.starts, MaskSettings())
        area, sure = np.concatenate(areas), np.concatenate(odds)
        return float((np.sqrt(area) * sure).sum()), float((area * sure).sum())


def _pairs(n_frames: int) -> list[list[int]]:
    """Two frames each that follow each other, at two thirds of the movie and at a third."""
    first = {min(k * n_frames // 3, max(0, n_frames - 2)) for k in (1, 2)}
    return [[t for t in (f, f + 1) if t < n_frames] for f in sorted(first, reverse=True)]


def _middle(movie: Movie, size: float) -> Movie:
    """The movie, of large frames the middle."""
    shape = movie.geometry.shape or ()
    side = int(min(max(_ACROSS * size, _LEAST_SIDE), _LARGEST_SIDE))
    low = [max(0, (n - side) // 2) for n in shape[-2:]]
    middle: Any = tuple(slice(a, a + min(side, n)) for a, n in zip(low, shape[-2:], strict=True))
    inside = (*shape[:-2], *(min(side, n) for n in shape[-2:]))
    geometry = replace(movie.geometry, shape=inside)
    return replace(movie, array=movie.array[(..., *middle)], geometry=geometry)
