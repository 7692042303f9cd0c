"""Learn how much every weight varies between movies: the starting model that is shipped.

    python benchmarks/prior.py [--write | --fit LAMBDA]

Every movie of `MOVIES` (MIT, CC-BY, simulated) is learned for itself from all events of some of its
frames, close to the hand-set weights. The mean square of what a weight moved, over kinds of movies,
says how loosely it is tied when a user trains from a few clicks. ``--write`` puts the result into
the package. ``--fit`` prints instead how many events are wrong with weights that are fitted to all
development movies and to simulated ones, and for each kind of movies with weights fitted to the
others.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import bridgetrack
from bridgetrack.annotations.from_tracks import draw_annotations
from bridgetrack.arrays import Array
from bridgetrack.hypotheses.events import Event
from bridgetrack.learning import L2, Domain, LearningOptions, Stacked, fit
from bridgetrack.models.model import Model, save_model, shipped_model, untrained_model
from bridgetrack.pipeline.scene import Scene, annotate
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


def some_answers(part: Part) -> Scene:
    """A movie with all true events of some frame pairs."""
    scene = with_truth(part.scene, part.events)
    pair = frame_pair(part.scene, part.events)
    order = np.random.default_rng(0).permutation(np.unique(pair))
    count = np.cumsum([(pair == p).sum() for p in order])
    some = order[: int(np.searchsorted(count, EVENTS)) + 1]
    events = part.events.take(np.flatnonzero(np.isin(pair, some)))
    return annotate(scene, draw_annotations(events, scene.detections, fraction=1.0, seed=0))


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


KINDS: dict[str, list[DataSet]] = {}
"""Movies of every kind, by the first word of their names; imperfect masks are a kind."""
for _data in SETS.values():
    _kind = _data.name.split()[0].rstrip(",") if _data.masks == "truth" else "imperfect masks"
    KINDS.setdefault(_kind, []).append(_data)


def fit_all(scenes: dict[str, list[Scene]], strength: float) -> Array:
    """Weights learned from all movies of some kinds, which count alike."""
    tightness = shipped_model().tightness
    assert tightness is not None
    domains = []
    for kind in scenes.values():
        sets = [build_training_set(scene) for scene in kind]
        n = float(len(scenes) * sum(data.n_annotations for data in sets))
        domains += [Domain(TrackingModel(data), data.samples, n) for data in sets]
    union = Stacked(domains, strength, np.inf, untrained_model().weights, tightness)
    how = LearningOptions(precision=1e-3)
    n = union.n_annotations
    found = fit(union, union.samples, union.regularizer, n_annotations=n, options=how)
    return union.shared(found.w)


def print_fits(strength: float) -> None:
    """Wrong events of every kind: weights set by hand, fitted to all kinds, and to the others."""
    parts = {k: [p for d in kind if (p := load(d)) is not None] for k, kind in KINDS.items()}
    parts = {kind: found for kind, found in parts.items() if found}
    made = [p for source in MOVIES if source.simulated and (p := source.load(DATA)) is not None]
    kinds = {**parts, "simulated": made}
    scenes = {kind: [some_answers(p) for p in found] for kind, found in kinds.items()}
    by_hand, fitted = untrained_model().weights, fit_all(scenes, strength)
    print(header("kind", "wrong events, by hand", "fitted to all kinds", "to the others"))
    for kind, found in parts.items():
        others = fit_all({k: v for k, v in scenes.items() if k != kind}, strength)
        wrong = (wrong_events(found, weights) for weights in (by_hand, fitted, others))
        print(row(kind, *wrong), flush=True)


def wrong_events(parts: Sequence[Part], weights: Array) -> int:
    """How many true events of some movies are not found."""
    return len(score_parts(parts, lambda scene: scene.matrix.scores(weights)).wrong)


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
    parser.add_argument("--fit", type=float, metavar="LAMBDA", help="fit all weights, and score")
    given = parser.parse_args()
    if given.fit is not None:
        print_fits(given.fit)
        return
    parts = [(source.family, source.load(DATA)) for source in MOVIES]
    families = [family for family, part in parts if part is not None]
    sets = [build_training_set(some_answers(part)) for _, part in parts if part is not None]
    tightness, base = learn_tightness(families, sets), spreads(sets)
    print(header("feature", "weight", "tightness", "freedom over its spread's"))
    model = starting_model(tightness, families)
    for key, weight, tied, plain in zip(model.keys, model.weights, tightness, base, strict=True):
        print(row(key, f"{weight:.2f}", f"{tied:.2f}", f"{plain / tied:.2f}"))
    if given.write:
        save_model(model, TARGET)


if __name__ == "__main__":
    main()
