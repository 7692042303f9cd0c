"""Write results with ``run.json``: what was done, with what, and what came of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bridgetrack.cli.console import Stopwatch, note_lines, note_texts
from bridgetrack.cli.options import keep_inputs
from bridgetrack.cli.repair import REPAIRED, summary_of_repairs, words_of_repairs
from bridgetrack.cli.sources import FOUND_HERE, RunInputs
from bridgetrack.errors import OutputError
from bridgetrack.files import write_text
from bridgetrack.io.may_write import (
    EXPORTED,
    RUN_FILE,
    earlier,
    manifest,
    refuse_others,
    sealed,
)
from bridgetrack.movie.geometry import Geometry
from bridgetrack.notes import Note, NoteKind, plural
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress

_ROUNDING = 1e-8
"""Share of the score that is rounding."""


@dataclass(frozen=True)
class Finished:
    """What a run of the tracker leaves."""

    record: dict[str, Any]  # content of ``run.json``
    notes: Sequence[Note]  # what was left out, assumed, or could not be held by a format

    def lines(self) -> list[str]:
        """What was found, what is least certain, where the files are."""
        record = self.record
        return [
            *_found(record["counts"]),
            *words_of_repairs(record.get("repair")),
            *_annotations(record["annotations"]),
            *_inference(record["inference"]),
            *_least_certain(record["least_certain"], record.get("least_certain_overlooked", 0)),
            *note_lines(self.notes),
            f"{sum(record['seconds'].values()):.1f} s; files in {record['out']}: "
            + ", ".join([*record["files"], RUN_FILE]),
        ]


def check_run(out: Path, given: RunInputs) -> None:
    """Complain before the work begins about a folder that cannot take the results."""
    for place in (out, *out.parents):
        if place.is_dir():
            if not os.access(place, os.W_OK):
                raise OutputError(f"{place}: no permission to write there; choose another folder")
            break
        if place.exists():
            raise OutputError(f"{place}: this is a file, results need a folder; give another name")
    _refuse(out, given)


def _refuse(out: Path, given: RunInputs) -> None:
    names = _in_the_way(out, given)
    keep_inputs([out / name for name in names], given.inputs)
    refuse_others(out, names)


def finish(
    tracking: Tracking,
    out: Path,
    given: RunInputs,
    watch: Stopwatch,
    notes: Sequence[Note],
    beside: Path | None = None,
    found: Finding | None = None,
    repair_gap: float | None = None,
) -> Finished:
    """Write results and ``run.json`` into `out`, with what stands in the folder `beside`.

    `found` says how the masks were found, where that is known, and `repair_gap` by how much the
    score of repaired ones may fall short of the best choice.

    All or nothing. What an earlier run wrote there in other formats is removed, so that the
    folder holds one result.
    """
    from bridgetrack.files import staged_files
    from bridgetrack.io.results import FILES, METHODS, stage_results
    from bridgetrack.pipeline.summary import doubted
    from bridgetrack.session.unclear_kinds import unclear_remarks

    check_run(out, given)
    watch(Progress("Looking for doubtful events", 0.0))
    doubts = doubted(tracking)
    watch(Progress("Writing files", 0.0))

    def removed() -> list[str]:
        _refuse(out, given)
        return [*earlier(out), EXPORTED]

    with staged_files(out, removed) as staging:
        tracks = tracking.tracks
        methods, labels = _methods(tracking, given, found), tracking.scene.labels
        limits = stage_results(tracks, labels, staging, given.formats, methods)
        watch.stop()
        remarks = (*limits, *tracks.notes, *unclear_remarks(tracking))
        said = [*notes, *(Note(NoteKind.REMARK, words) for words in remarks)]
        record = describe(tracking, out, given, watch, said, doubts)
        names = [*(name for kind in given.formats for name in FILES[kind]), METHODS]
        if beside is not None:
            shutil.copytree(beside, staging, dirs_exist_ok=True)
            names += _added(given)
        if given.repair:
            record["repair"] = summary_of_repairs(staging)
            record["repair_gap"] = repair_gap or 0.0
        record["files"] = [name for name in names if (staging / name).exists()]
        record = sealed(record, manifest(staging, record["files"]))
        write_json(record, staging / RUN_FILE)
    return Finished(record, said)


def _methods(tracking: Tracking, given: RunInputs, found: Finding | None) -> str:
    """How the result was made, in sentences; of repaired masks it tells what they were before."""
    from bridgetrack.pipeline.finding_record import how_found
    from bridgetrack.pipeline.methods import methods_text

    image = None if given.image is None else str(given.image)
    masks = str(given.labels) if given.repair else None
    if given.repair and found is None:
        found = how_found(given.labels)
    return methods_text(tracking, image=image, masks=masks, found=found, repaired=given.repair)


def _in_the_way(out: Path, given: RunInputs) -> list[str]:
    """Names in a folder of results that a run replaces or removes."""
    from bridgetrack.io.results import FILES, METHODS

    new = [*(name for kind in given.formats for name in FILES[kind]), METHODS]
    new += _added(given)
    return list(dict.fromkeys([*new, *earlier(out), RUN_FILE]))


def _added(given: RunInputs) -> list[str]:
    """Names of what is written beside the results."""
    return [*(REPAIRED if given.repair else ()), *(FOUND_HERE if given.found_here else ())]


def describe(
    tracking: Tracking,
    out: Path,
    given: RunInputs,
    watch: Stopwatch,
    notes: Sequence[Note],
    doubts: tuple[list[dict[str, Any]], int],
) -> dict[str, Any]:
    """Everything about a run, as JSON values."""
    from bridgetrack.pipeline.methods import versions
    from bridgetrack.pipeline.summary import count_events, use_of_annotations

    solution, (doubtful, overlooked) = tracking.solution, doubts
    more = {"link_scores": given.link_scores}
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
            **{key: _path(path) for key, path in more.items() if path is not None},
        },
        "out": str(out),
        "settings": {
            "format": list(given.formats),
            "without": list(given.without),
            **asdict(given.reading),
            **({"channel": given.channel, "outlines": given.outlines} if given.repair else {}),
        },
        "geometry": geometry_record(tracking.tracks.geometry),
        "model": {"name": tracking.model.name, "features": len(tracking.model.keys)},
        "counts": count_events(tracking.tracks),
        "annotations": use_of_annotations(tracking),
        "inference": {
            "hypotheses": _hypotheses(tracking),
            "objective": solution.value,
            "gap": solution.gap,
            "margins": "exact" if tracking.exact else "bounds",
            **_windows(tracking),
        },
        "least_certain": doubtful,
        **({"least_certain_overlooked": overlooked} if overlooked else {}),
        "seconds": {stage: round(s, 3) for stage, s in watch.seconds.items()},
        "notes": note_texts(notes),
        "versions": versions(),
    }


def _hypotheses(tracking: Tracking) -> int:
    windows = tracking.windows
    return len(tracking.scene.hypotheses) if windows is None else windows.hypotheses


def _windows(tracking: Tracking) -> dict[str, dict[str, int]]:
    found = tracking.windows
    if found is None:
        return {}
    return {"windows": {"count": found.count, "frames": found.frames, "overlap": found.overlap}}


def write_json(content: dict[str, Any], path: Path) -> None:
    """Write JSON under its final name in one step."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n", "the record")


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def geometry_record(geometry: Geometry) -> dict[str, Any]:
    """The extent of a movie, as JSON values."""
    return {
        "frames": geometry.n_frames,
        "shape": None if geometry.shape is None else list(geometry.shape),
        "axes": list(geometry.axes),
        "scale": list(geometry.scale),
        "unit": geometry.unit,
        "frame_interval_minutes": geometry.frame_interval,
    }


