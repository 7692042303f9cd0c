"""Choosing the layers of a movie and of its cells, and which of them belong together."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QSizePolicy

from bridgetrack.errors import BridgetrackError
from bridgetrack.movie import looks_like_labels
from bridgetrack.ui.layers import movie_of, name_of, path_of, placed_like, role_of
from bridgetrack.ui.panel import Panel


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


class LayerChoice(QComboBox):
    """Chooses among layers of some classes; emits `chosen` with the layer or None.

    Layers of the classes `by_hand` are chosen for people only where they have a role here, and
    those that are `elsewhere`, with another movie for instance, never.
    """

    chosen = Signal(object)

    def __init__(
        self,
        panel: Panel,
        kinds: tuple[str, ...],
        none: str,
        hidden: tuple[str, ...] = (),
        by_hand: tuple[str, ...] = (),
        elsewhere: Callable[[Any], bool] = lambda _: False,
    ) -> None:
        super().__init__()
        self._panel, self._kinds, self._none, self._hidden = panel, kinds, none, hidden
        self._by_hand, self._elsewhere = by_hand, elsewhere
        self._looked: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._followed: weakref.WeakSet[Any] = weakref.WeakSet()  # those whose names are
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(100)
        layers = panel.state.viewer.layers
        panel.listen(layers.events.inserted, self._refill)
        panel.listen(layers.events.removed, self._refill)
        self.currentIndexChanged.connect(lambda _: self.chosen.emit(self.layer))
        self._layers: list[Any] = []
        self._refill()

    @property
    def layer(self) -> Any | None:
        """The layer chosen."""
        k = self.currentIndex() - 1
        return self._layers[k] if 0 <= k < len(self._layers) else None

    def __contains__(self, layer: Any) -> bool:
        """Whether a layer can be chosen."""
        return layer in self._layers

    def choose(self, layer: Any | None) -> None:
        """Choose a layer."""
        self.setCurrentIndex(self._layers.index(layer) + 1 if layer in self._layers else 0)

    def _holds_masks(self, layer: Any) -> bool:
        """Whether the pixels of an image layer look like cell numbers; looked at once."""
        if role_of(layer) == "image":
            return False  # looked at when it was read
        if layer not in self._looked:
            try:
                self._looked[layer] = not layer.rgb and looks_like_labels(movie_of(layer))
            except BridgetrackError:
                self._looked[layer] = False
        return self._looked[layer]

    def _fits(self, layer: Any) -> bool:
        kind = type(layer).__name__.lower()
        if kind not in self._kinds or role_of(layer) in self._hidden:
            return False
        return kind != "image" or "image" not in self._by_hand or self._holds_masks(layer)

    def _obvious(self, layer: Any) -> bool:
        if type(layer).__name__.lower() == "image" and self._holds_masks(layer):
            return False
        if self._elsewhere(layer):
            return False
        return bool(role_of(layer)) or type(layer).__name__.lower() not in self._by_hand

    def _words(self, layer: Any) -> str:
        use = type(layer).__name__.lower() == "image" and "image" in self._by_hand
        return f"{layer.name} (use as cells)" if use else str(layer.name)

    def _on_name(self, _: Any = None) -> None:
        """Somebody renamed a layer, which may outlive this list."""
        with contextlib.suppress(RuntimeError):
            for k, layer in enumerate(self._layers, 1):
                self.setItemText(k, self._words(layer))

    def _refill(self, _: Any = None) -> None:
        viewer = self._panel.state.viewer
        if viewer is None:
            return
        kept = self.layer
        found = [layer for layer in viewer.layers if self._fits(layer)]
        new = [x for x in found if x not in self._layers and self._obvious(x)]
        self.blockSignals(True)
        self._layers = found
        for layer in found:
            if layer not in self._followed:
                self._followed.add(layer)
                layer.events.name.connect(self._on_name)
        self.clear()
        self.addItem(self._none)
        self.addItems([self._words(layer) for layer in found])
        self.blockSignals(False)
        # The first layer of a kind is what people mean; later ones they choose.
        wanted = kept if kept in found else (new[-1] if new and kept is None else None)
        index = found.index(wanted) + 1 if wanted is not None else 0
        self.blockSignals(True)
        self.setCurrentIndex(index)
        self.blockSignals(False)
        if wanted is not kept:
            self.chosen.emit(wanted)
