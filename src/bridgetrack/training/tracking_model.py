"""Tracking as a structured model: the boundary between movies and learners.

All samples are solved together in a few linear programs. The relaxation over-generates: the
penalty it defines is convex, and everything the learners promise holds for it. Only the objective
of a program changes between calls, so each starts from the last optimum; the last digits may
depend on earlier calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import scipy.sparse as sp

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import ContradictionError, InfeasibleError
from bridgetrack.inference.gibbs import gibbs
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solver import Basis, Program
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

    Parameters
    ----------
    data
        The annotated components.
    """

    def __init__(self, data: TrainingSet) -> None:
        self.data = data
        # As Delta is linear in y, f + Delta = <Phi w - credit, y> + the number of annotations:
        # loss-augmented inference is the same program with lower scores.
        self._credit = np.asarray(data.sets.sum(axis=0), dtype=np.float64).ravel()
        self._count = np.bincount(data.annotation_sample, minlength=len(data.samples)).astype(float)
        self._cut = data.cut
        self._chunks = [_Chunk(self, slice(*group)) for group in _groups(self._cut)]
        programs = [p for c in self._chunks for p in c.programs if p.width <= SIZE]
        for program in programs[:OPEN]:
            program.stays_open = True

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.data.phi.shape[1])

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
                x, scores = job.result()
                found, missed, values = chunk.measure(x, scores, self._count[chunk.samples])
                rows = np.flatnonzero(chunk.holds(wanted))
                here = wanted[rows] - chunk.samples.start
                factor = self.data.importance[wanted[rows]]
                features[rows] = found[here] * factor[:, None]
                losses[rows] = missed[here] * factor
                bounds[rows] = values[here] * factor + sign * losses[rows]
        return Inferred(features, losses, bounds)

    def _solved(self, chunk: _Chunk, w: Array, sign: int, compatible: bool) -> tuple[Array, Array]:
        """Choices and scores of a program's columns."""
        scores = chunk.scores(w)
        augmented = scores - sign * self._credit[chunk.columns]
        return chunk.programs[compatible].solve(augmented), scores

    def satisfied(self, w: Array) -> Array:
        """Share of every annotation that plain inference agrees with, 0 to 1, shape (A,)."""
        x = np.zeros(len(self._credit))
        for chunk in self._chunks:
            x[chunk.columns] = self._solved(chunk, w, 0, False)[0]
        return np.asarray(self.data.sets @ x)

    # --- self-paced learning ----------------------------------------------------------------

    def hidden_entropies(self, samples: Sequence[Sample], w: Array, limit: int = ENOUGH) -> Array:
        """Entropy of the choices that agree with the annotations, shape (n,).

        inf where the sum over ``limit`` states (`inference.gibbs`) found no such choice.
        """
        found = np.full(len(samples), np.inf)
        for k, sample in enumerate(samples):
            columns = self.columns(sample.x)
            agree, incidence = self.data.allowed[columns], self.data.incidence[columns]
            slots = np.unique(incidence.indices)
            problem = Problem(sp.csr_matrix(incidence[agree][:, slots]))
            scores = (self.data.phi[columns] @ w)[agree]
            for wider in (1, 4, 16):  # too few states may find no choice
                with suppress(InfeasibleError):
                    found[k] = gibbs(problem, scores, wider * limit)[1]
                    break
        return found

    def sizes(self, samples: Sequence[Sample]) -> Array:
        """Number of annotations of every sample, times its importance, shape (n,)."""
        weighted = self._count * self.data.importance
        return np.asarray(weighted[_numbers(samples)], dtype=np.float64)


class _Chunk:
    """Some consecutive samples, and their programs: over all outputs, and the compatible ones."""

    def __init__(self, model: TrackingModel, samples: slice) -> None:
        data, begin, end = model.data, samples.start, samples.stop
        self.samples = samples
        self.columns = slice(model.columns(begin).start, model.columns(end - 1).stop)
        self.sample = data.column_sample[self.columns] - begin
        rows = np.flatnonzero((data.annotation_sample >= begin) & (data.annotation_sample < end))
        self._phi = sp.csr_matrix(data.phi[self.columns])
        self._sets = sp.csr_matrix(data.sets[rows][:, self.columns])
        self._owner = data.annotation_sample[rows] - begin
        slots = slice(data.slot_cut[begin], data.slot_cut[end])
        incidence = sp.csr_matrix(data.incidence[self.columns][:, slots])
        everything = np.ones(incidence.shape[0], dtype=bool)
        self.programs = tuple(
            _Program(incidence, keep) for keep in (everything, data.allowed[self.columns])
        )

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
        kept = np.bincount(self._owner, self._sets @ x, minlength=n)
        losses = np.asarray(n_of - kept, dtype=np.float64)
        losses[np.abs(losses) < 1e-9] = 0.0
        values = np.bincount(self.sample[used], x[used] * scores[used], minlength=n)
        return features, losses, np.asarray(values)


class _Program:
    """A program over some of the columns (H x S): solving starts at its last optimum."""

    def __init__(self, incidence: sp.csr_matrix, allowed: Mask) -> None:
        self.width = incidence.shape[0]
        # An open solver takes ten times the memory of a basis; without it solving takes a quarter
        # longer.
        self.stays_open = False
        self._kept = np.flatnonzero(allowed)
        self._incidence = sp.csr_matrix(incidence[self._kept])
        self._open: Program | None = None
        self._basis: Basis | None = None

    def solve(self, scores: Array) -> Array:
        """Values of all columns at such scores; those that are not allowed have the value 0."""
        program = self._open
        if program is None:
            program = Program(Problem(self._incidence))
            if self._basis is not None:
                program.start_from(self._basis)
        x = np.zeros(self.width)
        x[self._kept] = program.relax(scores[self._kept]).x
        if self.stays_open:
            self._open = program
        else:
            self._basis = program.basis()
        return x


def _groups(cut: Index) -> list[tuple[int, int]]:
    """Consecutive samples with at most `SIZE` columns together, as (first, after the last)."""
    out, begin, n = [], 0, len(cut) - 1
    for end in range(1, n + 1):
        if end == n or cut[end + 1] - cut[begin] > SIZE:
            out.append((begin, end))
            begin = end
    return out


def _numbers(samples: Sequence[Sample]) -> Index:
    return np.asarray([s.x for s in samples], dtype=np.int64)
