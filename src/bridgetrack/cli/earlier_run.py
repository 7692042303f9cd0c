"""What the record of a run tells: what the run was given, and which labels it tracked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from bridgetrack.cli.options import MovieOptions
from bridgetrack.cli.repair import LABELS
from bridgetrack.cli.sources import FOUND_HERE, RunInputs
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.kinds import EventKinds
from bridgetrack.io.may_write import RUN_FILE

_BROKEN = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""What reading a record raises that is damaged, or none at all."""


def tracked_labels(run: Path) -> Path | None:
    """The labels that a run tracked, by its record; None where that names none."""
    try:
        return _tracked(_content(run), run)
    except _BROKEN:
        return None


def _content(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(run.read_text(encoding="utf-8"))
    return content


def _tracked(content: dict[str, Any], run: Path) -> Path | None:
    """Labels that a run repaired or found are among its results, and go with them."""
    own = next((n for n in (LABELS, FOUND_HERE[0]) if n in content.get("files", ())), None)
    if own is not None:
        return run.parent / own
    named = content["input"]["labels"]
    return None if named is None else Path(named)


def given_run(
    source: Path,
    image: Path | None = None,
    model: Path | None = None,
    annotations: Path | None = None,
) -> RunInputs:
    """What the run had whose folder is named, else what is named itself.

    The labels are those that were tracked: the repaired ones where the run repaired what it was
    given.

    Raises
    ------
    InputError
        Where the record of the run is damaged.
    """
    run = source / RUN_FILE
    if not run.is_file():
        return RunInputs(source, image, model, annotations)
    try:
        known = _inputs(_content(run), run)
    except _BROKEN as error:
        raise InputError(f"{run}: this is not the record of a run") from error
    return replace(
        known,
        image=image or known.image,
        model=model or known.model,
        annotations=annotations or known.annotations,
    )


def _inputs(content: dict[str, Any], run: Path) -> RunInputs:
    named = {k: None if v is None else Path(v) for k, v in content["input"].items()}
    named["labels"] = _tracked(content, run)
    if named["labels"] is None:
        raise ValueError("no labels")
    settings = {k: v for k, v in content["settings"].items() if k not in ("format", "preset")}
    without, channel = tuple(settings.pop("without", ())), settings.pop("channel", 0)
    settings.pop("outlines", None)  # how the labels were repaired, which stand beside the record
    EventKinds.without(without)
    reading = MovieOptions(**settings)
    if "repair" in content:
        reading = _as_repaired(reading, content["geometry"])
    return RunInputs(reading=reading, without=without, channel=channel, **named)  # type: ignore[arg-type]


def _as_repaired(reading: MovieOptions, geometry: dict[str, Any]) -> MovieOptions:
    """How repaired labels are read: in our own order of axes, with the scale that was known."""
    return replace(
        reading,
        axes=None,
        scale=",".join(repr(float(s)) for s in geometry["scale"]),
        unit=geometry["unit"],
        frame_interval=geometry["frame_interval_minutes"],
    )
