"""CPU time from a click that mends masks to the result, with 300 cells in frames of 1100 x 700.

    python benchmarks/mend_time.py             # the library and a session
    xvfb-run -a python benchmarks/mend_time.py --window

All figures are processor time of the calling thread, so that a busy machine counts for little.
The library is the change alone; the session also has reading the frame, writing the answer down
and changing the pixels, all that comes before the masks show it. The tracks follow in the
background. In the window, from the key to the pixels of the layer, in the window's own thread.
Simulated movies; the cells that are cut were drawn as one before. *Taught*: strokes have taught
what a cell is, and the first click in a frame waits for its probabilities.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage as ndi

import bridgetrack as bt
from bridgetrack.errors import InputError
from bridgetrack.regions.acts import cut, grow, join, outline, remove
from bridgetrack.regions.mend import MendSite
from bridgetrack.segmentation import SegmentationSettings
from bridgetrack.segmentation.builtin import complete_settings

GOAL = 0.3
SHAPE, PITCH, RADIUS = (700, 1100), 50, 11
CLICKS = 12


def movie(frames: int = 3) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """Image, labels of pairs of touching cells, some pairs drawn as one, and their labels."""
    rng = np.random.default_rng(0)
    grid = np.indices((2 * PITCH, 2 * PITCH)).reshape(2, -1).T - PITCH
    labels = np.zeros((frames, *SHAPE), dtype=np.uint16)
    number, pairs = 0, []
    for y in range(PITCH // 2, SHAPE[0] - PITCH // 2, PITCH):
        for x in range(PITCH // 2, SHAPE[1] - PITCH // 2, PITCH):
            turn = rng.uniform(0, np.pi)
            step = 0.9 * RADIUS * np.array([np.sin(turn), np.cos(turn)])
            for side in (-1, 1):
                number += 1
                disc = grid[np.linalg.norm(grid - side * step, axis=1) <= RADIUS]
                nearer = np.linalg.norm(disc - side * step, axis=1) <= np.linalg.norm(
                    disc + side * step, axis=1
                )
                place = disc[nearer] + (y, x)
                inside = ((place >= 0) & (place < SHAPE)).all(axis=1)
                labels[:, place[inside, 0], place[inside, 1]] = number
            pairs.append((number - 1, number))
    level = rng.uniform(50, 100, number + 1)
    level[0] = 0
    image = np.stack([ndi.gaussian_filter(level[frame], 1.0) for frame in labels]) + 20
    image = (image + rng.normal(0, 2, image.shape)).astype(np.float32)
    for first, second in pairs[::2]:
        labels[labels == second] = first
    return image, labels, pairs[::2]


def middle(labels: np.ndarray, label: int) -> tuple[float, ...]:
    """A pixel of a cell."""
    inside = np.argwhere(labels == label)
    return tuple(float(k) for k in inside[len(inside) // 2])


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    """Note the CPU seconds that a block takes; nothing where it refuses."""
    start = time.thread_time()
    try:
        yield
    except InputError:
        return
    into.append(time.thread_time() - start)


def report(name: str, seconds: list[float]) -> None:
    """A line of the table."""
    ms = 1000 * np.array(seconds)
    print(
        f"- {name}: {len(ms)} clicks: median {np.median(ms):4.0f} ms, longest {ms.max():4.0f}",
        flush=True,
    )


def library(image: np.ndarray, labels: np.ndarray, pairs: list[tuple[int, int]]) -> None:
    """Time the functions that change a frame."""
    known = complete_settings([image[1]], SegmentationSettings(diameter=2.0 * RADIUS))
    site = MendSite(1, labels[1], known, int(labels.max()) + 1, image[1])
    empty = np.where(np.isin(labels[1], [p[0] for p in pairs]), 0, labels[1])
    bare = MendSite(1, empty, known, site.free, image[1])
    there = [middle(labels[1], p[0]) for p in pairs[:CLICKS]]
    apart = [k for k in np.unique(labels[1]).tolist() if k > 0 and k % 4 == 0][:CLICKS]
    acts: dict[str, Callable[[int], Any]] = {
        "cut": lambda k: cut(site, there[k]),
        "outline": lambda k: outline(site, there[k]),
        "remove": lambda k: remove(site, there[k]),
        "grow": lambda k: grow(bare, there[k]),
        "join": lambda k: join(site, middle(labels[1], apart[k]), middle(labels[1], apart[k] - 1)),
    }
    for name, act in acts.items():
        seconds: list[float] = []
        for k in range(CLICKS):
            with timed(seconds):
                act(k)
        report(f"library, {name}", seconds)


def painted(image: np.ndarray, labels: np.ndarray) -> bt.PixelModel:
    """What some strokes teach."""
    strokes = np.zeros(labels.shape, dtype=np.uint8)
    strokes[0, 40::90] = np.where(labels[0, 40::90] > 0, 2, 1)
    return bt.learn_pixels(image, strokes)


def session(
    image: np.ndarray,
    labels: np.ndarray,
    pairs: list[tuple[int, int]],
    folder: Path,
    pixels: bt.PixelModel | None = None,
) -> None:
    """Time `Session.mend` until the masks are changed and the answer is on disk."""
    folder.mkdir(exist_ok=True)
    made = bt.Session(labels.copy(), image, answers=folder / "cells.annotations.json")
    if pixels is not None:
        made.teach(pixels)
    seconds: list[float] = []
    begun = 0.0

    def shown(_: Any) -> None:
        seconds.append(time.thread_time() - begun)

    made.masks_changed.connect(shown)
    for pair in pairs[:CLICKS]:
        begun = time.thread_time()
        made.mend("cut", 1, middle(labels[1], pair[0]))
    if pixels is not None:
        report("taught, first cut in frame", seconds[:1])
        report("taught, cut", seconds[1:])
    else:
        report("session, cut", seconds)
    made.close()


def window(image: np.ndarray, labels: np.ndarray, pairs: list[tuple[int, int]]) -> None:
    """Time the key until the layer shows other pixels, and until the window has drawn them."""
    import napari
    from qtpy.QtCore import QPoint, Qt
    from qtpy.QtTest import QTest
    from qtpy.QtWidgets import QApplication

    from bridgetrack.ui.layers import camera_of
    from bridgetrack.ui.panel import state_of

    viewer = napari.Viewer(show=True)
    viewer.window.resize(1200, 800)
    viewer.add_image(image, name="image")
    layer = viewer.add_labels(labels.copy(), name="cells")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    while state.session.tracking is None:
        QTest.qWait(50)
    widget.open_step(1)
    state.canvas.show(1, None)
    QTest.qWait(300)
    kinds = [w for w in QApplication.allWidgets() if "CanvasBackend" in type(w).__name__]
    canvas = next(w for w in kinds if w.isVisible())
    camera: Any = camera_of(viewer)
    changed, drawn = [], []
    for pair in pairs[:CLICKS]:
        state.annotator.set_mode(type(state.annotator.picking.mode).CUT)
        centre = np.array([canvas.height(), canvas.width()]) / 2
        place = np.array(middle(labels[1], pair[0]))
        where = (place - np.array(camera.center[-2:])) * camera.zoom + centre
        spot = QPoint(round(where[1]), round(where[0]))
        before = (layer.data[1] == pair[0]).sum()
        QTest.mouseMove(canvas, spot)
        QTest.qWait(50)
        start = time.thread_time()
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=spot)
        changed.append(time.thread_time() - start)
        assert (layer.data[1] == pair[0]).sum() < before, "the click cut its cell"
        canvas.repaint()
        drawn.append(time.thread_time() - start)
        while state.session.busy("measure", "track", "propose"):
            QTest.qWait(20)
    report("window, pixels changed", changed)
    report("window, drawn", drawn)
    viewer.close()


def main() -> None:
    """Print one line per kind of click."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--window", action="store_true", help="with a screen: the plugin too")
    chosen = parser.parse_args()
    image, labels, pairs = movie()
    print(f"- {len(np.unique(labels[1])) - 1} masks of {SHAPE}; goal {1000 * GOAL:.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        library(image, labels, pairs)
        session(image, labels, pairs, Path(folder) / "plain")
        session(image, labels, pairs, Path(folder) / "taught", painted(image, labels))
        if chosen.window:
            window(image, labels, pairs)


if __name__ == "__main__":
    main()
