"""Can a few answers choose how tightly weights are held? Criteria that use all of them.

    python benchmarks/choosing_strength.py [--seeds 1] [--sets S ...]

Development movies, learned from 20, 50 and 100 answers about one half, right or one in twenty
wrong, and scored on the other half: wrong events by the λ that each criterion chooses among those
of `strengths.py`, with half of the way gone. *Left out* leaves out one component (the answers that
hang together) at a time: the bounds that the fit has found give the weights without it by one
solution of the master problem, and these are judged on its answers, by loss or by answers that are
contradicted. *Evidence* is the marginal likelihood of the answers under weights that spread about
the start as λ says, by Laplace's method: sums over the choices of every component give the
likelihood and its slopes, and their outer products the curvature. *And others* adds what
the criterion says on the movies of other names, an answer there for one here. *Best* is the λ that
leaves fewest wrong events in the part that is scored, which nobody knows: no criterion does better.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np

from active_events import prior_for
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.learning import L2
from bridgetrack.learning.l2 import solve_l2_master
from bridgetrack.learning.result import TrainingResult
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.components import build_training_set
from bridgetrack.training.fit import Movies
from bridgetrack.training.options import HALFWAY, TrainingOptions, default_strength
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import tracking_model
from bridgetrack.training.validation import folds_of, judge, judge_folds
from common import Array, Task, header, option, row, score
from keep_rule import SLIPS, WAYS, answers, load
from strengths import STEPS

MOVIES = ("bacteria", "HeLa, every 4th", "HeLa", "iPSC 01, every 2nd", "epidermis, first half")
USUAL = STEPS.index(1.0)
NEAR = 2.0
"""Outputs further below the best of their component than this, in annotations, are left out."""
CLOSE = 0.1
"""The same from which on an output that contradicts them may pull on the weights."""

CRITERIA = ("folds: loss", "left out: loss", "left out: contradicted", "evidence")
COLUMNS = ("λ as it is", *CRITERIA, *(f"{name}, and others" for name in CRITERIA), "best")


@dataclass(frozen=True)
class Trial:
    """One training by every λ.

    Parameters
    ----------
    movie, answers
        Of which movie, and how many answers.
    start
        Wrong events of the start.
    wrong
        By every λ, half of the way gone, shape (len(STEPS),).
    criteria
        What every criterion says of every λ, summed over answers, the smaller the better, shape
        (len(CRITERIA), len(STEPS)).
    """

    movie: str
    answers: int
    start: int
    wrong: Array
    criteria: Array


def without_each(model: TrackingModel, result: TrainingResult, held: L2) -> Array:
    """Weights without every component, shape (n, d), by the bounds that the fit has found."""
    samples, w = model.data.samples, result.w
    assert result.state is not None
    known, own = result.state.cached, model.compatible_batch(samples, w)
    rows = np.concatenate([known.rows, np.arange(len(samples))])
    features = np.vstack([known.features, own.features])
    losses = np.concatenate([known.losses, own.losses])
    values = features @ w + losses
    best = np.full(len(samples), -np.inf)
    np.maximum.at(best, rows, values)
    near = np.flatnonzero(values >= best[rows] - NEAR)
    rows, features, losses = rows[near], features[near], losses[near]
    count = np.bincount(model.data.annotation_sample, minlength=len(samples))
    found = np.tile(w, (len(samples), 1))
    order = np.argsort(rows, kind="stable")
    # what pulls: components of which a contradicting output is about as good as the one that agrees
    rival = np.full(len(samples), -np.inf)
    np.maximum.at(rival, rows[losses > 0], (features @ w + losses)[losses > 0])
    for left in np.flatnonzero(rival > own.values(w, 0) - CLOSE):
        kept = order[rows[order] != left]
        if not len(kept):
            found[left] = held.prior
            continue
        n = float(count.sum() - count[left])
        _, groups = np.unique(rows[kept], return_inverse=True)
        slopes = (features[kept] - own.features[rows[kept]]) / n
        offsets = losses[kept] / n
        found[left] = solve_l2_master(slopes, offsets, held, groups=groups, tolerance=1e-5).w
    return found


def evidence(model: TrackingModel, w: Array, held: L2, n: int) -> float:
    """Minus the log of the marginal likelihood of n answers, by Laplace's method.

    The mode is looked for by two steps of Newton's method from the fitted weights.
    """
    samples, rows = model.data.samples, np.zeros(len(model.data.samples), dtype=np.intp)
    metric = np.ones(len(w)) if held.metric is None else held.metric
    root = np.sqrt(n * held.weight * metric)  # of weights to coordinates in which they spread by 1
    found = []
    for _ in range(3):
        values, slopes = model.log_losses(samples, w)
        u = np.where(np.isinf(metric), 0.0, root * (w - held.prior))
        each = held.whitened(slopes, rows) / np.sqrt(n)
        curved = np.eye(len(w)) + each.T @ each
        volume = np.linalg.slogdet(curved)[1]
        found.append((float(values.sum() + 0.5 * u @ u), float(volume)))
        w = w - np.linalg.solve(curved, u + each.sum(axis=0)) / root
    least, volume = min(found)
    return least + 0.5 * volume


def tried(task: Task, given: AnnotationSet, count: int) -> Trial:
    """Wrong events and criteria of every λ."""
    scene = annotate(task.train.scene, given)
    prior = prior_for(task.name)
    start = prior.aligned(scene.matrix.features)
    population = population_of([scene], choices([scene], start))
    options = TrainingOptions()
    target, _ = tracking_model(build_training_set([scene]), population, start, options)
    movies = Movies(target, (), start, prior.tightness_for(scene.matrix.features))
    data, n = target.data, target.data.n_annotations
    fold, alone = folds_of(data, options.folds), np.arange(len(data.samples))
    state, wrong, criteria = None, [], []
    for step in STEPS:
        strength = default_strength(n) * step
        held = L2(strength, prior=start, metric=movies.tightness)
        fitted = run(movies.fit(strength, options, states=(state,)))
        state = fitted.state
        gone = start + HALFWAY * (fitted.w - start)
        wrong.append(len(score(task, gone).wrong))
        left = judge_folds(target, without_each(target, fitted, held), alone)
        by_folds = 0.0
        for k in () if fold is None else range(int(fold.max()) + 1):
            rows, here = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            one = run(movies.fit(strength, options, rows=rows, anew=True))
            mine = np.isin(data.annotation_sample, here)
            by_folds += float(judge(target, one.w, here).loss[mine].sum())
        criteria.append(
            (by_folds, left.loss.sum(), left.wrong.sum(), evidence(target, fitted.w, held, n))
        )
    first = len(score(task, start).wrong)
    return Trial(task.name, count, first, np.asarray(wrong, float), np.asarray(criteria).T)


def chosen(trials: list[Trial], one: Trial, criterion: int, pooled: bool) -> int:
    """Which λ a criterion chooses: the smallest, among alike ones that nearest to the default."""
    said = one.criteria[criterion] / one.answers
    others = [t.criteria[criterion] / t.answers for t in trials if t.movie != one.movie]
    if pooled and others:
        said = said + np.mean(others, axis=0)
    alike = np.flatnonzero(said <= said.min() + 1e-9)
    return int(min(alike, key=lambda k: abs(k - USUAL)))


def changes(trials: list[Trial], ones: list[Trial]) -> tuple[Array, Array]:
    """Wrong events of some trials by column, and which λ they have, shapes (t, columns)."""
    picks = np.asarray(
        [
            [
                USUAL,
                *(chosen(trials, t, k, False) for k in range(len(CRITERIA))),
                *(chosen(trials, t, k, True) for k in range(len(CRITERIA))),
                int(np.argmin(t.wrong)),
            ]
            for t in ones
        ]
    )
    return np.stack([t.wrong[p] for t, p in zip(ones, picks, strict=True)]), picks


def print_tables(trials: list[Trial]) -> None:
    """Wrong events by movie and way, mean changes, and how often every λ was chosen."""
    print(header("wrong events", "start", *COLUMNS))
    for name in dict.fromkeys(t.movie for t in trials):
        mine = [t for t in trials if t.movie == name]
        wrong, _ = changes(trials, mine)
        print(row(name, mine[0].start, *(f"{v:.1f}" for v in wrong.mean(axis=0))))
    wrong, picks = changes(trials, trials)
    start = np.asarray([t.start for t in trials])[:, None]
    change = np.clip((wrong - start) / start, -1, 1)
    for count in dict.fromkeys(t.answers for t in trials):
        these = [t.answers == count for t in trials]
        print(row(f"{count} answers, change", "", *told(change[these])))
    print(row("mean change", "", *told(change)))
    print(row("above the start", "", *(f"{100 * v:.0f} %" for v in (change > 0).mean(axis=0))))
    for k, step in enumerate(STEPS):
        print(row(f"{step:.3g} λ chosen", "", *(picks == k).sum(axis=0).tolist()))


def told(change: Array) -> list[str]:
    """Means of shape (t, columns)."""
    return [f"{100 * v:+.1f} %" for v in change.mean(axis=0)]


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    seeds = int(option("--seeds", 1))
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else list(MOVIES)
    trials: list[Trial] = []
    for name in names:
        task = load(name)
        if task is None:
            continue
        for way in WAYS:
            for slips in SLIPS:
                for seed in range(seeds):
                    for count, given in answers(task, way, seed, slips):
                        one = tried(task, given, count)
                        trials.append(one)
                        told_of = f"{name}, {way}, {slips}, {seed}, {count}: {one}"
                        print(told_of, file=sys.stderr, flush=True)
    print_tables(trials)


if __name__ == "__main__":
    main()
