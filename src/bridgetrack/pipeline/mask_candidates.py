"""Candidate regions of a movie, frame by frame; their score and size are learned from the movie.

Candidates depend on the size of cells, which is estimated from the foreground, split into cells.
Touching cells may not be split, and cells seen by their texture may fall into pieces. Candidates of
other sizes reveal this: at the right size a larger part of the image has high scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from bridgetrack.annotations.mask_answers import SOURCE, MaskAnswers, as_candidates, targets
from bridgetrack.arrays import Array, Index
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.pipeline.joint import BIAS, PER_CELL, Candidates, measure_regions
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.describe import SPATIAL, Described, describe_frame, described
from bridgetrack.regions.propose import label_sources, propose_frame
from bridgetrack.regions.regions import Regions, concatenate, much_alike
from bridgetrack.regions.score import (
    FEW,
    KINDS,
    MovieScore,
    RegionScore,
    Targets,
    choose_by_frame,
    prune,
    share_of,
    starting_score,
    teach,
    usual_size,
)
from bridgetrack.segmentation.builtin import FrameView, complete_settings, segment_builtin
from bridgetrack.segmentation.readings import SettingsEstimate, estimate_settings
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.spread import spread

LOYALTY = 2.0
"""Added to the log-odds of given cells."""
READING_LOYALTY = 1.0
"""The same for cells of the plain segmentation, if none are given. It may be good where the score,
which was learned from other kinds of movies, is not."""
_READING = "reading"
_BLOCKS = 4
"""Places of a movie, of three frames each, from which its score is learned."""
_FRAMES_PER_BLOCK = 6
"""Frames of a movie for each of them, if there are few."""
_STEP = 1.4
_UP, _DOWN = 1, 6
"""Steps at most. Estimates are too large, rather than too small, where cells lie side by side."""
_LEAST = 5.0
"""Pixels; smaller cells have no shape."""
_BETTER = 1.25
"""Another size must be better by this factor. Up to 1.2 on HeLa, PSC and simulated nuclei, where
other sizes find as many cells; five times where long dark ones fall into pieces, and more where
bright rods side by side are taken for one cell."""
_FEW = 3
"""Sure cells (of log-odds 1) of another size that it must show: at a wrong one, noise may be more
than the nothing that is sure at the estimate."""
_ACROSS, _LEAST_SIDE, _LARGEST_SIDE = 15, 300, 700
"""Extent of the middle of frames that is examined along y and x, in cells and in pixels."""
_WIDTH, _PIXELS = 0, 1


@dataclass(frozen=True)
class MaskReader:
    """Proposes and describes the candidates of single frames."""

    # the image, and the number of the channel that shows the cells
    movie: Movie
    channel: int
    segmentation: SegmentationSettings  # complete settings
    # answers about masks, also those that follow from events. They hold, and the score learns from
    # areas that were found right
    answers: MaskAnswers
    labels: Sequence[Movie] = ()  # given label movies; each of their cells is a candidate
    client: Any = None  # over whose workers the frames are spread; this process where None
    # candidates of frames used to learn the score; each is returned once
    seen: dict[int, Described] = field(default_factory=dict)

    def frame(self, t: int) -> Described:
        """Candidates of a frame, with cells that people drew among them."""
        scale = self.movie.geometry.scale
        image = self.movie.channel_frame(t, self.channel)
        view = FrameView(image, self.segmentation, scale)
        named = zip(label_sources(self.labels), self.labels, strict=True)
        read = None
        drawn = {name: label_frame(labels, t).astype(np.int64) for name, labels in named}
        if not drawn:
            read = segment_builtin(view)
            drawn[_READING] = read.astype(np.int64)
        proposed = propose_frame(view, labels=drawn, t=t)
        regions = concatenate([proposed, as_candidates(self.answers, {t})])
        return Described(regions, describe_frame(regions, view), read)

    def frames(self, wanted: Iterable[int]) -> Iterator[Described]:
        """Candidates of some frames in order, as `frame` gives them."""
        frames = list(wanted)
        seen = {t: self.seen.pop(t) for t in frames if t in self.seen}
        others = [t for t in frames if t not in seen]
        alone = replace(self, client=None, seen={})
        found = spread(MaskReader.frame, alone, others, self.client)
        return (seen.pop(t) if t in seen else next(found) for t in frames)

    @property
    def answered(self) -> frozenset[str]:
        """Ids of the answers about masks."""
        return frozenset(answer.id for answer in self.answers)

    def candidates(self, score: MovieScore) -> Iterator[Candidates]:
        """Candidates of every frame after pruning, about `PER_CELL` for every cell.

        Three frames are in memory. Given cells and those of the plain segmentation are always kept.
        """
        for t, found in enumerate(described(self.frames(range(self.movie.n_frames)))):
            regions = found.regions
            scores = score.log_odds(regions, found.features)
            read = regions.voted(_READING)
            brought = regions.voted(*label_sources(self.labels))
            scores += LOYALTY * brought
            scores += (1 - score.own) * READING_LOYALTY * much_alike(regions, read)
            drawn = regions.voted(SOURCE)
            debris = score.size.none(regions.area) & ~brought
            wrong = ((targets(regions, self.answers) < 0) | debris) & ~drawn
            sure = drawn | ((brought | read) & ~wrong)
            kept = prune(regions, np.where(wrong, -np.inf, scores), PER_CELL, sure=sure)
            part = regions.select(kept)
            table = measure_regions(part, self.movie.frame(t), self.movie.geometry.scale)
            likely = choose_by_frame(part, scores[kept] - BIAS)
            yield Candidates(t, part, table, scores[kept], drawn[kept], likely, found.read)


def learned_score(reader: MaskReader) -> Steps[MovieScore]:
    """Learn the size of cells; and their look, from areas that were found right.

    Without answers the reader keeps the frames that this looks at, which are in memory together.
    """
    answers, blocks = reader.answers, _blocks(reader.movie.n_frames)
    frames = [t for block in blocks for t in block]
    taken: list[Described] = []
    # without the cells that are right by events: as examples they would all look drawn
    every = replace(reader, answers=answers.holding(()), seen={}).frames(frames)
    for k, block in enumerate(blocks):
        yield Progress("Looking at the movie", k / len(blocks))
        taken += described(islice(every, len(block)))
    start, cells, odds = best_start(taken)
    areas = [found.area.astype(np.float64) for found in cells]
    size = usual_size(areas, odds, [found.at_edge(in_plane=True) for found in cells])
    score = MovieScore(start.of_its_kind, size, answers=reader.answered)
    if not len(answers) and not answers.held:
        for t, one in zip(frames, taken, strict=True):
            alone = one.features[:, :SPATIAL]  # without features of the neighbouring frames
            reader.seen[t] = Described(replace(one.regions), alone, one.read)
    if answers.checked < FEW:
        return score
    said = yield from _said_of(reader, {answer.frame for answer in answers})
    told = [target[_at_first(one, score)[0]] for one, target in said]
    known = np.concatenate([np.zeros(0), *(t[t >= 0] for t in told)])
    wrong = float((known == 0).mean()) if len(known) else 0.0
    share = share_of(answers.checked, answers.mended, wrong)
    if not share:
        return score
    features = np.concatenate([one.features for one, _ in said])
    return teach(score, features, np.concatenate([target for _, target in said]), share)


def best_start(taken: Sequence[Described]) -> tuple[RegionScore, list[Regions], list[Array]]:
    """The best shipped score for some frames, with the cells of each frame and their scores.

    It has the largest sum of log-odds times pixels over the cells that it finds. A score that does
    not know such cells finds few of them, or pieces, and is not sure: that of rods sees less than
    half of what that of cells does on HeLa, PSC, DIC, U373 and simulated nuclei, long ones among
    them, and more on most simulated colonies.
    """
    most, best = -np.inf, None
    for kind in KINDS:
        start = starting_score(kind)
        found = [_at_first(one, MovieScore(start)) for one in taken]
        cells = [one.regions.select(row) for one, (row, _) in zip(taken, found, strict=True)]
        odds = [scores for _, scores in found]
        seen = float(sum((c.area * o).sum() for c, o in zip(cells, odds, strict=True)))
        if seen > most:
            most, best = seen, (start, cells, odds)
    assert best is not None
    return best


def _at_first(found: Described, score: MovieScore) -> tuple[Index, Array]:
    """Rows of the best candidates of a frame by their scores alone, and these scores."""
    scores = score.log_odds(found.regions, found.features)
    kept = prune(found.regions, scores, PER_CELL)
    chosen = kept[choose_by_frame(found.regions.select(kept), scores[kept] - BIAS)]
    return chosen, scores[chosen]


def _said_of(reader: MaskReader, frames: set[int]) -> Steps[list[tuple[Described, Targets]]]:
    """The candidates of some frames, with the answers about them."""
    # without drawn ones: that these agree with others would reveal the answers
    source = replace(reader, answers=MaskAnswers(reader.movie.geometry), seen={})
    last, said = reader.movie.n_frames - 1, []
    wanted = np.array(sorted({min(max(s, 0), last) for t in frames for s in (t - 1, t, t + 1)}))
    for run in np.split(wanted, np.flatnonzero(np.diff(wanted) > 1) + 1):  # successive frames
        for t, one in zip(run.tolist(), described(source.frames(run.tolist())), strict=True):
            yield Progress("Learning from answers", 1.0)
            if t in frames and len(one.regions):
                told = targets(one.regions, reader.answers)
                said.append((one, np.where(told == 0, -1, told > 0).astype(np.int8)))
    return said


def _blocks(n_frames: int) -> list[range]:
    """Three successive frames at some places, evenly spread, none of them twice."""
    n = min(_BLOCKS, max(1, n_frames // _FRAMES_PER_BLOCK))
    middle = np.linspace(0, n_frames - 1, 2 * n + 1)[1::2].round().astype(int)
    return [range(max(0, t - 1), min(n_frames, t + 2)) for t in middle.tolist()]


# ---------------------------------------------------------------------- the size of cells


def fitted_settings(
    movie: Movie, settings: SegmentationSettings | None = None, *, channel: int | str = 0
) -> Steps[SettingsEstimate]:
    """Estimate missing settings for a whole movie, the size of cells by their candidates.

    `estimate_settings` decides all but the size; one that is given is kept.
    """
    yield Progress("Looking at the movie", 0.0)
    settings = settings or SegmentationSettings()
    estimate = estimate_settings(movie, settings, channel=channel)
    if settings.diameter is not None:
        return estimate
    # Frames are looked at in the middle, whose edge is not that of the frame.
    known = replace(settings, foreground=estimate.settings.foreground, clear_border=False)
    size = float(estimate.settings.diameter or 20.0)
    part, number = _middle(movie, size), movie.channel_number(channel)
    nothing = MaskAnswers(part.geometry)

    def settings_at(step: int) -> SegmentationSettings:
        return complete_settings([], replace(known, diameter=size * _STEP**step))

    def seen(step: int, frames: list[int]) -> Steps[Array]:
        return (yield from _seen(MaskReader(part, number, settings_at(step), nothing), frames))

    late, *early = _pairs(movie.n_frames)
    shown = {0: (yield from seen(0, late))}
    # Weighted in favour of the estimate: several cells taken for one have more pixels, and pieces
    # of cells have more width.
    for side, most, weight in ((1, _UP, _WIDTH), (-1, _DOWN, _PIXELS)):
        for step in range(side, side * (most + 1), side):
            if size * _STEP**step < _LEAST:
                break
            shown[step] = yield from seen(step, late)
            past = [shown[k][weight] for k in (step, step - side, step - 2 * side) if k in shown]
            if abs(step) > 1 and past[0] < past[1] < past[2]:
                break
    best = _best(shown, size)
    for pair in early if best else ():
        shown = {step: shown[step] for step in (0, best)}
        for step in shown:
            shown[step] = shown[step] + (yield from seen(step, pair))
        best = _best(shown, size)
    if not best:
        return estimate
    first, *others = estimate.readings
    found = replace(settings_at(best), clear_border=settings.clear_border)
    return SettingsEstimate(found, (replace(first, diameter=size * _STEP**best), *others))


def _seen(reader: MaskReader, frames: list[int]) -> Steps[Array]:
    """Width and pixels of cells, weighted by the log-odds of the best score, shape (2,)."""
    taken: list[Described] = []
    for one in described(reader.frames(frames)):
        yield Progress("Looking at the movie", 0.0)
        taken.append(one)
    _, cells, odds = best_start(taken)
    area, sure = np.concatenate([found.area for found in cells]), np.concatenate(odds)
    return np.array([(np.sqrt(area) * sure).sum(), (area * sure).sum()])


def _best(shown: dict[int, Array], size: float) -> int:
    """The step that is clearly better than the estimate of `size`; 0 if there is none."""
    better = []
    for side, weight in ((1, _WIDTH), (-1, _PIXELS)):
        step = max((k for k in shown if k * side >= 0), key=lambda k: float(shown[k][weight]))
        cell = (size * _STEP**step) ** (1 + weight)  # of width, or of pixels
        if shown[step][weight] > max(_BETTER * shown[0][weight], _FEW * cell):
            better.append(step)
    return max(better, key=lambda k: float(shown[k].prod()), default=0)


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
