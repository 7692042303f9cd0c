"""Drive the real plugin on the sample movie and save pictures of it to docs/images.

Run by `make screenshots`; on Linux without a screen it needs xvfb-run.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

OUT = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1366, 768


class Camera:
    """A viewer with the workflow, a pointer and a camera."""

    def __init__(self, theme: str) -> None:
        import napari
        from qtpy.QtWidgets import QApplication

        self.viewer = napari.Viewer(show=True)
        self.viewer.theme = theme
        self.theme = theme
        self.viewer.window.resize(WIDTH, HEIGHT)
        _, self.widget = self.viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
        from bridgetrack.ui.state import state_of

        self.state = state_of(self.viewer)
        self.wait(300)
        kinds = [w for w in QApplication.allWidgets() if "CanvasBackend" in type(w).__name__]
        self.canvas = next(w for w in kinds if w.isVisible())
        self.frames: list[Any] = []

    def wait(self, milliseconds: int) -> None:
        """Let the event loop run."""
        from qtpy.QtTest import QTest

        QTest.qWait(milliseconds)

    def until(self, done: Callable[[], bool], seconds: float = 900) -> None:
        """Let the event loop run until something has happened."""
        limit = time.monotonic() + seconds
        while not done():
            if time.monotonic() > limit:
                sys.exit("the plugin took too long")
            self.wait(30)

    def pixel(self, world: Any) -> Any:
        """Where a position lies on the canvas."""
        from qtpy.QtCore import QPoint

        from bridgetrack.ui.layers import camera_of

        camera = camera_of(self.viewer)
        centre = np.array([self.canvas.height(), self.canvas.width()]) / 2
        y, x = (np.asarray(world)[-2:] - np.array(camera.center[-2:])) * camera.zoom + centre
        return QPoint(round(x), round(y))

    def point(self, row: int) -> None:
        """Move the pointer onto a cell."""
        from qtpy.QtCore import QEvent, QPointF, Qt
        from qtpy.QtGui import QMouseEvent
        from qtpy.QtWidgets import QApplication

        where = self.pixel(self.state.session.scene.detections.position[row])
        none = Qt.MouseButton.NoButton
        move = QMouseEvent(
            QEvent.Type.MouseMove, QPointF(where), QPointF(self.canvas.mapToGlobal(where)),
            none, none, Qt.KeyboardModifier.NoModifier,
        )  # fmt: skip
        QApplication.sendEvent(self.canvas, move)
        self.wait(60)

    def click(self, row: int) -> None:
        """Click a cell."""
        from qtpy.QtCore import Qt
        from qtpy.QtTest import QTest

        self.point(row)
        where = self.pixel(self.state.session.scene.detections.position[row])
        QTest.mouseClick(self.canvas, Qt.MouseButton.LeftButton, pos=where)
        self.wait(60)

    def key(self, name: str) -> None:
        """Press a key."""
        from qtpy.QtCore import Qt
        from qtpy.QtTest import QTest

        QTest.keyClick(self.canvas, getattr(Qt.Key, f"Key_{name}"))
        self.wait(300)  # no question is answered before it was in view for a moment

    def picture(self) -> Any:
        """The window as it is."""
        self.wait(150)
        return self.viewer.screenshot(canvas_only=False, flash=False)

    def save(self, name: str) -> None:
        """Save the window as a PNG."""
        from PIL import Image

        picture = Image.fromarray(np.ascontiguousarray(self.picture()[..., :3]))
        small = picture.quantize(224, dither=Image.Dither.NONE)
        small.save(OUT / f"{name}-{self.theme}.png", optimize=True)

    def film(self, count: int = 1) -> None:
        """Add the window to the tour, shown for `count` moments."""
        from skimage.transform import resize

        picture = self.picture()[..., :3]
        small = resize(picture, (HEIGHT * 5 // 8, WIDTH * 5 // 8), anti_aliasing=True)
        self.frames += [(255 * small).astype(np.uint8)] * count

    @property
    def session(self) -> Any:
        """The session of the viewer."""
        return self.state.session

    def go_to(self, row: int, close: bool = False) -> None:
        """Show the frame of a cell, or the cell itself from near."""
        detections = self.session.scene.detections
        place = tuple(float(p) for p in detections.table[["y", "x"]].to_numpy()[row])
        self.state.canvas.show(int(detections.frame[row]), place if close else None)
        self.wait(200)

    def chosen(self, row: int) -> Any:
        """What the tracking holds for a cell."""
        from bridgetrack.session.cells import proposals

        return proposals(self.state.session.tracking, row, limit=1)[0].event


def shoot(theme: str) -> None:
    """All pictures, and the tour."""
    camera = Camera(theme)
    for part in (choose_cells, review, mend, suggest, give_more, train, track):
        part(camera)
    save_tour(camera.frames)
    for part in (check_sample, explore):
        part(camera)
    camera.viewer.close()
    camera.wait(200)


def choose_cells(camera: Camera) -> None:
    """Open the sample."""
    camera.widget.open_step(0)
    camera.film(3)
    camera.widget.segment.sample.click()
    camera.until(lambda: camera.session.tracking is not None)
    camera.wait(300)
    camera.film(5)
    find_cells(camera)


def find_cells(camera: Camera) -> None:
    """Look at the live preview, then find the cells of all frames."""
    from bridgetrack.ui.layers import find_role

    panel = camera.widget.segment
    section = panel.finding
    section.open()
    panel.find.live.setChecked(True)
    camera.until(lambda: find_role(camera.viewer.layers, "preview") is not None)
    camera.viewer.layers["Cells"].visible = False
    camera.film(4)
    panel.find.live.setChecked(False)
    # The true cells that came with the sample would leave nothing to learn.
    camera.viewer.layers.remove("Cells")
    camera.until(lambda: camera.session.movie is None)
    panel.find.go.click()
    camera.until(lambda: camera.session.tracking is not None)
    section.open(False)
    camera.wait(300)
    camera.film(3)


def true_labels() -> Any:
    """The true masks of the sample."""
    from bridgetrack.files import sample_folder
    from bridgetrack.movie import open_labels

    return np.asarray(open_labels(sample_folder() / "01_GT" / "TRA").array[:, 0].compute())


def mend(camera: Camera) -> None:
    """Cut two nuclei that are drawn as one."""
    truth, session = true_labels(), camera.session
    cells = np.asarray(session.movie.labels.array[:, 0].compute())
    size = np.array([np.bincount(t.ravel(), minlength=truth.max() + 1) for t in truth])

    def joined(t: int, label: int) -> bool:
        inside = np.bincount(truth[t][cells[t] == label], minlength=size.shape[1])
        return int((inside[1:] > 0.7 * np.maximum(size[t][1:], 1)).sum()) > 1

    detections = session.scene.detections
    away = np.abs(detections.position - 126).max(axis=1)
    rows = [
        r
        for r in np.argsort(away)[:900].tolist()
        if joined(int(detections.frame[r]), int(detections.label[r]))
    ]
    camera.go_to(rows[0], close=True)
    camera.point(rows[0])
    camera.film(3)
    camera.key("K")
    camera.key("Return")
    camera.until(lambda: not session.busy("measure", "track"))
    camera.save("mend")
    camera.film(4)
    camera.key("Escape")


def mothers(camera: Camera) -> list[int]:
    """Dividing cells, those near the middle of the image first."""
    events = camera.session.tracking.tracks.events
    rows = [int(s[0]) for s in events.loc[events["event"] == "divide", "sources"]]
    position = camera.session.scene.detections.position
    return sorted(rows, key=lambda r: float(np.linalg.norm(position[r] - 126)))


def review(camera: Camera) -> None:
    """Say yes to some proposals."""
    from bridgetrack.hypotheses.events import Event

    camera.widget.open_step(1)
    first = mothers(camera)[0]
    camera.go_to(first, close=True)
    moving = [r for r in near(camera, first) if camera.chosen(r).event == Event.MOVE]
    for row in moving[:4]:
        camera.point(row)
        camera.film(2)
        camera.click(row)
        camera.key("Return")
        camera.film()
    camera.point(first)
    camera.film(4)
    camera.save("annotate")
    camera.click(first)
    camera.key("Return")
    camera.film(2)


def near(camera: Camera, row: int) -> list[int]:
    """Other cells of the frame, the nearest first."""
    detections = camera.session.scene.detections
    rows = np.flatnonzero(detections.frame == detections.frame[row])
    away = np.linalg.norm(detections.position[rows] - detections.position[row], axis=1)
    return rows[np.argsort(away)][1:].tolist()


def suggest(camera: Camera) -> None:
    """Let the model ask, and answer truly what it asks."""
    from bridgetrack.annotations.from_tracks import read_events

    sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
    from simulated_annotator import SimulatedAnnotator

    asker, cells = camera.session.questions, camera.session.scene.detections
    annotator = SimulatedAnnotator(read_events(true_events_of(camera.session), cells), cells)
    camera.widget.open_step(1)
    asker.prepare()
    camera.until(lambda: not asker.busy)
    camera.widget.annotate.next.click()
    for k in range(30):
        camera.until(lambda: asker.current is not None)
        if k in (1, 2):
            camera.film(3)
            camera.widget.annotate.frames.picked.emit(asker.current.last_frame)
            camera.film(3)
        if asker.current is None:
            continue  # what was learned meanwhile brings another question
        true = annotator.truth(asker.current.slot)
        listed = [e.key for e in (asker.current.event, *asker.current.alternatives)]
        if true is None or true.key not in listed:
            camera.key("U")
        else:
            camera.key("Return" if true.key == listed[0] else str(1 + listed.index(true.key)))
    camera.until(lambda: not asker.busy and asker.current is not None)
    camera.wait(2000)
    camera.save("suggest")
    camera.film(5)
    camera.key("Escape")
    camera.widget.open_step(1)


def give_more(camera: Camera) -> None:
    """Enough answers for training, as somebody gives them who sees what is right."""
    from bridgetrack.annotations.anchor import event_refs
    from bridgetrack.annotations.annotation import Kind
    from bridgetrack.hypotheses.events import Event

    truth = true_events_of(camera.session)
    rng = np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(truth.event == e)) for e in Event]
    picked = np.concatenate(
        [r[: 14 if e == Event.MOVE else 6] for e, r in zip(Event, rows, strict=True)]
    )
    refs = event_refs(camera.session.scene.detections, truth.take(picked))
    for ref in refs:
        camera.session.answers.answer([(Kind.CONFIRM, ref)], "click")
        camera.wait(5)
    camera.until(lambda: not camera.session.busy("track", "correct"))


def true_events_of(session: Any) -> Any:
    """What truly happens to the cells that were found."""
    from bridgetrack.evaluation.truth import true_events
    from bridgetrack.files import sample_folder
    from bridgetrack.io.ctc import read_ctc

    truth = read_ctc(sample_folder() / "01_GT" / "TRA")
    cells = session.scene.detections
    return true_events(cells, session.movie.labels, truth.tracks, truth.labels)


def train(camera: Camera) -> None:
    """Learn, and see how accurate it is on answers held out."""
    from bridgetrack.session.training import JUDGING

    trainer = camera.state.session.trainer
    camera.widget.open_step(2)
    camera.widget.train.go.click()
    camera.until(lambda: camera.widget.work.bar.value() > 6 or trainer.training is not None)
    camera.film(3)
    camera.until(lambda: trainer.training is not None)
    camera.until(lambda: not camera.session.busy("track", "correct", JUDGING))
    camera.film(6)
    camera.save("train")


def track(camera: Camera) -> None:
    """Show the tracks."""
    from bridgetrack.ui.layers import find_role

    camera.widget.open_step(3)
    layers = camera.viewer.layers
    roles = ("tracks", "coloured")
    camera.until(lambda: all(getattr(find_role(layers, r), "visible", False) for r in roles))
    for k in range(0, 36, 3):
        camera.state.canvas.show(k, None)
        camera.film()
    camera.film(5)
    camera.save("track")


def check_sample(camera: Camera) -> None:
    """Judge events drawn at random."""
    from bridgetrack.ui import track_panel

    box, asker = camera.widget.track.check, camera.session.questions
    camera.widget.open_step(3)
    track_panel.EACH = 10
    box.go.click()
    for _ in range(10):
        camera.until(lambda: asker.current is not None)
        camera.wait(300)
        camera.key("Return")
    camera.until(lambda: not asker.check.running)
    camera.save("checked")


def explore(camera: Camera) -> None:
    """Look at the family trees."""
    from bridgetrack.ui.explore_panel import ExplorePanel

    panel = camera.widget.track
    camera.widget.open_step(3)
    camera.viewer.window.resize(WIDTH, HEIGHT + 160)
    panel.explore.click()
    camera.wait(300)
    (below,) = panel.window().findChildren(ExplorePanel)
    camera.until(lambda: below.numbers is not None)
    table = below.numbers.table
    mother = int(table.loc[table["divisions"].idxmax(), "track_id"])
    below.list.picked.emit([mother])
    camera.wait(300)
    below.tabs.setCurrentIndex(1)
    camera.wait(500)
    camera.save("explore-trees")


def save_tour(frames: list[Any]) -> None:
    """An animated GIF; pauses are long frames, so that it stays small."""
    from PIL import Image

    # One palette for all, or colours would change from picture to picture.
    sheet = np.concatenate(frames[:: max(len(frames) // 12, 1)], axis=0)
    palette = Image.fromarray(sheet).quantize(255, Image.Quantize.MEDIANCUT)
    pictures: list[Image.Image] = []
    lengths: list[int] = []
    before: Any = None
    for frame in frames:
        if before is not None and np.array_equal(frame, before):
            lengths[-1] += 350
            continue
        before = frame
        small = Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
        pictures.append(small)
        lengths.append(350)
    pictures[0].save(
        OUT / "tour.gif", save_all=True, append_images=pictures[1:], duration=lengths, loop=0,
        optimize=True,
    )  # fmt: skip


def main() -> None:
    """Take the pictures."""
    OUT.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        # Answers of the sample go to the user's data folder; not to that of this user.
        os.environ["XDG_DATA_HOME"] = folder
        shoot("dark")


if __name__ == "__main__":
    main()
