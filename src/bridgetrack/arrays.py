"""Types of arrays that many modules name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]
"""Numbers of rows, cells, slots or frames."""
Mask = NDArray[np.bool_]
