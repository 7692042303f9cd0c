"""Programs give their memory back without waiting for the garbage collector."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import scipy.sparse as sp

from bridgetrack.inference.solver import Program


def test_the_solver_goes_with_its_program() -> None:
    gc.disable()
    try:
        program = Program(sp.csr_matrix(np.ones((1, 3))))
        assert program.relax(np.asarray([1.0, 3.0, 2.0])).value == 3.0
        solver = weakref.ref(program._model.solver)
        assert solver() is not None
        del program
        assert solver() is None
    finally:
        gc.enable()
