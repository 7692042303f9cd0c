"""Tracking as a structured model: the boundary between movies and learners.

All samples are solved together in a few linear programs (`programs`). The relaxation
over-generates: the risk it defines is convex and everything the learners promise holds for it
(design after 001, section 4). With ``exact=True`` integer programs take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import ContradictionError, InfeasibleError
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.gibbs import LIMIT, Gibbs, gibbs
from bridgetrack.inference.margins import cheapest_flip
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.learning.model import Inferred, InferredBatch, Sample, Sign
from bridgetrack.spread import THREADS
from bridgetrack.training.programs import Chunk, Programs
from bridgetrack.training.training_set import TrainingSet

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.int64]


_PROBLEMS = 1_000
"""Problems of single samples that are kept."""

ENOUGH = 40
"""States that suffice to tell easy samples from hard ones."""


class TrackingModel:
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
        self._sets, self._owner, allowed = _with_pseudo_answers(data)
        n_rows = len(self._owner)
        self._weight = np.where(np.arange(n_rows) < data.n_annotations, 1.0, data.pseudo_weight)
        self._credit = np.asarray(self._sets.T @ self._weight).ravel()
        self._n_of = np.bincount(self._owner, self._weight, minlength=len(data.samples))
        self._cut = data.cut
        self._agreeing = replace(data, allowed=allowed)
        self.programs: Programs = Programs.of(
            self._agreeing, None if earlier is None else earlier.programs
        )
        cut = self._cut
        self._problem = lru_cache(_PROBLEMS)(
            lambda x: problem_of(data, slice(int(cut[x]), int(cut[x + 1])))
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """What another process makes it from; programs are made there."""
        return TrackingModel, (self.data, self.exact)

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.data.phi.shape[1])

    def blocks(self, samples: Sequence[Sample]) -> list[Index]:
        """Samples that share a kept program, as positions in ``samples``."""
        ends = np.asarray([chunk.columns.stop for chunk in self.programs.free])
        chunk = np.searchsorted(ends, self._cut[_numbers(samples)], side="right")
        return [np.flatnonzero(chunk == k) for k in np.unique(chunk)]

    # --- all samples at once -------------------------------------------------------------

    def inference_batch(self, samples: Sequence[Sample], w: Array) -> InferredBatch:
        """Maximise f over all outputs."""
        return self._batch(samples, self.data.phi @ w, 0, self.programs.free)

    def loss_augmented_batch(
        self, samples: Sequence[Sample], w: Array, sign: Sign = 1
    ) -> InferredBatch:
        """Maximise f + sign * Delta over all outputs."""
        return self._batch(samples, self.data.phi @ w, sign, self.programs.free)

    def compatible_batch(self, samples: Sequence[Sample], w: Array) -> InferredBatch:
        """Maximise f over the compatible outputs.

        Raises
        ------
        ContradictionError
            Where no output is compatible.
        """
        try:
            return self._batch(samples, self.data.phi @ w, 0, self.programs.compatible)
        except InfeasibleError as error:
            raise ContradictionError(
                "the annotations exclude each other: no choice of events agrees with all of them"
            ) from error

    def _batch(
        self, samples: Sequence[Sample], scores: Array, sign: int, chunks: Sequence[Chunk]
    ) -> InferredBatch:
        augmented = scores - sign * self._credit if sign else scores
        wanted, needed = _numbers(samples), self._needed(samples, chunks)
        x = np.zeros(len(scores))
        solver = self._solve_exactly if self.exact else Chunk.solve
        with ThreadPoolExecutor(THREADS) as pool:
            jobs = [pool.submit(solver, chunk, augmented) for chunk in needed]
            for chunk, job in zip(needed, jobs, strict=True):
                x[chunk.columns] = job.result()
        features, losses, values = self._measure(x, scores)
        bounds = values + sign * losses
        return InferredBatch(features[wanted], losses[wanted], bounds[wanted], None)

    def _needed(self, samples: Sequence[Sample], chunks: Sequence[Chunk]) -> list[Chunk]:
        """The programs in which some samples are."""
        starts = self._cut[_numbers(samples)]
        return [
            chunk
            for chunk in chunks
            if ((starts >= chunk.columns.start) & (starts < chunk.columns.stop)).any()
        ]

    def _solve_exactly(self, chunk: Chunk, scores: Array) -> Array:
        columns = chunk.columns
        allowed = np.zeros(columns.stop - columns.start, dtype=bool)
        allowed[chunk.program.kept] = True
        problem = problem_of(self.data, columns)
        return solve(problem, scores[columns], allowed).chosen.astype(np.float64)

    def _measure(self, x: Array, scores: Array) -> tuple[Array, Array, Array]:
        """Joint features (n, d), task losses (n,) and values of f (n,) of all samples."""
        used = np.flatnonzero(x)
        n = len(self.data.samples)
        picked = sp.csr_matrix(
            (x[used], (self.data.column_sample[used], np.arange(len(used)))), shape=(n, len(used))
        )
        features = np.asarray((picked @ self.data.phi[used]).todense())
        kept = np.bincount(self._owner, self._weight * (self._sets @ x), minlength=n)
        losses = np.asarray(self._n_of - kept, dtype=np.float64)
        losses[np.abs(losses) < 1e-9] = 0.0
        values = np.bincount(self.data.column_sample[used], x[used] * scores[used], minlength=n)
        factor = self.data.importance
        return features * factor[:, None], losses * factor, np.asarray(values * factor)

    def satisfied(self, w: Array, samples: Sequence[Sample] | None = None) -> Array:
        """Share of every annotation that plain inference agrees with, 0 to 1, shape (A,).

        Where only some ``samples`` are asked about, the share is 0 in others.
        """
        scores = self.data.phi @ w
        x = np.zeros(len(scores))
        solver = self._solve_exactly if self.exact else Chunk.solve
        free = self.programs.free
        for chunk in free if samples is None else self._needed(samples, free):
            x[chunk.columns] = solver(chunk, scores)
        return np.asarray(self.data.sets @ x)

    # --- self-paced learning ----------------------------------------------------------------

    def hidden_entropies(self, samples: Sequence[Sample], w: Array) -> Array:
        """Entropy of the choices that agree with the annotations, shape (n,)."""
        return hidden_entropies(self._agreeing, samples, w, ENOUGH)[0]

    def sizes(self, samples: Sequence[Sample]) -> Array:
        """Weights of annotations and pseudo-answers of every sample, by its importance, (n,)."""
        weighted = self._n_of * self.data.importance
        return np.asarray(weighted[_numbers(samples)], dtype=np.float64)

    def kinds(self, samples: Sequence[Sample]) -> Mask:
        """Which kinds of events are annotated in every sample, shape (n, len(Event))."""
        found = np.zeros((len(self.data.samples), len(Event)), dtype=bool)
        single = self.data.single
        found[self.data.annotation_sample[single], self.data.event[single]] = True
        return found[_numbers(samples)]

    def loss_augmented_each(self, samples: Sequence[Sample], weights: Array) -> InferredBatch:
        """Maximise f + Delta of every sample at weights of its own, shape (n, d)."""
        phi, each = self.data.phi, np.zeros((len(self.data.samples), self.n_features))
        each[_numbers(samples)] = weights
        rows = np.repeat(np.arange(phi.shape[0]), np.diff(phi.indptr))
        products = phi.data * each[self.data.column_sample[rows], phi.indices]
        scores = np.bincount(rows, products, minlength=phi.shape[0]).astype(np.float64)
        return self._batch(samples, scores, 1, self.programs.free)

    # --- one sample at a time --------------------------------------------------------------

    def columns(self, x: int) -> slice:
        """Columns of a sample in the training set."""
        return slice(int(self._cut[x]), int(self._cut[x + 1]))

    def joint_feature(self, x: int, y: Array) -> Array:
        """Sum of the features of the chosen columns, shape (d,)."""
        feature = np.asarray(self.data.phi[self.columns(x)].T @ y).ravel()
        return np.asarray(feature * self.data.importance[x])

    def task_loss(self, y_star: tuple[int, ...], y: Array) -> float:
        """Weight of the annotations and pseudo-answers that a choice contradicts."""
        if not y_star:
            return 0.0
        x = int(self.data.annotation_sample[y_star[0]])
        rows = self._rows_of(x, y_star)
        missed = 1.0 - self._sets[rows][:, self.columns(x)] @ y
        return float(self._weight[rows] @ missed) * float(self.data.importance[x])

    def inference(self, x: int, w: Array) -> Inferred:
        """Maximise f over all outputs."""
        return self._one(x, (), self.data.phi[self.columns(x)] @ w, None)

    def loss_augmented_inference(
        self, x: int, y_star: tuple[int, ...], w: Array, sign: Sign = 1
    ) -> Inferred:
        """Maximise f + sign * Delta over all outputs."""
        columns = self.columns(x)
        scores = self.data.phi[columns] @ w - sign * self._credit[columns]
        return self._one(x, y_star, scores, None, sign * self._n_of[x])

    def compatible_inference(self, x: int, y_star: tuple[int, ...], w: Array) -> Inferred:
        """Maximise f over the compatible outputs."""
        columns = self.columns(x)
        allowed = self._agreeing.allowed[columns]
        try:
            return self._one(x, y_star, self.data.phi[columns] @ w, allowed)
        except InfeasibleError as error:
            raise ContradictionError("the annotations exclude each other") from error

    def incompatible_inference(self, x: int, y_star: tuple[int, ...], w: Array) -> Inferred | None:
        """Maximise f + Delta over the incompatible outputs, exactly; None if there are none."""
        columns = self.columns(x)
        scores = self.data.phi[columns] @ w - self._credit[columns]
        sets = sp.csr_matrix(self._sets[self._rows_of(x, y_star)][:, columns])
        chosen = cheapest_flip(self._problem(x), scores, sets)
        if chosen is None:
            return None
        return self._inferred(x, y_star, chosen, scores, float(self._n_of[x]))

    def _rows_of(self, x: int, y_star: tuple[int, ...]) -> list[int]:
        """Some annotations of a sample and its pseudo-answers, among all sets."""
        pseudo = np.arange(self.data.n_annotations, len(self._owner))
        return [*y_star, *pseudo[self._owner[pseudo] == x].tolist()]

    def _one(
        self,
        x: int,
        y_star: tuple[int, ...],
        scores: Array,
        allowed: Mask | None,
        constant: float = 0.0,
    ) -> Inferred:
        chosen = solve(self._problem(x), scores, allowed).chosen
        return self._inferred(x, y_star, chosen, scores, constant)

    def _inferred(
        self, x: int, y_star: tuple[int, ...], chosen: Mask, scores: Array, constant: float
    ) -> Inferred:
        y = chosen.astype(np.float64)
        value = (float(scores @ y) + constant) * float(self.data.importance[x])
        return Inferred(y, self.joint_feature(x, y), self.task_loss(y_star, y), value)


def hidden_entropies(
    data: TrainingSet, samples: Sequence[Sample], w: Array, limit: int = LIMIT
) -> tuple[Array, Mask]:
    """Entropy of the choices that agree with the annotations, and whether it is exact.

    Shapes (n,); inf where the sum over ``limit`` states (`inference.gibbs`) found no such choice.
    """
    scores, cut = data.phi @ w, data.cut
    found, exact = np.full(len(samples), np.inf), np.zeros(len(samples), dtype=bool)
    for k, sample in enumerate(samples):
        columns = slice(int(cut[sample.x]), int(cut[sample.x + 1]))
        problem = problem_of(data, columns)
        summed = _gibbs(problem, scores[columns], data.allowed[columns], limit)
        if summed is not None:
            found[k], exact[k] = summed.entropy, summed.exact
    return found, exact


def _gibbs(problem: Problem, scores: Array, allowed: Mask, limit: int) -> Gibbs | None:
    """The sum, with more states where too few of them lead nowhere; None if nothing helps."""
    for wider in (1, 4, 16):
        try:
            return gibbs(problem, scores, allowed, wider * limit)
        except InfeasibleError:
            continue
    return None


def problem_of(data: TrainingSet, columns: slice) -> Problem:
    """The problem of some consecutive samples."""
    incidence = data.incidence[columns]
    return Problem(sp.csr_matrix(incidence[:, np.unique(incidence.indices)]))


def _numbers(samples: Sequence[Sample]) -> Index:
    return np.asarray([s.x for s in samples], dtype=np.int64)


def _with_pseudo_answers(data: TrainingSet) -> tuple[sp.csr_matrix, Index, Mask]:
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
