"""Convex quadratic programs, solved by one back end of qpsolvers or another."""

from __future__ import annotations

import warnings

import numpy as np

from bridgetrack.errors import InputError
from bridgetrack.learning.model import FloatArray

OPTIONS: dict[str, dict[str, float]] = {"daqp": {"primal_tol": 1e-10}}


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

    Returns
    -------
    tuple or None
        The point and the multipliers of ``G x <= h`` (None where the back end gives none); None
        if the back end failed. Nothing is certified: check what comes back.

    Raises
    ------
    InputError
        If there is no such back end.
    """
    import qpsolvers

    if backend not in qpsolvers.available_solvers:
        raise InputError(
            f"there is no QP back end {backend!r}; choose one of "
            f"{', '.join(qpsolvers.available_solvers)}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem = qpsolvers.Problem(P, q, G, h, A, b, lb)
            solution = qpsolvers.solve_problem(problem, backend, **OPTIONS.get(backend, {}))
    except Exception:  # a back end may raise anything; the next one is tried
        return None
    x, z = solution.x, solution.z
    if x is None or not np.isfinite(x).all():
        return None
    return x, (z if z is not None and np.isfinite(z).all() else None)
