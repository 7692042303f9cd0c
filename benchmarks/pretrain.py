"""Learn how much every weight varies between movies: the starting model that is shipped.

    python benchmarks/pretrain.py [--write] [--table]

Every movie of `domains.SHIPPED` (MIT, CC-BY, simulated) is learned for itself from all events of
some of its frames, close to the hand-set weights. The mean square of what a weight moved, over
kinds of movies, says how loosely it is to be tied when a user trains from a few clicks. The mean
itself is tried as well (``--table``): joint training over all movies, with several strengths,
next to the hand-set weights, on every movie, those of other licences included. ``--write`` puts
the result into the package.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import bridgetrack
from bridgetrack.annotations.truth import draw_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.learning import L2, LearningOptions, fit
from bridgetrack.models.model import Model, save_model
from bridgetrack.models.shipped import shipped_model, untrained_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.training.components import build_training_set
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, join_sets
from common import DATA, Part, frame_pair, header, row, score_parts, with_truth
from domains import HELD_OUT, SHIPPED, Domain, load_domain

Array = NDArray[np.float64]

TARGET = Path(bridgetrack.__file__).parent / "models" / "pretrained.json"
EVENTS = 800
"""True events of each movie that are learned from, in frame pairs drawn at random."""
STRENGTH = 0.01
ROUNDS = 3
RANGE = 0.15
"""Smallest freedom of a weight relative to the middle one; the largest is its inverse."""
MEANS = (1.0, 0.3, 0.1, 0.03, 0.01)
"""Strengths of the hand-set weights tried in joint training."""


@dataclass(frozen=True)
class Source:
    """A movie to learn from, and its training set."""

    domain: Domain
    part: Part
    data: TrainingSet


def load_sources(domains: Sequence[Domain] = SHIPPED, root: Path = DATA) -> list[Source]:
    """The movies that are there."""
    found = []
    for domain in domains:
        part = load_domain(domain, root)
        if part is not None:
            found.append(Source(domain, part, _training_set(part)))
    return found


def _training_set(part: Part) -> TrainingSet:
    """All true events of some frame pairs."""
    scene = with_truth(part.scene, part.events)
    pair = frame_pair(part.scene, part.events)
    order = np.random.default_rng(0).permutation(np.unique(pair))
    count = np.cumsum([(pair == p).sum() for p in order])
    some = order[: int(np.searchsorted(count, EVENTS)) + 1]
    events = part.events.take(np.flatnonzero(np.isin(pair, some)))
    return build_training_set(
        [annotate(scene, draw_annotations(events, scene.detections, fraction=1.0, seed=0))]
    )


def spreads(sources: Sequence[Source]) -> Array:
    """Mean variance of every feature within movies, scaled to a median of 1, shape (d,).

    Dividing by it makes weights comparable: each says what one standard deviation is worth.
    """
    keys = untrained_model().keys
    kind = np.asarray([key.split(".")[0] for key in keys])
    total, movies = np.zeros(len(keys)), np.zeros(len(keys))
    for source in sources:
        phi = source.data.phi.tocsc()
        for event in Event:
            columns = np.flatnonzero(kind == event.key)
            rows = np.unique(phi[:, columns].indices)
            if len(rows) >= 20:
                total[columns] += phi[:, columns].toarray()[rows].var(axis=0)
                movies[columns] += 1
    variance = total / np.maximum(movies, 1)
    variance = np.clip(np.where(variance > 1e-12, variance, 1.0), 0.02, None)
    return np.asarray(variance / np.median(variance))


def learn_tightness(sources: Sequence[Source], leave_out: str | None = None) -> Array:
    """How tightly to tie every weight, shape (d,).

    Parameters
    ----------
    sources
        Movies of several families.
    leave_out
        A family that is not looked at.
    """
    used = [s for s in sources if s.domain.family != leave_out]
    start = untrained_model().weights
    base = spreads(used)
    kinds = np.asarray([s.domain.family.split()[0] for s in used])
    tightness = base
    for _ in range(ROUNDS):
        moved = np.asarray([fit_movie(s.data, STRENGTH, tightness) - start for s in used]) ** 2
        each = np.asarray([moved[kinds == kind].mean(axis=0) for kind in np.unique(kinds)])
        freedom = each.mean(axis=0) * base
        freedom = freedom / np.exp(np.log(freedom + 1e-3 * freedom.mean()).mean())
        tightness = base / np.clip(np.sqrt(freedom), RANGE, 1 / RANGE)
    return np.asarray(tightness)


def fit_movie(
    data: TrainingSet, strength: float, tightness: Array, precision: float = 1e-3
) -> Array:
    regularizer = L2(strength, prior=untrained_model().weights, metric=tightness)
    found = fit(
        TrackingModel(data),
        data.samples,
        regularizer,
        n_annotations=float(data.n_annotations),
        options=LearningOptions(precision=precision),
    )
    return found.w


def start_without(family: str) -> Model:
    """The starting model as it were had it never seen a family of movies."""
    if all(domain.family != family for domain in SHIPPED):
        return shipped_model()
    sources = load_sources([d for d in SHIPPED if d.family != family])
    return starting_model(learn_tightness(sources), sources)


def learn_mean(sources: Sequence[Source], strength: float, tightness: Array) -> Array:
    """Weights learned from all movies at once, each counting alike."""
    data = join_sets([s.data for s in sources])
    sizes = np.asarray([s.data.n_annotations for s in sources], dtype=np.float64)
    owner = np.repeat(np.arange(len(sources)), [len(s.data.samples) for s in sources])
    factor = sizes.sum() / len(sources) / sizes
    return fit_movie(replace(data, importance=factor[owner]), strength, tightness, 1e-4)


def starting_model(tightness: Array, sources: Sequence[Source]) -> Model:
    """The model that is shipped: hand-set weights with learned tightness."""
    families = sorted({s.domain.family for s in sources})
    return replace(
        untrained_model(),
        name="shipped",
        tightness=np.round(tightness, 4),
        provenance={
            "origin": "weights set by hand; how tightly each is tied was learned by "
            "benchmarks/pretrain.py",
            "movies": families,
            "licences": "iPSC and bacteria: MIT; Phallusia (Guignard et al. 2020, "
            "doi:10.1126/science.aar5663): CC-BY 4.0; simulated: made by the program",
        },
    )


def table(sources: list[Source], tightness: Array) -> str:
    """Wrong events without any click: hand-set weights and joint training."""
    start = untrained_model().weights
    means = [learn_mean(sources, strength, tightness) for strength in MEANS]
    lines = [header("movie", "events", "set by hand", *(f"joint, λ = {s:g}" for s in MEANS))]
    parts = [(s.domain, s.part) for s in sources]
    parts += [(d, p) for d in HELD_OUT if (p := load_domain(d)) is not None]
    worse = np.zeros(len(MEANS), dtype=int)
    for domain, part in parts:
        losses = np.asarray([100 * _loss(part, w) for w in (start, *means)])
        worse += losses[1:] > losses[0] + 1e-9
        name = domain.name if domain.shipped else f"{domain.name} (held out)"
        lines.append(row(name, f"{len(part.events):,}", *(f"{v:.2f}" for v in losses)))
    lines.append(row("movies worse than with hand-set weights", "", "", *worse))
    return "\n".join(lines)


def _loss(part: Part, w: Array) -> float:
    return score_parts((part,), lambda scene: scene.matrix.scores(w)).loss


def main() -> None:
    """Learn, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    parser.add_argument("--table", action="store_true", help="try learned means as well")
    given = parser.parse_args()
    sources = load_sources()
    tightness = learn_tightness(sources)
    base = spreads(sources)
    print(header("feature", "weight", "tightness", "freedom over its spread's"))
    model = starting_model(tightness, sources)
    for key, weight, tied, plain in zip(model.keys, model.weights, tightness, base, strict=True):
        print(row(key, f"{weight:.2f}", f"{tied:.2f}", f"{plain / tied:.2f}"))
    if given.write:
        save_model(model, TARGET)
    if given.table:
        print("\n" + table(sources, tightness))


if __name__ == "__main__":
    main()
