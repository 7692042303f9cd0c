"""Learn from annotations that people made, and look at the papers' own two frames.

    python benchmarks/human.py

The annotations are those of ilastik's structured learning on a piece of a Mitocheck movie: two
nuclei, both divide, one speck that is no cell; nine frames, all that was annotated and published.
Ilastik's label images did not come with them, so they are made again as ilastik does: the
probability above a half, connected components, numbered column by column (the divisions that were
annotated fit this numbering and no other). Learned is from all frame pairs but one, and from all
of them for another movie of the same kind of nuclei (HeLa); scored is what was left out.

Of the papers' training movie (DCellIQ) only the first and the last frame are public, without
tracks: how many of its cells Bridgetrack finds from the raw frames.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tifffile
from numpy.typing import NDArray
from scipy import ndimage

import bridgetrack as bt
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.truth import draw_annotations, read_events
from bridgetrack.experiments.start import untied_start
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.inference.solve import solve
from bridgetrack.learning import L2
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.training.options import default_strength
from bridgetrack.training.tracking_model import TrackingModel
from common import (
    DATA,
    SETS,
    header,
    load_movie,
    part_of,
    row,
    save_figure,
    score_parts,
    training_data,
    with_truth,
)
from common import learned as learned_weights

MITOCHECK = "mitocheck-ilastik-partial"
DCELLIQ = "DCellIQ-BOT-two-frames"
PROJECT = "mitocheckStructuredLearningTracking"


def label_images(folder: Path) -> NDArray[np.uint16]:
    """What ilastik saw: components of the probability, numbered column by column."""
    frames = []
    for path in sorted((folder / "01_PROB").glob("c1_t*.tif")):
        mask = tifffile.imread(path) > 127
        frames.append(ndimage.label(mask.T)[0].T.astype(np.uint16))
    return np.stack(frames)


def human_events(folder: Path, detections: Any) -> Events:
    """What people annotated, as events: tracks, divisions and what is no cell."""
    given = json.loads((folder / "annotations.json").read_text(encoding="utf-8"))[PROJECT]
    start = np.searchsorted(detections.frame, np.arange(10))
    rows: list[tuple[Any, ...]] = []
    place: dict[tuple[int, int], int] = {}
    for t, objects in given["labels"].items():
        for number, tracks in objects.items():
            cell = int(start[int(t)]) + int(number) - 1
            for track in tracks:
                if track == -1:
                    rows.append(("false", cell, -1, -1, -1))
                else:
                    place[int(t), track] = cell
    for (t, track), cell in place.items():
        if (t + 1, track) in place:
            rows.append(("move", cell, -1, place[t + 1, track], -1))
    for mother, one, other, t in given["divisions"][0]:
        daughters = sorted((place[t + 1, one], place[t + 1, other]))
        rows.append(("divide", place[t, mother], -1, *daughters))
    table = pd.DataFrame(rows, columns=["event", "source0", "source1", "target0", "target1"])
    return read_events(table, detections)


def right(scene: Scene, events: Events, model: Any) -> NDArray[np.bool_]:
    """Which of the events are chosen."""
    chosen = solve(scene.problem, scene.matrix.scores(model.aligned(scene.matrix.features))).chosen
    column = part_of(scene, events).column
    return (column >= 0) & chosen[np.maximum(column, 0)]


def scene_clicks(scene: Scene, events: Events) -> AnnotationSet:
    """Events as answers."""
    return draw_annotations(events, scene.detections, fraction=1.0)


def learned(scene: Scene, events: Events) -> Any:
    """A model of these annotations."""
    return bt.train(annotate(scene, scene_clicks(scene, events)))


def mitocheck(root: Path) -> None:
    """Print what learning from people's annotations brings."""
    folder = root / MITOCHECK
    image = np.stack([tifffile.imread(p) for p in sorted((folder / "01").glob("t*.tif"))])
    scene = bt.track(label_images(folder), image).scene
    events = human_events(folder, scene.detections)
    scene = with_truth(scene, events)
    kinds = [Event(k).key for k in events.event.tolist()]
    counts = ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds))
    print(f"Annotated by people: {len(events)} events ({counts}) in 9 frames.\n")
    start = untrained_model()
    before = right(scene, events, start)
    frame = scene.detections.frame[events.sources[:, 0]]
    after = np.zeros(len(events), dtype=bool)
    for t in range(8):
        mine = np.flatnonzero(frame == t)
        others = np.flatnonzero(frame != t)
        model = learned(scene, events.take(others))
        after[mine] = right(scene, events.take(mine), model)
    print(header("event", "annotated", "right, untrained", "right, learned from the other pairs"))
    for kind in dict.fromkeys(kinds):
        mine_ = np.array([k == kind for k in kinds])
        print(row(kind, mine_.sum(), before[mine_].sum(), after[mine_].sum()))
    wrong = np.flatnonzero(~before | ~after)
    for k in wrong:
        print(f"\n{kinds[k]} at frame {frame[k]}: untrained {bool(before[k])}, "
              f"learned {bool(after[k])}")  # fmt: skip
    everything = learned(scene, events)
    print()
    elsewhere(root, scene, everything)


