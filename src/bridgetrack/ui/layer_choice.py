"""A list of the layers that can be a movie, or its cells."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QSizePolicy

from bridgetrack.errors import BridgetrackError
from bridgetrack.movie import looks_like_labels
from bridgetrack.ui.layers import movie_of, role_of
from bridgetrack.ui.panel import Panel


class LayerChoice(QComboBox):
    """Chooses among layers of some classes; emits `chosen` with the layer or None.

    Emits `came` with a layer that was added while another one is chosen.

    Layers of the classes `by_hand` are chosen for people only where they have a role here, and
    those that are `elsewhere`, with another movie for instance, never.
    """

    chosen = Signal(object)
    came = Signal(object)

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
        elif new and kept is not None:
            self.came.emit(new[-1])
