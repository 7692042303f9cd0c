"""Convex quadratic programs, solved by one back end of qpsolvers or another."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from bridgetrack.errors import InputError, SolverError
from bridgetrack.learning.model import FloatArray

OPTIONS: dict[str, dict[str, float]] = {"daqp": {"primal_tol": 1e-10}}
SPARSE = ("clarabel",)
"""Back ends that take sparse matrices only, and warn of every other."""


def call_backend(
    backend: str,
    P: FloatArray,
    q: FloatArray,
    *,
    G: FloatArray | None = None,
    h: FloatArray | None = None,
    A: FloatArray | None = None,
    b: FloatArray | None = None,
    lb: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray | None] | None:
    """Minimise ``1/2 x'P x + q'x`` subject to ``G x <= h``, ``A x = b``, ``x >= lb``.

    The point and the multipliers of ``G x <= h`` (None where the back end gives none); None if the
    back end could not solve it. Nothing is certified: check what comes back.
    """
    import qpsolvers

    if backend not in qpsolvers.available_solvers:
        raise InputError(
            f"there is no QP back end {backend!r}; choose one of "
            f"{', '.join(qpsolvers.available_solvers)}"
        )
    matrices: list[Any] = [P, G, A]
    if backend in SPARSE:
        matrices = [None if m is None else sp.csc_matrix(m) for m in matrices]
    # Most failures come back as a status. What is raised for the numbers' sake is an error of
    # qpsolvers (Clarabel's refusal to set up), of values (an indefinite P) or of arithmetic.
    try:
        hessian, rows, equal = matrices
        problem = qpsolvers.Problem(hessian, q, rows, h, equal, b, lb)
        solution = qpsolvers.solve_problem(problem, backend, **OPTIONS.get(backend, {}))
    except (qpsolvers.exceptions.QPError, ValueError, ArithmeticError):
        return None
    except Exception as error:
        raise SolverError(
            f"the QP back end {backend} failed unexpectedly ({type(error).__name__}: {error}); "
            "its version may not fit, reinstall it or choose another one"
        ) from error
    x, z = solution.x, solution.z
    if x is None or not np.isfinite(x).all():
        return None
    return x, (z if z is not None and np.isfinite(z).all() else None)
