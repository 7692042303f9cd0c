"""The result of tracking in numbers and in words, and ``methods.txt``."""

from __future__ import annotations

import platform
import textwrap
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import NOUN, describe_event
from bridgetrack.errors import plural
from bridgetrack.evaluation.sample import Sample
from bridgetrack.files import program_version
from bridgetrack.hypotheses.events import ODD, Event, EventKinds, kind_words
from bridgetrack.inference.margins import smallest_first, smallest_margins
from bridgetrack.models.model import Model
from bridgetrack.movie import Movie
from bridgetrack.movie.geometry import Geometry
from bridgetrack.pipeline.finding import Finding, how_found
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.tracks import Tracks

LEAST = 3
"""Least number of events of a kind for a remark: one or two may well be doubtful."""
CLEAR = 1.0
"""Margin, or lower bound on it, from which on an event is clear, in contradicted annotations.

On movies for development the clearest of three or more events of a kind that a movie does not have
reaches 0.7 (once 2.1), of one that it has 1.1 to 6.5."""
_TOLD = (
    Event.DIVIDE, Event.APPEAR, Event.DISAPPEAR, Event.SKIP, Event.MERGE, Event.SPLIT, Event.FALSE,
)  # fmt: skip
"""Kinds of events that are counted in words; the others are what usually happens."""

PACKAGES = (
    "bridgetrack",
    "numpy",
    "scipy",
    "pandas",
    "scikit-image",
    "scikit-learn",
    "mip",
    "highspy",
)
"""Packages on which results depend, by their names in the package index."""

CITATION = (
    "Bridgetrack: learn to track dividing cells from a few clicks (software, the version above).",
    "X. Lou and F. A. Hamprecht. Structured Learning from Partial Annotations. ICML 2012.",
    "X. Lou, M. Kloft, G. Rätsch and F. A. Hamprecht. Structured Learning from Cheap Data. In "
    "Advanced Structured Prediction, MIT Press, 2014.",
)
"""What to cite, as in CITATION.cff."""

UNCHECKED = (
    "not measured. To measure it, run bridgetrack check, or use Check accuracy in the window."
)
"""Text in place of a checked sample."""

_CHECKED = "Accuracy: "
_WAS_CHECKED = "How right it is: "  # of earlier versions
_WIDTH = 100


def count_events(tracks: Tracks) -> dict[str, int]:
    """Numbers of what was found: cells, tracks, lineages and every kind of event."""
    found = tracks.events["event"].value_counts()
    counts = {
        "frames": tracks.geometry.n_frames,
        "cells": len(tracks.nodes),
        "tracks": tracks.n_tracks,
        "lineages": int(tracks.nodes["lineage_id"].nunique()),
    }
    return counts | {event.key: int(found.get(event.key, 0)) for event in Event}


def count_words(counts: dict[str, int]) -> str:
    """The numbers of `count_events` in words; kinds of events that do not occur are left out."""
    size = f"{plural(counts['cells'], 'cell')} in {plural(counts['frames'], 'frame')}"
    found = [plural(counts["tracks"], "track"), plural(counts["lineages"], "lineage")]
    for event in _TOLD:
        one, many = NOUN[event]
        if count := counts[event.key]:
            found.append(plural(count, one.partition(" ")[2], many))
    return f"{size}: {', '.join(found)}"


def least_certain(tracking: Tracking, count: int = 5) -> list[dict[str, Any]]:
    """Chosen events whose margin to the best alternative is smallest, in words.

    Appearances in the first and disappearances in the last frame are no choice and are left out.
    If a margin is too hard to compute, as in windows or if hundreds of events are tied, its lower
    bound is given, and ``at_least`` is true.
    """
    scene, given = tracking.scene, (tracking.scores, tracking.solution, tracking.margins)
    if tracking.windows is None:
        found = smallest_margins(scene.problem, *given, count, scene.constraints.allowed)
        rows, margins, exact = found
    else:
        known = np.flatnonzero(np.isfinite(tracking.margins) & tracking.solution.chosen)
        rows = known[smallest_first(tracking.margins[known], known)[:count]]
        margins, exact = tracking.margins[rows], False
    refs = event_refs(scene.detections, scene.hypotheses.take(rows))
    return [
        {
            "event": ref.event.key,
            "frame": ref.cells[0].frame,
            "cells": [list(c.cell) for c in ref.cells],
            "margin": margin,
            "words": describe_event(ref),
            **({} if exact else {"at_least": True}),
        }
        for margin, ref in zip(margins.tolist(), refs, strict=True)
    ]


