"""Candidate regions of a movie, frame by frame, and how the movie teaches their score."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.annotations.mask_targets import SOURCE, as_candidates, targets
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.pipeline.joint import (
    Candidates,
    FrameChoice,
    MaskSettings,
    choose_jointly,
    measure_regions,
)
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.choose import choose_by_frame
from bridgetrack.regions.describe import Described, describe_frame, described
from bridgetrack.regions.outlines import much_alike, redrawn_rows
from bridgetrack.regions.propose import label_sources, propose_frame
from bridgetrack.regions.regions import Regions, concatenate
from bridgetrack.regions.score import KINDS, RegionScore, Targets, prune, starting_score
from bridgetrack.regions.size import usual_size
from bridgetrack.regions.taught import FEW, HALF, MovieScore, choice_targets, share_of, teach
from bridgetrack.segmentation.backends import CellposeReading
from bridgetrack.segmentation.builtin import segment_builtin
from bridgetrack.segmentation.probability import (
    cell_alone,
    cell_and_edge_of,
    segment_probability,
)
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.spread import Here, Workers

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_Lesson = tuple[Array, Targets]

_BLOCKS = 4
"""Places of a movie, of three frames each, from which it teaches its score."""
_FRAMES_PER_BLOCK = 6
"""Frames of a movie for each of them, if there are few."""
_READING = "reading"
_PROBABILITY = "probability"
_NETWORK = "network"
READING_LOYALTY = 1.0
"""Added to the log-odds of cells that the plain segmentation draws, where no labels are brought.

