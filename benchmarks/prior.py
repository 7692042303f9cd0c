"""Learn how much every weight varies between movies: the starting model that is shipped.

    python benchmarks/prior.py [--write | --overlaps]

Every movie of `MOVIES` (MIT, CC-BY, simulated) is learned for itself from all events of some of its
frames, close to the hand-set weights. The mean square of what a weight moved, over kinds of movies,
says how loosely it is tied when a user trains from a few clicks. ``--write`` puts the result into
the package. ``--overlaps`` prints instead which round weights of the features of overlaps make the
fewest events wrong: chosen on all kinds of movies, and for each kind on the others alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import bridgetrack
from bridgetrack.annotations.from_tracks import draw_annotations
from bridgetrack.arrays import Array
from bridgetrack.hypotheses.events import Event
from bridgetrack.learning import L2, LearningOptions, fit
from bridgetrack.models.model import Model, save_model
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, build_training_set
from common import (
    DATA,
    SETS,
    DataSet,
    Part,
    frame_pair,
    header,
    load,
    row,
    score_parts,
    with_truth,
)
from simulator import SimulationSettings, simulate_to_folder

TARGET = Path(bridgetrack.__file__).parent / "models" / "pretrained.json"
EVENTS = 800
"""True events of each movie that are learned from, in frame pairs drawn at random."""
STRENGTH = 0.01
ROUNDS = 3
RANGE = 0.15
"""Smallest freedom of a weight relative to the middle one; the largest is its inverse."""


@dataclass(frozen=True)
class Source:
    """A movie to learn from.

    Parameters
    ----------
    family
        Where it comes from; families count alike.
    data
        The movie.
    simulated
        Settings, where it is simulated.
    """

    family: str
    data: DataSet
    simulated: dict[str, Any] = field(default_factory=dict)

    def load(self, root: Path) -> Part | None:
        """The movie with its true events; None where it is absent."""
        if not self.simulated:
            return load(self.data, root)
        with tempfile.TemporaryDirectory() as folder:
            settings = SimulationSettings(**self.simulated)
            simulate_to_folder(settings, Path(folder) / self.data.folder)
            return load(self.data, Path(folder))


def _simulated(name: str, masks: str = "truth", image: bool = True, **settings: Any) -> Source:
    data = DataSet(f"simulated {name}", "simulated", masks=masks, image=image)
    return Source("simulated", data, settings)


_BACTERIA = DataSet("bacteria", "bacteria")
_PHALLUSIA = DataSet("Phallusia", "Phallusia-lineages-csv3D", interval=2, stop=40, masks="points")
MOVIES = (
    *(
        Source("iPSC", DataSet("iPSC", f"iPSC-{s}-masks", s, stop=n * stride, stride=stride))
        for s, n in {"01": 40, "03": 30, "04": 40}.items()
        for stride in (1, 2)
    ),
    Source("iPSC", DataSet("iPSC", "iPSC-03-masks", "03", stride=4, stop=90)),
    Source("bacteria", _BACTERIA),
    Source("bacteria", replace(_BACTERIA, image=False)),
    Source("bacteria", replace(_BACTERIA, stride=2)),
    *(Source("Phallusia", replace(_PHALLUSIA, sequence=s)) for s in ("Pm03", "Pm05", "Pm07")),
    _simulated("plain", seed=1),
    _simulated("crowded", seed=2, density=0.4, cells=150, frames=24, division_rate=0.02),
    _simulated("fast", seed=3, speed=5.0, flow=1.5, frames=30, division_rate=0.02),
    _simulated(
        "slow frames",
        seed=4,
        speed=6.0,
        drift=4.0,
        division_rate=0.04,
        frames=24,
        mitosis_frames=1,
        cells=80,
    ),
    _simulated("dividing", seed=5, division_rate=0.05, mitosis_frames=2, frames=24),
    _simulated("no image", seed=6, image=False, speed=3.0, division_rate=0.02),
    _simulated("3D", seed=7, dim=3, cells=40, frames=16, division_rate=0.02),
    _simulated("plain", "plain", seed=8),
    _simulated("crowded", "plain", seed=9, density=0.3, cells=120, frames=24, division_rate=0.02),
    _simulated("fast", "plain", seed=10, speed=4.0, density=0.25, frames=30, division_rate=0.03),
    _simulated("dim", "plain", seed=11, brightness=18.0, fading_rate=0.01, debris=0.2),
)
"""What the shipped starting model may learn from."""


def training_set(part: Part) -> TrainingSet:
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


def spreads(sets: Sequence[TrainingSet]) -> Array:
    """Mean variance of every feature within movies, scaled to a median of 1, shape (d,).

    Dividing by it makes weights comparable: each says what one standard deviation is worth.
    """
    keys = untrained_model().keys
    kind = np.asarray([key.split(".")[0] for key in keys])
    total, movies = np.zeros(len(keys)), np.zeros(len(keys))
    for data in sets:
        phi = data.phi.tocsc()
        for event in Event:
            columns = np.flatnonzero(kind == event.key)
            rows = np.unique(phi[:, columns].indices)
            if len(rows) >= 20:
                total[columns] += phi[:, columns].toarray()[rows].var(axis=0)
                movies[columns] += 1
    variance = total / np.maximum(movies, 1)
    variance = np.clip(np.where(variance > 1e-12, variance, 1.0), 0.02, None)
    return np.asarray(variance / np.median(variance))


def learn_tightness(families: Sequence[str], sets: Sequence[TrainingSet]) -> Array:
    """How tightly to tie every weight, from movies of several families, shape (d,)."""
    start = untrained_model().weights
    base = spreads(sets)
    kinds = np.asarray(families)
    tightness = base
    for _ in range(ROUNDS):
        moved = np.asarray([fit_movie(data, STRENGTH, tightness) - start for data in sets]) ** 2
        each = np.asarray([moved[kinds == kind].mean(axis=0) for kind in np.unique(kinds)])
        freedom = each.mean(axis=0) * base
        freedom = freedom / np.exp(np.log(freedom + 1e-3 * freedom.mean()).mean())
        tightness = base / np.clip(np.sqrt(freedom), RANGE, 1 / RANGE)
    return np.asarray(tightness)


def fit_movie(
    data: TrainingSet, strength: float, tightness: Array, precision: float = 1e-3
) -> Array:
    """Weights learned from one movie, close to those set by hand."""
    regularizer = L2(strength, prior=untrained_model().weights, metric=tightness)
    found = fit(
        TrackingModel(data),
        data.samples,
        regularizer,
        n_annotations=float(data.n_annotations),
        options=LearningOptions(precision=precision),
    )
    return found.w


OVERLAPS = {
    "move.without_overlap": (-7.0, -5.0, -3.0),
    "move.outdone": (-9.0, -6.0, -4.0),
    "divide.lead": (1.0, 1.5, 2.0, 3.0),
    "divide.outdone": (-4.0, -2.0, 0.0),
    "merge.uncovered": (-9.0, -6.0, -3.0, 0.0),
    "skip.overlap_trust": (-10.0, -7.0, -5.0),
}
"""Features of overlaps, and the weights that are tried."""
KINDS: dict[str, list[DataSet]] = {}
"""Movies of every kind, by the first word of their names."""
for _data in SETS.values():
    KINDS.setdefault(_data.name.split()[0].rstrip(","), []).append(_data)
Wrong = Callable[[tuple[float, ...]], Array]


def wrong_events(kinds: Sequence[Sequence[Part]]) -> Wrong:
    """Share of wrong events of every kind of movies for weights of `OVERLAPS`, kept once known."""
    start = untrained_model()
    place = [start.keys.index(key) for key in OVERLAPS]

    @cache
    def wrong(weights: tuple[float, ...]) -> Array:
        changed = start.weights.copy()
        changed[place] = weights
        return np.asarray(
            [score_parts(kind, lambda s: s.matrix.scores(changed)).loss for kind in kinds]
        )

    return wrong


def best_overlaps(wrong: Wrong, kinds: list[int]) -> tuple[float, ...]:
    """Weights of `OVERLAPS`, one changed at a time, for some kinds; all kinds count alike."""
    start = untrained_model()
    best = tuple(float(start.weights[start.keys.index(key)]) for key in OVERLAPS)
    least = np.maximum(wrong(best), 1e-4)

    def relative(weights: tuple[float, ...]) -> float:
        return float(np.mean((wrong(weights) / least)[kinds]))

    for _ in range(ROUNDS):
        before = best
        for k, values in enumerate(OVERLAPS.values()):
            tried = [best, *((*best[:k], value, *best[k + 1 :]) for value in values)]
            best = min(tried, key=relative)
        if best == before:
            break
    return best


def print_overlaps() -> None:
    """Wrong events of every kind, with the weights of now, of all kinds, and of the others."""
    parts = {k: [p for d in kind if (p := load(d)) is not None] for k, kind in KINDS.items()}
    parts = {name: kind for name, kind in parts.items() if kind}
    wrong, every = wrong_events(list(parts.values())), list(range(len(parts)))
    start = untrained_model()
    now = tuple(float(start.weights[start.keys.index(key)]) for key in OVERLAPS)
    fitted = best_overlaps(wrong, every)
    print(header("kind", "% wrong now", "chosen on all", "on the others", *OVERLAPS))
    for k, name in enumerate(parts):
        others = best_overlaps(wrong, [j for j in every if j != k])
        shares = (f"{100 * wrong(w)[k]:.2f}" for w in (now, fitted, others))
        print(row(name, *shares, *others), flush=True)
    print(row("all", "", "", "", *fitted))


def starting_model(tightness: Array, families: Sequence[str]) -> Model:
    """The model that is shipped: hand-set weights with learned tightness."""
    return replace(
        untrained_model(),
        name="shipped",
        tightness=np.round(tightness, 4),
        provenance={
            "origin": "weights set by hand; how tightly each is tied was learned by "
            "benchmarks/prior.py",
            "movies": sorted(set(families)),
            "licences": "iPSC and bacteria: MIT; Phallusia (Guignard et al. 2020, "
            "doi:10.1126/science.aar5663): CC-BY 4.0; simulated: made by the program",
        },
    )


def main() -> None:
    """Learn, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    parser.add_argument("--overlaps", action="store_true", help="choose weights of overlaps")
    given = parser.parse_args()
    if given.overlaps:
        print_overlaps()
        return
    parts = [(source.family, source.load(DATA)) for source in MOVIES]
    families = [family for family, part in parts if part is not None]
    sets = [training_set(part) for _, part in parts if part is not None]
    tightness, base = learn_tightness(families, sets), spreads(sets)
    print(header("feature", "weight", "tightness", "freedom over its spread's"))
    model = starting_model(tightness, families)
    for key, weight, tied, plain in zip(model.keys, model.weights, tightness, base, strict=True):
        print(row(key, f"{weight:.2f}", f"{tied:.2f}", f"{plain / tied:.2f}"))
    if given.write:
        save_model(model, TARGET)


if __name__ == "__main__":
    main()
