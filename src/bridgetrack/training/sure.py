"""Hold what the starting model is sure of.

People annotate doubtful events, which say little of ordinary ones: a single slip among a few
answers can turn round a weight that the others hardly touch, and with it most of a movie. So where
a component has annotations, events that the starting model would choose by a wide margin and that
agree with them are held, until the annotations show that it is not to be trusted. They cost no
inference, and models are judged on annotations alone.

Trust is earned: every annotation that confirms an event that the starting model is sure of vouches
for `VOUCHED` of them, so each of H that are held weighs ``min(1, VOUCHED vouching / H)`` in the
task loss, where an annotation weighs 1 (rounded down to half an octave, so that what was cached
mostly stays good). Without an annotation that vouches nothing is held.

A model may be wrong about what is wrong with masks alone: it takes specks for cells, say, where
there are many. Where several annotations of a kind by which cells and their masks differ (`ODD`)
contradict what it is sure of, and most of those that are about such events, they say nothing of
other kinds: they cost no trust, and nothing is held in whose place an event of the kind may be.

Margins are those within the annotated components as training cuts them (`components.LARGEST`):
without the skips and false detections that tie a huge component together, some events look surer
than they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import betainc

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.words import describe
from bridgetrack.errors import InfeasibleError
from bridgetrack.hypotheses.events import ODD, Event
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.notes import Note, NoteKind
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.training_set import TrainingSet, balanced, digest

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

SURE = 4.0
"""Margin from which on the starting model counts as sure, in contradicted annotations. On seven
real movies 0.33 % of such events were wrong at most (``benchmarks/slips.py``)."""

DOUBT = 2.0
"""Margin from which on an annotation that contradicts the starting model is worth another look."""

SLIPS = 0.1
"""Share of the annotations of sure events that may contradict them: people slip, too."""

OFTEN = 3
"""Contradicting annotations of a kind from which on they are no slips, if most of it are such."""

VOUCHED = 16
"""Events held at full weight for every annotation that confirms what the starting model is sure of.

