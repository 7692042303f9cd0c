"""Candidates of a movie, described, scored and thinned out, with a few frames in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bridgetrack.movie.movie import Movie
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.describe import FEATURES, Described, describe_frame, described
from bridgetrack.regions.propose import SOURCES, label_sources, proposals
from bridgetrack.regions.regions import Array, Mask, Regions, concatenate, no_regions
from bridgetrack.regions.score import RegionScore, prune, starting_score
from bridgetrack.segmentation.settings import SegmentationSettings


@dataclass(frozen=True)
class ScoredRegions:
    """Candidates with what is known of them.

    Parameters
    ----------
    regions
        Candidates, sorted by frame.
    features
        Columns as in `FEATURES`, shape (R, F).
    log_odds
        How likely each is a cell, shape (R,).
    """

    regions: Regions
    features: Array
    log_odds: Array


def scored_regions(
    image: Movie,
    labels: Sequence[Movie] = (),
    probability: Movie | None = None,
    settings: SegmentationSettings | None = None,
    frames: Sequence[int] | None = None,
    *,
    channel: int | str = 0,
    score: RegionScore | None = None,
    per_cell: float | None = 4.0,
) -> Steps[ScoredRegions]:
    """Candidates of a movie with their score, about `per_cell` of them for every cell.

    Cells of label movies brought along are always kept.

    Parameters
    ----------
    image, labels, probability, settings, channel
        See `propose_regions`.
    frames
        Which frames, ascending; all of them unless given. Candidates are compared with those of
        the frames before and after in this list.
    score
        The score; the one that comes with the program unless given.
    per_cell
        How many candidates to keep for every cell; all of them where None.

    Raises
    ------
    InputError
        Where the movies differ in extent, or a frame cannot be read.
    """
    score = score or starting_score()
    times = range(image.n_frames) if frames is None else frames

    def spatial() -> Iterator[Described]:
        for p in proposals(image, labels, probability, settings, times, channel=channel):
            known = describe_frame(
                p.regions,
                p.image,
                p.settings,
                scale=image.geometry.scale,
                probability=p.probability,
            )
            yield Described(p.regions, known)

    shape, names = image.geometry.shape or (), label_sources(labels)
    kept = [no_regions(shape, (*SOURCES, *names))]
    features, odds = [np.zeros((0, len(FEATURES)))], [np.zeros(0)]
    yield Progress("proposing regions", 0.0)
    for regions, known in described(spatial()):
        log_odds = score.log_odds(known)
        chosen = np.arange(len(regions))
        if per_cell is not None:
            chosen = prune(regions, log_odds, per_cell, sure=brought(regions))
        kept.append(regions.select(chosen))
        features.append(known[chosen])
        odds.append(log_odds[chosen])
        yield Progress("proposing regions", (len(kept) - 1) / len(times))
    return ScoredRegions(concatenate(kept), np.concatenate(features), np.concatenate(odds))


def brought(regions: Regions) -> Mask:
    """Candidates that label movies brought along hold, shape (R,)."""
    given = [k for k, name in enumerate(regions.sources) if name not in SOURCES]
    return np.asarray(regions.votes[:, given].any(axis=1))
