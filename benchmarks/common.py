"""Real movies made ready for the learning benchmarks, and how a choice of events is scored.

True masks are the segmentation, so that every event has one true answer. A movie is measured
once; a split divides its true events by frame into those that may be annotated and those that
are scored. True events of the first part are always among the hypotheses, those of the other
part only if the program proposes them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

import bridgetrack as bt
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.truth import draw_annotations, read_events
from bridgetrack.evaluation.truth import match_detections, true_events
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.inference.solve import solve
from bridgetrack.io.ctc import find_ctc, read_track_table
from bridgetrack.learning import Regularizer, TrainingResult, fit
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene, annotate, prepare, propose
from bridgetrack.progress import run
from bridgetrack.training.components import build_training_set
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, balanced

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images" / "learning"
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "data"
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class DataSet:
    """A movie with masks and true tracks.

    Parameters
    ----------
    name, folder, sequence
        Name in tables, folder, and two digits.
    scale, interval
        Micrometres per pixel, minutes per frame; None where the source says nothing.
    start, stop, stride
        Which frames are used.
    by
        What the split halves: ``"frames"`` or, for movies that grow, ``"events"``.
    test
        Names of other movies to score on, instead of the second half of this one.
    masks
        ``"truth"``, a folder beside the truth, or ``"plain"``: made by the program from the raw
        images, each frame by itself.
    border
        Pixels at the edge of the frame that the truth leaves out.
    """

    name: str
    folder: str
    sequence: str = "01"
    scale: tuple[float, ...] | None = None
    interval: float | None = None
    stride: int = 1
    start: int = 0
    stop: int | None = None
    by: str = "frames"
    test: tuple[str, ...] = ()
    masks: str = "truth"
    border: float = 0.0


_HELA = (0.645, 0.645)
SETS = {
    s.name: s
    for s in (
        DataSet("epidermis", "MouseEpidermis-01-masks"),
        DataSet("bacteria", "bacteria", by="events"),
        DataSet("iPSC 01", "iPSC-01-masks", "01"),
        DataSet("iPSC 01, every 2nd", "iPSC-01-masks", "01", stride=2),
        DataSet("iPSC 03", "iPSC-03-masks", "03", test=("iPSC 01", "iPSC 04")),
        DataSet("iPSC 04", "iPSC-04-masks", "04"),
        DataSet("DIC", "DIC-C2DH-HeLa-01", "01", (0.19, 0.19), 10),
        DataSet("SIM+", "Fluo-N2DH-SIM+-01-masks"),
        DataSet("HeLa", "Fluo-N2DL-HeLa-01", "01", _HELA, 30),
        DataSet("HeLa, every 4th", "Fluo-N2DL-HeLa-01", "01", _HELA, 30, stride=4),
        DataSet("HeLa, 01_AUTO", "Fluo-N2DL-HeLa-01", "01", _HELA, 30, masks="01_AUTO", border=25),
        DataSet(
            "HeLa, plain masks", "Fluo-N2DL-HeLa-01", "01", _HELA, 30, masks="plain", border=25
        ),
        DataSet(
            "PSC, plain masks",
            "PhC-C2DL-PSC-01",
            "01",
            (1.6, 1.6),
            10,
            stop=40,
            masks="plain",
            border=25,
        ),
    )
}


@dataclass(frozen=True)
class Part:
    """True events of some frames of a movie, and the movie.

    Parameters
    ----------
    scene
        The movie, without annotations.
    events
        The true events.
    column
        Hypothesis of every true event, -1 where none was proposed, shape (k,).
    """

    scene: Scene
    events: Events
    column: NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """Where to learn and where to score."""

    name: str
    train: Part
    test: tuple[Part, ...]

    def clicks(self, seed: int, **how: Any) -> AnnotationSet:
        """Simulated answers about the training part (``count`` or ``fraction``)."""
        return draw_annotations(self.train.events, self.train.scene.detections, seed=seed, **how)

    def annotated(self, seed: int, **how: Any) -> Scene:
        """The training movie with simulated answers."""
        return annotate(self.train.scene, self.clicks(seed, **how))


@dataclass(frozen=True)
class Score:
    """Figures over all test parts: share of wrong events, F1 of edges and of divisions.

    Parameters
    ----------
    loss, edge_f1, division_f1
        Figures, 0 to 1.
    wrong
        Numbers of the wrong events, in the order of the test parts.
    """

    loss: float
    edge_f1: float
    division_f1: float
    wrong: tuple[int, ...] = ()


def load_task(name: str, root: Path = DATA) -> Task | None:
    """A data set by name; None, with a message, where it is absent."""
    data = SETS[name]
    names = (name, *data.test)
    for other in names:
        if not (root / SETS[other].folder).is_dir():
            print(f"{other} is skipped: there is no {root / SETS[other].folder}", file=sys.stderr)
            return None
    scene, events = load_movie(data, root)
    if data.test:
        rest = tuple(part_of(*load_movie(SETS[t], root)) for t in data.test)
        train = part_of(with_truth(scene, events), events)
        return Task(name, train, rest)
    early = _early(data, scene, events)
    mine, others = events.take(np.flatnonzero(early)), events.take(np.flatnonzero(~early))
    scene = with_truth(scene, mine)
    return Task(name, part_of(scene, mine), (part_of(scene, others),))


def load_folds(name: str, folds: int, root: Path = DATA) -> list[Task]:
    """Split a movie into blocks of frames, and score on each what is learned on the others.

    Empty, with a message, where the movie is absent.
    """
    data = SETS[name]
    if not (root / data.folder).is_dir():
        print(f"{name} is skipped: there is no {root / data.folder}", file=sys.stderr)
        return []
    scene, events = load_movie(data, root)
    pair = frame_pair(scene, events)
    edges = np.quantile(pair, np.arange(1, folds) / folds)
    block = np.searchsorted(edges, pair)
    tasks = []
    for k in range(folds):
        mine = events.take(np.flatnonzero(block != k))
        ready = with_truth(scene, mine)
        others = events.take(np.flatnonzero(block == k))
        tasks.append(Task(name, part_of(ready, mine), (part_of(ready, others),)))
    return tasks


def load_movie(data: DataSet, root: Path = DATA) -> tuple[Scene, Events]:
    """A prepared movie without annotations, and its true events."""
    warnings.simplefilter("ignore")
    folder = root / data.folder
    with tempfile.TemporaryDirectory() as spare:
        if (data.start, data.stop, data.stride) != (0, None, 1):
            folder = some_frames(folder, Path(spare), data)
        how = {"scale": data.scale, "frame_interval": data.interval and data.interval * data.stride}
        truth = bt.read_ctc(folder / f"{data.sequence}_GT", **how)
        raw = folder / data.sequence
        image = bt.open_movie(raw, **how) if raw.is_dir() else None
        labels = masks_of(data, folder, truth, image, how)
        scene = run(prepare(labels, image))
        field = data.border
        match = match_detections(
            scene.detections, labels, truth.tracks, truth.labels, field_of_interest=field
        )
        found = true_events(scene.detections, truth.tracks, match, field_of_interest=field)
    events = read_events(found, scene.detections)
    return replace(scene, labels=None), events


def masks_of(data: DataSet, folder: Path, truth: Any, image: Any, how: Any) -> bt.Movie:
    """The segmentation that a movie is tracked from."""
    if data.masks == "truth":
        return truth.labels
    if data.masks != "plain":
        return bt.open_labels(folder / data.masks, **how)
    made = np.stack([np.asarray(frame.labels) for frame in bt.segment_movie(image)])
    return bt.open_labels(made, **how)


def some_frames(folder: Path, target: Path, data: DataSet) -> Path:
    """Some frames of a movie with their tracks, as files."""
    wanted = slice(data.start, data.stop, data.stride)
    layout = find_ctc(folder / f"{data.sequence}_GT", None)
    kept = sorted(layout.masks)[wanted]
    masks = target / f"{data.sequence}_GT" / "TRA"
    masks.mkdir(parents=True)
    seen: dict[int, list[int]] = {}
    for t, path in enumerate(kept):
        frame = tifffile.imread(path)
        tifffile.imwrite(masks / f"man_track{t:03d}.tif", frame)
        for label in np.unique(frame[frame > 0]).tolist():
            seen.setdefault(label, []).append(t)
    parent = {int(row[0]): int(row[3]) for row in read_track_table(layout.table)}
    lines = []
    for label, frames in sorted(seen.items()):
        above = parent.get(label, 0)
        while above and above not in seen:
            above = parent.get(above, 0)
        lines.append(f"{label} {frames[0]} {frames[-1]} {above}")
    (masks / "man_track.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    raw = sorted((folder / data.sequence).glob("t*.tif"))[wanted]
    if raw:
        (target / data.sequence).mkdir()
    for t, path in enumerate(raw):
        tifffile.imwrite(target / data.sequence / f"t{t:03d}.tif", tifffile.imread(path))
    return target


def with_truth(scene: Scene, events: Events) -> Scene:
    """The movie with these events among its hypotheses, and no annotations."""
    geometry = scene.detections.geometry
    everything = draw_annotations(events, scene.detections, fraction=1.0)
    return annotate(propose(scene.evidence, None, everything), AnnotationSet(geometry))


def frame_pair(scene: Scene, events: Events) -> NDArray[np.int64]:
    """Earlier frame of every event's frame pair."""
    frame = scene.detections.frame
    source, target = events.sources[:, 0], events.targets[:, 0]
    return np.where(source >= 0, frame[source], frame[target] - 1)


