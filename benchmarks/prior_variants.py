"""Other starting models than the shipped one: a full covariance, and starts chosen by the clicks.

    python benchmarks/prior_variants.py [--seeds 10] [--sets epidermis bacteria ...]

One fit with the default lambda from 20 and 100 clicks, around

- the hand-set weights, all tied alike (*by hand*);
- the same, tied as the shipped model says (*shipped*);
- the same, with a covariance in place of the diagonal: the shipped diagonal plus the directions in
  which the weights of each movie that may be learned from differ from the hand-set ones
  (*covariance*);
- that one of several starts that explains the clicks better than the hand-set weights by more than
  two standard errors of the bridge loss, the hand-set ones where none does (*chosen start*). Starts
  are learned from all movies of one kind each (iPSC, bacteria, Phallusia, simulated).

Movies of a scored movie's family are never learned from.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning import L2, fit
from bridgetrack.models.shipped import untrained_model
from bridgetrack.training.components import build_training_set
from bridgetrack.training.options import TrainingOptions, default_strength
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import balanced
from common import Task, arguments, header, load_task, row, score, spread
from learning_curve import FAMILIES
from pretrain import Source, fit_movie, learn_mean, learn_tightness, load_sources, spreads

Array = NDArray[np.float64]

SETS = ("epidermis", "bacteria", "HeLa, every 4th", "DIC", "SIM+")
CLICKS = (20, 100)
LOOSE = 2.0
"""How much the directions of movies add to the diagonal covariance."""
STRENGTH = 0.01
"""Lambda of the weights of single movies and of kinds of movies."""
CERTAIN = 2.0
"""Standard errors by which another start must be better."""
NAMES = ("by hand", "shipped", "covariance", "chosen start")


def kind_of(source: Source) -> str:
    """Movies of one kind give one start; segmented ones teach the segmentation's mistakes."""
    name = source.domain.family
    if not name.startswith("simulated"):
        return name
    return "segmented" if source.domain.masks == "built-in" else "simulated"


def metrics(sources: Sequence[Source]) -> tuple[Array, Array]:
    """The learned diagonal, shape (d,), and the inverse of the full covariance, shape (d, d)."""
    diagonal, start = learn_tightness(sources), untrained_model().weights
    base = spreads(sources)
    chosen = [s for s in sources if kind_of(s) != "segmented"]
    moved = np.asarray([fit_movie(s.data, STRENGTH, base) - start for s in chosen])
    directions = 2.0 * moved / np.sqrt(len(moved))
    full = np.linalg.inv(np.diag(1 / diagonal) + LOOSE * directions.T @ directions)
    return diagonal, (full + full.T) / 2


def starts(sources: Sequence[Source]) -> list[Array]:
    """The hand-set weights, and those learned from each kind of movies."""
    base, kinds = spreads(sources), sorted({kind_of(s) for s in sources} - {"segmented"})
    of_kind = [[s for s in sources if kind_of(s) == kind] for kind in kinds]
    return [untrained_model().weights, *(learn_mean(s, STRENGTH, base) for s in of_kind)]


def choose(model: TrackingModel, candidates: Sequence[Array]) -> Array:
    """The start that explains the clicks clearly better than the first, or the first."""
    samples = model.data.samples

    def losses(w: Array) -> Array:
        return np.asarray(
            model.loss_augmented_batch(samples, w).bounds
            - model.compatible_batch(samples, w).bounds
        )

    usual = losses(candidates[0])
    best, gain = candidates[0], 0.0
    for w in candidates[1:]:
        difference = losses(w) - usual
        error = np.sqrt(len(difference) * difference.var(ddof=1)) if len(difference) > 1 else np.inf
        if difference.sum() < min(gain, -CERTAIN * error):
            best, gain = w, float(difference.sum())
    return best


def measure(
    task: Task, seed: int, clicks: int, metric: tuple[Array, Array], candidates: Sequence[Array]
) -> list[float]:
    """Test loss with each of `NAMES`."""
    scene = task.annotated(seed, count=clicks)
    found = build_training_set([scene])
    population = population_of([scene], choices([scene], candidates[0]))
    model = TrackingModel(balanced(found, population, TrainingOptions().balance))
    chosen = choose(TrackingModel(found), candidates)
    ways = (
        (candidates[0], None),
        (candidates[0], metric[0]),
        (candidates[0], metric[1]),
        (chosen, metric[0]),
    )
    out = []
    for start, tied in ways:
        regularizer = L2(default_strength(found.n_annotations), start, tied)
        result = fit(model, model.data.samples, regularizer, n_annotations=float(clicks))
        out.append(score(task, result.w).loss)
    return out


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    given = arguments(__doc__, 10, SETS)
    sources = load_sources()
    columns = [f"{name}, {n} clicks" for n in CLICKS for name in NAMES]
    print(header("wrong events, %", "no click", *columns), flush=True)
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        used = [s for s in sources if s.domain.family != FAMILIES.get(name, name)]
        metric, candidates = metrics(used), starts(used)
        plain = score(task, candidates[0]).loss
        cells = []
        for clicks in CLICKS:
            found = [measure(task, seed, clicks, metric, candidates) for seed in range(given.seeds)]
            cells += [spread(list(values)) for values in zip(*found, strict=True)]
        print(row(name, f"{100 * plain:.2f}", *cells), flush=True)


if __name__ == "__main__":
    main()
