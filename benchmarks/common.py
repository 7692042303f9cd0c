"""Movies with true tracks made ready for the benchmarks, and how a choice of events is scored.

A movie is measured once. `load_task` divides its true events into an earlier half that may be
annotated and a later half that is scored. True events of the earlier half are always among the
hypotheses, those of the later half only where the program proposes them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

import bridgetrack as bt
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.from_tracks import draw_annotations, read_events
from bridgetrack.arrays import Array, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.inference.solve import solve
from bridgetrack.learning import Regularizer, TrainingResult, fit
from bridgetrack.models.model import untrained_model
from bridgetrack.pipeline.scene import Scene, annotate, prepare, propose
from bridgetrack.progress import run
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, balanced, build_training_set
from matched_truth import Status, match_detections, true_events
from simulated_annotator import with_mistakes

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


@dataclass(frozen=True)
class DataSet:
    """A movie with true tracks, at a frame rate.

    Parameters
    ----------
    name, folder, sequence
        Name in tables, folder, and two digits (for tables of centroids the stem of the files).
    scale, interval
        Micrometres per pixel and minutes per frame; None where the source says nothing.
    start, stop, stride
        Which frames are used.
    masks
        ``"truth"``, ``"points"`` (a table of centroids), ``"plain"`` (found by the program in
        each frame by itself), or the name of a folder of masks beside the truth.
    image
        Whether intensities are measured where there are any.
    border
        Pixels at the edge of the frame that the truth leaves out.
    test
        Names of other movies to score on, in place of the later half of this one.
    """

    name: str
    folder: str = ""
    sequence: str = "01"
    scale: tuple[float, ...] | None = None
    interval: float | None = None
    start: int = 0
    stop: int | None = None
    stride: int = 1
    masks: str = "truth"
    image: bool = True
    border: float = 0.0
    test: tuple[str, ...] = ()


_HELA = DataSet("HeLa", "Fluo-N2DL-HeLa-01", scale=(0.645, 0.645), interval=30)
_PSC = DataSet("PSC", "PhC-C2DL-PSC-01", scale=(1.6, 1.6), interval=10)
SETS = {
    s.name: s
    for s in (
        _HELA,
        _PSC,
        replace(_HELA, name="HeLa, every 4th", stride=4),
        replace(_HELA, name="HeLa, 01_AUTO", masks="01_AUTO", border=25),
        replace(_HELA, name="HeLa, plain masks", masks="plain", border=25),
        replace(_PSC, name="PSC, plain masks", stop=40, masks="plain", border=25),
        DataSet("bacteria", "bacteria"),
        DataSet("epidermis", "MouseEpidermis-01-masks"),
        DataSet("iPSC 01", "iPSC-01-masks"),
        DataSet("iPSC 03", "iPSC-03-masks", "03", test=("iPSC 01", "iPSC 04")),
        DataSet("iPSC 04", "iPSC-04-masks", "04"),
        DataSet("DIC", "DIC-C2DH-HeLa-01", scale=(0.19, 0.19), interval=10),
        DataSet("SIM+", "Fluo-N2DH-SIM+-01-masks"),
    )
}
"""Movies on which rules and weights of the program were chosen."""
UNSEEN = {
    s.name: s
    for s in (
        DataSet("epidermis, second half", "MouseEpidermis-01-masks", start=7),
        DataSet("iPSC 04, every 2nd", "iPSC-04-masks", "04", stride=2),
        DataSet("CellMigration, every 4th", "CellMigration-masks", stride=4),
        replace(_PSC, name="PSC, second half, every 4th", start=50, stride=4),
        DataSet("Phallusia Pm04", "Phallusia-lineages-csv3D", "Pm04", interval=2, masks="points"),
        DataSet("C2C12 F0018", "C2C12-csv2D", "090318-C2C12P7_F0018", interval=5, masks="points"),
    )
}
"""Movies that no choice has seen."""


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

    def clicks(self, seed: int, *, wrong: float = 0.0, **how: Any) -> AnnotationSet:
        """Answers about the training part, drawn from the truth (``count`` or ``fraction``)."""
        events, cells = self.train.events, self.train.scene.detections
        drawn = draw_annotations(events, cells, seed=seed, **how)
        return with_mistakes(drawn, events, cells, wrong, seed) if wrong else drawn

    def annotated(self, seed: int, **how: Any) -> Scene:
        """The training movie with such answers."""
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
    """A movie of `SETS` or `UNSEEN`, halved; None, with a message, where it is absent."""
    data = {**SETS, **UNSEEN}[name]
    part = load(data, root)
    rest = [load(SETS[other], root) for other in data.test]
    if part is None or None in rest:
        return None
    if rest:
        train = part_of(with_truth(part.scene, part.events), part.events)
        return Task(name, train, tuple(p for p in rest if p is not None))
    return halved(name, part)


def halved(name: str, part: Part) -> Task:
    """The earlier half of the events to learn from, the later half to score."""
    pair = frame_pair(part.scene, part.events)
    early = pair < np.median(pair)
    mine, others = (part.events.take(np.flatnonzero(k)) for k in (early, ~early))
    scene = with_truth(part.scene, mine)
    return Task(name, part_of(scene, mine), (part_of(scene, others),))


def load_folds(name: str, folds: int, root: Path = DATA) -> list[Task]:
    """Blocks of frames with equally many events; each is scored by what the others teach."""
    whole = load(SETS[name], root)
    if whole is None:
        return []
    pair = frame_pair(whole.scene, whole.events)
    block = np.searchsorted(np.quantile(pair, np.arange(1, folds) / folds), pair)
    tasks = []
    for k in range(folds):
        mine, others = (whole.events.take(np.flatnonzero(b)) for b in (block != k, block == k))
        scene = with_truth(whole.scene, mine)
        tasks.append(Task(name, part_of(scene, mine), (part_of(scene, others),)))
    return tasks


def load(data: DataSet, root: Path = DATA) -> Part | None:
    """A measured movie with its true events; None, with a message, where it is absent."""
    warnings.simplefilter("ignore")
    folder = root / data.folder
    if not folder.is_dir():
        print(f"{data.name} is skipped: there is no {folder}", file=sys.stderr)
        return None
    if data.masks == "points":
        return _points(data, folder)
    with tempfile.TemporaryDirectory() as spare:
        return _masks(data, folder, Path(spare))


def _points(data: DataSet, folder: Path) -> Part:
    """A table of centroids."""
    table = folder / f"{data.sequence}_nodes.csv"
    truth = bt.read_tracks_csv(table, frame_interval=data.interval)
    scene = run(prepare(bt.read_detections_csv(table, frame_interval=data.interval)))
    match = match_detections(scene.detections, None, truth, None)
    events = read_events(true_events(scene.detections, truth, match), scene.detections)
    if data.stop is not None:
        events = events.take(np.flatnonzero(frame_pair(scene, events) < data.stop))
    return part_of(scene, events)


def _masks(data: DataSet, folder: Path, spare: Path) -> Part:
    """Masks, and the image where there is one."""
    given = data.masks not in ("truth", "plain")
    if not given and (data.start, data.stop, data.stride) != (0, None, 1):
        folder = some_frames(folder, spare, data)
    how = {"scale": data.scale, "frame_interval": data.interval and data.interval * data.stride}
    truth = bt.read_ctc(folder / f"{data.sequence}_GT", **how)
    raw = folder / data.sequence
    image = bt.open_movie(raw, **how) if raw.is_dir() else None
    labels = truth.labels
    if given:
        labels = bt.open_labels(folder / data.masks, **how)
    elif data.masks == "plain":
        assert image is not None
        made = bt.find_cells(image, choose="plain").labels
        labels = bt.open_labels(
            made, scale=labels.geometry.scale, frame_interval=labels.geometry.frame_interval
        )
    scene = run(prepare(labels, image if data.image else None))
    match = match_detections(scene.detections, labels, truth.tracks, truth.labels)
    false = match.status == Status.FALSE
    match.status[false & _in_border_band(scene.detections, data.border)] = Status.UNCLEAR
    found = true_events(scene.detections, truth.tracks, match)
    # the truth ends where a cell leaves the field of interest
    near = _in_border_band(scene.detections, 2 * data.border)
    appears = (found.event == Event.APPEAR) & near[found.targets[:, 0]]
    leaves = (found.event == Event.DISAPPEAR) & near[found.sources[:, 0]]
    events = read_events(found.take(~appears & ~leaves), scene.detections)
    return part_of(replace(scene, labels=None), events)


def _in_border_band(detections: Detections, width: float) -> NDArray[np.bool_]:
    """Cells whose centroid is within so many pixels of an edge along y or x, where truth ends."""
    shape = detections.geometry.shape
    assert shape is not None
    place = detections.table[["y", "x"]].to_numpy(dtype=np.float64)
    far_edge = np.asarray(shape[-2:], dtype=np.float64) - 1 - place
    return np.minimum(place, far_edge).min(axis=1) < width


def some_frames(folder: Path, target: Path, data: DataSet) -> Path:
    """A copy of a movie in the format of the Cell Tracking Challenge with some of its frames.

    Tracks that are not seen any more are left out, and their parents take their place.
    """
    wanted = slice(data.start, data.stop, data.stride)
    truth = folder / f"{data.sequence}_GT"
    truth = next(truth / name for name in ("FULL", "TRA") if (truth / name).is_dir())
    masks = target / f"{data.sequence}_GT" / "TRA"
    masks.mkdir(parents=True)
    seen: dict[int, list[int]] = {}
    for t, path in enumerate(sorted(truth.glob("man_track*.tif"))[wanted]):
        frame = tifffile.imread(path)
        tifffile.imwrite(masks / f"man_track{t:03d}.tif", frame)
        for label in np.unique(frame[frame > 0]).tolist():
            seen.setdefault(label, []).append(t)
    table = np.loadtxt(truth / "man_track.txt", dtype=int, ndmin=2)
    parent = dict(zip(table[:, 0].tolist(), table[:, 3].tolist(), strict=True))
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
    everything = draw_annotations(events, scene.detections, fraction=1.0)
    proposed = propose(scene.evidence, None, everything)
    return annotate(proposed, AnnotationSet(scene.detections.geometry))


def frame_pair(scene: Scene, events: Events) -> NDArray[np.int64]:
    """Earlier frame of every event's frame pair."""
    frame = scene.detections.frame
    source, target = events.sources[:, 0], events.targets[:, 0]
    return np.where(source >= 0, frame[source], frame[target] - 1)


