"""Whether constraints can hold together, checked on hypotheses without a solver."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.annotations.anchored import Anchored
from bridgetrack.annotations.constraints import Constraints, Index
from bridgetrack.annotations.contradictions import find_contradictions
from bridgetrack.errors import ContradictionError

_SHOWN = 5
Mask = NDArray[np.bool_]


def _excluded(incidence: sp.csr_matrix, chosen: Index) -> Mask:
    """Hypotheses that share a slot with a chosen one, the chosen ones left aside."""
    taken = np.zeros(incidence.shape[1])
    taken[incidence[chosen].indices] = 1
    excluded = np.asarray(incidence @ taken > 0)
    excluded[chosen] = False
    return excluded


def _open(incidence: sp.csr_matrix, constraints: Constraints, confirmed: Index) -> Mask:
    """Hypotheses that no annotation rules out."""
    shut = _excluded(incidence, confirmed)
    shut[constraints.left_out] = True
    return ~shut


def _confirmed(constraints: Constraints, reject: Mask) -> Index:
    single = np.diff(constraints.indptr) == 1
    rows = np.flatnonzero(single & ~reject[constraints.annotation])
    return np.unique(constraints.indices[constraints.indptr[rows]])


def check_consistent(
    anchored: Anchored, incidence: sp.csr_matrix, constraints: Constraints, reject: Mask
) -> None:
    """Refuse annotations that exclude each other.

    Parameters
    ----------
    anchored
        The annotations, for the explanation.
    incidence
        Hypotheses x slots (`Hypotheses.incidence`).
    constraints
        What the annotations amount to.
    reject
        Which of ``anchored.listed`` are rejections.

    Raises
    ------
    ContradictionError
        With every contradiction in plain words (the first few).
    """
    confirmed = _confirmed(constraints, reject)
    covered = np.asarray(incidence[confirmed].sum(axis=0)).ravel()
    live = _open(incidence, constraints, confirmed)
    positive = np.flatnonzero(~reject[constraints.annotation])
    options = np.bincount(
        constraints.row, weights=live[constraints.indices], minlength=len(constraints)
    )
    impossible = positive[options[positive] == 0]
    if len(impossible) == 0 and (covered <= 1).all():
        return
    found = [f"{c.message} ({', '.join(c.ids)})" for c in find_contradictions(anchored.refreshed())]
    if not found:
        names = ", ".join(constraints.ids[r] for r in impossible[:_SHOWN].tolist())
        found = [f"other annotations leave nothing that fits annotation {names}"]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise ContradictionError(
        f"annotations contradict each other: {'; '.join(found[:_SHOWN])}{more}. "
        f"Remove or change one of each"
    )


def exhausted_rejections(incidence: sp.csr_matrix, constraints: Constraints, reject: Mask) -> Mask:
    """Rejections that leave nothing at their slot.

    Somebody who rejects every proposal for a cell says that the right event was not proposed,
    which is no contradiction but cannot be met either.

    Parameters
    ----------
    incidence
        Hypotheses x slots.
    constraints
        Consistent in their confirmed and ambiguous annotations.
    reject
        Which of ``anchored.listed`` are rejections.

    Returns
    -------
    ndarray
        Rows of `constraints` to leave out, shape (A,).
    """
    live = _open(incidence, constraints, _confirmed(constraints, reject))
    open_ = np.bincount(
        constraints.row, weights=live[constraints.indices], minlength=len(constraints)
    )
    return np.asarray((open_ == 0) & reject[constraints.annotation])
