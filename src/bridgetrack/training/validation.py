"""How good weights are on annotations that they have not seen.

Folds are blocks of frame pairs, and a sample is never shared by two folds, so that neighbouring
cells and frames do not leak between training and test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from bridgetrack.training.options import ENOUGH_TO_VALIDATE, default_strength
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_PARTS = 3
"""Parts of the movie below which nothing is clear."""


@dataclass(frozen=True)
class HeldOut:
    """What a model does on annotations it was not trained on."""

    # 1 where plain inference contradicts an annotation (fractions where relaxed inference is
    # torn), shape (A,)
    wrong: Array
    loss: Array  # hinge of every sample divided among its annotations, shape (A,)
    # of the weights halfway between the start and these, where they were judged
    halfway: HeldOut | None = None
    # the weights that were learned without every fold, shape (F, d), where they are kept; one row
    # where they were learned without any of the annotations
    learned: Array | None = None
    unfinished: int = 0  # of the models, how many ended before the wanted precision was reached

    @property
    def error(self) -> float:
        """Share of contradicted annotations."""
        return float(self.wrong.mean())

    @property
    def risk(self) -> float:
        """Mean hinge per annotation."""
        return float(self.loss.mean())


@dataclass(frozen=True)
class Validation:
    """Result of a cross-validation."""

    strengths: tuple[float, ...]  # values of λ tried, strongest first
    held_out: tuple[HeldOut, ...]  # one `HeldOut` each
    prior: HeldOut  # the prior on the same annotations
    best: int = 0  # index of the strength to use, see `best_strength`


def best_strength(strengths: Sequence[float], held_out: Sequence[HeldOut], part: Index) -> int:
    """Index of the λ nearest to the default whose held-out loss is not clearly too large.

    With few annotations the smallest loss is drawn by chance, so that any within three standard
    errors of the paired difference does. ``part`` (A,) is the component of each annotation.
    """
    best = held_out[int(np.argmin([round(h.risk, 6) for h in held_out]))]
    alike = [k for k, h in enumerate(held_out) if not clearly_larger(h.loss, best.loss, part, 3.0)]
    steps = np.abs(np.log(np.asarray(strengths) / default_strength(len(part))))
    return min(alike, key=lambda k: float(steps[k]))


def clearly_larger(loss: Array, other: Array, part: Index, errors: float = 2.0) -> bool:
    """Whether a mean loss (A,) exceeds another by some standard errors of the paired difference.

    Annotations of one ``part`` (A,) share its loss, so parts are drawn, not annotations. With the
    sum ``D_c`` of the differences of the ``n_c`` annotations of each of m parts, the standard error
    of their mean ``D / n`` is

        sqrt( m / (m - 1) sum_c (D_c - n_c D / n)**2 ) / n

    It is itself uncertain where parts are few: as many of them are asked for as have the same
    chance by Student's distribution. Fewer than three parts tell nothing.
    """
    _, part = np.unique(part, return_inverse=True)
    m, n = int(part.max()) + 1, len(loss)
    if m < _PARTS:
        return False
    mean = float((loss - other).mean())
    apart = np.bincount(part, loss - other - mean)
    error = np.sqrt(m / (m - 1) * float(apart @ apart)) / n
    return mean > float(stdtrit(m - 1, ndtr(errors))) * error + 1e-9


def folds_of(data: TrainingSet, folds: int) -> Index | None:
    """Fold of every sample, shape (n,); None where there is too little to divide.

    Frame pairs are cut into blocks, three per fold where there are enough, and dealt out in turn.
    """
    if data.n_annotations < ENOUGH_TO_VALIDATE:
        return None
    first = np.full(len(data.samples), -1, dtype=np.int64)
    order = np.lexsort((data.pair, data.annotation_sample))
    sample, where = np.unique(data.annotation_sample[order], return_index=True)
    place = data.scene * (int(data.pair.max()) + 2) + data.pair
    first[sample] = place[order][where]
    pairs, number = np.unique(first, return_inverse=True)
    count = min(folds, len(pairs))
    if count < 2:
        return None
    block = max(1, len(pairs) // (3 * count))
    return np.asarray((number // block) % count, dtype=np.int64)


def judge_folds(model: TrackingModel, weights: Array, fold: Index) -> HeldOut:
    """What the weights of every fold (F, d) do on the annotations of its samples, ``fold`` (n,)."""
    judged = [judge(model, w, np.flatnonzero(fold == k)) for k, w in enumerate(weights)]
    return together(judged, fold[model.data.annotation_sample])


def together(judged: Sequence[HeldOut], fold: Index) -> HeldOut:
    """What models of all folds do, each on its own annotations, whose ``fold`` (A,) is given."""
    wrong = np.stack([one.wrong for one in judged])[fold, np.arange(len(fold))]
    loss = np.stack([one.loss for one in judged])[fold, np.arange(len(fold))]
    halfway = [one.halfway for one in judged if one.halfway is not None]
    learned = [one.learned for one in judged if one.learned is not None]
    return HeldOut(
        wrong,
        loss,
        together(halfway, fold) if halfway else None,
        np.concatenate(learned) if learned else None,
        sum(one.unfinished for one in judged),
    )


def judge(model: TrackingModel, w: Array, rows: Index | None = None) -> HeldOut:
    """What weights do on the annotations of a training set; events that are held do not count.

    ``rows`` are the samples that are asked about, all where None; what comes back for annotations
    of other samples says nothing.
    """
    plain = model.plain
    data = plain.data
    rows = np.arange(len(data.samples)) if rows is None else rows
    samples = [data.samples[k] for k in rows.tolist()]
    augmented = plain.loss_augmented_batch(samples, w).values(w, 1)
    compatible = plain.compatible_batch(samples, w).values(w, 0)
    count = np.bincount(data.annotation_sample, minlength=len(data.samples))
    share = np.zeros(len(data.samples))
    share[rows] = np.maximum(augmented - compatible, 0.0) / np.maximum(count[rows], 1)
    wrong = np.clip(1.0 - plain.satisfied(w, samples), 0.0, 1.0)
    return HeldOut(wrong, np.asarray(share[data.annotation_sample]))
