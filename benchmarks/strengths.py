"""How tightly to hold the weights, and how far to go: wrong events by λ and share of the way.

    python benchmarks/strengths.py [--seeds 2] [--sets S ...]

Development movies, learned from 20, 50 and 100 answers about one half, right or one in twenty
wrong, and scored on the other half. Every fit is gone a share of the way from the starting
weights. λ are multiples of the default of `training.options`; nothing is chosen by answers set
aside, and `training.reach` and `training.kinds` are left out. Means over seeds and numbers of
answers, and over all trainings the mean change against the start, each by at most its whole size.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from active_events import prior_for
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.components import build_training_set
from bridgetrack.training.fit import Movies
from bridgetrack.training.options import TrainingOptions, default_strength
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.train import tracking_model
from common import Task, header, option, row, score
from keep_rule import MOVIES, SLIPS, WAYS, answers, load

STEPS = (10.0, 10 / 3, 1.0, 1 / 3)
SHARES = (0.25, 0.5, 0.75, 1.0)


def wrong_events(task: Task, given: AnnotationSet) -> np.ndarray:
    """Wrong events of the other half for every λ and share, shape (len(STEPS) * len(SHARES),)."""
    scene = annotate(task.train.scene, given)
    prior = prior_for(task.name)
    start = prior.aligned(scene.matrix.features)
    population = population_of([scene], choices([scene], start))
    options = TrainingOptions()
    target, _ = tracking_model(build_training_set([scene]), population, start, options)
    movies = Movies(target, (), start, prior.tightness_for(scene.matrix.features))
    usual, state, found = default_strength(target.data.n_annotations), None, []
    for step in STEPS:
        fitted = run(movies.fit(usual * step, options, states=(state,)))
        state = fitted.state
        found += [len(score(task, start + s * (fitted.w - start)).wrong) for s in SHARES]
    return np.asarray(found, dtype=float)


def main() -> None:
    """Print a row for every movie, way of asking and share of slips."""
    warnings.simplefilter("ignore")
    seeds = int(option("--seeds", 2))
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else list(MOVIES)
    columns = [f"{step:.3g} λ, {share:g}" for step in STEPS for share in SHARES]
    print(header("wrong events", "answers", "start", *columns))
    change = []
    for name in names:
        task = load(name)
        if task is None:
            continue
        features = task.train.scene.matrix.features
        start = len(score(task, prior_for(task.name).aligned(features)).wrong)
        for way in WAYS:
            for slips in SLIPS:
                found = np.asarray(
                    [
                        wrong_events(task, given)
                        for seed in range(seeds)
                        for _, given in answers(task, way, seed, slips)
                    ]
                )
                change.append((found - start) / start)
                how = f"{way}, {100 * slips:.0f} % wrong" if slips else way
                print(row(name, how, start, *(f"{v:.1f}" for v in found.mean(axis=0))), flush=True)
    every = np.concatenate(change)
    cells = [f"{100 * v:+.1f} %" for v in np.clip(every, -1, 1).mean(axis=0)]
    print(row("mean change", "", "", *cells))
    print(row("above the start", "", "", *(f"{100 * v:.0f} %" for v in (every > 0).mean(axis=0))))


if __name__ == "__main__":
    main()
