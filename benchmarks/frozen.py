"""What must not change while the code does: scores, losses, seconds and memory.

    python benchmarks/frozen.py [PART ...] [--write]

Prints every figure beside the one in ``frozen.json`` and says which differ. ``--write`` keeps the
figures of now, with the commit. Parts, each skipped where its movies are absent:

``untrained``
    Edge and division F1 of the shipped weights on true masks (or centroids). Equal to 1e-9.
``losses``
    The six losses of the sample's annotations with every other shipped weight. Equal to 1e-9.
``suggested``
    Wrong events of the later half of a movie after 50 suggested answers about the earlier half;
    three seeds. The mean stays within the spread of the seeds (one standard deviation, at least
    one event).
``raw``
    Cells found in the first 40 raw frames, then tracked: edge F1 and complete tracks. Within .003.
``cost``
    Seconds and MB of tracking 1,000 cells in 100 frames. No larger, within a tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import tifffile

import bridgetrack as bt
from answers import suggested as suggested_answers
from bridgetrack.annotations.files import load_annotations
from bridgetrack.learning import LOSSES
from bridgetrack.learning.risk import Risk
from bridgetrack.models.model import shipped_model
from bridgetrack.pipeline.scene import annotate, prepare
from bridgetrack.progress import run
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import build_training_set
from common import DATA, SETS, UNSEEN, Task, halved, load, score
from masks import SETS as RAW_MOVIES
from masks import open_task, scored
from untrained import SETS as MOVIES
from untrained import score as score_untrained

KEPT = Path(__file__).with_suffix(".json")
SAMPLE = Path(__file__).resolve().parents[1] / "sample_data"
ANSWERED = (
    SETS["bacteria"],
    SETS["epidermis"],
    SETS["HeLa, every 4th"],
    UNSEEN["CellMigration, every 4th"],
)
SEEDS, ANSWERS, RAW_FRAMES = 3, 50, 40
Figures = dict[str, float]


def untrained() -> Figures:
    """Edge and division F1 of every movie."""
    found: Figures = {}
    for movie in chain.from_iterable(MOVIES.values()):
        if (DATA / movie.folder).is_dir():
            _, _, figures = score_untrained(movie, DATA)
            for key in ("edge_f1", "division_f1"):
                value = figures[key]
                if isinstance(value, float):
                    found[f"{movie.name}, {key}"] = value
    return found


def losses() -> Figures:
    """The six losses of the sample's annotations, summed over the samples of the training set.

    Of every other shipped weight: with all of them the sample has no wrong event.
    """
    truth = bt.read_ctc(SAMPLE / "01_GT" / "TRA")
    scene = run(prepare(truth.labels, bt.open_movie(SAMPLE / "01")))
    scene = annotate(scene, load_annotations(SAMPLE / "annotations.json"))
    model = TrackingModel(build_training_set(scene))
    w = shipped_model().aligned(scene.matrix.features) * (np.arange(model.n_features) % 2)
    risks = {name: Risk(model, model.data.samples, None, loss) for name, loss in LOSSES.items()}
    return {name: float(risk.loss_of_each(w).sum()) for name, risk in risks.items()}


def wrong_after_answers(task: Task, seed: int) -> int:
    """Wrong events of the later half after training on suggested answers."""
    *_, (_, answers) = suggested_answers(task, seed, [ANSWERS], wrong=0.0)
    scene = annotate(task.train.scene, answers)
    model = run(train_steps(scene, shipped_model())).model
    return len(score(task, model.aligned(scene.matrix.features)).wrong)


def suggested() -> Figures:
    """Wrong events untrained and after 50 suggested answers, a figure a seed."""
    found: Figures = {}
    for data in ANSWERED:
        part, name = load(data), data.name
        if part is None:
            continue
        task = halved(name, part)
        start = shipped_model().aligned(task.train.scene.matrix.features)
        found[f"{name}, untrained"] = len(score(task, start).wrong)
        for seed in range(SEEDS):
            found[f"{name}, seed {seed}"] = wrong_after_answers(task, seed)
            print(f"{name}, seed {seed}: {found[f'{name}, seed {seed}']:g}", file=sys.stderr)
    return found


def raw() -> Figures:
    """Edge F1 and complete tracks from raw frames, without a click."""
    found: Figures = {}
    for name in ("hela", "psc"):
        task = open_task(RAW_MOVIES[name], DATA, (0, RAW_FRAMES))
        if task is None:
            continue
        labels = bt.find_cells(task.image).labels
        frames = [np.asarray(frame)[0] for frame in labels.array]
        figures = scored(task, frames)
        for key in ("edge_f1", "complete_tracks"):
            found[f"{name}, {key}"] = float(figures[key])
    return found


def crowd(cells: int = 1000, frames: int = 100, seed: int = 0) -> np.ndarray:
    """Discs that wander about the nodes of a grid, shape (frames, Y, X)."""
    rng = np.random.default_rng(seed)
    side, pitch = int(np.ceil(np.sqrt(cells))), 24
    place = np.stack(np.divmod(np.arange(cells), side), axis=1) * pitch + pitch // 2
    place = place.astype(float)
    disc = np.argwhere(np.hypot(*np.mgrid[-6:7, -6:7]) <= 6) - 6
    movie = np.zeros((frames, side * pitch + 1, side * pitch + 1), dtype=np.uint16)
    for frame in movie:
        at = np.rint(place).astype(int)[:, None] + disc
        at = np.clip(at, 0, frame.shape[0] - 1)
        frame[at[..., 0], at[..., 1]] = np.arange(1, cells + 1)[:, None]
        place += rng.normal(scale=1.5, size=place.shape)
    return movie


def cost() -> Figures:
    """Seconds and MB of ``bridgetrack track``, the smallest of three runs."""
    seconds, megabytes = [], []
    with tempfile.TemporaryDirectory() as folder:
        labels = Path(folder) / "labels.tif"
        tifffile.imwrite(labels, crowd(), compression="zlib")
        for k in range(3):
            command = [sys.executable, "-m", "bridgetrack", "track", str(labels)]
            command += ["--out", str(Path(folder) / f"result{k}")]
            begin = time.perf_counter()
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            if status:
                sys.exit(f"{' '.join(command)} failed")
            seconds.append(time.perf_counter() - begin)
            megabytes.append(usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2))
    return {"seconds": min(seconds), "MB": min(megabytes)}


PARTS: dict[str, Callable[[], Figures]] = {
    "untrained": untrained,
    "losses": losses,
    "suggested": suggested,
    "raw": raw,
    "cost": cost,
}


def same(part: str, key: str, then: Figures, now: Figures) -> bool:
    """Whether a figure stands where it must."""
    if part == "raw":
        return abs(now[key] - then[key]) <= 0.003
    if part == "cost":
        return now[key] <= 1.1 * then[key]
    if part == "suggested" and "seed" in key:
        name = key.rpartition(",")[0]
        mine, theirs = ([f[k] for k in f if k.startswith(f"{name}, seed")] for f in (now, then))
        return bool(np.mean(mine) - np.mean(theirs) <= max(1.0, np.std(theirs, ddof=1)))
    return abs(now[key] - then[key]) <= 1e-9 * max(1.0, abs(then[key]))


def main() -> None:
    """Print the figures, and compare or keep them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--write", action="store_true", help="keep the figures of now")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=KEPT.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    failed = 0
    for part in given.parts or PARTS:
        now = PARTS[part]()
        then = kept.get(part, {}).get("figures", {})
        for key, value in now.items():
            known = key in then
            good = known and same(part, key, then, now)
            failed += known and not good
            beside = f"{then[key]:12.6g}" if known else " " * 12
            mark = "" if good else "  differs" if known else "  new"
            print(f"{part:10s} {key:45s} {beside} {value:12.6g}{mark}", flush=True)
        if given.write:
            kept[part] = {"commit": commit, "figures": now}
            KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    if failed and not given.write:
        sys.exit(f"{failed} figures differ from those at {KEPT.name}")


if __name__ == "__main__":
    main()
