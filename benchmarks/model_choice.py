"""Does the model of the most similar movie beat the shipped one, before any click?

    python benchmarks/model_choice.py [--kept FILE] [--table | --clicks SEEDS]

Every movie of `domains` is learned for itself, from all events of some of its frames, close to
the shipped weights: a library with one model per movie. Each movie is then scored with the
shipped weights, with the most similar models of other recordings and with some drawn at random.
Models of the movie's own recording, at another frame rate or with other masks, are looked at
apart: they know the very cells. What is measured is added to FILE and not measured again;
``--table`` prints the tables from it. ``--clicks`` trains from 20 clicks in movies that have a
very similar model of another recording, starting from it and from the shipped model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.truth import draw_annotations
from bridgetrack.inference.solve import solve
from bridgetrack.learning import L2, LearningOptions
from bridgetrack.models.entry import StatisticsField, statistics_to_json
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model, untrained_model
from bridgetrack.models.similarity import SIMILAR, VERY_SIMILAR, compare
from bridgetrack.models.statistics import FeatureStatistics
from bridgetrack.pipeline.movie_record import statistics_of
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.schema import check
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from common import Part, header, learned, row, score_parts, spread
from domains import HELD_OUT, SHIPPED, Domain, load_domain
from pretrain import STRENGTH, _training_set

Array = NDArray[np.float64]
DOMAINS = (*HELD_OUT, *SHIPPED)
NEAREST, RANDOM = 3, 3
CLICKS = 20
KEPT = Path("model_choice.jsonl")


@dataclass(frozen=True)
class Known:
    """A movie: its statistics, what was learned from it, and how it was scored.

    Parameters
    ----------
    number
        In `DOMAINS`.
    statistics
        Of the events that the shipped weights choose.
    weights
        Learned from it.
    shipped
        Share of wrong events with the shipped weights; None where it was not scored.
    losses
        The same with the models of other movies, by their number.
    """

    number: int
    statistics: FeatureStatistics
    weights: Array
    shipped: float | None = None
    losses: dict[int, float] | None = None

    @property
    def domain(self) -> Domain:
        """Which movie."""
        return DOMAINS[self.number]

    @property
    def recording(self) -> str:
        """What movies share that show the same cells."""
        domain = self.domain
        if domain.simulated:
            return f"simulated {domain.simulated['seed']}"
        return f"{domain.folder} {domain.sequence}"


def learn(number: int, part: Part) -> Known:
    """Measure a movie and learn from it."""
    start = shipped_model(part.scene.matrix.features)
    chosen = solve(part.scene.problem, part.scene.matrix.scores(untrained_model().weights)).chosen
    data = _training_set(part)
    regularizer = L2(STRENGTH, prior=start.weights, metric=start.tightness)
    found = learned(TrackingModel(data), regularizer, options=LearningOptions(precision=1e-3))
    return Known(number, statistics_of(part.scene, chosen), found.w)


def to_score(mine: Known, library: Sequence[Known]) -> list[int]:
    """Models that a movie is still to be scored with, by their number."""
    done = {} if mine.losses is None else mine.losses
    others = [k for k in library if k.recording != mine.recording]
    apart = {k.number: compare(mine.statistics, k.statistics).distance for k in others}
    near = sorted(apart, key=apart.__getitem__)[:NEAREST]
    same = [k.number for k in library if k.recording == mine.recording and k is not mine]
    wanted = [n for n in (*same, *near) if n not in done]
    short = NEAREST + RANDOM - len({*near, *(n for n in done if n in apart)})
    rest = [n for n in apart if n not in near and n not in done]
    drawn = np.random.default_rng(mine.number).permutation(rest)[: max(short, 0)]
    return [*wanted, *drawn.tolist()]


def _loss(part: Part, w: Array) -> float:
    return score_parts((part,), lambda scene: scene.matrix.scores(w)).loss


# ------------------------------------------------------------------------------- what is kept


def load_kept(path: Path) -> dict[int, Known]:
    """What was measured so far."""
    known: dict[int, Known] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line in lines:
        entry: dict[str, Any] = json.loads(line)
        number = entry["movie"]
        if "weights" in entry:
            statistics = check(StatisticsField, entry["statistics"], "the table")
            known[number] = Known(number, statistics, np.asarray(entry["weights"]))
        else:
            before = known[number].losses or {}
            losses = before | {int(k): loss for k, loss in entry["losses"].items()}
            known[number] = replace(known[number], shipped=entry["shipped"], losses=losses)
    return known


def measure(path: Path) -> None:
    """Learn and score what was not yet."""
    known = load_kept(path)
    with path.open("a", encoding="utf-8") as out:

        def keep(entry: dict[str, Any]) -> None:
            out.write(json.dumps(entry) + "\n")
            out.flush()

        for number, domain in enumerate(DOMAINS):
            part = None if number in known else load_domain(domain)
            if part is not None:
                found = known[number] = learn(number, part)
                statistics = statistics_to_json(found.statistics)
                weights = found.weights.tolist()
                keep({"movie": number, "statistics": statistics, "weights": weights})
        for number, mine in sorted(known.items()):
            numbers = to_score(mine, list(known.values()))
            part = load_domain(mine.domain) if numbers or mine.shipped is None else None
            if part is not None:
                losses = {n: _loss(part, known[n].weights) for n in numbers}
                shipped = _loss(part, shipped_model().weights)
                keep({"movie": number, "shipped": shipped, "losses": losses})


# ------------------------------------------------------------------------------------- tables


def distances(known: Sequence[Known]) -> Array:
    """Distance between all movies, shape (n, n)."""
    return np.asarray(
        [[compare(a.statistics, b.statistics).distance for b in known] for a in known]
    )


def tables(known: Sequence[Known]) -> str:
    """What is printed: the distances between kinds, every movie, and the policies."""
    known = [k for k in known if k.losses is not None]
    d = distances(known)
    same = np.asarray([[a.recording == b.recording for b in known] for a in known])
    kind = np.asarray([k.domain.family for k in known])
    alike = (kind[:, None] == kind) & ~same
    other = kind[:, None] != kind
    upper = np.triu(np.ones_like(same), 1).astype(bool)
    lines = [header("pairs of movies", "pairs", "smallest", "10 %", "middle", "90 %")]
    for name, mask in (
        ("one recording, other frame rate or masks", same),
        ("other recordings of one kind", alike),
        ("other kinds", other),
    ):
        values = d[mask & upper]
        quantiles = np.quantile(values, [0, 0.1, 0.5, 0.9])
        lines.append(row(name, len(values), *(f"{v:.2f}" for v in quantiles)))
    lines += ["", _movies(known, d, same), "", _policies(known, d, same)]
    return "\n".join(lines)


def _movies(known: Sequence[Known], d: Array, same: NDArray[np.bool_]) -> str:
    """Every movie with its most similar model of another recording."""
    lines = [
        header(
            "movie", "shipped: wrong %", "most similar movie", "distance",
            "its model: wrong %", "less similar models: middle", "worst",
        )
    ]  # fmt: skip
    for i, mine in enumerate(known):
        assert mine.losses is not None
        others = [j for j in np.flatnonzero(~same[i]) if known[j].number in mine.losses]
        others.sort(key=lambda j, i=i: d[i, j])  # type: ignore[misc]
        nearest, losses = others[0], _losses(mine, [known[j] for j in others])
        lines.append(
            row(
                mine.domain.name,
                f"{100 * (mine.shipped or 0.0):.2f}",
                known[nearest].domain.name,
                f"{d[i, nearest]:.2f}",
                *(f"{100 * v:.2f}" for v in (losses[0], np.median(losses[1:]), losses.max())),
            )
        )
    return "\n".join(lines)


def _losses(mine: Known, models: Sequence[Known]) -> Array:
    assert mine.losses is not None
    return np.asarray([mine.losses[k.number] for k in models])


def _policies(known: Sequence[Known], d: Array, same: NDArray[np.bool_]) -> str:
    """What choosing by similarity brings against the shipped weights."""
    shipped = np.asarray([k.shipped for k in known], dtype=np.float64)
    lines = [
        header(
            "start from", "movies with such a model", "better", "alike", "worse",
            "mean wrong % there", "shipped there", "largest loss (points)",
        )
    ]  # fmt: skip
    nearest, same_if = "the most similar of other recordings", "it, if {}; else shipped"
    for name, reach, own, real in (
        (nearest, np.inf, False, False),
        (same_if.format("at least similar"), SIMILAR, False, False),
        (same_if.format("very similar"), VERY_SIMILAR, False, False),
        (f"{same_if.format('very similar')}; real movies", VERY_SIMILAR, False, True),
        ("the same recording at another rate or with other masks", np.inf, True, False),
        (same_if.format("very similar"), VERY_SIMILAR, True, False),
    ):
        taken, found = [], []
        for i, mine in enumerate(known):
            usable = np.flatnonzero(same[i] if own else ~same[i])
            usable = usable[usable != i]
            if real and mine.domain.simulated:
                continue
            if len(usable) and d[i, usable].min() <= reach:
                taken.append(i)
                found.append(_losses(mine, [known[usable[int(np.argmin(d[i, usable]))]]])[0])
        lines.append(row(name, *_compared(np.asarray(found), shipped[taken])))
    return "\n".join(lines)


def _compared(theirs: Array, shipped: Array) -> list[object]:
    """How often one is better, both means, and the largest loss."""
    gain = theirs - shipped
    if not len(gain):
        return [0, *[""] * 6]
    counts = [int((gain < -1e-9).sum()), int((np.abs(gain) <= 1e-9).sum())]
    counts.append(len(gain) - sum(counts))
    figures = (100 * theirs.mean(), 100 * shipped.mean(), 100 * max(gain.max(), 0.0))
    return [len(gain), *counts, *(f"{v:.2f}" for v in figures)]


# ------------------------------------------------------------------------------------- clicks


def train_from(known: Sequence[Known], seeds: int) -> str:
    """Wrong events after training from 20 clicks, by what it started from."""
    lines = [
        header(
            "movie", "similar movie", "shipped: wrong %", "20 clicks from it",
            "similar model: wrong %", "20 clicks from it",
        )
    ]  # fmt: skip
    for mine in known:
        others = [k for k in known if k.recording != mine.recording]
        apart = [compare(mine.statistics, k.statistics).distance for k in others]
        best = others[int(np.argmin(apart))]
        part = load_domain(mine.domain) if min(apart) <= VERY_SIMILAR else None
        if part is None:
            continue
        shipped = shipped_model(part.scene.matrix.features)
        cells: list[str] = []
        for start in (shipped, replace(shipped, name="similar", weights=best.weights)):
            losses = [_loss(part, _after_clicks(part, start, seed)) for seed in range(seeds)]
            cells += [f"{100 * _loss(part, start.weights):.2f}", spread(losses)]
        lines.append(row(mine.domain.name, best.domain.name, *cells))
    return "\n".join(lines)


def _after_clicks(part: Part, start: Model, seed: int) -> Array:
    clicks = draw_annotations(part.events, part.scene.detections, count=CLICKS, seed=seed)
    return run(train_steps(annotate(part.scene, clicks), start)).model.weights


def main() -> None:
    """Measure what is missing, or print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kept", type=Path, default=KEPT, help="file for what was measured")
    parser.add_argument("--table", action="store_true", help="print the tables, measure nothing")
    parser.add_argument("--clicks", type=int, metavar="SEEDS", help="train from 20 clicks instead")
    given = parser.parse_args()
    if not given.table:
        measure(given.kept)
    if given.clicks:
        print(train_from(list(load_kept(given.kept).values()), given.clicks))
        return
    print(tables(list(load_kept(given.kept).values())))


if __name__ == "__main__":
    main()
