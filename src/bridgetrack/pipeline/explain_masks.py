"""Why a cell is drawn as it is: its region against those that share pixels with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.notes import plural
from bridgetrack.pipeline.joint import SAME, FrameChoice, MaskSettings, OtherChoice
from bridgetrack.pipeline.mask_candidates import GivenMasks
from bridgetrack.pipeline.masks import choose_masks, learn_masks
from bridgetrack.progress import Steps
from bridgetrack.regions.describe import FEATURES
from bridgetrack.regions.outlines import USUAL_LEVEL, doubt_of_tight
from bridgetrack.regions.taught import MovieScore
from bridgetrack.segmentation.settings import SegmentationSettings

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_AROUND = 3
"""Frames on either side in which masks are chosen anew."""
_RIVALS = 6
"""Alternatives that are worked out."""
_FAR = 60.0
"""Cost beyond which an alternative is out of the question."""
_WEIGHTY = 0.05
_SIZE = "pixels, against those of the cells that are surest in this movie"


@dataclass(frozen=True)
class MaskReason:
    """What one feature of a region does to its score.

    Parameters
    ----------
    feature, says
        Its name, and what it measures.
    value, usual
        Of this region, and of an average candidate.
    effect
        By how much the log-odds would be lower if it had the usual value.
    """

    feature: str
    says: str
    value: float
    usual: float
    effect: float


@dataclass(frozen=True)
class Alternative:
    """Regions that could be there instead.

    Parameters
    ----------
    areas
        Pixels of every region that would come.
    log_odds
        Their scores.
    gone
        How many of the chosen regions would go.
    cost
        By how much the total score would be lower.
    of_masks, of_events
        The two parts of the cost: scores of regions, and of what happens to the cells.
    frames
        In how many frames masks would change.
    """

    areas: tuple[int, ...]
    log_odds: tuple[float, ...]
    gone: int
    cost: float
    of_masks: float
    frames: int

    @property
    def of_events(self) -> float:
        """What is left of the cost."""
        return self.cost - self.of_masks

    @property
    def words(self) -> str:
        """What would be there, in words."""
        n, sizes = len(self.areas), " and ".join(str(a) for a in self.areas)
        what = "another outline" if n == self.gone == 1 else plural(n, "cell")
        words = f"{what} of {sizes} pixels" if n else "no cell"
        return words + (f" in place of {self.gone}" if self.gone > 1 else "")


@dataclass(frozen=True)
class MaskExplanation:
    """Why a cell is drawn as it is.

    Parameters
    ----------
    frame, label, area
        The cell.
    log_odds
        That its region is a cell, with what speaks for masks as they are drawn.
    loyalty
        That part of it.
    chosen
        Whether it would be chosen again.
    reasons
        Features that weigh most.
    alternatives
        What could be there instead, the nearest first. Where it would not be chosen again, the
        first is what would be; its cost is negative.
    """

    frame: int
    label: int
    area: int
    log_odds: float
    loyalty: float
    chosen: bool
    reasons: tuple[MaskReason, ...]
    alternatives: tuple[Alternative, ...]

    @property
    def probability(self) -> float:
        """That its region is a cell, by the region alone."""
        return float(1.0 / (1.0 + np.exp(-(self.log_odds - self.loyalty))))

    def words(self, most: int = 5) -> str:
        """The explanation as a few lines of plain text."""
        lines = [
            f"cell {self.label} of frame {self.frame}, {self.area} pixels: a cell by its looks "
            f"with {self.probability:.0%} (log-odds {self.log_odds - self.loyalty:+.2f}); "
            + ("chosen." if self.chosen else "not what would be chosen now.")
        ]
        for r in self.reasons[:most]:
            side = "for" if r.effect > 0 else "against"
            lines.append(
                f"  {r.effect:+.2f} {side} it: {r.feature} = {r.value:.2f}, usually {r.usual:.2f} "
                f"({r.says})"
            )
        if self.loyalty:
            lines.append(f"  {self.loyalty:+.2f} for it: it is drawn so")
        if not self.alternatives:
            lines.append("Nothing else was proposed for these pixels.")
        for a in self.alternatives:
            worse = f"{abs(a.cost):.2f} {'worse' if a.cost >= 0 else 'better'}"
            over = f", in {a.frames} frames" if a.frames > 1 else ""
            odds = ", ".join(f"{s:+.2f}" for s in a.log_odds)
            lines.append(
                f"{a.words}{f' (log-odds {odds})' if odds else ''}: {worse}{over}; "
                f"masks {a.of_masks:+.2f}, events {a.of_events:+.2f} for what is drawn"
            )
        return "\n".join(lines)


def explain_mask(
    image: Movie,
    labels: Movie,
    frame: int,
    label: int,
    segmentation: SegmentationSettings | None = None,
    settings: MaskSettings | None = None,
    given: GivenMasks | None = None,
    model: Model | None = None,
    *,
    channel: int | str = 0,
) -> Steps[MaskExplanation]:
    """Why a cell is drawn as it is, and not cut, joined, outlined otherwise or left out.

    Masks are chosen anew in the frames around it, together with what happens to the cells.

    Parameters
    ----------
    image, labels
        The movie, and its masks.
    frame, label
        The cell.
    segmentation, settings, given, model
        See `choose_masks`.
    channel
        Number or name of the channel that shows the cells.

    Raises
    ------
    InputError
        Where there is no such cell.
    """
    if not 0 <= frame < labels.n_frames:
        raise InputError(f"there is no frame {frame}; the movie has 0 to {labels.n_frames - 1}")
    pixels = np.flatnonzero(label_frame(labels, frame).reshape(-1) == label)
    if not label or not len(pixels):
        raise InputError(f"there is no cell {label} in frame {frame} of {labels.source}")
    settings = settings or MaskSettings()
    given = replace(given or GivenMasks(), labels=(labels,))
    around = range(max(0, frame - _AROUND), min(labels.n_frames, frame + _AROUND + 1))
    # One window, so that all frames around it count.
    settings = replace(settings, window=max(2, len(around)))
    # The choice and the reasons go by the same score.
    learned = yield from learn_masks(
        image, segmentation, settings, given, model, channel=channel, frames=around
    )
    given = replace(given, score=learned)
    choices: list[FrameChoice] = []
    yield from choose_masks(
        image, choices.append, segmentation, settings, given, model, channel=channel, frames=around
    )
    choice = next(c for c in choices if c.frame == frame)
    return _explained(choice, label, pixels, learned, settings.loyalty)


def _explained(
    choice: FrameChoice, label: int, pixels: Index, score: MovieScore, loyalty: float
) -> MaskExplanation:
    known = choice.candidates
    likeness = known.regions.likeness(choice.frame, pixels)
    row = int(likeness.argmax()) if len(likeness) else -1
    if row < 0 or likeness[row] < SAME:
        raise InputError(
            f"cell {label} of frame {choice.frame} has {len(pixels)} pixels, too few or too many "
            "for a cell of this movie, so it is weighed against nothing; take it for a wrong mask"
        )
    area = int(known.regions.area[row])
    reasons = () if known.features is None else _reasons(score, known.features[row], area)
    return MaskExplanation(
        choice.frame, label, len(pixels), float(known.scores[row]), loyalty,
        bool(choice.chosen[row]), reasons, tuple(_alternatives(choice, row, likeness > 0)),
    )  # fmt: skip


def _reasons(score: MovieScore, features: Array, area: int) -> tuple[MaskReason, ...]:
    """Every feature in turn set to what is usual; how tight its outline is, and its size."""
    names, start = list(FEATURES), score.start
    columns = [names.index(name) for name in start.features]
    changed = np.repeat(features[None], len(columns) + 1, axis=0)
    for k, column in enumerate(columns):
        changed[k + 1, column] = start.mean[k]
    odds = score.looks(changed)
    found = [
        MaskReason(name, FEATURES[name], float(features[c]), float(usual), float(odds[0] - after))
        for name, c, usual, after in zip(start.features, columns, start.mean, odds[1:], strict=True)
    ]
    level, least = (float(features[names.index(name)]) for name in ("level", "least level"))
    tight = (1 - score.share) * float(doubt_of_tight(features[None])[0])
    found.append(MaskReason("level", FEATURES["level"], level, max(least, USUAL_LEVEL), -tight))
    if score.size is not None:
        usual, doubt = float(np.exp(score.size.centre)), score.doubt(np.array([float(area)]))
        found.append(MaskReason("size", _SIZE, float(area), usual, -float(doubt[0])))
    weighty = [r for r in found if abs(r.effect) > _WEIGHTY]
    return tuple(sorted(weighty, key=lambda r: -abs(r.effect)))


def _alternatives(choice: FrameChoice, row: int, near: Mask) -> list[Alternative]:
    """What would be without the region, and with each of the likeliest that overlap it."""
    rivals = np.flatnonzero(near & ~choice.chosen)
    rivals = rivals[rivals != row]
    rivals = rivals[np.argsort(-choice.candidates.scores[rivals], kind="stable")][:_RIVALS]
    found: dict[tuple[int, ...], Alternative] = {}
    for r in [row, *rivals.tolist()] if choice.chosen[row] else [row]:
        doubt = choice.otherwise(r, _FAR)
        if doubt is not None:
            # Where the drawn region is not chosen, this says what it would cost to choose it.
            turned = doubt if choice.chosen[row] else _turned(doubt)
            key = tuple(turned.instead.tolist())
            made = _alternative(choice, turned)
            if key not in found or made.cost < found[key].cost:
                found[key] = made
    return sorted(found.values(), key=lambda a: a.cost)


def _turned(doubt: OtherChoice) -> OtherChoice:
    return replace(
        doubt,
        chosen=doubt.instead,
        instead=doubt.chosen,
        cost=-doubt.cost,
        of_masks=-doubt.of_masks,
    )


def _alternative(choice: FrameChoice, doubt: OtherChoice) -> Alternative:
    known, rows = choice.candidates, doubt.instead
    areas, odds = known.regions.area[rows], known.scores[rows]
    return Alternative(
        tuple(areas.tolist()), tuple(odds.tolist()), len(doubt.chosen), doubt.cost, doubt.of_masks,
        doubt.frames,
    )  # fmt: skip