def use_of_annotations(tracking: Tracking) -> dict[str, Any]:
    """How many annotations were used, and why others were not."""
    anchored, constraints = tracking.scene.anchored, tracking.scene.constraints
    lost = [{"id": item.id, "reason": f"{item.cell}: {item.reason}"} for item in anchored.lost]
    unused = [{"id": name, "reason": why} for name, why in constraints.unused.items()]
    return {
        "given": len(anchored.annotations),
        "used": len(set(constraints.ids)),
        "cannot_tell": constraints.unsure,
        "lost": lost,
        "unused": unused,
    }


def unclear_kinds(tracking: Tracking) -> dict[Event, int]:
    """Number of events of the kinds without any clear event, the most frequent first.

    In correct masks there are no skips, splits, merges and false detections; any that are chosen
    have close alternatives. If such events are real, some of them are clear, as are those that
    answers confirm. The user is asked; nothing is left out automatically.
    """
    event, chosen = tracking.scene.hypotheses.event, tracking.solution.chosen
    found = {}
    for kind in ODD:
        margins = tracking.margins[chosen & (event == kind)]
        if len(margins) >= LEAST and not (np.nan_to_num(margins, nan=np.inf) >= CLEAR).any():
            found[kind] = len(margins)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def unclear_words(kind: Event, count: int) -> str:
    """The remark, as a sentence without its end."""
    return f"{count:,} {NOUN[kind][1]} were found, all of them uncertain"


def unclear_remarks(tracking: Tracking) -> list[str]:
    """The same for the command line, with what to do."""
    return [
        f"{unclear_words(kind, count)}; if there are none in this movie, exclude them with "
        f"--without {kind_words(kind)}"
        for kind, count in unclear_kinds(tracking).items()
    ]


# ---------------------------------------------------------------------- how it was made


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def methods_text(
    tracking: Tracking,
    *,
    image: str | None = None,
    masks: str | None = None,
    found: Finding | None = None,
    repaired: bool = False,
    checked: Sample | None = None,
    corrections: int = 0,
) -> str:
    """How a tracking was made, in sentences.

    `image` is the file of the intensities, if there were some. `masks` is that of the masks, if
    they were not read from it; `found` says how these were found, where that is known: else what
    stands beside them tells. They may have been `repaired` before; `corrections` is the number of
    answers about them. `checked` is a sample of this result that somebody looked at.
    """
    if checked is not None and not checked.holds_for(tracking.tracks):
        checked = None  # of another result
    paragraphs = [
        _movie(tracking, image, masks),
        _masks(tracking, found, repaired, corrections),
        _model(tracking.model, tracking.scene.kinds),
        inference_words(tracking),
        checked_words(checked),
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions().items()) + ".",
        "Please cite:",
    ]
    lines = ["\n".join(textwrap.wrap(p, _WIDTH)) for p in paragraphs]
    cited = "\n".join(textwrap.fill(f"- {c}", _WIDTH, subsequent_indent="  ") for c in CITATION)
    return "\n\n".join(lines) + "\n" + cited + "\n"


def checked_words(sample: Sample | None) -> str:
    """The accuracy of a result by a checked sample, as the paragraph of ``methods.txt``."""
    accuracy = None if sample is None else sample.accuracy
    return _CHECKED + (UNCHECKED if accuracy is None else f"{accuracy.words}.")


def with_checked(text: str, sample: Sample) -> str:
    """The text of a ``methods.txt`` with the accuracy by a checked sample."""
    said = "\n".join(textwrap.wrap(checked_words(sample), _WIDTH))
    kept = [p for p in text.split("\n\n") if not p.startswith((_CHECKED, _WAS_CHECKED))]
    at = next((k for k, p in enumerate(kept) if p.startswith("Versions:")), len(kept))
    return "\n\n".join([*kept[:at], said, *kept[at:]])


def _movie(tracking: Tracking, image: str | None, masks: str | None) -> str:
    labels, geometry = tracking.scene.labels, tracking.tracks.geometry
    cells = "a table of cells, taken as discs"
    if labels is not None:
        file = masks or labels.source
        # Masks that were made in the window are in no file, and have the source of any array.
        made_here = file == Movie.source
        cells = "the masks described below" if made_here else f"the masks in {_name(file)}"
    known = bool(tracking.scene.detections.channels)
    pixels = " and intensities" if known else ", without intensities"
    if known and image is not None:
        pixels = f" and the intensities of {_name(image)}"
    return (
        f"Cells were tracked with Bridgetrack {program_version()} from {cells}{pixels}: "
        f"{_extent(geometry)}."
    )


