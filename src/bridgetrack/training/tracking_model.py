"""Tracking as a structured model: the boundary between movies and learners.

All samples are solved together in a few linear programs. The relaxation over-generates: the
penalty it defines is convex, and everything the learners promise holds for it (following 001,
section 4). With ``exact=True`` integer programs take its place.

Of a program the objective alone changes between calls, so every call starts from the last optimum.
Where that optimum depends on the calls before, so may the last digits of the next.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import ContradictionError, InfeasibleError
from bridgetrack.inference.gibbs import LIMIT, Gibbs, gibbs
from bridgetrack.inference.margins import cheapest_flip
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.relax import still_optimal
from bridgetrack.inference.solve import solve
from bridgetrack.inference.solver import Basis, Program, Relaxed
from bridgetrack.learning import Inferred, Sample, StructuredModel
from bridgetrack.learning.structured_model import Sign
from bridgetrack.spread import THREADS
from bridgetrack.training.training_set import TrainingSet

SIZE = 4_000
"""Columns of a program at most, where samples are not larger."""

OPEN = 40
"""Programs whose solver stays open; one of `SIZE` columns takes some 3.5 MB, larger ones are not
kept open."""

ENOUGH = 40
"""States that suffice to tell easy samples from hard ones."""


class TrackingModel(StructuredModel):
    """A `StructuredModel` over the samples of a training set.

    An output ``y`` is the vector of (possibly fractional) choices of a sample's columns. Joint
    features and task losses carry the sample's importance as a factor, which makes the risk a
    weighted one without the learners knowing.

    Pseudo-answers (`TrainingSet.pseudo`) are annotations of another weight in the task loss.

    Parameters
    ----------
    data
        The annotated components.
    exact
        Solve integer programs instead of their relaxation.
    earlier
        A model of an earlier training set: programs of components that are the same are taken
        over with their last optimum, which changes nothing but the time.

    Attributes
    ----------
    sets, owner, weight
        Annotations x columns as in `TrainingSet.sets`, the sample of each and its weight in the
        task loss; pseudo-answers come last. Shapes (R, H), (R,) and (R,).
    allowed
        Columns that some output may choose that agrees with all of them, shape (H,).
    """

    def __init__(
        self,
        data: TrainingSet,
        exact: bool = False,
        earlier: TrackingModel | None = None,
    ) -> None:
        self.data = data
        self.exact = exact
        # what outputs are compared with: annotations, and below them the pseudo-answers
        self.sets, self.owner, self.allowed = _with_pseudo_answers(data)
        annotation = np.arange(len(self.owner)) < data.n_annotations
        self.weight = np.where(annotation, 1.0, data.pseudo_weight)
        self._credit = np.asarray(self.sets.T @ self.weight).ravel()
        self._n_of = np.bincount(self.owner, self.weight, len(data.samples)).astype(float)
        self._cut = data.cut
        self._chunks = self._divided({} if earlier is None else earlier.programs)

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.data.phi.shape[1])

    @property
    def programs(self) -> dict[Hashable, KeptProgram]:
        """All programs by their content."""
        return {key: c.programs[kind] for c in self._chunks for kind, key in c.keys.items()}

    def _divided(self, known: dict[Hashable, KeptProgram]) -> list[_Chunk]:
        """Cut the samples into programs of consecutive ones."""
        chunks = [_Chunk(self, slice(*group), known) for group in _groups(self._cut)]
        # those that were taken over with an open solver first
        every = [p for c in chunks for p in c.programs.values()]
        room = OPEN - sum(program.stays_open for program in every)
        closed = [p for p in every if not p.stays_open and p.width <= SIZE]
        for program in closed[: max(room, 0)]:
            program.stays_open = True
        return chunks

    def blocks(self, samples: Sequence[Sample]) -> list[Index]:
        """Samples that share a program, as positions in ``samples``."""
        ends = np.asarray([chunk.samples.stop for chunk in self._chunks])
        chunk = np.searchsorted(ends, _numbers(samples), side="right")
        return [np.flatnonzero(chunk == k) for k in np.unique(chunk)]

    def columns(self, x: int) -> slice:
        """Columns of a sample in the training set."""
        return slice(int(self._cut[x]), int(self._cut[x + 1]))

    # --- inference ---------------------------------------------------------------------------

    def inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        """Maximise f over all outputs."""
        return self._inferred(samples, w, 0)

    def loss_augmented_inference(
        self, samples: Sequence[Sample], w: Array, sign: Sign = 1
    ) -> Inferred:
        """Maximise f + sign * Delta over all outputs; ``w`` (d,), or (n, d) with those of each."""
        if w.ndim == 1:
            return self._inferred(samples, w, sign)
        each = np.zeros((len(self.data.samples), self.n_features))
        each[_numbers(samples)] = w
        return self._inferred(samples, each, sign)

    def compatible_inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        """Maximise f over the compatible outputs.

        Raises
        ------
        ContradictionError
            If no output is compatible.
        """
        try:
            return self._inferred(samples, w, 0, compatible=True)
        except InfeasibleError as error:
            raise ContradictionError(
                "the annotations exclude each other: no choice of events agrees with all of them"
            ) from error

    def incompatible_inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        """Maximise f + Delta over the incompatible outputs, exactly and one by one."""
        features = np.zeros((len(samples), self.n_features))
        losses, bounds = np.zeros(len(samples)), np.full(len(samples), -np.inf)
        for k, sample in enumerate(samples):
            columns, rows = self.columns(sample.x), np.flatnonzero(self.owner == sample.x)
            phi, sets = self.data.phi[columns], sp.csr_matrix(self.sets[rows][:, columns])
            scores = phi @ w - self._credit[columns]
            chosen = cheapest_flip(problem_of(self.data, columns), scores, sets)
            if chosen is None:
                continue
            y, factor = chosen.astype(np.float64), self.data.importance[sample.x]
            features[k] = factor * (phi.T @ y)
            losses[k] = factor * (self.weight[rows] @ (1.0 - sets @ y))
            bounds[k] = features[k] @ w + losses[k]
        return Inferred(features, losses, bounds)

    def _inferred(
        self, samples: Sequence[Sample], w: Array, sign: int, compatible: bool = False
    ) -> Inferred:
        """Solve the programs that some samples are in; ``w`` (d,), or (n, d) for all samples."""
        wanted = _numbers(samples)
        needed = [c for c in self._chunks if c.holds(wanted).any()]
        features = np.zeros((len(wanted), self.n_features))
        losses, bounds = np.zeros((2, len(wanted)))
        with ThreadPoolExecutor(THREADS) as pool:
            jobs = [pool.submit(self._solved, c, w, sign, compatible) for c in needed]
            for chunk, job in zip(needed, jobs, strict=True):
                x, scores, above = job.result()
                found, missed, values = chunk.measure(x, scores, self._n_of[chunk.samples])
                rows = np.flatnonzero(chunk.holds(wanted))
                here = wanted[rows] - chunk.samples.start
                factor = self.data.importance[wanted[rows]]
                features[rows] = found[here] * factor[:, None]
                losses[rows] = missed[here] * factor
                bounds[rows] = (values + above)[here] * factor + sign * losses[rows]
        return Inferred(features, losses, bounds)

    def _solved(
        self, chunk: _Chunk, w: Array, sign: int, compatible: bool
    ) -> tuple[Array, Array, Array]:
        """Choices and scores of a program's columns, and how far bounds lie above each sample."""
        scores = chunk.scores(w)
        augmented = scores - sign * self._credit[chunk.columns]
        nothing = np.zeros(chunk.samples.stop - chunk.samples.start)
        if self.exact:
            allowed = self.allowed[chunk.columns] if compatible else None
            solution = solve(problem_of(self.data, chunk.columns), augmented, allowed)
            return solution.chosen.astype(np.float64), scores, nothing + solution.gap
        found = chunk.programs[compatible].solve(augmented)
        if not found.optimal:  # what was stopped is bounded by its prices
            slots = self.data.slot_sample
            begin, end = np.searchsorted(slots, [chunk.samples.start, chunk.samples.stop])
            owner = slots[begin:end] - chunk.samples.start
            nothing = np.bincount(owner, found.duals, minlength=len(nothing))
            nothing -= np.bincount(chunk.sample, augmented * found.x, minlength=len(nothing))
        return found.x, scores, np.maximum(nothing, 0.0)

    def satisfied(self, w: Array) -> Array:
        """Share of every annotation that plain inference agrees with, 0 to 1, shape (A,)."""
        x = np.zeros(len(self._credit))
        for chunk in self._chunks:
            x[chunk.columns] = self._solved(chunk, w, 0, False)[0]
        return np.asarray(self.data.sets @ x)

    # --- self-paced learning ----------------------------------------------------------------

    def hidden_entropies(self, samples: Sequence[Sample], w: Array) -> Array:
        """Entropy of the choices that agree with the annotations, shape (n,)."""
        return self.entropies(samples, w, ENOUGH)[0]

    def entropies(
        self, samples: Sequence[Sample], w: Array, limit: int = LIMIT
    ) -> tuple[Array, Mask]:
        """Entropy of the choices that agree with the annotations, and whether it is exact.

        Shapes (n,); inf where the sum over ``limit`` states (`inference.gibbs`) found no such
        choice.
        """
        found, exact = np.full(len(samples), np.inf), np.zeros(len(samples), dtype=bool)
        for k, sample in enumerate(samples):
            columns = self.columns(sample.x)
            scores = self.data.phi[columns] @ w
            problem = problem_of(self.data, columns)
            summed = _gibbs(problem, scores, self.allowed[columns], limit)
            if summed is not None:
                found[k], exact[k] = summed.entropy, summed.exact
        return found, exact

    def sizes(self, samples: Sequence[Sample]) -> Array:
        """Weights of annotations and pseudo-answers of every sample, by its importance, (n,)."""
        weighted = self._n_of * self.data.importance
        return np.asarray(weighted[_numbers(samples)], dtype=np.float64)


