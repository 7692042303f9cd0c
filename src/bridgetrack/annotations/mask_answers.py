"""Answers about masks: which sets of pixels are exactly one cell, and which are not.

A later answer counts where two cannot both hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import now
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.regions.mend import Mend, MendKind
from bridgetrack.regions.outlines import redrawn, usual_ratio
from bridgetrack.regions.regions import Regions, concatenate, likeness, no_regions

Index = NDArray[np.int64]
Runs = tuple[tuple[int, int], ...]
"""Pixels of a frame as first places and lengths of runs in the flat frame, ascending."""

ChangedRuns = tuple[tuple[int, int, int, int], ...]
"""Runs of pixels whose label changed: first place, length, label before and after."""

SOURCE = "answer"
"""What candidates are called that people drew or mended."""

HIGHEST = 2**32 - 1
_MENDING = (MendKind.CUT, MendKind.JOIN, MendKind.GROW, MendKind.REMOVE, MendKind.PAINT)
_SAME = 0.8  # overlap above which a candidate is the set of pixels that somebody said is wrong
_GONE = 0.5  # the same where nothing is right in its place
_RIGHT = 0.5  # overlap from which a candidate may be the cell
_BEST = 0.1  # by how much it may be worse than the best candidate
_OUTLINE = 0.4  # overlap from which one outline is another one of the same cell
_TAKEN = 0.25  # of the smaller of two, from which one cuts or swallows the other


@dataclass(frozen=True)
class MaskAnswer:
    """One answer about the masks of a frame.

    Parameters
    ----------
    id
        Never given twice.
    frame
        Number of the frame.
    kind
        What was done.
    created
        Time in ISO 8601 with the zone.
    right
        Sets of pixels that are exactly one cell.
    wrong
        Sets of pixels that are not one cell.
    change
        What it changed in the labels.

    Raises
    ------
    InputError
        Where runs overlap, or a number is out of range.
    """

    id: str
    frame: int
    kind: MendKind
    created: str
    right: tuple[Runs, ...] = ()
    wrong: tuple[Runs, ...] = ()
    change: ChangedRuns = ()

    def __post_init__(self) -> None:
        if self.frame < 0:
            raise InputError(f"mask answer {self.id}: frame {self.frame} must be 0 or more")
        for runs in (*self.right, *self.wrong, self.change):
            end = 0
            for start, length, *labels in runs:
                if start < end or length < 1 or not all(0 <= k <= HIGHEST for k in labels):
                    raise InputError(f"mask answer {self.id}: its runs of pixels are not in order")
                end = start + length
        if not all(self.right) or not all(self.wrong):
            raise InputError(f"mask answer {self.id}: a set of pixels is empty")
        try:
            known = datetime.fromisoformat(self.created).tzinfo is not None
        except ValueError:
            known = False
        if not known:
            raise InputError(f"mask answer {self.id}: created is {self.created[:80]!r}, not a time")

    @property
    def end(self) -> int:
        """The place after the last pixel that it speaks of."""
        runs = (*self.right, *self.wrong, self.change)
        return max((r[-1][0] + r[-1][1] for r in runs if r), default=0)

    @property
    def outlines(self) -> bool:
        """Whether it says how a cell is to be drawn."""
        return self.kind in (MendKind.OUTLINE, MendKind.PAINT) and len(self.right) == 1

    @property
    def pixels(self) -> Index:
        """Places in the flat frame that it is about, ascending."""
        sets = [pixels_of(runs) for runs in (*self.right, *self.wrong)]
        changed = pixels_of(run[:2] for run in self.change)
        return np.unique(np.concatenate([changed, *sets]))

    @property
    def highest(self) -> int:
        """The highest label that it changed or gave."""
        return max((max(run[2:]) for run in self.change), default=0)

    @property
    def mend(self) -> Mend:
        """The change of the labels, for doing it again; `Mend.inverse` takes it back."""
        pixels = pixels_of([run[:2] for run in self.change])
        length = [run[1] for run in self.change]
        before, after = (
            np.repeat(np.array([run[k] for run in self.change], dtype=np.int64), length)
            for k in (2, 3)
        )
        cells = tuple(np.unique(after[after > 0]).tolist())
        sets = (tuple(map(pixels_of, side)) for side in (self.right, self.wrong))
        return Mend(self.kind, self.frame, (), pixels, before, after, cells, *sets)


def pixels_of(runs: Iterable[tuple[int, int]]) -> Index:
    """Places of the pixels of some runs, ascending."""
    parts = [np.arange(start, start + length, dtype=np.int64) for start, length in runs]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def runs_of(pixels: Index) -> Runs:
    """Runs of pixels given by their places, ascending."""
    return tuple(run[:2] for run in change_of(pixels, pixels * 0, pixels * 0))


def change_of(pixels: Index, before: Index, after: Index) -> ChangedRuns:
    """Runs of pixels with one label before and one after."""
    if not len(pixels):
        return ()
    breaks = np.diff(pixels) != 1
    breaks |= (np.diff(before) != 0) | (np.diff(after) != 0)
    first = np.concatenate([[0], np.flatnonzero(breaks) + 1])
    length = np.diff(np.append(first, len(pixels)))
    columns = (pixels[first], length, before[first], after[first])
    return tuple(zip(*(c.tolist() for c in columns), strict=True))


@dataclass(frozen=True)
class MaskAnswers:
    """All answers about the masks of a movie, in the order in which they were given.

    Parameters
    ----------
    geometry
        Extent of the movie.
    past
        The answers that count.
    future
        Answers taken back, the next to repeat last.
    last_id, last_label
        Highest number of an id and highest label ever given, also by answers that are gone.
    held
        What answers about events say of the masks as they are now, see `with_events`; it is never
        written down. What somebody said of masks goes before what is right by these.

    Raises
    ------
    InputError
        Where an id is there twice, or an answer speaks of pixels beyond the movie.
    """

    geometry: Geometry
    past: tuple[MaskAnswer, ...] = ()
    future: tuple[MaskAnswer, ...] = ()
    last_id: int = 0
    last_label: int = 0
    held: tuple[MaskAnswer, ...] = ()

    def __post_init__(self) -> None:
        n_pixels = int(np.prod(self.geometry.shape or (), dtype=object))
        seen: set[str] = set()
        for a in (*self.past, *self.future):
            if a.id in seen:
                raise InputError(f"there are two mask answers with the id {a.id!r}")
            seen.add(a.id)
            if a.frame >= self.geometry.n_frames or a.end > n_pixels:
                raise InputError(f"mask answer {a.id} speaks of pixels beyond the movie")
            if a.id != f"m{_number(a.id)}":
                raise InputError(f"the mask answer id {a.id[:80]!r} must be m and a number")
        numbers = [_number(i) for i in seen]
        labels = [a.highest for a in (*self.past, *self.future)]
        object.__setattr__(self, "last_id", max([self.last_id, *numbers]))
        object.__setattr__(self, "last_label", max([self.last_label, *labels]))

    def __len__(self) -> int:
        return len(self.past)

    def __iter__(self) -> Iterator[MaskAnswer]:
        return iter(self.past)

    @property
    def checked(self) -> int:
        """Cells in areas that somebody looked at and found right."""
        return sum(len(a.right) for a in self.past if a.kind == MendKind.CHECK)

    @property
    def told(self) -> tuple[MaskAnswer, ...]:
        """Answers that tell how much is wrong in their frames.

        That cells are none by answers about events counts where no area was checked: that is a
        fairer sample.
        """
        none = () if self.checked else tuple(a for a in self.held if a.wrong)
        return (*self.past, *none)

    @property
    def mended(self) -> int:
        """Answers by which a cell came, went, was cut or joined."""
        return sum(a.kind in _MENDING for a in self.told)

    @property
    def outline_ratios(self) -> tuple[float, ...]:
        """Area of every outline that was corrected, divided by that of the one shown at first.

        Where the two hardly overlap, a wrong cell was mended, not an outline.
        """
        first: dict[tuple[int, Runs], Runs] = {}  # what was shown, by the outline that stands
        for a in self.past:
            shown = [first.pop((a.frame, runs), runs) for runs in a.wrong]
            if a.outlines and len(shown) == 1:
                first[a.frame, a.right[0]] = shown[0]
        pairs = [(pixels_of(now), pixels_of(shown)) for (_, now), shown in first.items()]
        return tuple(len(a) / len(b) for a, b in pairs if likeness(a, b) >= _OUTLINE)

    @property
    def outline_ratio(self) -> float:
        """How many times as large cells are to be drawn, see `usual_ratio`."""
        return usual_ratio(self.outline_ratios, self.checked)

    def added(self, mend: Mend) -> MaskAnswers:
        """With what a change of masks says; what was taken back can no longer be repeated."""
        return replace(self, past=(*self.past, *self.next_for([mend])), future=())

    def next_for(self, mends: Sequence[Mend]) -> tuple[MaskAnswer, ...]:
        """What changes of masks say, with the next free ids."""
        return tuple(
            MaskAnswer(
                f"m{number}",
                mend.frame,
                mend.kind,
                now(),
                tuple(runs_of(p) for p in mend.right if len(p)),
                tuple(runs_of(p) for p in mend.wrong if len(p)),
                change_of(mend.pixels, mend.before, mend.after),
            )
            for number, mend in enumerate(mends, self.last_id + 1)
        )

    def undone(self) -> MaskAnswers:
        """Without the last answer, which can be repeated."""
        return replace(self, past=self.past[:-1], future=(*self.future, *self.past[-1:]))

    def redone(self) -> MaskAnswers:
        """With the answer that was taken back last."""
        return replace(self, past=(*self.past, *self.future[-1:]), future=self.future[:-1])

    def exchanged(self, gone: Iterable[MaskAnswer], come: Iterable[MaskAnswer]) -> MaskAnswers:
        """Without some answers and with others, which come where they stood before."""
        ids = {a.id for a in gone}
        past = [*(a for a in self.past if a.id not in ids), *come]
        return replace(self, past=tuple(sorted(past, key=lambda a: _number(a.id))), future=())


def _number(answer_id: str) -> int:
    """The number of an id; -1 where it has none."""
    digits = answer_id[1:]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else -1


# ---------------------------------------------------------------------- what they say


@dataclass(frozen=True)
class _Said:
    """Sets of pixels of one frame that still stand, as rows × pixels."""

    right: sp.csr_matrix
    wrong: sp.csr_matrix
    limits: NDArray[np.float64]  # overlap from which a candidate is each of those wrong
    outlined: NDArray[np.bool_]  # whether somebody said how each of those right is to be drawn


def targets(regions: Regions, answers: MaskAnswers, ratio: float = 1.0) -> Index:
    """What the answers say of every candidate.

    Parameters
    ----------
    regions
        Candidates.
    answers
        Answers about the movie that they are of.
    ratio
        How many times as large cells are to be drawn as they were where nobody spoke of their
        outlines.

    Returns
    -------
    numpy.ndarray
        1 where it is a cell that was answered (an overlap above 0.5, and within 0.1 of the best
        candidate), -1 where it cuts or swallows such a cell or is a set of pixels that was called
        wrong, 0 where it is nearly a cell or nothing was said; shape (R,).
    """
    _check_shape(regions.shape, answers)
    said = np.zeros(len(regions), dtype=np.int64)
    for t, known in _standing(answers, set(np.unique(regions.frame).tolist())).items():
        rows = regions.rows(t)
        member, area = regions.membership(t), regions.area[rows]
        meant = known if ratio == 1.0 else _redrawn(member, known, ratio)
        said[rows] = _judged(member, area, meant)
    return said


def _redrawn(member: sp.csr_matrix, known: _Said, ratio: float) -> _Said:
    """Those right with the outlines that candidates have for them."""
    found = redrawn(known.right, member, ratio)
    found[known.outlined] = -1
    sets = sp.vstack([member, known.right], format="csr")
    rows = np.where(found >= 0, found, member.shape[0] + np.arange(len(found)))
    return replace(known, right=sets[rows])


def _judged(member: sp.csr_matrix, area: Index, known: _Said) -> Index:
    shared, union, smaller = _compared(member, area, known.right)
    like = shared / union
    best = like.max(axis=0, initial=0.0)
    near = like > _RIGHT
    right = (near & (like >= best - _BEST)).any(axis=1)
    spoils = ((shared > _TAKEN * smaller) & ~near).any(axis=1)
    shared, union, smaller = _compared(member, area, known.wrong)
    # Where nothing is right in its place, no cut of it and nothing that swallows it is a cell.
    like = np.where(known.limits == _GONE, shared / smaller, shared / union)
    spoils |= (like > known.limits).any(axis=1)
    return np.where(right, 1, np.where(spoils, -1, 0))


def _compared(
    member: sp.csr_matrix, area: Index, sets: sp.csr_matrix
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Pixels shared, in the union, and of the smaller, of every candidate with every set."""
    size = np.asarray(sets.sum(axis=1)).ravel()
    shared = np.asarray((member @ sets.T).todense(), dtype=np.float64)
    return shared, area[:, None] + size - shared, np.minimum(area[:, None], size)


