"""Results of tracking in a few lines for people."""

from __future__ import annotations

from typing import Any

from bridgetrack.cli.console import note_lines, plural


def tracking_lines(record: dict[str, Any]) -> list[str]:
    """A summary of ``run.json``: what was found, what is least certain, where the files are."""
    return [
        *_found(record["counts"]),
        *_annotations(record["annotations"]),
        *_least_certain(record["least_certain"]),
        *note_lines(record["notes"]),
        f"{sum(record['seconds'].values()):.1f} s; files in {record['out']}: "
        + ", ".join([*record["files"], "run.json"]),
    ]


def _found(counts: dict[str, int]) -> list[str]:
    events = [
        plural(counts["divide"], "division"),
        plural(counts["appear"], "appearance"),
        plural(counts["disappear"], "disappearance"),
        plural(counts["skip"], "gap bridged", "gaps bridged"),
        plural(counts["split"], "split"),
        plural(counts["merge"], "merge"),
        plural(counts["false"], "false detection"),
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


def _least_certain(events: list[dict[str, Any]]) -> list[str]:
    if not events:
        return []
    lines = [f"  {event['margin']:.3f}  {event['words']}" for event in events]
    return ["least certain (score to the best alternative):", *lines]