class _Chunk:
    """Some consecutive samples, what is computed of them, and their two programs.

    ``programs`` and ``keys``: over all outputs (False), and over the compatible ones (True).
    """

    def __init__(
        self, model: TrackingModel, samples: slice, known: dict[Hashable, KeptProgram]
    ) -> None:
        data, begin, end = model.data, samples.start, samples.stop
        self.samples = samples
        self.columns = slice(model.columns(begin).start, model.columns(end - 1).stop)
        self.sample = data.column_sample[self.columns] - begin
        rows = np.flatnonzero((model.owner >= begin) & (model.owner < end))
        self._phi = sp.csr_matrix(data.phi[self.columns])
        self._sets = sp.csr_matrix(model.sets[rows][:, self.columns])
        self._owner, self._weight = model.owner[rows] - begin, model.weight[rows]
        allowed, name = model.allowed[self.columns], tuple(of for of, _ in data.names[begin:end])
        self.keys: dict[bool, Hashable] = {False: (name,), True: (name, allowed.tobytes())}
        self.programs = {
            kind: known[key] for kind, key in self.keys.items() if name and key in known
        }
        if len(self.programs) < 2:
            slots = slice(data.slot_cut[begin], data.slot_cut[end])
            incidence = sp.csr_matrix(data.incidence[self.columns][:, slots])
            for kind, keep in ((False, None), (True, allowed)):
                self.programs.setdefault(kind, KeptProgram(incidence, keep))

    def holds(self, wanted: Index) -> Mask:
        """Which of some samples are here."""
        return np.asarray((wanted >= self.samples.start) & (wanted < self.samples.stop))

    def scores(self, w: Array) -> Array:
        """Scores of the columns at weights (d,), or (n, d) of all samples."""
        if w.ndim == 1:
            return np.asarray(self._phi @ w)
        rows = np.repeat(np.arange(self._phi.shape[0]), np.diff(self._phi.indptr))
        mine = w[self.samples][self.sample[rows], self._phi.indices]
        products = np.bincount(rows, self._phi.data * mine, minlength=self._phi.shape[0])
        return products.astype(np.float64)

    def measure(self, x: Array, scores: Array, n_of: Array) -> tuple[Array, Array, Array]:
        """Joint features (n, d), task losses (n,) and values of f (n,) of the samples."""
        used, n = np.flatnonzero(x), len(n_of)
        places = (self.sample[used], np.arange(len(used)))
        picked = sp.csr_matrix((x[used], places), shape=(n, len(used)))
        features = np.asarray((picked @ self._phi[used]).todense())
        kept = np.bincount(self._owner, self._weight * (self._sets @ x), minlength=n)
        losses = np.asarray(n_of - kept, dtype=np.float64)
        losses[np.abs(losses) < 1e-9] = 0.0
        values = np.bincount(self.sample[used], x[used] * scores[used], minlength=n)
        return features, losses, np.asarray(values)


