"""Find the cells of a movie and hand each frame on; and the record of how they were found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.finding_record import finding_to_json
from bridgetrack.pipeline.methods import versions
from bridgetrack.pipeline.result_folder import geometry_record
from bridgetrack.progress import Kept, Progress, Steps
from bridgetrack.segmentation.readings import SettingsEstimate
from bridgetrack.spread import Workers


@dataclass(frozen=True)
class FoundMasks:
    """How cells were found, and how many in every frame.

    `margins` says how sure each cell is, where masks were found by choosing; see `SegmentedFrame`.
    """

    finding: Finding
    counts: list[int]
    estimate: SettingsEstimate | None = None
    margins: pd.DataFrame | None = None

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is doubtful about the settings that were estimated, as sentences."""
        return () if self.estimate is None else self.estimate.doubts


def find_masks(
    how: Finding,
    image: Movie,
    write: Callable[[NDArray[np.int32]], object],
    answers: MaskAnswers | None = None,
    weights: Model | None = None,
    *,
    channel: int | str = 0,
    workers: Workers | None = None,
) -> Steps[FoundMasks]:
    """Find the cells of a movie; `write` takes the labels of one frame after the other.

    Parameters
    ----------
    how, image, answers, weights, channel, workers
        See `Finding.steps`; settings that are left open are decided by the movie.
    write
        Takes a frame of labels.
    """
    finding, estimate = yield from how.prepared(
        image, answers, weights, channel=channel, workers=workers
    )
    counts: list[int] = []
    tables: list[pd.DataFrame] = []
    work = Kept(finding.steps(image, answers, weights, channel=channel, workers=workers))
    for step in work:
        if isinstance(step, Progress):
            yield step
            continue
        write(step.labels)
        tables += [] if step.margins is None else [step.margins]
        counts.append(len(np.unique(step.labels[step.labels > 0])))
    margins = pd.concat(tables, ignore_index=True) if tables else None
    return FoundMasks(work.result or finding, counts, estimate, margins)


def write_margins(margins: pd.DataFrame, path: Path) -> Path:
    """Write how sure masks are, the least sure first; returns where."""
    ordered = margins.sort_values(["margin_at_least", "frame", "label"])
    ordered.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")
    return path


def masks_record(
    given: dict[str, Any], image: Movie, found: FoundMasks, channel: int | str = 0
) -> dict[str, Any]:
    """What was done, as JSON values; `given` names the files."""
    readings = [] if found.estimate is None else found.estimate.readings
    return {
        **finding_to_json(found.finding),
        "command": "segment",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": given,
        "channel": channel,
        "geometry": geometry_record(image.geometry),
        "readings": [{**asdict(reading), "worth": reading.worth} for reading in readings],
        "versions": versions(),
    }
