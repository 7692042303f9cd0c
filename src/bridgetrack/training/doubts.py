"""Annotations to look at once more, since they contradict the starting model by a wide margin."""

from __future__ import annotations

from collections.abc import Sequence

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.words import describe
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.sure import Granted

_LISTED = 3


def doubtful_of(scenes: Sequence[Scene], granted: Granted | None) -> tuple[Annotation, ...]:
    """The annotations of `Granted.doubted`.

    Parameters
    ----------
    scenes
        The movies of the training set, in its order.
    granted
        What was held; None where nothing was to be.
    """
    if granted is None:
        return ()
    rows = [s.anchored.listed[k] for s in scenes for k in s.constraints.annotation.tolist()]
    return tuple(rows[row] for row in granted.doubted)


def notes_on(doubtful: Sequence[Annotation], granted: Granted | None) -> tuple[str, ...]:
    """Remarks about them, and on whether the starting model suits the movie, in plain words."""
    notes = [_look_again(doubtful)] if doubtful else []
    if granted is not None and not granted.trusted:
        notes.append(
            f"{granted.against} of {granted.asked} annotations contradict what the starting model "
            "is most sure of: too many for slips, so nothing of it was taken for granted"
        )
    return tuple(notes)


def _look_again(doubtful: Sequence[Annotation]) -> str:
    listed = ", ".join(f"{a.id} ({describe(a)})" for a in doubtful[:_LISTED])
    more = f" and {len(doubtful) - _LISTED} more" if len(doubtful) > _LISTED else ""
    one = len(doubtful) == 1
    return (
        f"{len(doubtful)} annotation{' contradicts' if one else 's contradict'} what the starting "
        f"model would choose without doubt; look at {'it' if one else 'them'} once more: "
        f"{listed}{more}"
    )
