"""What is known of a movie, and the steps that led to it, which can be undone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
    """One step: what went and what came, in full, so that it can be taken back."""

    # annotations
    removed: tuple[Annotation, ...] = ()
    added: tuple[Annotation, ...] = ()
    # answers about masks, and masks that were chosen anew
    masks_removed: tuple[MaskAnswer, ...] = ()
    masks_added: tuple[MaskAnswer, ...] = ()
    # settings that changed, as JSON values before and after
    settings: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def inverse(self) -> AnswerChange:
        """The step back."""
        turned = {key: (after, before) for key, (before, after) in self.settings.items()}
        return AnswerChange(self.added, self.removed, self.masks_added, self.masks_removed, turned)


@dataclass(frozen=True)
class AnswerHistory:
    """What is known of a movie, and the way to it.

    All changes raise an `InputError` where the step does not fit, or there is none.
    """

    annotations: AnnotationSet  # the present answers about events
    past: tuple[AnswerChange, ...] = ()  # steps that led here, the latest last
    future: tuple[AnswerChange, ...] = ()  # steps that were undone, the next to redo last
    # the present answers about masks; none where None
    masks: MaskAnswers = None  # type: ignore[assignment]  # made by __post_init__
    # what was set and learned, as JSON values by name
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.masks is None:
            object.__setattr__(self, "masks", MaskAnswers(self.annotations.geometry))

    def after(self, change: AnswerChange) -> AnswerHistory:
        """What is known after a step, with the same steps to undo and redo."""
        new = {key: after for key, (_, after) in change.settings.items()}
        return replace(
            self,
            annotations=self.annotations.edit((a.id for a in change.removed), change.added),
            masks=self.masks.edit((a.id for a in change.masks_removed), change.masks_added),
            settings={k: v for k, v in {**self.settings, **new}.items() if v is not None},
        )

    def recorded(self, change: AnswerChange) -> AnswerHistory:
        """The history after a new step; what was undone before can no longer be redone."""
        return replace(self.after(change), past=(*self.past, change)[-LIMIT:], future=())

    def undo(self) -> AnswerHistory:
        """One step back."""
        if not self.past:
            raise InputError("there is nothing to undo")
        *past, change = self.past
        return replace(self.after(change.inverse), past=tuple(past), future=(*self.future, change))

    def redo(self) -> AnswerHistory:
        """One undone step forth."""
        if not self.future:
            raise InputError("there is nothing to redo")
        *future, change = self.future
        return replace(self.after(change), past=(*self.past, change), future=tuple(future))

    def of_movie(self, geometry: Geometry, path: str | os.PathLike[str] | None) -> AnswerHistory:
        """The same of a movie; one that is longer than before makes room.

        Raises an `InputError` where what is known, which is in the file `path`, is about another.
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
