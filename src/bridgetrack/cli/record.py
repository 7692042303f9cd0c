"""Write results with ``run.json``: what was done, with what, and what came of it."""

from __future__ import annotations

import json
import os
import platform
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bridgetrack.cli.console import Stopwatch
from bridgetrack.cli.reading import Reading
from bridgetrack.errors import OutputError
from bridgetrack.files import write_text
from bridgetrack.movie.geometry import Geometry
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress

RUN_FILE = "run.json"
FILES = {
    "csv": ("detections.csv", "edges.csv", "events.csv", "tracks.csv", "units.json"),
    "ctc": ("ctc",),
    "geff": ("tracks.geff",),
}
"""What each format leaves in a folder of results."""
_PACKAGES = ("bridgetrack", "numpy", "scipy", "pandas", "scikit-image", "mip", "highspy")


@dataclass(frozen=True)
class Given:
    """What a tracking command was given.

    Parameters
    ----------
    labels, image, model, annotations
        Paths; None where not given.
    formats
        Names of the formats to write.
    reading
        How the movies were to be read.
    project
        Project file that holds the model and the answers; None where not given.
    preset
        Columns of the tables, see `write_csv`.
    command
        Name of the command.
    """

    labels: Path
    image: Path | None
    model: Path | None
    annotations: Path | None
    formats: tuple[str, ...]
    reading: Reading
    project: Path | None = None
    preset: str = "plain"
    command: str = "track"


def check_folder(out: Path) -> None:
    """Complain before the work begins about an output folder that cannot be one.

    Raises
    ------
    OutputError
        Where `out` or a part of it is a file, or is not writable.
    """
    for place in (out, *out.parents):
        if place.is_dir():
            if not os.access(place, os.W_OK):
                raise OutputError(f"{place}: no permission to write there; choose another folder")
            return
        if place.exists():
            raise OutputError(f"{place}: this is a file, results need a folder; give another name")


def check_file(out: Path | None) -> None:
    """Complain before the work begins about a file that cannot be written at its end.

    Raises
    ------
    OutputError
        Where there is a folder of that name, or its folder cannot hold it.
    """
    if out is None:
        return
    if out.is_dir():
        raise OutputError(f"{out}: this is a folder; give the name of a file in it")
    place = next((p for p in out.absolute().parents if p.exists()), None)
    if place is not None and not place.is_dir():
        raise OutputError(f"{out}: {place} is a file, not a folder; give another name")
    if place is not None and not os.access(place, os.W_OK):
        raise OutputError(
            f"{out}: there is no permission to write in {place}; choose another folder"
        )


def finish(
    tracking: Tracking, out: Path, given: Given, watch: Stopwatch, notes: list[str]
) -> dict[str, Any]:
    """Write results and ``run.json`` into `out`; the content of the latter.

    What an earlier run wrote there in other formats is removed, so that the folder holds one
    result.

    Raises
    ------
    OutputError
        Where something cannot be written.
    """
    from bridgetrack.export.results import write_results

    watch(Progress("Writing files", 0.0))
    before = _files_of_last_run(out)
    limits = write_results(
        tracking.tracks, tracking.scene.labels, out, given.formats, preset=given.preset
    )
    watch.stop()
    record = describe(tracking, out, given, watch, [*notes, *limits])
    names = [name for kind in given.formats for name in FILES[kind] if (out / name).exists()]
    _remove(out, [name for name in before if name not in names])
    record["files"] = names
    write_json(record, out / RUN_FILE)
    return record


def _files_of_last_run(out: Path) -> list[str]:
    """Names that an earlier run lists, out of those that a run can write."""
    try:
        listed = json.loads((out / RUN_FILE).read_text(encoding="utf-8"))["files"]
        return [n for names in FILES.values() for n in names if n in listed]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _remove(out: Path, names: list[str]) -> None:
    for name in names:
        if (out / name).is_dir():
            shutil.rmtree(out / name, ignore_errors=True)
        else:
            (out / name).unlink(missing_ok=True)


def describe(
    tracking: Tracking, out: Path, given: Given, watch: Stopwatch, notes: list[str]
) -> dict[str, Any]:
    """Everything about a run, as JSON values."""
    from bridgetrack.pipeline.summary import count_events, least_certain, use_of_annotations

    solution = tracking.solution
    return {
        "format": "bridgetrack-run",
        "version": 1,
        "command": given.command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": {
            "labels": _path(given.labels),
            "image": _path(given.image),
            "model": _path(given.model),
            "annotations": _path(given.annotations),
            "project": _path(given.project),
        },
        "out": str(out),
        "settings": {
            "format": list(given.formats),
            "preset": given.preset,
            **asdict(given.reading),
        },
        "geometry": _geometry(tracking.tracks.geometry),
        "model": {"name": tracking.model.name, "features": len(tracking.model.keys)},
        "counts": count_events(tracking.tracks),
        "annotations": use_of_annotations(tracking),
        "inference": {
            "hypotheses": len(tracking.scene.hypotheses),
            "objective": solution.value,
            "gap": solution.gap,
        },
        "least_certain": least_certain(tracking),
        "seconds": {stage: round(s, 3) for stage, s in watch.seconds.items()},
        "notes": list(dict.fromkeys([*notes, *tracking.tracks.notes])),
        "versions": _versions(),
    }


def write_json(content: dict[str, Any], path: Path) -> None:
    """Write JSON under its final name in one step.

    Raises
    ------
    OutputError
        Where it cannot be written; an older file stays as it was.
    """
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n", "the record")


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _geometry(geometry: Geometry) -> dict[str, Any]:
    return {
        "frames": geometry.n_frames,
        "shape": None if geometry.shape is None else list(geometry.shape),
        "axes": list(geometry.axes),
        "scale": list(geometry.scale),
        "unit": geometry.unit,
        "frame_interval_minutes": geometry.frame_interval,
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
