"""Which cells are those of which movie, as far as this window has seen them together."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from bridgetrack.ui.layers import name_of, path_of, placed_like, role_of


class Pairs:
    """Remembers the layers that were open together.

    A movie is known by its file: its other channels, and the same file opened again, have the same
    cells. Arrays have none; those that are drawn through each other are channels.
    """

    def __init__(self) -> None:
        self._movies: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()
        self._images: weakref.WeakKeyDictionary[Any, weakref.WeakSet[Any]]
        self._images = weakref.WeakKeyDictionary()
        self._cells: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()

    def join(self, image: Any, cells: Any) -> None:
        """These belong together."""
        if image is not None and cells is not None:
            self._movies.setdefault(cells, {})[_mark(image)] = str(image.name)
            self._images.setdefault(cells, weakref.WeakSet()).add(image)
            self._cells[image] = weakref.ref(cells)

    def part(self, image: Any) -> None:
        """Somebody wants no cells for this movie."""
        self._cells.pop(image, None)

    def cells_of(self, image: Any) -> Any | None:
        """The layer of the cells that were used with a movie last; None where there were none."""
        known = self._cells.get(image)
        return None if known is None else known()

    def apart(self, one: Any, other: Any) -> bool:
        """Whether two images are of different movies."""
        return _mark(one) != _mark(other) and not _are_channels(one, other)

    def movie_of(self, image: Any, cells: Any) -> str:
        """The movie whose cells these are, where it is another one; otherwise nothing."""
        if image is None or cells is None:
            return ""
        known = self._movies.get(cells, {})
        if not known or _mark(image) in known:
            return ""
        if any(_are_channels(image, each) for each in self._images.get(cells, ())):
            return ""
        return list(known.values())[-1]

    def show_instead(self, viewer: Any, before: Any, image: Any) -> None:
        """Look at the movie chosen with its cells, not at it through the one before.

        What the plugin opened or made is hidden. Layers of others are somebody's own: they stay
        as they are, and the movie chosen comes to lie above them.
        """
        if before is None or viewer is None or not self.apart(before, image):
            return
        layers = viewer.layers
        old, new = (
            [x for x in (movie, self.cells_of(movie)) if x is not None and x in layers]
            for movie in (before, image)
        )
        for layer in old:
            if role_of(layer) and layer not in new:
                layer.visible = False
        for layer in new:
            layer.visible = True
            covering = [layers.index(x) for x in old if x.visible and x not in new]
            if layers.index(layer) < max(covering, default=-1):
                layers.move(layers.index(layer), max(covering) + 1)
        if not np.array_equal(before.extent.world, image.extent.world):
            viewer.reset_view()


def _mark(image: Any) -> str:
    return str(path_of(image) or name_of(image))


def _are_channels(one: Any, other: Any) -> bool:
    """Whether two arrays lie on each other, one drawn so that the other is seen through it."""
    if path_of(one) is not None or path_of(other) is not None:
        return False
    through = "additive" in (str(one.blending), str(other.blending))
    alike = one.ndim == other.ndim and np.array_equal(one.extent.data, other.extent.data)
    return through and alike and placed_like(one) == placed_like(other)
