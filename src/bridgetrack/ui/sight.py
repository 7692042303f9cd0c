"""Which slice of the movie is in view, and going to another."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.ui.layers import camera_of
from bridgetrack.ui.session import Session


class Sight:
    """Between the viewer's world and frames, planes and pixels of the segmentation."""

    def __init__(self, viewer: Any, session: Session) -> None:
        self._viewer = weakref.ref(viewer)
        self._session = session

    @property
    def viewer(self) -> Any:
        """The viewer; None once it is closed."""
        return self._viewer()

    @property
    def labels(self) -> Any:
        """The layer of the cells, None without a movie."""
        source = self._session.source
        return None if source is None else source.layers[1]

    @property
    def frame(self) -> int:
        """The frame in view."""
        scene, viewer = self._session.scene, self.viewer
        if scene is None or viewer is None:
            return 0
        last = scene.detections.geometry.n_frames - 1
        return min(max(round(self._data_point()[0]), 0), max(last, 0))

    @property
    def plane(self) -> float | None:
        """The plane in view of a 3D movie, in pixels; None in 2D."""
        scene, viewer = self._session.scene, self.viewer
        if scene is None or viewer is None or scene.detections.geometry.ndim == 2:
            return None
        return self._data_point()[1]

    @property
    def depth(self) -> float:
        """Distance of two planes of a 3D movie, in pixels along x."""
        labels = self.labels
        flat = labels is None or labels.ndim < 4
        return 1.0 if flat else float(labels.scale[1] / labels.scale[-1])

    @property
    def extent(self) -> NDArray[np.float64]:
        """Height and width of a frame in pixels, shape (2,)."""
        scene = self._session.scene
        if scene is not None and scene.detections.geometry.shape is not None:
            return np.asarray(scene.detections.geometry.shape[-2:], dtype=np.float64)
        return np.asarray(self.labels.extent.data[1][-2:], dtype=np.float64) + 1

    def show(self, frame: int, position: tuple[float, ...] | None, size: float) -> None:
        """Go to a frame and, where given, to a position in pixels, so that cells of a size in
        pixels are seen well."""
        viewer, labels = self.viewer, self.labels
        if viewer is None or labels is None:
            return
        # The viewer may have more axes than the movie.
        axis = int(viewer.dims.ndim - labels.ndim)
        inside = (0.0,) * (labels.ndim - 1) if position is None else self._inwards(position)
        world = [float(w) for w in labels.data_to_world((frame, *inside))]
        viewer.dims.set_point(axis, world[0])
        if position is None:
            return
        if labels.ndim == 4:
            viewer.dims.set_point(axis + 1, world[1])
        camera = camera_of(viewer)
        camera.center = (0.0, *world[-2:])
        camera.zoom = max(camera.zoom, 40.0 / (size * float(labels.scale[-1])))

    def _data_point(self) -> tuple[float, ...]:
        """The point of the slice in view, in frames and pixels."""
        return tuple(float(p) for p in self.labels.world_to_data(self.viewer.dims.point))

    def _inwards(self, position: tuple[float, ...]) -> tuple[float, ...]:
        """A position near an edge is shown off-centre, so that the image fills the view."""
        flat = np.asarray(position[-2:])
        moved = flat + 0.55 * (self.extent / 2 - flat)
        return (*position[:-2], *(float(p) for p in moved))
