"""The answers and settings of a movie, and the steps that led to them, which can be undone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.regions.mend import MaskAnswer

LIMIT = 500
"""Steps that can be undone; older ones are forgotten."""


@dataclass(frozen=True)
class AnswerChange:
    """One step: what was removed and added, in full, so that it can be undone."""

    # annotations
    removed: tuple[Annotation, ...] = ()
    added: tuple[Annotation, ...] = ()
    # answers about masks, and masks that were chosen again
    masks_removed: tuple[MaskAnswer, ...] = ()
    masks_added: tuple[MaskAnswer, ...] = ()
    # settings that changed, as JSON values before and after
    settings: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def inverse(self) -> AnswerChange:
        """The step that undoes this one."""
        turned = {key: (after, before) for key, (before, after) in self.settings.items()}
        return AnswerChange(self.added, self.removed, self.masks_added, self.masks_removed, turned)


NOTHING = AnswerChange()

Do = Literal["answer", "set", "undo", "redo"]
"""Kind of a step: one that can be undone, one that cannot, undo, or redo."""


@dataclass(frozen=True)
class AnswerHistory:
    """The answers and settings of a movie, and the steps that led to them.

    A step raises an `InputError` if it does not fit, or there is none to undo or redo.
    """

    annotations: AnnotationSet  # the present answers about events
    past: tuple[AnswerChange, ...] = ()  # steps that led here, the latest last
    future: tuple[AnswerChange, ...] = ()  # steps that were undone, the next to redo last
    # the present answers about masks; none if None
    masks: MaskAnswers = None  # type: ignore[assignment]  # made by __post_init__
    # settings and learned values, as JSON values by name
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.masks is None:
            object.__setattr__(self, "masks", MaskAnswers(self.annotations.geometry))

    def after(self, do: Do, change: AnswerChange = NOTHING) -> tuple[AnswerHistory, AnswerChange]:
        """The history after a step, and the change made by it.

        `change` is that of ``answer`` or ``set``; after it, undone steps cannot be redone.
        """
        past, future = self.past, self.future
        if do == "answer":
            past, future = (*past, change)[-LIMIT:], ()
        elif do == "undo" and past:
            past, future, change = past[:-1], (*future, past[-1]), past[-1].inverse
        elif do == "redo" and future:
            past, future, change = (*past, future[-1]), future[:-1], future[-1]
        elif do != "set":
            raise InputError(f"there is nothing to {do}")
        settings = {**self.settings, **{key: new for key, (_, new) in change.settings.items()}}
        known = AnswerHistory(
            self.annotations.edit((a.id for a in change.removed), change.added),
            past,
            future,
            self.masks.edit((a.id for a in change.masks_removed), change.masks_added),
            {key: value for key, value in settings.items() if value is not None},
        )
        return known, change

    def of_movie(self, geometry: Geometry, path: str | os.PathLike[str] | None) -> AnswerHistory:
        """The same for a movie, which may be longer than before.

        Raises an `InputError` if the answers, which are in the file `path`, are about another one.
        """
        annotations, masks = self.annotations, self.masks
        if annotations.geometry.ndim != geometry.ndim:
            raise InputError(
                f"{path} belongs to a movie with {annotations.geometry.ndim} spatial axes, this "
                f"one has {geometry.ndim}; choose another file"
            )
        if annotations.geometry.n_frames < geometry.n_frames:
            annotations = annotations.of_movie(geometry)
        there = masks.geometry
        if masks.past and (there.shape != geometry.shape or there.n_frames > geometry.n_frames):
            raise InputError(
                f"{path}: these answers about masks are of another movie ({there.extent}, not "
                f"{geometry.extent}); give those about this one, or put the file elsewhere"
            )
        return replace(self, annotations=annotations, masks=masks.of_movie(geometry))
