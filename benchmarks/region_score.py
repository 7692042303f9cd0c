"""Make the starting scores of regions that come with the program: of cells, and of rods.

    python benchmarks/region_score.py cells|rods [--cache FILE.npz]

That of cells is learned from simulated movies and from pictures drawn from the masks of the iPSC
movies (MIT licence) alone, that of rods from simulated colonies. Calibrated on films that the trees
did not see: every kind of picture is left out in turn. That of rods has a second calibration, for
movies that show rods as one of these kinds does: every colony is left out in turn.
"""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from bridgetrack.arrays import Array
from bridgetrack.regions.describe import FEATURES
from bridgetrack.regions.score import KINDS, RegionScore
from region_data import Film, candidates, ipsc_films, rod_films, simulated_films

OUT = Path(__file__).resolve().parents[1] / "src" / "bridgetrack" / "regions"
PER_FILM = 4000
KNOWN = [name for name in FEATURES if name not in {"from the edge", "level", "least level"}]
"""Features that mean the same in other movies as in the pictures learned from."""


def save(score: RegionScore, path: Path) -> Path:
    """Write a score as the program reads it."""
    known = {f.name: getattr(score, f.name) for f in fields(score)}
    np.savez_compressed(path, **{k: np.asarray(v) for k, v in known.items() if v is not None})
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=KINDS, help="what the score is for")
    parser.add_argument("--cache", type=Path, help="where described candidates are kept")
    args = parser.parse_args()
    where = args.cache
    if where and where.exists():
        with np.load(where) as file:
            features, target, film = file["features"], file["target"], file["film"]
    else:
        rods = args.kind == "rods"
        films = rod_films() + rod_films(100) if rods else simulated_films() + ipsc_films()
        features, target, film = gathered(films)
        if where:
            np.savez_compressed(where, features=features, target=target, film=film)
    columns = [list(FEATURES).index(name) for name in KNOWN]
    score = replace(learned(features[:, columns], target, film, args.kind), kind=args.kind)
    path = save(score, OUT / f"{args.kind}.npz")
    print(f"{path}: {len(features)} candidates, {path.stat().st_size} bytes")


def gathered(films: list[Film]) -> tuple[Array, NDArray[np.int64], NDArray[np.str_]]:
    """Features, targets and names of films of all candidates; a name ends with the kind."""
    rows = []
    for film in films:
        found = [(x, target, best) for x, target, best in candidates(film) if len(best)]
        if max(float((best > 0.5).mean()) for *_, best in found) < 0.5:
            continue  # the estimate of what cells look like failed: nothing to learn from
        print(film.name, sum(len(x) for x, *_ in found), flush=True)
        rows += [(x, target, film.name) for x, target, _ in found]
    shown = np.concatenate([np.full(len(x), name) for x, _, name in rows])
    features, target = (np.concatenate([r[k] for r in rows]) for k in (0, 1))
    rng = np.random.default_rng(0)
    kept = [
        rng.permutation(np.flatnonzero((shown == name) & (target >= 0)))[:PER_FILM]
        for name in np.unique(shown)
    ]
    chosen = np.sort(np.concatenate(kept))
    return features[chosen], target[chosen], shown[chosen]


def trees(kind: str = "cells") -> HistGradientBoostingClassifier:
    """Few, shallow trees with large leaves: what they say has to hold for other kinds of movies.

    Rods look much the same in all, and saturated ones are few among them: finer trees hold there.
    """
    rods = kind == "rods"
    return HistGradientBoostingClassifier(
        max_iter=120 if rods else 60,
        learning_rate=0.1,
        max_leaf_nodes=6,
        min_samples_leaf=300 if rods else 1000,
        max_features=0.3,
        l2_regularization=5.0,
        early_stopping=False,
        random_state=0,
    )


def learned(
    features: Array, target: NDArray[np.int64], film: NDArray[np.str_], kind: str
) -> RegionScore:
    """Trees of all films, calibrated on kinds of pictures left out; rods on colonies, too."""
    look = np.array([name.split()[-1] for name in film])
    score = as_score(trees(kind).fit(features, target), unseen(features, target, look, kind))
    if kind != "rods":
        return score
    seed = np.array([name.split()[1] for name in film])
    own = unseen(features, target, seed, kind)
    return replace(score, own=(float(own.coef_[0, 0]), float(own.intercept_[0])))


def unseen(
    features: Array, target: NDArray[np.int64], group: NDArray[np.str_], kind: str
) -> LogisticRegression:
    """Calibration on groups of films that the trees did not see."""
    said = np.zeros(len(features))
    for name in np.unique(group):
        out = group == name
        said[out] = trees(kind).fit(features[~out], target[~out]).decision_function(features[out])
    return LogisticRegression(C=1e6).fit(said[:, None], target)


def as_score(model: HistGradientBoostingClassifier, platt: LogisticRegression) -> RegionScore:
    """The arrays of a fitted forest, with its calibration."""
    forest = [predictors[0].nodes for predictors in model._predictors]
    n = max(len(nodes) for nodes in forest)
    split = np.full((len(forest), n), -1, dtype=np.int64)
    left, right = np.zeros_like(split), np.zeros_like(split)
    threshold, value = np.zeros(split.shape), np.zeros(split.shape)
    for k, nodes in enumerate(forest):
        inner = nodes["is_leaf"] == 0
        m = len(nodes)
        split[k, :m] = np.where(inner, nodes["feature_idx"], -1)
        left[k, :m] = np.where(inner, nodes["left"], 0)
        right[k, :m] = np.where(inner, nodes["right"], 0)
        threshold[k, :m] = np.where(inner, nodes["num_threshold"], 0.0)
        value[k, :m] = np.where(inner, 0.0, nodes["value"])
    return RegionScore(
        features=tuple(KNOWN),
        split=split,
        threshold=threshold,
        left=left,
        right=right,
        value=value,
        start=float(model._baseline_prediction.ravel()[0]),
        slope=float(platt.coef_[0, 0]),
        shift=float(platt.intercept_[0]),
    )


if __name__ == "__main__":
    main()
