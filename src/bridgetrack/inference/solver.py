"""Linear and integer programs over slots; the only module that calls python-mip.

Programs are passed as whole matrices, because python-mip has no batch call for rows, and HiGHS is
named explicitly, so that a licensed solver is never used by accident. A large integer program is
solved in a process of its own, which can be ended.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import mip
import mip.highs
import numpy as np
from mip.highs import ffi
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from bridgetrack.arrays import Array, Mask
from bridgetrack.errors import InfeasibleError, SolverError
from bridgetrack.inference.problem import Problem

_NO_CHOICE = "the events cannot explain every cell once (no feasible choice)"
_GAP = 1e-9
"""Absolute and relative gap at which an integer program is solved."""
_IMPOSSIBLE = (
    mip.OptimizationStatus.INFEASIBLE,
    mip.OptimizationStatus.INT_INFEASIBLE,
    mip.OptimizationStatus.UNBOUNDED,  # HiGHS: unbounded or infeasible, and binaries are bounded
)


@dataclass(frozen=True)
class Relaxed:
    """Solution of a linear program ``max s'x, A x = 1 (or <= 1), x >= 0``."""

    x: Array  # values of the columns, shape (H,)
    duals: Array  # prices of the rows, shape (S,); ``A' duals >= s`` up to tolerance


@dataclass(frozen=True)
class Integral:
    """Solution of an integer program."""

    x: Mask  # values of the columns, 0 or 1, shape (H,)
    value: float  # objective of `x`
    bound: float  # no solution is better than this


@dataclass(frozen=True)
class Basis:
    """End state of the simplex method: the status of columns (H,) and rows (S,), by HiGHS."""

    columns: NDArray[np.int8]
    rows: NDArray[np.int8]


def _doubles(values: Array) -> Any:
    return ffi.from_buffer("double[]", np.ascontiguousarray(values, dtype=np.float64))


def _ints(values: NDArray[Any]) -> Any:
    return ffi.from_buffer("int[]", np.ascontiguousarray(values, dtype=np.int32))


class Program:
    """The linear program ``max s'x, A x = 1 (<= 1 where free), x >= 0``, solved repeatedly.

    The model stays alive, so that solving again with other scores starts from the last basis.

    A has a row for each slot of the problem and a column for each of its columns.
    """

    def __init__(self, problem: Problem) -> None:
        self.shape = problem.n_slots, problem.n_columns  # the solver has a copy of the matrix
        self._model = _new_model(mip.MINIMIZE)
        solver, matrix = self._model.solver, problem.by_slot
        n_rows, n_columns = self.shape
        lower = np.where(problem.required, 1.0, -np.inf)
        zero, one = np.zeros(n_columns), np.ones(n_rows)
        infinite = np.full(n_columns, np.inf)
        solver._lib.Highs_passLp(
            solver._model,
            n_columns,
            n_rows,
            matrix.nnz,
            2,
            1,
            0.0,
            _doubles(zero),
            _doubles(zero),
            _doubles(infinite),
            _doubles(lower),
            _doubles(one),
            _ints(matrix.indptr[:-1]),
            _ints(matrix.indices),
            _doubles(matrix.data),
        )
        solver._col_committed, solver._row_committed = n_columns, n_rows
        solver._set_string_option_value("solver", "simplex")
        solver._set_string_option_value("presolve", "off")

    def __del__(self) -> None:
        """Free the solver's memory now; its cycle of objects would wait for the collector."""
        model = getattr(self, "_model", None)
        if model is not None:
            model.solver = None

    def relax(self, scores: Array) -> Relaxed:
        """Solve the linear relaxation.

        Raises
        ------
        SolverError
            If scores are not finite, or the solver stops before the optimum.
        InfeasibleError
            If the columns cannot cover every row once.
        """
        check_scores(scores)
        solver = self._model.solver
        n_rows, n_columns = self.shape
        if not n_columns:
            return Relaxed(np.zeros(0), np.zeros(n_rows))
        handle, lib = solver._model, solver._lib
        lib.Highs_changeColsCostByRange(handle, 0, n_columns - 1, _doubles(-scores))
        lib.Highs_run(handle)
        status = lib.Highs_getModelStatus(handle)
        hopeless = (
            lib.kHighsModelStatusInfeasible,
            lib.kHighsModelStatusUnboundedOrInfeasible,
            lib.kHighsModelStatusModelError,
        )
        if status not in (lib.kHighsModelStatusOptimal, *hopeless):
            # Started from the last optimum, it may end with rounding errors that are too large:
            # solve once more from the beginning.
            lib.Highs_clearSolver(handle)
            lib.Highs_run(handle)
            status = lib.Highs_getModelStatus(handle)
        x, reduced, value, price = (np.zeros(k) for k in (n_columns, n_columns, n_rows, n_rows))
        lib.Highs_getSolution(
            handle, _doubles(x), _doubles(reduced), _doubles(value), _doubles(price)
        )
        if status in hopeless:
            raise InfeasibleError(_NO_CHOICE)
        if status != lib.kHighsModelStatusOptimal:
            raise SolverError("the linear solver stopped before the optimum; scale the scores")
        return Relaxed(x, -price)

    def basis(self) -> Basis:
        """The basis of the last `relax`."""
        solver = self._model.solver
        columns, rows = (np.zeros(k, dtype=np.int32) for k in self.shape[::-1])
        solver._lib.Highs_getBasis(solver._model, _ints(columns), _ints(rows))
        return Basis(columns.astype(np.int8), rows.astype(np.int8))

    def start_from(self, basis: Basis) -> None:
        """Start the next `relax` from the basis of another program with the same rows."""
        solver = self._model.solver
        solver._lib.Highs_setBasis(solver._model, _ints(basis.columns), _ints(basis.rows))


