"""How a result was made, in sentences for the methods section of a paper: ``methods.txt``."""

from __future__ import annotations

import platform
import textwrap
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from bridgetrack.evaluation.sample import Sample
from bridgetrack.files import program_version
from bridgetrack.models.model import Model
from bridgetrack.movie import Movie
from bridgetrack.movie.geometry import Geometry
from bridgetrack.pipeline.finding import Finding, how_found
from bridgetrack.pipeline.summary import count_events, count_words, use_of_annotations
from bridgetrack.pipeline.tracking import Tracking

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
"""What results depend on, by the names of the package index."""

CITATION = (
    "Bridgetrack: learn to track dividing cells from a few clicks (software, the version above).",
    "X. Lou and F. A. Hamprecht. Structured Learning from Partial Annotations. ICML 2012.",
    "X. Lou, M. Kloft, G. Rätsch and F. A. Hamprecht. Structured Learning from Cheap Data. In "
    "Advanced Structured Prediction, MIT Press, 2014.",
)
"""What to cite, as in CITATION.cff."""

UNCHECKED = (
    "Not checked by a random sample. To add how right the result is: bridgetrack check, or Check "
    "accuracy in the window."
)
"""What stands in place of a checked sample."""

_CHECKED = "How right it is: "
_WIDTH = 100


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
) -> str:
    """How a tracking was made, in sentences.

    Parameters
    ----------
    tracking
        The tracked movie.
    image
        File of the intensities; None where there were none.
    masks
        File of the masks; that which they were read from where None.
    found
        How the masks were found, where it is known; else what stands beside them tells.
    repaired
        Whether they were mended first.
    checked
        A sample of this result that somebody looked at.
    """
    paragraphs = [
        _movie(tracking, image, masks),
        _masks(tracking, found, repaired),
        _model(tracking.model),
        inference_words(tracking),
        checked_words(checked if _holds(checked, tracking) else None),
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions().items()) + ".",
        "Please cite:",
    ]
    lines = ["\n".join(textwrap.wrap(p, _WIDTH)) for p in paragraphs]
    cited = "\n".join(textwrap.fill(f"- {c}", _WIDTH, subsequent_indent="  ") for c in CITATION)
    return "\n\n".join(lines) + "\n" + cited + "\n"


def checked_words(sample: Sample | None) -> str:
    """What a checked sample says of a result, as the paragraph of ``methods.txt``."""
    accuracy = None if sample is None else sample.accuracy
    return _CHECKED + (UNCHECKED if accuracy is None else f"{accuracy.words}.")


def with_checked(text: str, sample: Sample) -> str:
    """The text of a ``methods.txt`` with what a sample says of the result."""
    said = "\n".join(textwrap.wrap(checked_words(sample), _WIDTH))
    kept = [p for p in text.split("\n\n") if not p.startswith(_CHECKED)]
    at = next((k for k, p in enumerate(kept) if p.startswith("Versions:")), len(kept))
    return "\n\n".join([*kept[:at], said, *kept[at:]])


def _holds(sample: Sample | None, tracking: Tracking) -> bool:
    return sample is not None and sample.holds_for(tracking.tracks)


def _movie(tracking: Tracking, image: str | None, masks: str | None) -> str:
    labels, geometry = tracking.scene.labels, tracking.tracks.geometry
    cells = "a table of cells, taken for discs"
    if labels is not None:
        file = masks or labels.source
        # Masks that were made in the window are in no file, and have the source of any array.
        made_here = file == Movie.source
        cells = "the masks described below" if made_here else f"the masks {_name(file)}"
    known = bool(tracking.scene.detections.channels)
    pixels = "with intensities" if known else "without intensities"
    pixels += f" of {_name(image)}" if known and image is not None else ""
    return (
        f"Cells were tracked with Bridgetrack {program_version()} in {cells}, {pixels}: "
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
    apart = "at an unknown distance in time" if interval is None else f"{interval:g} minutes apart"
    return f"{words}, {apart}"


def _masks(tracking: Tracking, found: Finding | None, repaired: bool) -> str:
    labels = tracking.scene.labels
    if labels is None:
        return "The cells were brought along as a table; how they were found is not known here."
    found = found or how_found(Path(labels.source))
    mended = " They were repaired before tracking, see repairs.csv." if repaired else ""
    if found is None:
        return f"The masks were brought along; how they were made is not known here.{mended}"
    known = {} if found.settings is None else asdict(found.settings)
    said = ", ".join(f"{name} {_value(v)}" for name, v in known.items() if v is not None)
    settings = f"; settings: {said}" if said and found.backend == "builtin" else ""
    return f"The masks were found by Bridgetrack, {found.words}{settings}.{mended}"


def _model(model: Model) -> str:
    known = model.provenance
    words = (
        "What may happen to the cells (moves, divisions, merges, cells cut in two, appearances, "
        "disappearances, cells missed for some frames, false detections) was scored by a "
        "linear model, "
        f"“{model.name}”, with {len(model.keys)} features"
    )
    if not model.trained:
        return f"{words}, whose weights come with the program and were not trained on this movie."
    n = known.get("annotations")
    learned = "an unknown number of annotations" if n is None else f"{n} annotations"
    movies = [str(m) for m in known.get("movies") or ()]
    of = f" of {', '.join(movies)}" if movies else ""
    start = f", beginning with the weights of “{known['prior']}”" if known.get("prior") else ""
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
        f"On held-out annotations, {value} % of its events were estimated to be right (95 % "
        f"interval {low}-{high})."
    )


def inference_words(tracking: Tracking) -> str:
    """How events were chosen and what was found, in two sentences."""
    counts, use = count_events(tracking.tracks), use_of_annotations(tracking)
    gap, windows = tracking.solution.gap, tracking.windows
    n = len(tracking.scene.hypotheses) if windows is None else windows.hypotheses
    words = f"Out of {n:,} hypotheses the best explanation of the whole movie was chosen by "
    words += "integer programming (python-mip, HiGHS), "
    words += "proven optimal" if gap < 1e-6 else f"within {gap:.3g} of the best score"
    if windows is not None:
        words += f", in {windows.count} windows of at most {windows.frames} frames"
    if use["given"]:
        words += f"; {use['used']} of {use['given']} annotations of this movie were honoured"
    return f"{words}. Found: {count_words(counts)}."


def _name(source: Any) -> str:
    """A file's name without its folders, which are nobody's business."""
    return str(source).replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] or "movie"


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