class KeptProgram:
    """A program and its last optimum: solving starts there, or is spared where it still holds.

    Parameters
    ----------
    by_column
        Columns x slots.
    allowed
        Columns that may be chosen; all if None.
    """

    def __init__(self, by_column: sp.csr_matrix, allowed: Mask | None) -> None:
        self.width = by_column.shape[0]
        # An open solver takes ten times the memory of what is kept otherwise; without it solving
        # takes a quarter longer.
        self.stays_open = False
        self._kept = np.arange(self.width) if allowed is None else np.flatnonzero(allowed)
        self._by_column = sp.csr_matrix(by_column[self._kept])
        self._program: Program | None = None
        self._last: Relaxed | None = None
        self._basis: Basis | None = None
        self._lock = Lock()

    def solve(self, scores: Array) -> Relaxed:
        """Solve for the scores of all columns; those that are not allowed have the value 0."""
        with self._lock:
            mine = scores[self._kept]
            last = self._last
            if last is None or not still_optimal(self._by_column, mine, last.x, last.duals):
                last = self._last = self._relax(mine)
            x = np.zeros(self.width)
            x[self._kept] = last.x
            return Relaxed(x, last.duals, last.optimal)

    def _relax(self, scores: Array) -> Relaxed:
        """Solve, starting from the last optimum."""
        if self._program is not None:
            return self._program.relax(scores)
        program = Program(sp.csr_matrix(self._by_column.T.tocsr()))
        if self._basis is not None:
            program.start_from(self._basis)
        found = program.relax(scores)
        if self.stays_open:
            self._program, self._basis = program, None
        else:
            self._basis = program.basis()
        return found