def part_of(scene: Scene, events: Events) -> Part:
    """Some true events of a movie, looked up among its hypotheses."""
    h = scene.hypotheses
    place = {key: k for k, key in enumerate(_keys(h))}
    column = np.asarray([place.get(key, -1) for key in _keys(events)], dtype=np.int64)
    return Part(scene, events, column)


def _keys(events: Any) -> list[tuple[int, ...]]:
    rows = np.column_stack([events.event, events.sources, events.targets])
    return [tuple(row) for row in rows.tolist()]


def training_data(scene: Scene) -> TrainingSet:
    """The annotated components, weighted as training does."""
    w = untrained_model().aligned(scene.matrix.features)
    chosen = solve(scene.problem, scene.matrix.scores(w)).chosen
    population = np.bincount(scene.hypotheses.event[chosen], minlength=len(Event)).astype(float)
    return balanced(build_training_set(scene), population)


def learned(
    model: TrackingModel, regularizer: Regularizer, report: Any = None, **how: Any
) -> TrainingResult:
    """One fit with a given lambda."""
    data = model.data
    return fit(
        model,
        data.samples,
        regularizer,
        report=report,
        n_annotations=float(data.n_annotations),
        **how,
    )


def score(task: Task, weights: Array) -> Score:
    """Score weights on the test parts."""
    return score_parts(task.test, lambda scene: scene.matrix.scores(weights))