def as_candidates(answers: MaskAnswers, of: Collection[int] | None = None) -> Regions:
    """The cells that people drew, mended or called right, as candidates of the source `SOURCE`.

    They share no pixels, so that all of them can be chosen. Of all frames, or of some.
    """
    shape = answers.geometry.shape or ()
    parts = [no_regions(shape, (SOURCE,))]
    for t, known in sorted(_standing(answers, of).items()):
        n = known.right.shape[0]
        if n:
            parts.append(
                Regions(
                    shape,
                    np.full(n, t, dtype=np.int64),
                    known.right.indptr.astype(np.int64),
                    known.right.indices.astype(np.int64),
                    (SOURCE,),
                    np.zeros(n, dtype=np.int64),
                    np.ones((n, 1), dtype=np.int64),
                    np.ones(n),
                )
            )
    return concatenate(parts)


def _standing(answers: MaskAnswers, of: Collection[int] | None = None) -> dict[int, _Said]:
    """What no later answer takes back, by frame; of all frames or of some."""
    n_pixels = int(np.prod(answers.geometry.shape or ()))
    frames: dict[int, list[MaskAnswer]] = {}
    right_by_events = (a for a in answers.held if a.right)
    for a in (*right_by_events, *answers, *(a for a in answers.held if not a.right)):
        if of is None or a.frame in of:
            frames.setdefault(a.frame, []).append(a)
    found = {}
    for t, listed in frames.items():
        right: list[Index] = []
        wrong: list[Index] = []
        limits: list[float] = []
        taken = np.zeros(n_pixels, dtype=bool)  # by what is right
        outlined = {a.right[0] for a in listed if a.outlines}
        for answer in reversed(listed):
            cells = [pixels_of(runs) for runs in answer.right]
            others = [pixels_of(runs) for runs in answer.wrong]
            no_cells = [
                p for p in others if not any(likeness(p, cell) > _SAME for cell in (*cells, *right))
            ]
            # Of the same answer, what is right and what is wrong hold together.
            cells = [
                p
                for p in cells
                if not taken[p].any() and not any(likeness(p, q) > _GONE for q in wrong)
            ]
            for p in cells:
                taken[p] = True
            right += cells
            wrong += no_cells
            mended = answer.right and answer.kind != MendKind.CHECK
            limits += [_SAME if mended else _GONE] * len(no_cells)
        drawn = np.array([runs_of(p) in outlined for p in right], dtype=bool)
        sides = _rows(right, n_pixels), _rows(wrong, n_pixels)
        found[t] = _Said(*sides, np.array(limits), drawn)
    return found


