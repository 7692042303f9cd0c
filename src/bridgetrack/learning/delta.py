"""A source predictor that stays as it is, and a learned delta function (004).

    f_target(x, y) = f_source(x, y) + <delta, Psi(x, y)>,      min  lambda/2 |delta|^2 + risk

by the cutting-plane algorithm of 004 (Algorithm 1): each cutting plane is a bound on the risk's
penalty, and 1/lambda is its C. In terms of the target model's joint feature phi, which holds what
the source uses and what the delta uses, ``f_source = <w_source, phi>`` and Psi are the *free*
features. With the same features on both sides this is training with the prior w_source. Features
that only the target has get weight 0 in w_source; a source that is no linear function of phi
enters as one more feature, its score, with weight 1 and not free.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.generators import finish
from bridgetrack.learning.cccp import train
from bridgetrack.learning.model import FloatArray, Sample, StructuredModel
from bridgetrack.learning.regularizers import L2
from bridgetrack.learning.result import Progress, TrainingResult


def delta_regularizer(
    weight: float,
    source: FloatArray,
    *,
    free: NDArray[np.bool_] | None = None,
    metric: FloatArray | None = None,
) -> L2:
    """``lambda/2 delta' M delta`` for ``delta = w - source``, delta zero where it is not free.

    Parameters
    ----------
    weight
        lambda > 0.
    source
        w_source in the target's features, shape (d,).
    free
        Which features belong to Psi, shape (d,); None: all.
    metric
        M, see `L2`; a full matrix only where all features are free.

    Raises
    ------
    InputError
        If the shapes do not fit, no feature is free, or a full matrix meets features that are not.
    """
    d = len(source)
    if free is None or bool(np.all(free)):
        return L2(weight, source, metric)
    free = np.asarray(free, dtype=bool)
    if free.shape != (d,) or not free.any():
        raise InputError(
            f"the free features have shape {free.shape}; {d} are needed, at least one of them free"
        )
    if metric is not None and np.ndim(metric) != 1:
        raise InputError("a full metric needs all features to be free; give its diagonal")
    factor = np.ones(d) if metric is None else np.asarray(metric, dtype=float)
    return L2(weight, source, np.where(free, factor, np.inf))


def train_delta(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    source: FloatArray,
    weight: float,
    *,
    free: NDArray[np.bool_] | None = None,
    metric: FloatArray | None = None,
    **keywords: Any,
) -> Generator[Progress, None, TrainingResult]:
    """Learn a delta on the target; ``keywords`` as in `cccp.train`.

    Returns
    -------
    TrainingResult
        ``w`` is that of the whole predictor, ``w - source`` the delta.

    Raises
    ------
    InputError
        As `delta_regularizer` and `cccp.train`.
    """
    regularizer = delta_regularizer(weight, source, free=free, metric=metric)
    return (yield from train(model, samples, regularizer, **keywords))


def fit_delta(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    source: FloatArray,
    weight: float,
    *,
    callback: Callable[[Progress], None] | None = None,
    **keywords: Any,
) -> TrainingResult:
    """Run `train_delta` to its end; ``callback`` sees each `Progress`."""
    return finish(train_delta(model, samples, source, weight, **keywords), callback)