def _extent(geometry: Geometry) -> str:
    words = geometry.extent
    if geometry.shape is None and geometry.unit == "micrometer" and set(geometry.scale) == {1.0}:
        words += ", with positions in micrometers"
    elif geometry.unit == "micrometer":
        scale = " x ".join(f"{s:g}" for s in geometry.scale)
        words += f", each {scale} micrometers ({', '.join(geometry.axes)})"
    else:
        words += ", of unknown size (lengths are in pixels)"
        if geometry.scale[0] != 1.0:
            words += f", in slices that are taken to be {geometry.scale[0]:g} pixels apart"
    interval = geometry.frame_interval
    apart = (
        "with an unknown time between frames" if interval is None else f"{interval:g} minutes apart"
    )
    return f"{words}, {apart}"


def _masks(tracking: Tracking, found: Finding | None, repaired: bool, corrections: int) -> str:
    labels = tracking.scene.labels
    if labels is None:
        return "The cells were given as a table; how they were found is not known here."
    found = found or how_found(Path(labels.source))
    mended = " They were repaired before tracking, see repairs.csv." if repaired else ""
    if corrections:
        mended += f" {plural(corrections, 'answer')} of a person about masks corrected or confirmed"
        mended += f" {'it' if corrections == 1 else 'them'}."
    if found is None:
        return f"The masks were given; how they were made is not known here.{mended}"
    known = {} if found.settings is None else asdict(found.settings)
    said = ", ".join(f"{name} {_value(v)}" for name, v in known.items() if v is not None)
    settings = f"; settings: {said}" if said and found.backend == "builtin" else ""
    return f"The masks were found by Bridgetrack, {found.words}{settings}.{mended}"


_KINDS = (Event.DIVIDE, Event.MERGE, Event.SPLIT, Event.SKIP, Event.FALSE)
_MAY = {kind_words(event): NOUN[event][1] for event in _KINDS}
"""Fields of `EventKinds` as nouns."""


def _model(model: Model, kinds: EventKinds) -> str:
    known, may = model.provenance, [_MAY[k] for k in _MAY if k not in kinds.words]
    words = (
        f"What may happen to the cells ({', '.join(['moves, appearances, disappearances', *may])}) "
        f"was scored by a linear model, “{model.name}”, with {len(model.keys)} features"
    )
    if kinds.words:
        excluded = ", ".join(_MAY[k] for k in kinds.words)
        words = f"Excluded beforehand: {excluded}. {words}"
    if not model.trained:
        return f"{words}, whose weights come with the program and were not trained on this movie."
    n = known.get("annotations")
    learned = "an unknown number of annotations" if n is None else f"{n} annotations"
    movies = [str(m) for m in known.get("movies") or () if m != Movie.source]
    of = f" of {', '.join(movies)}" if movies else ""
    start = f", starting from the weights of “{known['prior']}”" if known.get("prior") else ""
    how = f" ({model.loss} loss, {model.regularizer} regulariser"
    how += "" if model.strength is None else f", lambda {model.strength:g}"
    return f"{words}, which learned from {learned}{of}{start}{how}). {_estimated(model)}".strip()


def _estimated(model: Model) -> str:
    """What its training estimated on answers that it had not seen."""
    figures = [model.estimate.get(key) for key in ("accuracy", "low", "high")]
    if not all(isinstance(f, int | float) for f in figures):
        return ""
    value, low, high = (f"{100 * float(f):.1f}" for f in figures if f is not None)
    return (
        f"From held-out annotations, {value} % of its events were estimated to be correct (95 % "
        f"confidence interval {low}-{high} %)."
    )


def inference_words(tracking: Tracking) -> str:
    """How events were chosen and what was found, in two sentences."""
    counts, use = count_events(tracking.tracks), use_of_annotations(tracking)
    gap, windows = tracking.solution.gap, tracking.windows
    words = f"Out of {tracking.proposed:,} hypotheses the best explanation of the whole movie was "
    words += "chosen by integer programming (python-mip, HiGHS), "
    words += "proven optimal" if gap < 1e-6 else f"within {gap:.3g} of the best score"
    if windows is not None:
        words += f", in {windows.count} windows of at most {windows.frames} frames"
    if use["given"]:
        said, unsure = use["given"] - use["cannot_tell"], use["cannot_tell"]
        of = "" if use["used"] == said else f"{use['used']} of "
        words += f", with {of}{plural(said, 'annotation')} of this movie"
        words += f"; for {unsure} more the answer was: cannot tell" if unsure else ""
    return f"{words}. Found: {count_words(counts)}."


def _name(source: Any) -> str:
    """A file's name without its folders, which are private."""
    return PureWindowsPath(str(source)).name or "movie"  # which takes both kinds of slashes


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
