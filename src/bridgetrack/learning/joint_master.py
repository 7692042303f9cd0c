"""The quadratic master problem of joint training (000, section 1.6.3), with a certificate.

    min  lambda/2 |w - w0|^2 + rho/2 sum_d |w^d - w|^2 + sum_d max_{k in d} (<a_k, w^d> + b_k)

In the coordinates of `coupling` it is the master problem of `l2` with one group of bounds for
each domain, so both its forms and its certificate serve here too. Its *dual* form has the matrix
of the paper, ``1/tau A^d'A^d`` on the diagonal blocks and ``1/lambda A^d'A^e`` off them. With the
linear term v^d of a domain added to its rows and ``u^d = v^d + A^d alpha^d``,

    w = w0 - M^-1 sum_d u^d / lambda,      w^d = w - M^-1 u^d / rho,
    dual = sum_d (b^d + A^d'w0)'alpha^d - |sum_d u^d|^2 / (2 lambda) - sum_d |u^d|^2 / (2 rho).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridgetrack.learning.coupling import Coupling
from bridgetrack.learning.l2 import Form, solve_l2_master
from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.regularizers import L2, centre


@dataclass(frozen=True)
class JointMaster:
    """A solved master problem.

    Parameters
    ----------
    weights
        w^d, shape (D, d).
    alphas
        Multipliers of each domain's bounds, not negative, sum 1 in each.
    primal
        Value of the master problem at ``weights``.
    dual
        Certified lower bound on its minimum.
    backend
        Which form and back end found it.
    """

    weights: FloatArray
    alphas: tuple[FloatArray, ...]
    primal: float
    dual: float
    backend: str


def solve_joint_master(
    slopes: Sequence[FloatArray],
    offsets: Sequence[FloatArray],
    coupling: Coupling,
    *,
    form: Form = "primal",
    backend: str | None = None,
    tolerance: float = 1e-8,
) -> JointMaster:
    """Minimise the coupling plus the largest bound of each domain.

    Parameters
    ----------
    slopes, offsets
        Bounds ``<a_k, w^d> + b_k`` of each domain, shapes (m_d, d) and (m_d,), none empty.
    coupling
        lambda, rho, w0 and M.
    form, backend, tolerance
        As in `l2.solve_l2_master`.

    Raises
    ------
    InputError
        If a domain has no bound.
    SolverError
        If no back end returned anything.
    """
    count = [len(b) for b in offsets]
    factor = coupling.factor(len(count))
    rows = [coupling.whitened(a, row) for a, row in zip(slopes, factor, strict=True)]
    w0 = centre(L2(1.0, coupling.prior), slopes[0].shape[1])
    found = solve_l2_master(
        np.vstack(rows),
        np.concatenate([b + a @ w0 for a, b in zip(slopes, offsets, strict=True)]),
        L2(1.0),
        groups=np.repeat(np.arange(len(count)), count),
        form=form,
        backend=backend,
        tolerance=tolerance,
    )
    alphas = np.split(found.alpha, np.cumsum(count)[:-1])
    weights = coupling.unwhitened(found.w, factor)
    return JointMaster(weights, tuple(alphas), found.primal, found.dual, found.backend)
