"""How well the score of regions tells cells from what is none, before and after answers.

    python benchmarks/region_score.py [--seeds 5] [--kinds]

Real movies were never seen by the starting score. Answers are about cells drawn at random in the
first frames; average precision, calibration error (mean gap of ten bins of equal size) and the F1
of cells chosen frame by frame (true where the intersection over union exceeds a half) are those
of later frames. What is chosen within 30 pixels of the frame's edge, where the published truth of
some movies holds no cells, is not counted against it. With ``--kinds`` every kind of picture is
left out of the training set in turn, and scored, instead; the set is that of the shipped score, of
simulated masks and of those of iPSC.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from bridgetrack.regions.choose import choose_by_frame
from bridgetrack.regions.describe import FEATURES
from bridgetrack.regions.score import prune, starting_score
from bridgetrack.regions.taught import MovieScore, choice_targets, teach
from make_region_score import KNOWN, as_score, trees
from region_data import KINDS, REAL, Candidates, candidates, ipsc_films, real_film, simulated_films

BLOCKS = {
    "HeLa": ((30, 32), (75, 77)),
    "PSC": ((10, 12), (40, 42)),
    "DIC": ((10, 14), (50, 54)),
    "U373": ((5, 10), (40, 45)),
    "HL60": ((10, 15), (40, 45)),
}
BORDER = 30
Array = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("names", nargs="*", help=f"{', '.join(REAL)}; all of them by default")
    given = parser.parse_args()
    if given.kinds:
        leave_out()
        return
    print("| movie | answers | average precision | calibration error | F1 of the choice |")
    print("| --- | --- | --- | --- | --- |")
    for name in given.names or REAL:
        film = real_film(name, BLOCKS[name])
        if film is None:
            print(f"{name}: this movie is not beside the project")
            continue
        samples = list(candidates(film))
        first = film.blocks[0][1]
        early, late = [s for s in samples if s.t <= first], [s for s in samples if s.t > first]
        for count in (0, 10, 50):
            seeds = range(given.seeds if count else 1)
            rows = [figures(taught(early, count, seed), late) for seed in seeds]
            print(f"| {name} | {count} | " + " | ".join(spread(np.array(rows))) + " |", flush=True)


def taught(samples: Sequence[Candidates], count: int, seed: int) -> MovieScore:
    """The starting score after its own choice and answers about `count` cells."""
    pool = [(s, c) for s in samples for c in np.flatnonzero(s.best > 0.5)]
    chosen = np.random.default_rng(seed).permutation(len(pool))[:count]
    start = MovieScore(starting_score())
    targets = []
    for sample in samples:
        odds = start.log_odds(sample.regions, sample.features)
        kept = prune(sample.regions, odds)
        exist = np.zeros(len(odds), dtype=bool)
        exist[kept[choose_by_frame(sample.regions.select(kept), odds[kept])]] = True
        targets.append(choice_targets(sample.regions, exist))
    for k in chosen.tolist():
        sample, cell = pool[k]
        near = sample.cell == cell
        place = next(i for i, s in enumerate(samples) if s is sample)
        targets[place][near] = sample.target[near]
    features = np.concatenate([s.features for s in samples])
    return teach(start, features, np.concatenate(targets))


def figures(score: MovieScore, samples: Sequence[Candidates]) -> Array:
    """Average precision, calibration error and F1 of the choice."""
    odds = [score.log_odds(s.regions, s.features) for s in samples]
    target = np.concatenate([s.target for s in samples])
    together = np.concatenate(odds)[target >= 0]
    target = target[target >= 0]
    likely = 1 / (1 + np.exp(-together))
    parts = np.array_split(np.argsort(likely), 10)
    gap = np.mean([abs(likely[p].mean() - target[p].mean()) for p in parts])
    hits = wrong = cells = 0
    for sample, log_odds in zip(samples, odds, strict=True):
        kept = prune(sample.regions, log_odds)
        part = sample.regions.select(kept)
        chosen = kept[choose_by_frame(part, log_odds[kept])]
        right = sample.iou[chosen] > 0.5
        n = len(np.unique(sample.cell[chosen[right]]))
        at_edge = (sample.cell[chosen] < 0) & near_border(sample)[chosen]
        hits, cells = hits + n, cells + len(sample.best)
        wrong += len(chosen) - n - int(at_edge.sum())
    return np.array(
        [average_precision_score(target, together), gap, 2 * hits / (hits + wrong + cells)]
    )


def near_border(sample: Candidates) -> NDArray[np.bool_]:
    """Whose middle lies near the edge of a plane."""
    centre = sample.regions.centroid()[:, -2:]
    shape = np.array(sample.regions.shape[-2:])
    limit = min(BORDER, int(shape.min()) // 8)
    return np.minimum(centre, shape - centre).min(axis=1) < limit


def spread(rows: Array) -> list[str]:
    """Mean and standard deviation of each column."""
    if len(rows) == 1:
        return [f"{v:.3f}" for v in rows[0]]
    pairs = zip(rows.mean(axis=0), rows.std(axis=0), strict=True)
    return [f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in pairs]


def leave_out() -> None:
    """Every kind of drawn picture scored by trees that have not seen it."""
    films = simulated_films() + ipsc_films()
    known = {film.name: list(candidates(film)) for film in films}
    print("| kind left out | average precision | calibration error | F1 of the choice |")
    print("| --- | --- | --- | --- |")
    for kind in KINDS:
        is_out = {n: n.endswith(kind) or (kind == "nuclei" and " " not in n) for n in known}
        rest = [s for name, found in known.items() if not is_out[name] for s in found]
        out = [s for name, found in known.items() if is_out[name] for s in found]
        columns = [list(FEATURES).index(name) for name in KNOWN]
        features = np.concatenate([s.features[:, columns] for s in rest])
        target = np.concatenate([s.target for s in rest])
        model = trees().fit(features[target >= 0], target[target >= 0])
        score = MovieScore(as_score(model, features, None))
        print(f"| {kind} | " + " | ".join(spread(figures(score, out)[None])) + " |", flush=True)


if __name__ == "__main__":
    main()