def _early(data: DataSet, scene: Scene, events: Events) -> Mask:
    """Events of the first half."""
    pair = frame_pair(scene, events)
    if data.by == "frames":
        return np.asarray(pair < scene.detections.geometry.n_frames // 2)
    return np.asarray(pair < np.median(pair))


def _keys(event: Any, sources: Any, targets: Any) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.column_stack([event, sources, targets]).tolist()]


def part_of(scene: Scene, events: Events) -> Part:
    """Some true events of a movie, looked up among its hypotheses."""
    h = scene.hypotheses
    place = {key: k for k, key in enumerate(_keys(h.event, h.sources, h.targets))}
    wanted = _keys(events.event, events.sources, events.targets)
    column = np.asarray([place.get(key, -1) for key in wanted], dtype=np.int64)
    return Part(scene, events, column)


def training_data(scene: Scene, balance: float = 0.75) -> TrainingSet:
    """The annotated components, weighted as `train_steps` does."""
    w = untrained_model().aligned(scene.matrix.features)
    chosen = solve(scene.problem, scene.matrix.scores(w)).chosen
    population = np.bincount(scene.hypotheses.event[chosen], minlength=len(Event)).astype(float)
    return balanced(build_training_set([scene]), population, balance)


def learned(
    model: TrackingModel, regularizer: Regularizer, callback: Any = None, **how: Any
) -> TrainingResult:
    """One training without choosing lambda and without comparing with the prior."""
    data = model.data
    return fit(
        model,
        data.samples,
        regularizer,
        callback=callback,
        n_annotations=float(data.n_annotations),
        **how,
    )


