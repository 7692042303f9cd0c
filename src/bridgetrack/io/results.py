"""Everything that a run of the tracker leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridgetrack.errors import OutputError
from bridgetrack.files import refuse_inputs, staged_files
from bridgetrack.io.csv import write_csv
from bridgetrack.io.ctc import write_ctc
from bridgetrack.io.geff import write_geff
from bridgetrack.io.may_write import outdated_run, refuse_others, sign_exported
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.cycles import cell_cycles
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.tracks.trees import save_lineages

FORMATS = ("csv", "ctc", "geff", "cycles", "lineage")
_USUAL = ("csv", "ctc", "geff")
FILES = {
    "csv": ("detections.csv", "edges.csv", "events.csv", "tracks.csv", "units.json"),
    "ctc": ("ctc",),
    "geff": ("tracks.geff",),
    "cycles": ("cycles.csv",),
    "lineage": ("lineages.svg",),
}
"""What each format leaves in a folder of results."""
METHODS = "methods.txt"
"""How the result was made, in sentences."""


@dataclass(frozen=True)
class ExportOptions:
    """What is written.

    Parameters
    ----------
    csv
        Tables for spreadsheets and scripts.
    ctc
        Masks and res_track.txt of the Cell Tracking Challenge.
    geff
        A graph file that other trackers read; holds everything.
    cycles
        A table of cell cycles: how long each cell took to divide, how it grew and moved.
    lineage
        A picture of the lineage trees.
    """

    csv: bool = True
    ctc: bool = False
    geff: bool = False
    cycles: bool = False
    lineage: bool = False

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats chosen."""
        return tuple(name for name in FORMATS if getattr(self, name))


def write_results(
    tracks: Tracks,
    labels: Movie | None,
    out_dir: Path | str,
    formats: Sequence[str] = _USUAL,
    *,
    methods: str | None = None,
) -> tuple[str, ...]:
    """Write tracks in several formats to one folder, all or nothing.

    Parameters
    ----------
    tracks
        The tracks.
    labels
        The segmentation; None where there are only centroids (then nothing is
        written that needs masks).
    out_dir
        Folder for ``detections.csv``, ``edges.csv``, ``events.csv``, ``tracks.csv`` and
        ``units.json`` (csv), ``ctc/`` (ctc), ``tracks.geff`` (geff), ``cycles.csv``
        (cycles), ``lineages.svg`` (lineage). What we wrote there under these names is replaced,
        unless the labels were read from it or it was changed since. A
        ``run.json`` that tells of what is replaced goes.
    formats
        Any of `FORMATS`.
    methods
        How the tracks were made, for ``methods.txt`` (see `methods_text`).

    Returns
    -------
    tuple of str
        What a format could not hold, each beginning with its name; and whether a ``run.json``
        went.

    Raises
    ------
    OutputError
        Where a format is unknown, or the folder cannot be written or holds what must not be
        replaced; nothing has changed then.
    """
    out_dir = Path(out_dir)
    source = None if labels is None else labels.source
    kinds = [k for k in check_formats(formats) if labels is not None or k != "ctc"]
    names = [name for kind in kinds for name in FILES[kind]]
    names += [] if methods is None else [METHODS]
    refuse_inputs([out_dir / name for name in names], [source])
    outdated, others = outdated_run(out_dir, names)

    def removed() -> tuple[str, ...]:
        refuse_others(out_dir, [*names, *outdated])
        return outdated

    removed()
    with staged_files(out_dir, removed) as staging:
        notes = stage_results(tracks, labels, staging, formats, methods)
        sign_exported(staging, out_dir, names, others)
    gone = (f"{name}: removed, it told of the results that were here before" for name in outdated)
    return (*notes, *gone)


def stage_results(
    tracks: Tracks,
    labels: Movie | None,
    staging: Path,
    formats: Sequence[str],
    methods: str | None = None,
) -> tuple[str, ...]:
    """Write tracks into an empty folder; the same as `write_results` otherwise."""
    notes: list[str] = []
    if "csv" in formats:
        notes += [f"csv: {n}" for n in write_csv(tracks, staging)]
    if "ctc" in formats and labels is None:
        notes.append("ctc: not written, because there are no masks")
    elif "ctc" in formats and labels is not None:
        notes += [f"ctc: {n}" for n in write_ctc(tracks, labels, staging / "ctc")]
    if "geff" in formats:
        source = labels.source if labels is not None and Path(labels.source).exists() else None
        written = write_geff(tracks, staging / "tracks.geff", labels_path=source)
        notes += [f"geff: {n}" for n in written]
    if "cycles" in formats:
        table = cell_cycles(tracks).cycles
        table.to_csv(staging / FILES["cycles"][0], index=False, lineterminator="\n")
    if "lineage" in formats:
        save_lineages(tracks, staging / FILES["lineage"][0])
    if methods is not None:
        (staging / METHODS).write_text(methods, encoding="utf-8", newline="\n")
    return tuple(notes)


def check_formats(formats: Sequence[str]) -> Sequence[str]:
    """The formats, where all of them are known.

    Raises
    ------
    OutputError
        Where one is not.
    """
    for name in formats:
        if name not in FORMATS:
            raise OutputError(f"there is no format {name!r}; known are {', '.join(FORMATS)}")
    return formats
