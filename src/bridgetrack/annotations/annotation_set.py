"""All answers about one movie, and the steps that led to them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from bridgetrack.annotations.annotation import Annotation, Cell, Kind
from bridgetrack.annotations.mask_answers import MaskAnswer, MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry

_NUMBER = re.compile(r"\d{1,18}$")


def natural_key(annotation_id: str) -> tuple[str, int, str]:
    """Order of ids in which ``a2`` comes before ``a10``."""
    number = _NUMBER.search(annotation_id)
    if number is None:
        return annotation_id, -1, annotation_id
    return annotation_id[: number.start()], int(number[0]), annotation_id


class AnnotationSet:
    """Annotations of one movie; every change gives a new set.

    Parameters
    ----------
    geometry
        Extent and scale of the movie annotated.
    annotations
        The annotations; ids must differ. Iteration is in the natural order of ids, whatever
        the order of adding.
    last_ids
        Highest number given with each prefix of ids, where an annotation of that id is gone. No
        id is given twice, for what was noted elsewhere of one must not speak of another.

    Raises
    ------
    InputError
        Where an id is there twice or an annotation does not fit the movie.
    """

    def __init__(
        self,
        geometry: Geometry,
        annotations: Iterable[Annotation] = (),
        last_ids: Mapping[str, int] | None = None,
    ) -> None:
        self._geometry = geometry
        self._items: dict[str, Annotation] = {}
        self._cells: dict[Cell, tuple[str, ...]] = {}
        self._last_ids = dict(last_ids or {})
        self._insert(annotations)

    def _insert(self, annotations: Iterable[Annotation]) -> None:
        for a in annotations:
            if a.id in self._items:
                raise InputError(f"there are two annotations with the id {a.id!r}")
            self._check(a)
            self._items[a.id] = a
            prefix, number, _ = natural_key(a.id)
            self._last_ids[prefix] = max(number, self._last_ids.get(prefix, number))
            for cell in {c.cell for c in a.cells}:
                self._cells[cell] = (*self._cells.get(cell, ()), a.id)

    def _check(self, annotation: Annotation) -> None:
        for c in annotation.cells:
            if c.frame >= self._geometry.n_frames:
                raise InputError(
                    f"annotation {annotation.id}: {c} lies beyond the movie's "
                    f"{self._geometry.n_frames} frames"
                )
            if len(c.position) != self._geometry.ndim:
                raise InputError(
                    f"annotation {annotation.id}: the position of {c} has {len(c.position)} "
                    f"numbers in a movie with {self._geometry.ndim} spatial axes"
                )

    @property
    def geometry(self) -> Geometry:
        """Extent and scale of the movie annotated."""
        return self._geometry

    @property
    def last_ids(self) -> Mapping[str, int]:
        """Highest number ever given with each prefix of ids; does not count for equality."""
        return self._last_ids

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Annotation]:
        return iter(self._ordered)

    def __contains__(self, annotation_id: object) -> bool:
        return annotation_id in self._items

    def __getitem__(self, annotation_id: str) -> Annotation:
        try:
            return self._items[annotation_id]
        except KeyError:
            raise InputError(f"there is no annotation with the id {annotation_id!r}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AnnotationSet):
            return NotImplemented
        return self._geometry == other._geometry and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"AnnotationSet({len(self)} annotations)"

    @cached_property
    def _ordered(self) -> tuple[Annotation, ...]:
        return tuple(self._items[i] for i in sorted(self._items, key=natural_key))

    def edit(self, remove: Iterable[str] = (), add: Iterable[Annotation] = ()) -> AnnotationSet:
        """A set without the annotations of some ids and with others.

        Raises
        ------
        InputError
            Where an id to remove is not there, or an added one is there already.
        """
        new = AnnotationSet(self._geometry)
        new._items = dict(self._items)
        new._cells = dict(self._cells)
        new._last_ids = dict(self._last_ids)
        for i in remove:
            new._drop(i)
        new._insert(add)
        return new

    def _drop(self, annotation_id: str) -> None:
        gone = self[annotation_id]
        del self._items[annotation_id]
        for cell in {c.cell for c in gone.cells}:
            self._cells[cell] = tuple(i for i in self._cells[cell] if i != annotation_id)

    def add(self, *annotations: Annotation) -> AnnotationSet:
        """A set with more annotations."""
        return self.edit(add=annotations)

    def remove(self, *ids: str) -> AnnotationSet:
        """A set with fewer annotations."""
        return self.edit(remove=ids)

    def at(self, frame: int, label: int) -> tuple[Annotation, ...]:
        """Annotations that name a cell."""
        return tuple(self._items[i] for i in self._cells.get((frame, label), ()))

    def in_frame(self, frame: int) -> tuple[Annotation, ...]:
        """Annotations that name a cell of a frame."""
        return tuple(a for a in self if any(c.frame == frame for c in a.cells))

    def counts(self, kind: Kind = Kind.CONFIRM) -> Mapping[Event, int]:
        """How many annotations of one kind there are per event; zero where there are none.

        A ``one_of`` counts for each kind of event among its alternatives.
        """
        found = Counter(
            e for a in self._items.values() if a.kind == kind for e in {r.event for r in a.events}
        )
        return {e: found[e] for e in Event}

    def next_id(self) -> str:
        """An id that was never given and is later than all others like it."""
        return f"a{1 + self._last_ids.get('a', 0)}"


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
    """What is known of a movie, and the way to it."""

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
        settings = {k: v for k, v in {**self.settings, **new}.items() if v is not None}
        masks = self.masks
        if change.masks_removed or change.masks_added:
            masks = masks.exchanged(change.masks_removed, change.masks_added)
        annotations = self.annotations
        if change.removed or change.added:
            annotations = annotations.edit([a.id for a in change.removed], change.added)
        return replace(self, annotations=annotations, masks=masks, settings=settings)

    def change(
        self,
        remove: Iterable[str] = (),
        add: Iterable[Annotation] = (),
        masks_remove: Iterable[str] = (),
        masks_add: Iterable[MaskAnswer] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> AnswerChange:
        """A step from here.

        Parameters
        ----------
        remove, masks_remove
            Ids of what goes.
        add, masks_add
            What comes.
        settings
            JSON values by name; None for what is set no more.

        Raises
        ------
        InputError
            Where there is none of an id.
        """
        return AnswerChange(
            tuple(self.annotations[i] for i in remove),
            tuple(add),
            tuple(self.masks[i] for i in masks_remove),
            tuple(masks_add),
            {key: (self.settings.get(key), value) for key, value in (settings or {}).items()},
        )

    def record(self, remove: Iterable[str] = (), add: Iterable[Annotation] = ()) -> AnswerHistory:
        """The history after a new step of annotations; see `recorded`."""
        return self.recorded(self.change(remove, add))

    def recorded(self, change: AnswerChange) -> AnswerHistory:
        """The history after a new step; what was undone before can no longer be redone.

        Raises
        ------
        InputError
            Where the step does not fit.
        """
        return replace(self.after(change), past=(*self.past, change)[-LIMIT:], future=())

    def undo(self) -> AnswerHistory:
        """One step back; the same history where there is nothing to undo."""
        if not self.past:
            return self
        change, future = self.past[-1], self.future
        return replace(self.after(change.inverse), past=self.past[:-1], future=(*future, change))

    def redo(self) -> AnswerHistory:
        """One undone step forth; the same history where there is nothing to redo."""
        if not self.future:
            return self
        change, past = self.future[-1], self.past
        return replace(self.after(change), past=(*past, change), future=self.future[:-1])
