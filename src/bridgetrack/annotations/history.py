"""Undo and redo as pure functions of a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.annotation_set import AnnotationSet

LIMIT = 500
"""Steps that can be undone; older ones are forgotten."""


@dataclass(frozen=True)
class Change:
    """One step: annotations that went and annotations that came.

    Parameters
    ----------
    removed, added
        The annotations in full, so that the step can be taken back.
    """

    removed: tuple[Annotation, ...] = ()
    added: tuple[Annotation, ...] = ()

    @property
    def inverse(self) -> Change:
        """The step back."""
        return Change(self.added, self.removed)

    def apply(self, annotations: AnnotationSet) -> AnnotationSet:
        """The set after this step."""
        return annotations.edit([a.id for a in self.removed], self.added)


@dataclass(frozen=True)
class History:
    """A set of annotations and the way to it.

    Parameters
    ----------
    annotations
        The present set.
    past
        Steps that led here, the latest last.
    future
        Steps that were undone, the next to redo last.
    """

    annotations: AnnotationSet
    past: tuple[Change, ...] = ()
    future: tuple[Change, ...] = ()

    def record(self, remove: Iterable[str] = (), add: Iterable[Annotation] = ()) -> History:
        """The history after a new step; what was undone before can no longer be redone.

        Raises
        ------
        InputError
            Where the step does not fit the set.
        """
        change = Change(tuple(self.annotations[i] for i in remove), tuple(add))
        past = (*self.past, change)[-LIMIT:]
        return History(change.apply(self.annotations), past)


def undo(history: History) -> History:
    """The history one step back; the same one where there is nothing to undo."""
    if not history.past:
        return history
    change = history.past[-1]
    return replace(
        history,
        annotations=change.inverse.apply(history.annotations),
        past=history.past[:-1],
        future=(*history.future, change),
    )


def redo(history: History) -> History:
    """The history one undone step forth; the same one where there is nothing to redo."""
    if not history.future:
        return history
    change = history.future[-1]
    return replace(
        history,
        annotations=change.apply(history.annotations),
        past=(*history.past, change),
        future=history.future[:-1],
    )