def score(task: Task, weights: Array) -> Score:
    """Score weights on the test parts."""
    return score_by(task, lambda scene: scene.matrix.scores(weights))


def score_by(task: Task, scores_of: Any) -> Score:
    """Score anything that gives every hypothesis of a movie a score."""
    return score_parts(task.test, scores_of)


def score_parts(parts: tuple[Part, ...], scores_of: Any) -> Score:
    """The same for parts of any movies."""
    totals = np.zeros(8)
    wrong: list[int] = []
    for part in parts:
        chosen = solve(part.scene.problem, scores_of(part.scene)).chosen
        right = (part.column >= 0) & chosen[np.maximum(part.column, 0)]
        wrong += (int(totals[1]) + np.flatnonzero(~right)).tolist()
        totals += _counts(part, chosen, right)
    n_wrong, n, *rest = totals.tolist()
    return Score(n_wrong / n, _f1(*rest[:3]), _f1(*rest[3:]), tuple(wrong))


def _counts(part: Part, chosen: Mask, right: Mask) -> Array:
    """Wrong events, events, and for edges and divisions hits, true ones and chosen ones."""
    h = part.scene.hypotheses
    pairs = np.unique(frame_pair(part.scene, part.events))
    columns = np.flatnonzero(chosen)
    picked = h.take(columns)
    picked = picked.take(np.flatnonzero(np.isin(frame_pair(part.scene, picked), pairs)))
    true, found = _edges(part.events), _edges(picked)
    divide = part.events.event == Event.DIVIDE
    return np.array(
        [
            len(right) - right.sum(),
            len(right),
            len(true & found),
            len(true),
            len(found),
            right[divide].sum(),
            divide.sum(),
            (picked.event == Event.DIVIDE).sum(),
        ],
        dtype=np.float64,
    )


def _edges(events: Events) -> set[tuple[int, int]]:
    linking = (events.event != Event.FALSE) & (events.event != Event.SKIP)
    linking &= (events.sources[:, 0] >= 0) & (events.targets[:, 0] >= 0)
    found: set[tuple[int, int]] = set()
    for a in range(2):
        for b in range(2):
            source, target = events.sources[linking, a], events.targets[linking, b]
            there = (source >= 0) & (target >= 0)
            found |= set(zip(source[there].tolist(), target[there].tolist(), strict=True))
    return found


def _f1(hits: float, true: float, found: float) -> float:
    return 2 * hits / (true + found) if true + found else float("nan")


def spread(values: list[float], percent: bool = True, digits: int = 2) -> str:
    """Mean ± standard deviation."""
    finite = np.asarray([v for v in values if np.isfinite(v)])
    if not len(finite):
        return "–"
    factor = 100.0 if percent else 1.0
    mean, deviation = factor * finite.mean(), factor * finite.std(ddof=1 if len(finite) > 1 else 0)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def save_figure(figure: Any, name: str) -> None:
    """Keep a figure of matplotlib as SVG, alike each time it is drawn alike."""
    import matplotlib as mpl

    FIGURES.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})


def row(*cells: object) -> str:
    """A line of a markdown table."""
    return "| " + " | ".join(str(c) for c in cells) + " |"


def header(*cells: str) -> str:
    """The first two lines of a markdown table."""
    return row(*cells) + "\n" + row("---", *("---:" for _ in cells[1:]))


def option(name: str, default: float) -> float:
    """A number from the command line, taken out of it; before `arguments`."""
    if name not in sys.argv:
        return default
    place = sys.argv.index(name)
    value = float(sys.argv[place + 1])
    del sys.argv[place : place + 2]
    return value


def arguments(description: str | None, seeds: int, sets: tuple[str, ...]) -> argparse.Namespace:
    """The options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the movies")
    parser.add_argument("--seeds", type=int, default=seeds, help="repetitions")
    parser.add_argument("--sets", nargs="*", default=list(sets), choices=list(SETS), metavar="SET")
    given = parser.parse_args()
    if not given.data.is_dir():
        sys.exit(f"{given.data}: there is no such folder; give it with --data")
    return given
