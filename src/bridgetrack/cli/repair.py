"""``track --repair``: mend the labels that were brought along before they are tracked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from bridgetrack.cli.sources import about_events, open_answers, open_mask_answers
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import Movie
from bridgetrack.notes import Note, NoteKind, plural
from bridgetrack.progress import Steps
from bridgetrack.spread import Workers

LABELS, LIST = "repaired", "repairs.csv"
REPAIRED = [LABELS, LIST]
"""What a repair leaves in a folder of results."""


def repaired_labels(
    cells: Movie | Detections,
    image: Movie | None,
    model: Model,
    folder: Path,
    out: Path,
    *,
    answers: Path | None = None,
    workers: Workers | None = None,
    channel: int | str = 0,
    outlines: bool = False,
) -> Steps[tuple[Movie, float]]:
    """Mend labels and write them, with a list of what was changed, into a folder.

    The labels name `out` as their source, where the folder's content will stand in the end. What
    the file `answers` says of masks holds, and what its answers about events say of them.

    Returns
    -------
    labels, gap
        The mended labels, and by how much their score may fall short of the best choice.

    Raises
    ------
    InputError
        Where there are no labels or no image, or no cell would be left.
    """
    from bridgetrack.annotations.event_masks import with_events
    from bridgetrack.annotations.mask_answers import MaskAnswers
    from bridgetrack.movie.opening import open_labels
    from bridgetrack.movie.writers import label_writer
    from bridgetrack.pipeline.repair import repair_masks
    from bridgetrack.pipeline.scene import measure

    if not isinstance(cells, Movie) or image is None:
        raise InputError(
            "--repair needs labels and the image that they were made from: give a label movie, "
            "not a table, and --image"
        )
    said, events = open_mask_answers(answers, cells), open_answers(about_events(answers))
    if events is not None and len(events):
        detections = yield from measure(cells, workers=workers)
        known = said or MaskAnswers(cells.geometry)
        said = yield from with_events(known, events, detections, cells)
    with label_writer(folder / LABELS, cells.geometry) as writer:
        mended = yield from repair_masks(
            cells, image, writer.write, model, said, workers, channel=channel, outlines=outlines,
        )  # fmt: skip
    rows = [
        {
            "frame": c.frame,
            "change": c.kind.value,
            "before": " ".join(map(str, c.before)),
            "after": " ".join(map(str, c.after)),
            **dict(zip(cells.geometry.axes, c.place, strict=True)),
        }
        for c in mended.changes
    ]
    columns = ["frame", "change", "before", "after", *cells.geometry.axes]
    pd.DataFrame(rows, columns=columns).to_csv(folder / LIST, index=False)
    scale, unit = cells.geometry.scale, cells.geometry.unit
    interval = cells.geometry.frame_interval
    written = open_labels(folder / LABELS, scale=scale, unit=unit, frame_interval=interval)
    return replace(written, source=str(out / LABELS)), mended.gap


def remarks_on_repair(labels: Movie, gap: float) -> list[Note]:
    """That there may be a better choice, where that is so."""
    from bridgetrack.pipeline.finding import Finding

    repaired = Finding(given=labels, gap=gap)
    words = (
        f"the labels were {repaired.words}: some windows of frames took too long; look through "
        f"the changes in {LIST}"
    )
    return [Note(NoteKind.REMARK, words)] if repaired.short else []


def summary_of_repairs(folder: Path) -> dict[str, int]:
    """How many changes of each kind stand in the list of a folder."""
    kinds = pd.read_csv(folder / LIST)["change"].value_counts()
    return {str(kind): int(count) for kind, count in kinds.sort_index().items()}


def words_of_repairs(repair: dict[str, int] | None) -> list[str]:
    """A line for people, none where nothing was repaired."""
    if repair is None:
        return []
    told = [f"{count} {kind}" for kind, count in repair.items()]
    total = plural(sum(repair.values()), "change")
    return [
        f"labels repaired: {total} ({', '.join(told)}), listed in {LIST}"
        if told
        else "labels repaired: nothing to change"
    ]