It is good where the score, which was learned from other kinds of movies, may not be. The plain
segmentation is that of the probabilities of another program where these are given."""


@dataclass(frozen=True)
class GivenMasks:
    """What is known of the masks of a movie besides its image.

    Parameters
    ----------
    labels
        Label movies brought along; each of their cells is a candidate.
    probability
        How probably each pixel belongs to a cell, see `open_probability`.
    network
        Its cells are candidates like those of labels brought along, and where it sees cells
        others are looked for.
    answers
        What people said of masks. It holds, and the score learns from it. What answers about events
        say of masks holds as well, and is learned from in the frames that are looked at for it.
    score
        How regions are scored at first, from which the movie and its answers teach more; where
        None that of the shipped ones which sees most in the movie. What they taught before is used
        as it is.
    """

    labels: Sequence[Movie] = ()
    probability: Movie | None = None
    network: CellposeReading | None = None
    answers: MaskAnswers | None = None
    score: RegionScore | MovieScore | None = None


@dataclass(frozen=True)
class Offered:
    """All candidates of a frame, and those of them that are worth choosing among.

    Parameters
    ----------
    all
        With their features.
    kept
        Rows of those worth choosing among.
    candidates
        The same, measured and scored.
    """

    all: Described
    kept: Index
    candidates: Candidates


@dataclass(frozen=True)
class MaskReader:
    """Proposes and describes the candidates of single frames."""

    movie: Movie
    channel: int
    segmentation: SegmentationSettings
    given: GivenMasks
    workers: Workers = field(default_factory=Here)

    @cached_property
    def outline_ratio(self) -> float:
        """How many times as large cells are to be drawn as they were, by those corrected."""
        return 1.0 if self.given.answers is None else self.given.answers.outline_ratio

    @property
    def trusted(self) -> tuple[str, ...]:
        """Sources whose cells somebody asked for: label movies brought along, and a network."""
        network = () if self.given.network is None else (_NETWORK,)
        return (*label_sources(self.given.labels), *network)

    def frame(self, t: int) -> Described:
        """Candidates of a frame, with cells that people drew among them."""
        given, scale = self.given, self.movie.geometry.scale
        image = self.movie.channel_frame(t, self.channel)
        named = zip(label_sources(given.labels), given.labels, strict=True)
        brought = {name: label_frame(labels, t) for name, labels in named}
        said = probability = None
        if given.probability is not None:
            said = cell_and_edge_of(given.probability, t)
        if given.network is not None:
            seen, probability = given.network.of(image, scale)
            brought[_NETWORK] = seen.astype(np.int64)
        if not brought:
            read = segment_builtin(image, self.segmentation, scale)
            brought[_READING] = read.astype(np.int64)
            if said is not None:
                read = segment_probability(*said, self.segmentation, scale)
                brought[_PROBABILITY] = read.astype(np.int64)
        probability = probability if said is None else cell_alone(said)
        regions = propose_frame(
            image, self.segmentation, scale=scale, labels=brought, probability=probability, t=t
        )
        if given.answers is not None:
            regions = concatenate([regions, as_candidates(given.answers, {t})])
        # What another program says is no feature: the starting score never saw the like, and
        # goes wrong.
        features = describe_frame(regions, image, self.segmentation, scale=scale)
        return Described(regions, features)

    def frames(self, wanted: Iterable[int]) -> Iterator[Described]:
        """Candidates of some frames in order, as `frame` gives them, by all workers."""
        return self.workers.stream(_frame, replace(self, workers=Here()), wanted)

    def said(self, regions: Regions) -> Index:
        """What people said of candidates: 1 for cells, -1 for none, else 0, shape (R,)."""
        if self.given.answers is None:
            return np.zeros(len(regions), dtype=np.int64)
        return targets(regions, self.given.answers)

    def offered(
        self, score: MovieScore, settings: MaskSettings, frames: range
    ) -> Iterator[Offered]:
        """Candidates of some frames in order, scored and pruned; three frames are in memory."""
        for t, found in zip(frames, described(self.frames(frames)), strict=True):
            yield self.offer(t, found, score, settings)

    def offer(self, t: int, found: Described, score: MovieScore, settings: MaskSettings) -> Offered:
        """Those candidates of a frame that are worth choosing among."""
        regions = found.regions
        own = np.zeros(len(regions), dtype=bool)
        for name in self.trusted:
            own |= regions.votes[:, regions.sources.index(name)] > 0
        brought = own
        scores = score.log_odds(regions, found.features) + settings.loyalty * own
        reading = _READING if self.given.probability is None else _PROBABILITY
        if reading in regions.sources:
            read = regions.votes[:, regions.sources.index(reading)] > 0
            liked = much_alike(regions, redrawn_rows(regions, read, self.outline_ratio))
            scores, own = scores + (1 - score.own) * READING_LOYALTY * liked, own | read
        drawn = np.zeros(len(regions), dtype=bool)
        if SOURCE in regions.sources:
            drawn = regions.source == regions.sources.index(SOURCE)
        wrong = (self.said(regions) < 0) & ~drawn
        wrong |= score.debris(regions.area) & ~brought & ~drawn
        sure = drawn | (own & ~wrong)  # what was brought along or read is always among the choices
        kept = prune(regions, np.where(wrong, -np.inf, scores), settings.per_cell, sure=sure)
        part = regions.select(kept)
        table = measure_regions(part, self.movie.frame(t), self.movie.geometry.scale)
        candidates = Candidates(part, table, scores[kept], drawn[kept].astype(np.int8))
        return Offered(found, kept, candidates)


def _frame(reader: MaskReader, t: int) -> Generator[float, None, Described]:
    yield 0.0
    return reader.frame(t)


def learned_score(
    reader: MaskReader, model: Model, settings: MaskSettings, frames: range
) -> Steps[MovieScore]:
    """Learn how large cells are; and what they look like, from answers and the movie's own choice.

    Parameters
    ----------
    reader
        The movie with what is known of it.
    model
        Weights of events.
    settings
        How regions and events are chosen together.
    frames
        Successive frames of which to learn.
    """
    if isinstance(reader.given.score, MovieScore):
        return reader.given.score
    blocks = _blocks(frames)
    taken: list[list[Described]] = []
    answers = reader.given.answers
    # without the cells right by events, which may be most: as examples they would all look drawn
    said_of_masks = None if answers is None else replace(answers, held=())
    source = replace(reader, given=replace(reader.given, answers=said_of_masks))
    every = source.frames(t for block in blocks for t in block)
    for k, block in enumerate(blocks):
        yield Progress("Looking at the movie", k / (2 * len(blocks)))
        taken.append(list(described(islice(every, len(block)))))
    given = reader.given.score
    starts = [given] if given else [starting_score(kind) for kind in KINDS]
    _, start, areas, odds = best_start(taken, starts, settings)
    ids = frozenset() if answers is None else frozenset(answer.id for answer in answers.told)
    score = MovieScore(start.of_its_kind, usual_size(areas, odds), answers=ids)
    if answers is None or not answers.told:
        return score  # without anyone's word, what is wrong with the choice would be learned, too
    frames_said, said = {answer.frame for answer in answers.told}, []
    if answers.checked:
        said = yield from _said_of(reader, frames_said)
        wrong = _wrong(said, score, settings)
    else:
        # What was mended is the least that is wrong in those frames, whatever else is.
        wrong = answers.mended * len(areas) / max(1, len(frames_said) * sum(map(len, areas)))
    share = share_of(answers.checked, answers.mended, wrong)
    if reader.outline_ratio != 1.0 and answers.checked < FEW:
        share = max(share, HALF)  # the starting score knows other outlines
    if not share:
        return score
    if answers.checked >= FEW:
        return teach(score, *_joined([(one.features, t) for one, t in said]), share)
    # a given label is no example of a cell here: what is wrong with it would be learned, too
    plain = replace(settings, loyalty=0.0)
    lessons: list[_Lesson] = []
    for k, (block, known) in enumerate(zip(blocks, taken, strict=True)):
        yield Progress("Looking at the movie", 0.5 + k / (2 * len(blocks)))
        pairs = zip(block, known, strict=True)
        offered = [reader.offer(t, one, score, plain) for t, one in pairs]
        lessons += yield from _own_choice(reader, block, offered, model, plain)
    known_too = {t for block in blocks for t in block}
    if not answers.checked:
        said = yield from _said_of(reader, frames_said - known_too)
    lessons += [(one.features, t) for one, t in said if one.regions.frame[0] not in known_too]
    return teach(score, *_joined(lessons), min(share, HALF))


def best_start(
    taken: Sequence[Sequence[Described]],
    starts: Sequence[RegionScore],
    settings: MaskSettings,
) -> tuple[float, RegionScore, list[Array], list[Array]]:
    """The score that sees most in some frames: how much, areas and scores of the cells of each.

    What it sees are the log-odds of what it takes for cells, times pixels. A score that does not
    know such cells finds few of them, or pieces, and is not sure: that of rods sees less than half
    of what that of cells does on HeLa, PSC, DIC, U373 and simulated nuclei, long ones among them,
    and more on most simulated colonies.
    """
    found = []
    for start in starts:
        areas, odds = [], []
        for one in (one for block in taken for one in block):
            chosen, scores = _at_first(one, MovieScore(start), settings)
            areas.append(one.regions.area[chosen].astype(np.float64))
            odds.append(scores)
        seen = float(sum((a * o).sum() for a, o in zip(areas, odds, strict=True)))
        found.append((seen, start, areas, odds))
    return max(found, key=lambda each: each[0])


def _at_first(found: Described, score: MovieScore, settings: MaskSettings) -> tuple[Index, Array]:
    """Rows of the candidates of a frame that are the best by their scores alone; these scores."""
    scores = score.log_odds(found.regions, found.features)
    kept = prune(found.regions, scores, settings.per_cell)
    chosen = kept[choose_by_frame(found.regions.select(kept), scores[kept] - settings.bias)]
    return chosen, scores[chosen]


def _wrong(
    said: Sequence[tuple[Described, Targets]], score: MovieScore, settings: MaskSettings
) -> float:
    """Share of wrong ones among what a score takes for cells, where people said what is right."""
    told = [target[_at_first(one, score, settings)[0]] for one, target in said]
    known = np.concatenate([np.zeros(0), *(t[t >= 0] for t in told)])
    return float((known == 0).mean()) if len(known) else 0.0


def _said_of(reader: MaskReader, frames: set[int]) -> Steps[list[tuple[Described, Targets]]]:
    """The candidates of some frames, with what people said of them."""
    # without those that they drew: that these agree with others would give the answers away
    source = replace(reader, given=replace(reader.given, answers=None))
    last, said = reader.movie.n_frames - 1, []
    wanted = {min(max(s, 0), last) for t in frames for s in (t - 1, t, t + 1)}
    for run in _runs(wanted):
        for t, one in zip(run, described(source.frames(run)), strict=True):
            yield Progress("Learning from answers", 1.0)
            if t in frames and len(one.regions):
                unknown = np.full(len(one.regions), -1, dtype=np.int8)
                said.append((one, _corrected(reader, one.regions, unknown)))
    return said


def _runs(frames: set[int]) -> list[range]:
    """Successive frames, each once."""
    listed = np.array(sorted(frames), dtype=np.int64)
    parts = np.split(listed, np.flatnonzero(np.diff(listed) > 1) + 1)
    return [range(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]


def _joined(lessons: Sequence[_Lesson]) -> _Lesson:
    features, target = (np.concatenate(part) for part in zip(*lessons, strict=True))
    return features, target


def _own_choice(
    reader: MaskReader,
    block: range,
    offered: Sequence[Offered],
    model: Model,
    settings: MaskSettings,
) -> Steps[list[_Lesson]]:
    """What the choice in successive frames says of their candidates."""
    decided: list[FrameChoice] = []
    yield from choose_jointly(
        lambda t: offered[t - block.start].candidates,
        reader.movie.geometry,
        reader.movie.channels,
        model,
        decided.append,
        settings,
        frames=block,
    )
    lessons = []
    for choice, one in zip(decided, offered, strict=True):
        among = np.zeros(len(one.all.regions), dtype=bool)
        among[one.kept[choice.chosen]] = True
        regions = one.all.regions
        among = redrawn_rows(regions, among, reader.outline_ratio)
        target = _corrected(reader, regions, choice_targets(regions, among))
        lessons.append((one.all.features, target))
    return lessons


def _blocks(frames: range) -> list[range]:
    """Three successive frames at some places, evenly spread, none of them twice."""
    n = min(_BLOCKS, max(1, len(frames) // _FRAMES_PER_BLOCK))
    middle = np.linspace(frames.start, frames.stop - 1, 2 * n + 1)[1::2].round().astype(int)
    return [range(max(frames.start, t - 1), min(frames.stop, t + 2)) for t in middle.tolist()]


def _corrected(reader: MaskReader, regions: Regions, target: Targets) -> Targets:
    """Targets of the candidates of a frame, what people said of them in the place of others."""
    if reader.given.answers is None:
        return target
    said = targets(regions, reader.given.answers, reader.outline_ratio)
    return np.where(said == 0, target, said > 0).astype(np.int8)
