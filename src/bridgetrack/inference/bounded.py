"""A large integer program in a process of its own, which can be ended."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.solver import Integral, solve_integer

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_GRACE = 5.0


def solve_bounded(
    rows: sp.csr_matrix, scores: Array, start: Mask | None, max_nodes: int, max_seconds: float
) -> Integral | None:
    """As `solve_integer`, in a child process that is ended when it overstays its time.

    Returns
    -------
    Integral or None
        None where the child gave no answer in time, or failed.

    Raises
    ------
    InfeasibleError
        Where the columns cannot cover every row once.
    """
    matrix = sp.csr_matrix(rows)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=np.asarray(matrix.shape),
        scores=scores,
        start=np.zeros(0, dtype=bool) if start is None else start,
        limits=np.asarray([max_nodes, max_seconds]),
    )
    command = [sys.executable, "-m", "bridgetrack.inference.bounded"]
    try:
        done = subprocess.run(
            command,
            input=buffer.getvalue(),
            capture_output=True,
            timeout=max_seconds + _GRACE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError:  # an embedded Python has no program to start
        return solve_integer(matrix, scores, start, max_nodes, max_seconds)
    if done.returncode != 0:
        return None
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as answer:
        if "infeasible" in answer.files:
            raise InfeasibleError(str(answer["infeasible"]))
        return Integral(answer["x"], float(answer["value"]), float(answer["bound"]))


def main() -> None:
    """Read a program from standard input, write its solution to standard output."""
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever a solver prints must not get into the answer
    out = io.BytesIO()
    try:
        best = _answer()
        np.savez(out, x=best.x, value=best.value, bound=best.bound)
    except InfeasibleError as error:
        np.savez(out, infeasible=np.asarray(str(error)))
    with os.fdopen(answer, "wb") as file:
        file.write(out.getvalue())


def _answer() -> Integral:
    with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as given:
        rows = sp.csr_matrix(
            (given["data"], given["indices"], given["indptr"]), shape=tuple(given["shape"])
        )
        start = given["start"] if given["start"].size else None
        nodes, seconds = given["limits"]
        return solve_integer(rows, given["scores"], start, int(nodes), float(seconds))


if __name__ == "__main__":
    main()