def score_parts(parts: Iterable[Part], scores_of: Callable[[Scene], Array]) -> Score:
    """Score anything that gives every hypothesis of a movie a score."""
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
    pairs = np.unique(frame_pair(part.scene, part.events))
    picked = part.scene.hypotheses.take(np.flatnonzero(chosen))
    picked = picked.take(np.flatnonzero(np.isin(frame_pair(part.scene, picked), pairs)))
    true, found = links_of(part.events), links_of(picked)
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


def links_of(events: Events) -> set[tuple[int, int]]:
    """Links that events draw between cells."""
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


def graph_errors(
    frame: NDArray[np.int64],
    position: Array,
    true: Iterable[tuple[int, int]],
    found: Iterable[tuple[int, int]],
    lost: Iterable[int] = (),
) -> dict[str, float]:
    """Edge and division F1 and AOGM by traccuracy, where truth and result have the same cells.

    A wrong link weighs 1, a missed one 1.5, one with the wrong meaning 1, a lost cell 10.

    Parameters
    ----------
    frame, position
        Of every true cell, shapes (n,) and (n, d).
    true, found
        Links, rows of cells. The measures know no merges: the first parent counts.
    lost
        Cells that the result calls none.
    """
    os.environ["TQDM_DISABLE"] = "1"
    from traccuracy.matchers import Matched
    from traccuracy.metrics import BasicMetrics, CTCMetrics, DivisionMetrics

    gone = set(lost)
    parent: dict[int, int] = {}
    for a, b in found:
        if a not in gone and b not in gone:
            parent.setdefault(int(b), int(a))
    matched = Matched(
        _graph(frame, position, true, set()),
        _graph(frame, position, [(a, b) for b, a in parent.items()], gone),
        [(k, k) for k in range(len(frame)) if k not in gone],
        {"name": "given", "matching type": "one-to-one"},
    )
    basic = BasicMetrics().compute(matched).results
    divisions = DivisionMetrics(max_frame_buffer=0).compute(matched).results["Frame Buffer 0"]
    ctc = CTCMetrics().compute(matched).results
    n = divisions["Total GT Divisions"] + divisions["Total Predicted Divisions"]
    return {
        "edge_f1": float(basic["Edge F1"]),
        "division_f1": float(np.nan_to_num(divisions["Division F1"])) if n else float("nan"),
        "aogm": float(ctc["AOGM"]),
        "wrong": int(ctc["fp_edges"]),
        "missed": int(ctc["fn_edges"]),
    }


