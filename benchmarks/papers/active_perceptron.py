"""Active structured learning with the perceptron, as printed (000, Algorithm 1.2), and combined.

    repeat
        label the most uncertain patch
        for every labelled patch (x, y*):  w <- w + Phi(x, y*) - Phi(x, y^)
        q_t = average uncertainty of the unlabelled patches
    until eta(q_{t-T:t}) <= threshold, or nothing is left

Labels may be partial: then y* is the best compatible output. In the combined strategy max-margin
training finishes what the perceptron has chosen, and may also be called on the way.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError
from bridgetrack.learning import L2, Bundle, LearningOptions, train
from bridgetrack.learning.risk import SATISFIED
from bridgetrack.progress import run
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet
from papers.uncertainty import Patches, PatchMeasure, uncertainties


def robust_mean(values: Sequence[float]) -> float:
    """Mean of the values between the 10 % and the 90 % quantile, both included.

    Where there are too few values for any to lie between them, the mean of all.
    """
    found = np.asarray(values, dtype=np.float64)
    if not len(found):
        raise ValueError("the mean of no values is not defined")
    low, high = np.quantile(found, [0.1, 0.9])
    inside = (found >= low) & (found <= high)
    return float(found[inside].mean() if inside.any() else found.mean())


def convergence(values: Sequence[float], window: int) -> float:
    """``eta = |mean(q[t-T+1 .. t]) - mean(q[t-T .. t-1])|`` with the robust mean (eq. 1.8).

    Infinite while there are fewer than ``T + 1`` values.
    """
    if len(values) < window + 1:
        return float("inf")
    last = list(values[-window - 1 :])
    return abs(robust_mean(last[1:]) - robust_mean(last[:-1]))


@dataclass(frozen=True)
class AlgorithmOptions:
    """Choices of Algorithm 1.2."""

    measure: PatchMeasure = "best_second"  # uncertainty, see `uncertainty`
    # T and the bound on eta (eq. 1.8); the paper takes 80 of 660 patches and 1e-4
    window: int = 80
    threshold: float = 1e-4
    # whether to stop by that rule; otherwise only when `most` patches are labelled
    stop: bool = True
    most: int | None = None  # patches to label at most; all where None
    rate: float = 1.0  # step length of the perceptron; 1 as printed
    # labels after which max-margin training replaces the weights; never where None
    retrain_every: int | None = None
    strength: float = 0.1  # lambda of that training, around the starting weights
    seed: int = 0  # of random uncertainty and the order of a perceptron pass

    def __post_init__(self) -> None:
        if self.window < 1 or (self.most is not None and self.most < 1):
            raise InputError("the window and the number of labels must be 1 or more")
        if self.retrain_every is not None and self.retrain_every < 1:
            raise InputError("max-margin training every so many labels needs a number from 1")


@dataclass(frozen=True)
class Round:
    """One round of Algorithm 1.2."""

    labelled: int  # patches labelled so far
    patch: int  # the one labelled last
    average: float  # q_t: mean uncertainty of the patches without a label, 0 where there are none
    eta: float  # convergence measure, infinite for the first rounds
    w: Array  # weights after the pass, shape (d,)
    mistakes: int  # labelled patches that the pass corrected


@dataclass(frozen=True)
class ActiveResult:
    """What Algorithm 1.2 ends with."""

    w: Array  # weights of the perceptron, shape (d,)
    labelled: tuple[int, ...]  # patches in the order of labelling
    averages: tuple[float, ...]  # q_t of every round
    settled: bool  # whether the stopping rule ended it


def active_perceptron(
    data: TrainingSet, w: Array, options: AlgorithmOptions | None = None
) -> Generator[Round, None, ActiveResult]:
    """Choose patches to label and learn from them, starting from weights (d,).

    ``data`` is the pool with the labels that the annotator would give (`patches.build_pool`); a
    label is looked at only once its patch was chosen. Close the generator to end.
    """
    options = options or AlgorithmOptions()
    rng = np.random.default_rng(options.seed)
    model = TrackingModel(data)
    prior, w = np.asarray(w, dtype=np.float64), np.array(w, dtype=np.float64)
    n = len(data.samples)
    most = n if options.most is None else min(options.most, n)
    open_ = np.arange(n)
    labelled: list[int] = []
    averages: list[float] = []
    state: Bundle | None = None
    q = uncertainties(Patches.of(data, open_), w, options.measure, rng)
    settled = False
    while len(labelled) < most and not settled:
        place = int(np.argmax(q))
        labelled.append(int(open_[place]))
        open_ = np.delete(open_, place)
        mistakes = 0
        for k in rng.permutation(len(labelled)).tolist():
            w, wrong = _step(model, labelled[k], w, options.rate)
            mistakes += wrong
        if options.retrain_every and len(labelled) % options.retrain_every == 0:
            w, state = max_margin(data, labelled, prior, options.strength, state, model)
        q = uncertainties(Patches.of(data, open_), w, options.measure, rng)
        averages.append(float(q.mean()) if len(q) else 0.0)
        eta = convergence(averages, options.window)
        settled = options.stop and eta <= options.threshold
        yield Round(len(labelled), labelled[-1], averages[-1], eta, w, mistakes)
    return ActiveResult(w, tuple(labelled), tuple(averages), settled)


def _step(model: TrackingModel, k: int, w: Array, rate: float) -> tuple[Array, bool]:
    """Line 10: move the weights towards the label where the prediction contradicts it."""
    sample = model.data.samples[k]
    predicted = model.inference([sample], w)
    if predicted.losses[0] <= SATISFIED:
        return w, False
    wanted = model.compatible_inference([sample], w)
    return w + rate * (wanted.features[0] - predicted.features[0]), True


def max_margin(
    data: TrainingSet,
    labelled: list[int] | tuple[int, ...],
    prior: Array,
    strength: float,
    state: Bundle | None = None,
    model: TrackingModel | None = None,
) -> tuple[Array, Bundle | None]:
    """Finish: regularised and globally optimal weights from the labelled patches, and a state."""
    chosen = np.sort(np.asarray(labelled, dtype=np.int64))
    result = run(
        train(
            model or TrackingModel(data),
            [data.samples[k] for k in chosen.tolist()],
            L2(strength, prior=prior),
            n_annotations=float(np.isin(data.annotation_sample, chosen).sum()),
            options=LearningOptions(precision=2e-3, max_inferences=150),
            state=state,
        )
    )
    return result.w, result.state