def problem_of(data: TrainingSet, columns: slice) -> Problem:
    """The problem of some consecutive samples."""
    incidence = data.incidence[columns]
    return Problem(sp.csr_matrix(incidence[:, np.unique(incidence.indices)]))


def _groups(cut: Index) -> list[tuple[int, int]]:
    """Consecutive samples with at most `SIZE` columns together, as (first, after the last)."""
    out, begin, n = [], 0, len(cut) - 1
    for end in range(1, n + 1):
        if end == n or cut[end + 1] - cut[begin] > SIZE:
            out.append((begin, end))
            begin = end
    return out


def _gibbs(problem: Problem, scores: Array, allowed: Mask, limit: int) -> Gibbs | None:
    """The sum, with more states where too few of them lead nowhere; None if nothing helps."""
    for wider in (1, 4, 16):
        try:
            return gibbs(problem, scores, allowed, wider * limit)
        except InfeasibleError:
            continue
    return None


def _numbers(samples: Sequence[Sample]) -> Index:
    return np.asarray([s.x for s in samples], dtype=np.int64)


def _with_pseudo_answers(data: TrainingSet) -> tuple[sp.csr_matrix, Any, Mask]:
    """Sets (R, H) and their samples (R,), pseudo-answers last, and columns allowed (H,)."""
    if data.pseudo is None or not data.n_pseudo:
        return data.sets, data.annotation_sample, data.allowed
    columns = np.flatnonzero(data.pseudo)
    rows = sp.csr_matrix(
        (np.ones(len(columns)), (np.arange(len(columns)), columns)),
        shape=(len(columns), len(data.pseudo)),
    )
    covered = np.asarray(data.incidence[columns].sum(axis=0)).ravel()
    rivals = np.asarray(data.incidence @ covered) > 0
    return (
        sp.csr_matrix(sp.vstack([data.sets, rows])),
        np.concatenate([data.annotation_sample, data.column_sample[columns]]),
        np.asarray(data.allowed & (data.pseudo | ~rivals)),
    )