def _found(counts: dict[str, int]) -> list[str]:
    events = [
        plural(counts["divide"], "division"),
        plural(counts["appear"], "appearance"),
        plural(counts["disappear"], "disappearance"),
        plural(counts["skip"], "cell missed for some frames", "cells missed for some frames"),
        plural(counts["split"], "split"),
        plural(counts["merge"], "merge"),
        plural(counts["false"], "thing that is not a cell", "things that are not cells"),
    ]
    return [
        f"{plural(counts['cells'], 'cell')} in {plural(counts['frames'], 'frame')}: "
        f"{plural(counts['tracks'], 'track')}, {plural(counts['lineages'], 'lineage')}",
        ", ".join(events),
    ]


def _annotations(use: dict[str, Any]) -> list[str]:
    if not use["given"]:
        return []
    lines = [f"{use['used']} of {plural(use['given'], 'annotation')} used"]
    left = [*use["lost"], *use["unused"]]
    lines += [f"  not used: {item['id']} ({item['reason']})" for item in left[:5]]
    if len(left) > 5:
        lines.append(f"  ... and {len(left) - 5} more, listed in run.json")
    return lines


def _inference(found: dict[str, Any]) -> list[str]:
    """How the movie was divided, and what may be better than the result."""
    gap, value = found["gap"], found["objective"]
    share = gap / max(abs(value), 1.0)
    lines = []
    if "windows" in found:
        windows = found["windows"]
        lines.append(
            f"tracked in {plural(windows['count'], 'window')} of up to {windows['frames']} frames, "
            f"chosen again over {windows['overlap']} frames where two meet"
            + ("; nothing is lost by that" if share <= _ROUNDING else "")
        )
    if share > _ROUNDING:
        lines.append(
            f"not proven to be the best: the score is {value:,.1f}, that of another choice at most "
            f"{gap:.3g} higher ({100 * share:.2g} %)"
        )
    return lines


def _least_certain(events: list[dict[str, Any]], overlooked: int) -> list[str]:
    if not events:
        return []
    lines = [
        f"  {'at most ' if 'at_most' in event else ''}{event['margin']:.3f}  {event['words']}"
        for event in events
    ]
    if overlooked:
        others = plural(overlooked, "other event")
        lines.append(f"  {others} may be as uncertain: too many hang together to tell")
    return ["least certain (score to the best alternative):", *lines]
