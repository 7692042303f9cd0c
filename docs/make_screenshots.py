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
WIDTH, HEIGHT = 1280, 800
STEPS = ("cells", "annotate", "train", "track")


class Camera:
    """A viewer with the workflow, a pointer and a camera."""

    def __init__(self, theme: str, tour: bool) -> None:
        import napari
        from qtpy.QtWidgets import QApplication

        self.viewer = napari.Viewer(show=True)
        self.viewer.theme = theme
        self.theme, self._tour = theme, tour
        self.viewer.window.resize(WIDTH, HEIGHT)
        _, self.widget = self.viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
        from bridgetrack.ui.desk import desk_of

        self.desk = desk_of(self.viewer)
        self.wait(300)
        kinds = [w for w in QApplication.allWidgets() if "CanvasBackend" in type(w).__name__]
        self.canvas = next(w for w in kinds if w.isVisible())
        self.frames: list[Any] = []

    def wait(self, milliseconds: int) -> None:
        """Let the event loop run."""
        from qtpy.QtTest import QTest

        QTest.qWait(milliseconds)

    def until(self, done: Callable[[], bool], seconds: float = 180) -> None:
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

        where = self.pixel(self.desk.session.scene.detections.position[row])
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
        where = self.pixel(self.desk.session.scene.detections.position[row])
        QTest.mouseClick(self.canvas, Qt.MouseButton.LeftButton, pos=where)
        self.wait(60)

    def key(self, name: str) -> None:
        """Press a key."""
        from qtpy.QtCore import Qt
        from qtpy.QtTest import QTest

        QTest.keyClick(self.canvas, getattr(Qt.Key, f"Key_{name}"))
        self.wait(60)

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

        if not self._tour:
            return
        picture = self.picture()[..., :3]
        small = resize(picture, (HEIGHT * 5 // 8, WIDTH * 5 // 8), anti_aliasing=True)
        self.frames += [(255 * small).astype(np.uint8)] * count

    @property
    def session(self) -> Any:
        """The session of the viewer."""
        return self.desk.session

    def go_to(self, row: int) -> None:
        """Show the frame of a cell."""
        self.desk.canvas.show(int(self.session.scene.detections.frame[row]), None)
        self.wait(200)

    def rows(self, frame: int) -> list[int]:
        """Cells of a frame, those near the middle first."""
        detections = self.desk.session.scene.detections
        found = np.flatnonzero(detections.frame == frame)
        away = np.linalg.norm(detections.position[found] - 126, axis=1)
        return found[np.argsort(away)].tolist()

    def chosen(self, row: int) -> Any:
        """What the tracking holds for a cell."""
        from bridgetrack.ui.proposals import chosen_event

        return chosen_event(self.desk.session.tracking, row)


def unfold(widget: Any) -> None:
    """Open the folded sections."""
    from superqt import QCollapsible

    for section in widget.findChildren(QCollapsible):
        section.expand(animate=False)


def shoot(theme: str, tour: bool) -> None:
    """All pictures in one theme."""
    camera = Camera(theme, tour)
    for k, name in enumerate(STEPS):
        camera.widget.open_step(k)
        camera.save(f"{name}-empty")
    for part in (choose_cells, review, pick, give_more, train, track, export):
        part(camera)
    if tour:
        save_tour(camera.frames)
    camera.viewer.close()
    camera.wait(200)


def choose_cells(camera: Camera) -> None:
    """Open the sample."""
    camera.widget.open_step(0)
    camera.film(3)
    camera.widget.segment.sample.click()
    camera.until(lambda: camera.session.tracking is not None)
    camera.wait(300)
    camera.save("cells")
    camera.film(5)


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
    camera.go_to(first)
    frame = int(camera.session.scene.detections.frame[first])
    moving = [r for r in camera.rows(frame) if camera.chosen(r).event == Event.MOVE]
    for row in moving[1:5]:
        camera.point(row)
        camera.film(2)
        camera.click(row)
        camera.film()
    camera.point(first)
    camera.film(4)
    camera.save("annotate")
    camera.click(first)
    camera.film(2)


def pick(camera: Camera) -> None:
    """Annotate a division by three clicks."""
    other = mothers(camera)[1]
    camera.go_to(other)
    camera.point(other)
    detections = camera.session.scene.detections
    daughters = [detections.row_of(*c.cell) for c in camera.chosen(other).targets]
    camera.key("Y")
    camera.film(3)
    camera.click(daughters[0])
    camera.film(3)
    camera.save("picking")
    camera.click(daughters[1])
    camera.film(3)
    camera.key("V")


def give_more(camera: Camera) -> None:
    """Enough answers for training."""
    rows = mothers(camera)[2:7]
    for frame in range(0, 35, 5):
        rows += camera.rows(frame)[:3]
    for row in rows:
        camera.desk.annotator.point_at(row)
        camera.desk.annotator.accept()
    camera.until(lambda: not camera.session.busy("track", "correct"))


def train(camera: Camera) -> None:
    """Learn."""
    trainer = camera.desk.trainer
    camera.widget.open_step(2)
    camera.widget.train.go.click()
    camera.until(lambda: len(trainer.curve) > 6 or trainer.training is not None)
    camera.film(3)
    camera.until(lambda: trainer.training is not None)
    camera.until(lambda: not camera.session.busy("track", "correct"))
    camera.film(6)
    camera.save("train")


def track(camera: Camera) -> None:
    """Show the tracks, and the least certain of them."""
    panel = camera.widget.track
    camera.widget.open_step(3)
    panel.go.click()
    camera.until(lambda: panel.doubts.rowCount() > 0)
    for k in range(0, 36, 3):
        camera.desk.canvas.show(k, None)
        camera.film()
    panel.doubts.cellClicked.emit(0, 0)
    camera.wait(200)
    camera.film(5)
    camera.save("track")
    panel.colour.setCurrentIndex(1)
    camera.film(4)
    camera.save("certainty")
    panel.colour.setCurrentIndex(0)


def export(camera: Camera) -> None:
    """Show a family tree and the table to be exported."""
    from qtpy.QtWidgets import QScrollArea

    panel = camera.widget.track
    unfold(panel)
    nodes = camera.session.tracking.tracks.nodes
    large = nodes.groupby("lineage_id")["track_id"].nunique().idxmax()
    camera.desk.annotator.point_at(int(nodes.loc[nodes["lineage_id"] == large, "id"].iloc[-1]))
    area = camera.widget.stack.currentWidget()
    assert isinstance(area, QScrollArea)
    camera.wait(200)
    area.ensureWidgetVisible(panel.export)
    camera.save("export")
    camera.film(5)


def save_tour(frames: list[Any]) -> None:
    """An animated GIF; pauses are long frames, so that it stays small."""
    from PIL import Image

    pictures: list[Image.Image] = []
    lengths: list[int] = []
    before: Any = None
    for frame in frames:
        if before is not None and np.array_equal(frame, before):
            lengths[-1] += 350
            continue
        before = frame
        small = Image.fromarray(frame).quantize(
            128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
        pictures.append(small)
        lengths.append(350)
    pictures[0].save(
        OUT / "tour.gif", save_all=True, append_images=pictures[1:], duration=lengths, loop=0,
        optimize=True,
    )  # fmt: skip


def main() -> None:
    """Both themes."""
    OUT.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for theme in ("dark", "light"):
            # Answers of the sample go to the user's data folder; not to that of this user.
            os.environ["XDG_DATA_HOME"] = str(Path(folder) / theme)
            shoot(theme, tour=theme == "dark")


if __name__ == "__main__":
    main()