def _new_model(sense: str) -> mip.Model:
    """An empty model of HiGHS.

    cffi looks up the function that frees a model under a lock at its first use; if the garbage
    collector freed a model while that lock is held, the process would wait for itself for ever. So
    it is looked up now.
    """
    if not mip.highs.has_highs:
        raise SolverError(
            "the solver HiGHS is not installed in a version that python-mip can use; install it "
            'with: pip install "highspy>=1.9,<1.16"'
        )
    model = mip.Model(sense=sense, solver_name=mip.HIGHS)
    model.verbose = 0
    _ = model.solver._lib.Highs_destroy
    return model


def check_scores(scores: Array) -> None:
    """Refuse scores that are not finite with a SolverError."""
    if not np.isfinite(scores).all():
        raise SolverError("a score is not a finite number; check the model's weights and features")


def solve_integer(
    problem: Problem, scores: Array, start: Mask | None, max_nodes: int, max_seconds: float
) -> Integral:
    """Solve ``max s'x, A x = 1 (<= 1 where free), x binary`` by branch and bound.

    Parameters
    ----------
    problem
        Slots and columns.
    scores
        Objective, shape (H,).
    start
        A feasible choice that is returned if the solver finds nothing better in time.
    max_nodes, max_seconds
        Limits; node limits keep results reproducible.

    Raises
    ------
    SolverError
        If scores are not finite, or if a limit was reached before any solution was found and
        there is no start.
    InfeasibleError
        If there is no solution.
    """
    check_scores(scores)
    model = _new_model(mip.MAXIMIZE)
    model.max_mip_gap = model.max_mip_gap_abs = _GAP
    y = [model.add_var(var_type=mip.BINARY, obj=float(s)) for s in scores]
    matrix, needed = problem.by_slot, problem.required
    for r in range(matrix.shape[0]):
        part = matrix.indices[matrix.indptr[r] : matrix.indptr[r + 1]]
        cover = mip.xsum(y[int(h)] for h in part)
        model.add_constr(cover == 1 if needed[r] else cover <= 1)
    if start is not None:
        model.start = [(y[int(h)], 1.0) for h in np.flatnonzero(start)]
    try:
        status = model.optimize(max_seconds=max_seconds, max_nodes=max_nodes)
    except mip.InterfacingError:  # seen once in thousands of tiny programs; a fault of the solver
        cover = LinearConstraint(matrix, np.where(needed, 1.0, -np.inf), 1.0)
        limits = {"node_limit": max_nodes, "time_limit": max_seconds, "mip_rel_gap": 0.0}
        again = milp(-scores, integrality=1, bounds=Bounds(0, 1), constraints=cover, options=limits)
        if again.success:
            best = again.x > 0.5
            value = float(scores[best].sum())
            return Integral(best, value, value)
        status = mip.OptimizationStatus.ERROR
    found = status in (mip.OptimizationStatus.OPTIMAL, mip.OptimizationStatus.FEASIBLE)
    bound = float(model.objective_bound) if found else np.inf
    choices = []
    if found:
        choices.append(np.asarray([v.x for v in y]) > 0.5)
    if start is not None:
        choices.append(np.asarray(start, dtype=bool))
    valid = [c for c in choices if _covers(matrix @ c, needed)]
    if not valid and status in _IMPOSSIBLE:
        raise InfeasibleError(_NO_CHOICE)
    if not valid:
        raise SolverError(
            f"the solver found no choice of events within {max_nodes} nodes and "
            f"{max_seconds:.0f} s; allow more of both"
        )
    best = max(valid, key=lambda c: float(scores[c].sum()))
    value = float(scores[best].sum())
    if status == mip.OptimizationStatus.OPTIMAL:
        bound = max(value, min(bound, value + _GAP * max(1.0, abs(value))))
    return Integral(best, value, max(bound, value))


def _covers(count: Array, needed: Mask) -> bool:
    """Whether no row is covered twice, and every one that needs it is covered."""
    return bool((count[needed] == 1).all() and (count[~needed] <= 1).all())


_GRACE = 5.0
"""Seconds that a child process may take beyond its limit, for starting and answering."""


def solve_bounded(
    problem: Problem, scores: Array, start: Mask | None, max_nodes: int, max_seconds: float
) -> Integral | None:
    """As `solve_integer`, in a child process that is killed when it exceeds its time.

    A solver that does not keep to its time limit cannot be stopped within this process. None if the
    child gave no answer in time, or failed.
    """
    given = (problem, scores, start, max_nodes, max_seconds)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bridgetrack.inference.solver"],
            input=pickle.dumps(given),
            capture_output=True,
            timeout=max_seconds + _GRACE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError:  # an embedded Python has no executable to start
        return solve_integer(*given)
    if done.returncode != 0:
        return None
    answer = pickle.loads(done.stdout)
    if isinstance(answer, str):
        raise InfeasibleError(answer)
    return Integral(*answer)


def main() -> None:
    """Read a program from standard input, write its solution to standard output."""
    out = os.dup(1)
    os.dup2(2, 1)  # output of a solver must not get into the answer
    answer: tuple[Mask, float, float] | str
    try:
        best = solve_integer(*pickle.load(sys.stdin.buffer))
        answer = best.x, best.value, best.bound
    except InfeasibleError as error:
        answer = str(error)
    with os.fdopen(out, "wb") as file:
        pickle.dump(answer, file)


if __name__ == "__main__":
    main()
