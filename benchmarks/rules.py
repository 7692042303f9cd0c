# ruff: noqa
"""What each rule after a fit is worth: wrong events with all of them, and without each.

    python benchmarks/rules.py [--log FILE] [--seeds 5] [--parts fits many sessions] [--table]

Runs on the code at 97548de, which had these rules: ``git checkout 97548de`` and put it there.

Answers about one half of a movie are learned from, and the other half is scored, no answer
honoured. Answers are right, or one in twenty is wrong. Every training starts at the shipped
weights. One fit serves all combinations of what happens after it. Finished rows are kept in
``--log`` and not measured again; ``--table`` prints the tables from it and runs nothing.

``fits``
    50 stratified answers. λ is the default there, so *λ fixed* is *all rules* by construction.
``many``
    400 stratified answers, where λ is chosen by folds. There the whole step replaces half of it.
``sessions``
    50 suggested answers, and one training with all rules; rules of suggestions taken away.

Each column takes away one thing from the program as it is, or (*none ...*) nearly everything:
*keep* (which of the start, what was learned and what lies halfway is kept; in its place the half
step or the whole), *paired* (the sign-flip test in it: a gain of one net answer decides), *reach*,
*kinds*, *holding* (pseudo-answers in the fit; *reach* still knows what is sure), *λ by folds*,
*overshoot* (of the linearisation in CCCP).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.active.options import SessionOptions
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.simulated_annotator import SimulatedAnnotator, answer_by
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.progress import run
from bridgetrack.training import keep, reach
from bridgetrack.training.components import build_training_set
from bridgetrack.training.fit import HoldChoice, Movies, choose_strength
from bridgetrack.training.options import TrainingOptions, default_strength
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.sure import hold_sure
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import balanced
from common import SETS, Array, Task, frame_pair, header, load_task, part_of, row, score, with_truth
from domains import Domain, load_domain

ANSWERS, MANY, SLIPS = 50, 400, (0.0, 0.05)
PARTS = {
    "epidermis, first half": Domain("epidermis", "MouseEpidermis-01-masks", stop=8),
    "epidermis, second half": Domain("epidermis", "MouseEpidermis-01-masks", start=7),
    "epidermis": Domain("epidermis", "MouseEpidermis-01-masks"),
    "HeLa, every 4th ": Domain(
        "HeLa", "Fluo-N2DL-HeLa-01", scale=(0.645, 0.645), interval=30, stride=4
    ),
    "bacteria ": Domain("bacteria", "bacteria"),
    "CellMigration, every 4th": Domain("CellMigration", "CellMigration-masks", stride=4),
    "PSC, first half, every 4th": Domain(
        "PSC", "PhC-C2DL-PSC-01", scale=(1.6, 1.6), interval=10, stop=50, stride=4
    ),
    "PSC, second half, every 4th": Domain(
        "PSC", "PhC-C2DL-PSC-01", scale=(1.6, 1.6), interval=10, start=50, stride=4
    ),
}
MOVIES = {
    "fits": (
        "epidermis, first half",
        "bacteria",
        "HeLa, every 4th",
        "CellMigration, every 4th",
        "DIC",
        "PSC, first half, every 4th",
        "SIM+",
        "iPSC 01",
        "iPSC 03",
        "epidermis, second half",
        "PSC, second half, every 4th",
    ),
    "many": ("epidermis, first half", "bacteria", "HeLa, every 4th", "CellMigration, every 4th"),
    "sessions": ("bacteria ", "HeLa, every 4th ", "CellMigration, every 4th", "epidermis"),
}
ASKING: dict[str, dict[str, Any]] = {
    "as it is": {},
    "without rarity": {"rarity": 0.0},
    "without novelty": {"diversity": 0.0},
    "without both": {"rarity": 0.0, "diversity": 0.0},
    "entropy for margins": {"measure": "entropy"},
}
ALL = "all rules"


def halved(name: str, domain: Domain) -> Task | None:
    """The earlier half of the events of a movie to learn from, the later one to score."""
    part = load_domain(domain)
    if part is None:
        return None
    pair = frame_pair(part.scene, part.events)
    early = pair < np.median(pair)
    mine, others = (part.events.take(np.flatnonzero(k)) for k in (early, ~early))
    scene = with_truth(part.scene, mine)
    return Task(name, part_of(scene, mine), (part_of(scene, others),))


def load(name: str) -> Task | None:
    """A development movie, halved, or with other movies of its kind to score."""
    return load_task(name) if name in SETS else halved(name, PARTS[name])


@dataclass(frozen=True)
class Fitted:
    """What was learned in one way, and what keep makes of it with and without its test."""

    w: Array
    share: float
    untested: float
    fixed: float  # share where λ is not chosen


class Trained:
    """The fits of one movie and its answers, and what becomes of them after them."""

    def __init__(self, task: Task, given: AnnotationSet, prior: Model) -> None:
        self.task, self.prior = task, prior
        self.scene: Scene = annotate(task.train.scene, given)
        features = self.scene.matrix.features
        self.start, self.tightness = prior.aligned(features), prior.tightness_for(features)
        self.before = choices([self.scene], self.start)
        found = build_training_set([self.scene])
        self.data = balanced(
            found, population_of([self.scene], self.before), TrainingOptions().balance
        )
        self.sure = hold_sure(self.data, self.start)
        self.seen: dict[bytes, int] = {}
        self.solved: dict[bytes, Any] = {}

    def fit(
        self, holding: bool, overshoot: bool, *, judged: bool = True, hold: float | None = None
    ) -> tuple[Fitted, HoldChoice]:
        """One fit; ``hold``: at this λ in place of what folds choose."""
        options = TrainingOptions(hold_sure=holding)
        if not overshoot:
            options = replace(options, optimiser=replace(options.optimiser, overshoot=0.0))
        target = TrackingModel(self.sure.data if holding else self.data)
        movies = Movies(target, (), self.start, self.tightness)
        usual = default_strength(self.data.n_annotations)
        if not judged:
            choice = HoldChoice(hold or usual, "default")
        else:
            given = options if hold is None else replace(options, strength=hold)
            choice = replace(run(choose_strength(movies, given)))
            choice = choice if hold is None else replace(choice, by="default")
        w = run(movies.fit(choice.hold, options, states=(None,))).w
        if not judged:
            return Fitted(w, 1.0, 1.0, 1.0), choice
        share = keep.keep_better(movies, target, w, choice).share
        with patched(keep, CLEARLY=np.inf):
            untested = keep.keep_better(movies, target, w, choice).share
        fixed = share
        if choice.validation is not None and len(choice.validation.strengths) > 1:
            place = int(np.argmin(np.abs(np.log(np.array(choice.validation.strengths) / usual))))
            held, part = choice.validation.held_out[place], self.data.annotation_sample
            fixed = keep.compared_alone(held, choice.validation.prior, part, many=False).share
        return Fitted(w, share, untested, fixed), choice

    def after(
        self, w: Array, share: float, *, reached: bool = True, priced: bool = True
    ) -> tuple[int, float, bool]:
        """Wrong events where this share of the way is gone, the share in the end, and prices."""
        if not share:
            return self.wrong(self.start), 0.0, False
        kept = self.start + share * (w - self.start)
        if not (reached or priced):
            return self.wrong(kept), share, False
        sure = self.sure if reached else None
        with patched(reach, _solved=self._remembered(reach._solved)):
            steps = reach.within_reach(
                [self.scene], self.start, kept, self.before, sure, priced=priced
            )
            found = run(steps)
        return self.wrong(found.weights), share * found.step, bool(found.rarer)

    def wrong(self, w: Array) -> int:
        """Wrong events of the other half."""
        key = w.tobytes()
        if key not in self.seen:
            self.seen[key] = len(score(self.task, w).wrong)
        return self.seen[key]

    def _remembered(self, solve: Any) -> Any:
        def solved(scenes: Any, weights: Array) -> Any:
            key = weights.tobytes()
            if key not in self.solved:
                self.solved[key] = yield from solve(scenes, weights)
            return self.solved[key]

        return solved


class patched:
    """Names of a module, replaced for a while."""

    def __init__(self, module: Any, **names: Any) -> None:
        self.module, self.names = module, names
        self.kept = {name: getattr(module, name) for name in names}

    def __enter__(self) -> None:
        for name, value in self.names.items():
            setattr(self.module, name, value)

    def __exit__(self, *_: object) -> None:
        for name, value in self.kept.items():
            setattr(self.module, name, value)


def variants(made: Trained, many: bool) -> dict[str, Any]:
    """Wrong events, the share gone and whether kinds were priced, by what was taken away."""
    usual = default_strength(made.data.n_annotations)
    full, choice = made.fit(True, True)
    # with many answers the λ that folds chose once holds for the others: it saves hours
    hold = choice.hold if many else None
    assert hold is None or isinstance(hold, float)
    loose, _ = made.fit(False, True, hold=hold)
    plain, _ = made.fit(True, False, hold=hold)
    bare, _ = made.fit(False, False, judged=False)
    if many:
        # the plain programs do not choose λ
        simple, _ = made.fit(True, False, judged=False)
        fixed, _ = made.fit(True, True, judged=False)
    else:
        simple, fixed = plain, full
    off = {"reached": False, "priced": False}
    found = {
        ALL: made.after(full.w, full.share),
        "without keep, half": made.after(full.w, 0.5),
        "without keep, whole": made.after(full.w, 1.0),
        "without paired": made.after(full.w, full.untested),
        "without reach": made.after(full.w, full.share, reached=False),
        "without kinds": made.after(full.w, full.share, priced=False),
        "without reach and kinds": made.after(full.w, full.share, **off),
        "without holding": made.after(loose.w, loose.share),
        "λ fixed": made.after(fixed.w, full.fixed),
        "without overshoot": made.after(plain.w, plain.share),
        "none of them": made.after(bare.w, 1.0, **off),
        "none but half": made.after(bare.w, 0.5, **off),
        "none but pseudo-answers and half": made.after(simple.w, 0.5, **off),
        "the same, overshoot kept": made.after(fixed.w, 0.5, **off),
        "none but pseudo-answers, whole": made.after(simple.w, 1.0, **off),
        "the whole step, nothing after it": made.after(full.w, 1.0, **off),
    }
    wrong = {key: one[0] for key, one in found.items()}
    share = {key: one[1] for key, one in found.items()}
    priced = [key for key, one in found.items() if one[2]]
    chosen = choice.hold / usual if isinstance(choice.hold, float) else None
    return {"wrong": wrong, "share": share, "priced": priced, "lambda": chosen}


def session(task: Task, seed: int, how: dict[str, Any]) -> int:
    """Wrong events of the later half after training on suggested answers."""
    part = task.train
    last = int(frame_pair(part.scene, part.events).max()) + 1
    options = SessionOptions()
    suggest = replace(options.suggest, seed=seed, frames=(0, last), **how)
    asking = ActiveSession(part.scene, shipped_model(), options=replace(options, suggest=suggest))
    asking.adopt(run(asking.update()))
    annotator = SimulatedAnnotator(part.events, part.scene.detections, seed=seed)
    for _ in range(ANSWERS):
        question = asking.next()
        if question is None:
            break
        answer_by(asking, annotator, question)
        if asking.wants_update:
            asking.adopt(run(asking.update()))
    scene = annotate(part.scene, asking.annotations)
    model = run(train_steps(scene, shipped_model())).model
    return len(score(task, model.aligned(scene.matrix.features)).wrong)


def measure(
    part: str, name: str, seeds: int, done: set[tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    """Rows of one movie that are not there yet."""
    if part == "sessions":
        wanted = [(seed, how) for seed in range(min(seeds, 3)) for how in ASKING]
    else:
        wanted = [(seed, slips) for seed in range(seeds) for slips in SLIPS]
    wanted = [each for each in wanted if (part, name.strip(), *each) not in done]
    task = load(name) if wanted else None
    if task is None:
        return
    prior = shipped_model()
    start = len(score(task, prior.aligned(task.train.scene.matrix.features)).wrong)
    about = {"part": part, "movie": name.strip(), "start": start}
    about["scored"] = sum(len(each.events) for each in task.test)
    for number, (seed, how) in enumerate(wanted):
        begin = time.perf_counter()
        if part == "sessions":
            one: dict[str, Any] = {"wrong": session(task, seed, ASKING[how])}
        else:
            count = MANY if part == "many" else ANSWERS
            given = task.clicks(seed, count=count, wrong=how)
            one = variants(Trained(task, given, prior), part == "many")
            if not number and part == "fits":
                scene = annotate(task.train.scene, given)
                model = run(train_steps(scene, prior)).model
                now = len(score(task, model.aligned(scene.matrix.features)).wrong)
                one["program"] = now
        seconds = round(time.perf_counter() - begin, 1)
        yield {**about, "seed": seed, "how": how, **one, "seconds": seconds}


def told(values: list[float], digits: int = 1) -> str:
    """Mean ± standard deviation over seeds."""
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {deviation:.{digits}f}"


def table(rows: list[dict[str, Any]], part: str) -> str:
    """A column a movie, a row a rule that is taken away; the last columns sum over movies."""
    rows = [each for each in rows if each["part"] == part]
    if not rows:
        return ""
    if part == "sessions":
        return _sessions(rows)
    lines = []
    names = list(dict.fromkeys(each["movie"] for each in rows))
    for slips in SLIPS:
        mine = {
            name: [r for r in rows if r["movie"] == name and r["how"] == slips] for name in names
        }
        mine = {name: found for name, found in mine.items() if found}
        if not mine:
            continue
        keys = list(next(iter(mine.values()))[0]["wrong"])
        seeds = " and ".join(sorted({str(len(found)) for found in mine.values()}))
        what = f"{100 * slips:g} % slips" if slips else "right answers"
        lines += [
            "",
            f"*{ANSWERS if part == 'fits' else MANY} answers, {what}, {seeds} seeds:*",
            "",
        ]
        sums = (
            "all movies",
            "difference to all rules",
            "relative %",
            "mean of movies %",
            "worse/better",
        )
        lines.append(header("wrong events", *mine, *sums))
        starts = [f"{found[0]['start']} of {found[0]['scored']:,}" for found in mine.values()]
        total = sum(found[0]["start"] for found in mine.values())
        lines.append(row("untrained", *starts, total, *[""] * 4))
        for key in keys:
            lines.append(_line(key, mine))
    return "\n".join(lines)


def _line(key: str, mine: dict[str, list[dict[str, Any]]]) -> str:
    """A row of the table: every movie, and all that have the same seeds together."""
    cells, changes = [], []
    for found in mine.values():
        values = [each["wrong"][key] for each in found]
        cells.append(told(values))
        changes += [
            (v - f["wrong"][ALL]) / max(f["start"], 1) for v, f in zip(values, found, strict=True)
        ]
    seeds = set.intersection(*({each["seed"] for each in found} for found in mine.values()))
    by_seed = {key: [], ALL: []}
    for seed in sorted(seeds):
        for one in by_seed:
            picked = [
                r["wrong"][one] for found in mine.values() for r in found if r["seed"] == seed
            ]
            by_seed[one].append(sum(picked))
    apart = np.array(by_seed[key], dtype=float) - by_seed[ALL]
    percent = 100 * apart.mean() / max(np.mean(by_seed[ALL]), 1e-9) if len(apart) else np.nan
    worse = sum(np.array(changes) > 0)
    better = sum(np.array(changes) < 0)
    whole = told(by_seed[key]) if len(apart) else "–"
    diff = told(list(apart)) if len(apart) else "–"
    mean = 100 * np.mean(changes)
    return row(key, *cells, whole, diff, f"{percent:+.1f}", f"{mean:+.1f}", f"{worse}/{better}")


def _sessions(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(each["movie"] for each in rows))
    lines = ["", f"*{ANSWERS} suggested answers:*", "", header("wrong events", *names)]
    starts = [next(r["start"] for r in rows if r["movie"] == name) for name in names]
    lines.append(row("untrained", *starts))
    for how in ASKING:
        found = [[r["wrong"] for r in rows if r["movie"] == n and r["how"] == how] for n in names]
        lines.append(row(how, *(told(each) if each else "–" for each in found)))
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing, and print the tables."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", type=Path, default=Path("rules.jsonl"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--parts", nargs="*", default=list(MOVIES), choices=list(MOVIES))
    parser.add_argument("--movies", nargs="*", help="only these")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    kept = given.log.read_text(encoding="utf-8").splitlines() if given.log.exists() else []
    rows = [json.loads(line) for line in kept]
    done = {(each["part"], each["movie"], each["seed"], each["how"]) for each in rows}
    for part in () if given.table else given.parts:
        for name in MOVIES[part]:
            if given.movies and name.strip() not in given.movies:
                continue
            for one in measure(part, name, given.seeds, done):
                rows.append(one)
                with given.log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(one, ensure_ascii=False) + "\n")
                print(json.dumps(one, ensure_ascii=False), file=sys.stderr, flush=True)
    for part in given.parts:
        print(table(rows, part))


if __name__ == "__main__":
    main()