def _graph(frame: Any, position: Any, links: Iterable[tuple[int, int]], gone: set[int]) -> Any:
    import networkx as nx
    from traccuracy import TrackingGraph

    graph: Any = nx.DiGraph()
    for k, (t, place) in enumerate(zip(frame.tolist(), position, strict=True)):
        if k not in gone:
            graph.add_node(k, t=t, y=float(place[-2]), x=float(place[-1]))
    graph.add_edges_from((int(a), int(b)) for a, b in links)
    return TrackingGraph(graph, location_keys=("y", "x"), validate=False)


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

    IMAGES.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


def row(*cells: object) -> str:
    """A line of a markdown table."""
    return "| " + " | ".join(str(c) for c in cells) + " |"


def header(*cells: str) -> str:
    """The first two lines of a markdown table."""
    return row(*cells) + "\n" + row("---", *("---:" for _ in cells[1:]))


def arguments(description: str | None, seeds: int, sets: Iterable[str]) -> argparse.Namespace:
    """The options that the benchmarks share."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the movies")
    parser.add_argument("--seeds", type=int, default=seeds, help="repetitions")
    parser.add_argument(
        "--sets", nargs="*", default=list(sets), choices=[*SETS, *UNSEEN], metavar="SET"
    )
    given = parser.parse_args()
    if not given.data.is_dir():
        sys.exit(f"{given.data}: there is no such folder; give it with --data")
    return given
