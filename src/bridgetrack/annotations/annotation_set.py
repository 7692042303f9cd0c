"""All answers of one kind about one movie; every change gives a new set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Generic, Self, TypeVar

from bridgetrack.annotations.annotation import Annotation, Cell, Kind
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry
from bridgetrack.regions.mend import MaskAnswer

_NUMBER = re.compile(r"\d{1,18}$")


def natural_key(answer_id: str) -> tuple[str, int, str]:
    """Order of ids in which ``a2`` comes before ``a10``."""
    number = _NUMBER.search(answer_id)
    if number is None:
        return answer_id, -1, answer_id
    return answer_id[: number.start()], int(number[0]), answer_id


A = TypeVar("A", Annotation, MaskAnswer)


class AnswerSet(Generic[A]):
    """Answers of one kind about one movie; every change gives a new set.

    Raises an `InputError` if an id occurs twice or an answer does not fit the movie.

    Parameters
    ----------
    geometry
        Extent and scale of the movie.
    answers
        The answers; ids must differ. Iteration is in the natural order of ids, whatever the
        order of adding.
    last_id
        Highest number of an id that was ever given; does not count for equality. No id is given
        twice, since notes elsewhere may refer to it.
    """

    noun, prefix = "answer", "a"
    """The name of one answer, and the beginning of ids that are given here."""

    def __init__(self, geometry: Geometry, answers: Iterable[A] = (), last_id: int = 0) -> None:
        self.geometry, self.last_id = geometry, last_id
        self._items: dict[str, A] = {}
        self._insert(answers)

    def _insert(self, answers: Iterable[A]) -> None:
        last, in_order = next(reversed(self._items), ""), True
        for a in answers:
            if a.id in self._items:
                raise InputError(f"there are two {self.noun}s with the id {a.id!r}")
            self._check(a)
            self._items[a.id] = a
            prefix, number, _ = natural_key(a.id)
            if prefix == self.prefix:
                self.last_id = max(number, self.last_id)
            in_order, last = in_order and natural_key(last) < natural_key(a.id), a.id
        if not in_order:
            self._items = {i: self._items[i] for i in sorted(self._items, key=natural_key)}

    def _check(self, answer: A) -> None:
        """Refuse an answer that does not fit the movie."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[A]:
        return iter(self._items.values())

    def __contains__(self, answer_id: object) -> bool:
        return answer_id in self._items

    def __getitem__(self, answer_id: str) -> A:
        try:
            return self._items[answer_id]
        except KeyError:
            raise InputError(f"there is no {self.noun} with the id {answer_id!r}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.geometry == other.geometry and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} {self.noun}s)"

    def edit(self, remove: Iterable[str] = (), add: Iterable[A] = ()) -> Self:
        """A set without the answers of some ids and with others; the same set if there are none.

        Raises an `InputError` if an id to remove does not exist, or an added one does already.
        """
        gone, come = [self[i].id for i in remove], tuple(add)
        if not gone and not come:
            return self
        made = copy(self)
        made._items = dict(self._items)
        for i in gone:
            made._items.pop(i, None)
        made._insert(come)
        return made

    def of_movie(self, geometry: Geometry) -> Self:
        """The same answers about a movie that has at least the frames of this one."""
        made = copy(self)
        made.geometry = geometry
        return made


class AnnotationSet(AnswerSet[Annotation]):
    """Annotations of one movie, see `AnswerSet`."""

    noun = "annotation"

    def _insert(self, answers: Iterable[Annotation]) -> None:
        self.__dict__.pop("_by_cell", None)  # the index of the set from which this one is made
        super()._insert(answers)

    def _check(self, answer: Annotation) -> None:
        for c in answer.cells:
            if c.frame >= self.geometry.n_frames:
                raise InputError(
                    f"annotation {answer.id}: {c} lies beyond the movie's "
                    f"{self.geometry.n_frames} frames"
                )
            if len(c.position) != self.geometry.ndim:
                raise InputError(
                    f"annotation {answer.id}: the position of {c} has {len(c.position)} "
                    f"numbers in a movie with {self.geometry.ndim} spatial axes"
                )

    def edit(self, remove: Iterable[str] = (), add: Iterable[Annotation] = ()) -> Self:
        """As `AnswerSet.edit`; the index of cells is kept if answers are only added."""
        gone, come = tuple(remove), tuple(add)
        made = super().edit(gone, come)
        if come and not gone and "_by_cell" in self.__dict__:
            known = dict(self._by_cell)
            for a in come:
                for cell in {c.cell for c in a.cells}:
                    known[cell] = sorted([*known.get(cell, ()), a], key=lambda x: natural_key(x.id))
            made.__dict__["_by_cell"] = known
        return made

    @cached_property
    def _by_cell(self) -> dict[Cell, list[Annotation]]:
        found: dict[Cell, list[Annotation]] = {}
        for a in self:
            for cell in {c.cell for c in a.cells}:
                found.setdefault(cell, []).append(a)
        return found

    def at(self, frame: int, label: int) -> tuple[Annotation, ...]:
        """Annotations that name a cell."""
        return tuple(self._by_cell.get((frame, label), ()))

    def in_frame(self, frame: int) -> tuple[Annotation, ...]:
        """Annotations that name a cell of a frame."""
        return tuple(a for a in self if any(c.frame == frame for c in a.cells))

    def counts(self) -> Mapping[Event, int]:
        """How many events of each kind are confirmed; zero if there are none."""
        found = Counter(a.events[0].event for a in self if a.kind == Kind.CONFIRM)
        return {e: found[e] for e in Event}