def honoured(labels: NDArray[Any], answers: MaskAnswers, frame: int) -> bool:
    """Whether the masks of a frame are as the answers about it say.

    Parameters
    ----------
    labels
        Labels of the frame, shape ([Z,] Y, X).
    answers
        Answers about its movie.
    frame
        Number of the frame.
    """
    known = _standing(answers, {frame})
    if frame not in known:
        return True
    said, flat = known[frame], labels.reshape(-1).astype(np.int64)
    sizes = np.bincount(flat)
    for k in range(said.right.shape[0]):
        there = flat[_row(said.right, k)]
        if there[0] == 0 or sizes[there[0]] != len(there) or (there != there[0]).any():
            return False
    for k, limit in enumerate(said.limits):
        there = flat[_row(said.wrong, k)]
        shared = np.bincount(there, minlength=len(sizes))[1:]
        union = len(there) + sizes[1:] - shared
        of = np.minimum(len(there), sizes[1:]) if limit == _GONE else union
        if (shared > limit * of).any():
            return False
    return True


def _row(sets: sp.csr_matrix, k: int) -> Index:
    """Pixels of one of some sets."""
    return np.asarray(sets.indices[sets.indptr[k] : sets.indptr[k + 1]], dtype=np.int64)


def _rows(sets: Sequence[Index], n_pixels: int) -> sp.csr_matrix:
    starts = np.concatenate([[0], np.cumsum([len(p) for p in sets])]).astype(np.int64)
    pixels = np.concatenate(sets) if sets else np.zeros(0, dtype=np.int64)
    return sp.csr_matrix((np.ones(len(pixels), np.int32), pixels, starts), (len(sets), n_pixels))


def _check_shape(shape: tuple[int, ...], answers: MaskAnswers) -> None:
    if answers.geometry.shape != shape:
        raise InputError(
            f"the answers about masks are of frames of {answers.geometry.shape} pixels, the "
            f"candidates of {shape}; propose them from the movie that was answered"
        )