Less weight changes nothing where all annotations are right, but lets slips mislead: with each
annotation vouching for one event, single trainings with 5 % slips ended 4 points worse."""

_CHANCE = 0.05
"""Chance below which that share is not believed."""

_LISTED = 3
"""Annotations to look at again that a remark lists."""

_Known = Mapping[Hashable, NDArray[Any]]


@dataclass(frozen=True)
class SureEvents:
    """A training set with the events that are held, and the annotations that speak against it.

    Parameters
    ----------
    data
        The training set; `TrainingSet.sure` says which columns.
    w
        The starting weights, shape (d,).
    doubted
        Rows of annotations that contradict the starting model by a margin of `DOUBT` or more, and
        are probably slips.
    against, asked
        How many contradict what it is sure of, and how many are about such events; those of kinds
        that it is ``wrong`` about do not count.
    wrong
        Kinds by which cells and masks differ whose annotations mostly contradict what it is sure
        of.
    margins, agreeing
        What was found, by the content of samples and of their annotations, for the next time.
    """

    data: TrainingSet
    w: Array
    doubted: tuple[int, ...] = ()
    against: int = 0
    asked: int = 0
    wrong: frozenset[Event] = frozenset()
    margins: _Known = field(default_factory=dict, repr=False)
    agreeing: _Known = field(default_factory=dict, repr=False)

    @property
    def vouching(self) -> int:
        """Annotations that confirm what it is sure of."""
        return self.asked - self.against

    @property
    def trusted(self) -> bool:
        """Whether no more annotations contradict sure events than slips explain."""
        return explained_by_slips(self.against, self.vouching)

    @property
    def suspected(self) -> tuple[int, ...]:
        """The ``doubted`` rows; none where they are too many for slips: then the model is wrong."""
        return self.doubted if self.trusted else ()

    def doubtful(self, scenes: Sequence[Scene]) -> tuple[Annotation, ...]:
        """The annotations that are ``doubted``, from the movies of the training set in order."""
        rows = [s.anchored.listed[k] for s in scenes for k in s.constraints.annotation.tolist()]
        return tuple(rows[row] for row in self.doubted)

    def notes(self, doubtful: Sequence[Annotation]) -> tuple[Note, ...]:
        """Remarks about them, and on whether the starting model suits the movie."""
        notes = []
        if doubtful:
            listed = ", ".join(f"{a.id} ({describe(a)})" for a in doubtful[:_LISTED])
            more = f" and {len(doubtful) - _LISTED} more" if len(doubtful) > _LISTED else ""
            one = len(doubtful) == 1
            notes.append(
                f"{len(doubtful)} annotation{' contradicts' if one else 's contradict'} what the "
                f"starting model would choose without doubt; look at {'it' if one else 'them'} "
                f"once more: {listed}{more}"
            )
        if not self.trusted:
            notes.append(
                f"{self.against} of {self.asked} annotations contradict what the starting model is "
                "most sure of: too many for slips, so nothing of it was taken for granted"
            )
        return tuple(Note(NoteKind.REMARK, words) for words in notes)


def hold_sure(data: TrainingSet, w: Array, earlier: SureEvents | None = None) -> SureEvents:
    """Find the events that starting weights (d,) are sure of, and hold them.

    None is held where more of the annotations of sure events contradict them than slips explain.
    Annotations of kinds that they are wrong about (`SureEvents.wrong`) are left out of that count,
    and nothing is held in whose place an event of such a kind may be.
    ``earlier`` was found for other annotations of the same movie; of use with the same weights.
    """
    scores = np.asarray(data.phi @ w)
    names: Sequence[Hashable] = data.names or range(len(data.samples))
    versions = [(name, s.version) for name, s in zip(names, data.samples, strict=True)]
    if earlier is None or not data.names or not np.array_equal(earlier.w, w):
        earlier = SureEvents(data, w)
    margin, margins = _found(data, names, earlier.margins, lambda c, p: _margins(p, scores[c]))
    agreeing, known = _found(
        data,
        versions,
        earlier.agreeing,
        lambda c, p: _agreeing(
            p, scores[c], data.allowed[c], margin[c] >= 0, data.column_sample[c]
        ),
    )
    asked, against = _contradicted(data, margin, SURE)
    differ = _contradicted(data, margin, DOUBT)[1]
    doubted = differ & ~_often(data, np.ones(len(differ), dtype=bool), differ)
    rows = tuple(np.flatnonzero(doubted).tolist())
    annotated = np.asarray(data.sets.sum(axis=0)).ravel() > 0
    firm = (margin >= SURE) & agreeing & data.allowed & ~annotated
    vouches = (asked.astype(np.int8) - 2 * against).astype(np.int8)
    data = replace(data, firm=firm, vouches=vouches)
    held = _held(data, np.arange(len(data.samples)))
    speak, vouching, wrong = _trust(data, np.ones(len(vouches), dtype=bool))
    kinds = frozenset(Event(k) for k in wrong.tolist())
    return SureEvents(held, w, rows, speak, speak + vouching, kinds, margins, known)


def explained_by_slips(against: int, vouching: int) -> bool:
    """Whether people who slip may contradict sure events so often, who else confirm them."""
    # the chance that as many or more do, binomial
    return against == 0 or float(betainc(against, vouching + 1, SLIPS)) >= _CHANCE


def as_seen(data: TrainingSet, rows: Index) -> TrainingSet:
    """What a training set were if the annotations of some samples alone were known.

    Only the weights of kinds and the events that are held hang on annotations of other samples;
    what is known of these is left as it is.
    """
    if data.population is not None:
        data = balanced(data, data.population, data.balance, rows)
    return data if data.firm is None else _held(data, rows)


def _contradicted(data: TrainingSet, margin: Array, wide: float) -> tuple[Mask, Mask]:
    """Which annotations are about events of a wide margin, and which contradict one; both (A,)."""
    firm = margin >= wide
    satisfied = np.asarray(data.sets @ (margin >= 0).astype(np.float64)) > 0
    agree = np.asarray(data.sets @ firm.astype(np.float64)) > 0
    slots = sp.csr_matrix(data.sets @ data.incidence)
    against = np.asarray(data.incidence[firm & ~data.allowed].sum(axis=0)).ravel()
    differ = ~satisfied & (np.asarray(slots @ against) > 0)
    return agree | differ, differ


def _often(data: TrainingSet, asked: Mask, differ: Mask) -> Mask:
    """Which annotations are of kinds that mostly contradict, of those that are asked; (A,).

    Where people say again and again what the starting model does not think of, such as that
    something is no cell, it is the model that is wrong. What leaves several events is of one kind.
    """
    kind = data.event + 1
    count = np.bincount(kind, asked)
    against = np.bincount(kind, asked & differ, minlength=len(count))
    return np.asarray(((against >= OFTEN) & (2 * against > count))[kind])


def _found(
    data: TrainingSet,
    keys: Sequence[Hashable],
    known: _Known,
    find: Callable[[Index, Problem], NDArray[Any]],
) -> tuple[NDArray[Any], _Known]:
    """A value for every column, (H,), looked for in samples only whose key is not known.

    `find` is given the columns of these samples and their problem.
    """
    parts = {key: known[key] for key in keys if key in known}
    missing = np.asarray([key not in known for key in keys])
    columns = np.flatnonzero(missing[data.column_sample])
    if len(columns):
        slots = np.flatnonzero(missing[data.slot_sample])
        problem = Problem(sp.csr_matrix(data.incidence[columns][:, slots]))
        fresh = [key for key in keys if key not in known]
        new = np.split(find(columns, problem), np.cumsum(np.diff(data.cut)[missing])[:-1])
        parts |= dict(zip(fresh, new, strict=True))
    return np.concatenate([parts[key] for key in keys]), parts


def _margins(problem: Problem, scores: Array) -> Array:
    """Margins of the columns chosen without regard to annotations; -1 for others."""
    solution = solve(problem, scores)
    margin = margin_bounds(problem, scores, solution)
    # a choice without alternative teaches nothing
    known = np.where(np.isfinite(margin), margin, 0.0)
    return np.where(solution.chosen, known, -1.0)


def _agreeing(problem: Problem, scores: Array, allowed: Mask, best: Mask, sample: Index) -> Mask:
    """Columns of the best choice that agrees with the annotations.

    ``best`` is the best choice without regard to them: in samples where it agrees with all of
    them there is no better one.
    """
    again = np.isin(sample, sample[best & ~allowed])
    columns = np.flatnonzero(again)
    if not len(columns):
        return best
    incidence = sp.csr_matrix(problem.incidence[columns])
    part = Problem(sp.csr_matrix(incidence[:, np.unique(incidence.indices)]))
    chosen = best.copy()
    try:
        chosen[columns] = solve(part, scores[columns], allowed[columns]).chosen
    except InfeasibleError:
        # training says so
        return np.zeros(len(scores), dtype=bool)
    return chosen


def _held(data: TrainingSet, rows: Index) -> TrainingSet:
    """The training set with the events that annotations of some samples vouch for."""
    assert data.firm is not None
    against, vouching, wrong = _trust(data, np.isin(data.annotation_sample, rows))
    firm = data.firm & ~_rivals(data, wrong)
    count = int(firm[np.isin(data.column_sample, rows)].sum())
    trusted = explained_by_slips(against, vouching)
    weight = weight_of(count if trusted else 0, vouching)
    sure = firm & (weight > 0)
    if data.sure is not None and weight == data.sure_weight and (sure == data.sure).all():
        return data
    return _holding(data, sure, weight)


def _trust(data: TrainingSet, seen: Mask) -> tuple[int, int, NDArray[np.int8]]:
    """How many annotations speak against the starting model and for it, but for some kinds.

    Left out are those `ODD` kinds, returned last, whose annotations mostly contradict it; what is
    counted are the annotations that are ``seen`` (A,).
    """
    assert data.vouches is not None
    against = seen & (data.vouches < 0)
    wrong = _often(data, seen & (data.vouches != 0), against) & np.isin(data.event, ODD)
    count = int((against & ~wrong).sum())
    return count, int((seen & ~wrong & (data.vouches > 0)).sum()), np.unique(data.event[wrong])


def _rivals(data: TrainingSet, wrong: NDArray[np.int8]) -> Mask:
    """Columns in whose place an event of some kinds may be, shape (H,)."""
    covered = np.asarray(data.incidence[np.isin(data.kind, wrong)].sum(axis=0)).ravel() > 0
    return np.asarray(data.incidence @ covered.astype(np.float64)) > 0


def _holding(data: TrainingSet, sure: Mask, weight: float) -> TrainingSet:
    """The training set with sure columns, and samples named accordingly."""
    cut, samples = data.cut, []
    for k, sample in enumerate(data.samples):
        mine = sure[cut[k] : cut[k + 1]]
        if data.sure is not None and not (mine | data.sure[cut[k] : cut[k + 1]]).any():
            samples.append(sample)
            continue
        held = digest(sp.csr_matrix(mine[None].astype(np.float64)))
        version = (sample.version, weight if mine.any() else 0.0, held)
        samples.append(replace(sample, version=version))
    return replace(data, sure=sure, sure_weight=weight, samples=tuple(samples))


def weight_of(held: int, vouching: int) -> float:
    """Weight of each of so many held events in the task loss."""
    if not vouching or not held:
        return 0.0
    return float(2.0 ** (np.floor(2 * np.log2(min(1.0, VOUCHED * vouching / held))) / 2))