def elsewhere(root: Path, scene: Scene, model: Any) -> None:
    """What people's annotations are worth on HeLa, which has the same kind of nuclei."""
    weights = {"untrained": untrained_model(), "as the program trains": model}
    annotated = annotate(
        scene, scene_clicks(scene, human_events(root / MITOCHECK, scene.detections))
    )
    data = training_data(annotated)
    zero = np.zeros(len(scene.matrix.features))
    task = TrackingModel(data)
    n = data.n_annotations
    tightness = untrained_model().tightness_for(scene.matrix.features)
    for name, prior in (("one fit, always kept", None), ("from weights of zero", zero)):
        start = untrained_model().aligned(scene.matrix.features) if prior is None else prior
        regularizer = (
            L2(default_strength(n), prior=start, metric=tightness)
            if prior is None
            else L2(0.003, prior=start)
        )
        begin = start if prior is None else untied_start(task, data.samples, regularizer,
                                                         n_annotations=float(n))  # fmt: skip
        weights[name] = learned_weights(task, regularizer, initial=begin).w
    print(header("movie", "weights", "wrong %", "edge F1 %", "division F1 %",
                 "cells called false"))  # fmt: skip
    shown: list[tuple[str, str, float]] = []
    for name in ("HeLa", "HeLa, every 4th"):
        if not (root / SETS[name].folder).is_dir():
            print(f"{name} is skipped: it is not there", file=sys.stderr)
            continue
        other, events = load_movie(SETS[name], root)
        part = part_of(with_truth(other, events), events)
        for how, found in weights.items():
            w = found
            if not isinstance(w, np.ndarray):
                w = w.aligned(part.scene.matrix.features)
            figures = score_parts((part,), lambda s, w=w: s.matrix.scores(w))
            chosen = solve(part.scene.problem, part.scene.matrix.scores(w)).chosen
            claimed = int((part.scene.hypotheses.event[chosen] == Event.FALSE).sum())
            cells = (figures.loss, figures.edge_f1, figures.division_f1)
            print(row(name, how, *(f"{100 * v:.2f}" for v in cells), claimed), flush=True)
            shown.append((name, how, 100 * figures.loss))
    picture(shown)


def picture(shown: list[tuple[str, str, float]]) -> None:
    """Wrong events with each of the weights, a panel for each movie."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(name for name, _, _ in shown))
    if not names:
        return
    figure, axes = plt.subplots(
        1, len(names), figsize=(4.4 * len(names), 2.2), squeeze=False, sharey=True
    )
    for axis, name in zip(axes.flat, names, strict=True):
        mine = [(how, wrong) for other, how, wrong in shown if other == name]
        colours = ["0.6" if how == "untrained" else "C0" for how, _ in mine]
        bars = axis.barh([how for how, _ in mine], [wrong for _, wrong in mine], color=colours)
        axis.bar_label(bars, fmt="%.2f", padding=3)
        axis.set(title=name, xlabel="wrong events, %", xlim=(0, 1.2 * max(w for _, w in mine)))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].invert_yaxis()
    figure.tight_layout()
    save_figure(figure, "human")


def dcelliq(root: Path) -> None:
    """Print how many cells of the papers' two frames are found."""
    folder = root / DCELLIQ
    print("\n" + header("DCellIQ frame", "their cells", "found (IoU above a half)", "extra"))
    for name in ("frame001", "frame099"):
        true = np.asarray(tifffile.imread(folder / "01_SEG" / f"{name}_seg.tif")).astype(np.int64)
        raw = tifffile.imread(folder / "01" / f"{name}.tif")
        shown = np.asarray(bt.segment_frame(raw)).astype(np.int64)
        shared = np.zeros((true.max() + 1, shown.max() + 1))
        np.add.at(shared, (true.ravel(), shown.ravel()), 1)
        union = shared.sum(axis=1)[:, None] + shared.sum(axis=0)[None] - shared
        like = (shared / union)[1:, 1:]
        there = shared.sum(axis=1)[1:] > 0
        hit = (like.max(axis=1, initial=0) > 0.5) & there
        extra = int((like.max(axis=0, initial=0) <= 0.5).sum())
        print(row(name, int(there.sum()), int(hit.sum()), extra))


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        sys.exit(f"{' '.join(sys.argv[1:])}: this script takes no options")
    for part, folder in ((mitocheck, MITOCHECK), (dcelliq, DCELLIQ)):
        if (DATA / folder).is_dir():
            part(DATA)
        else:
            print(f"{folder} is skipped: it is not in {DATA}", file=sys.stderr)


if __name__ == "__main__":
    main()
