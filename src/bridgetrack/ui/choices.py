"""A list of the viewer's layers of one kind, kept up to date."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QSizePolicy

from bridgetrack.ui.layers import role_of
from bridgetrack.ui.widgets import Panel


class LayerChoice(QComboBox):
    """Chooses among layers of some classes; emits `chosen` with the layer or None.

    Layers of the classes `by_hand` are chosen for people only where they have a role here.
    """

    chosen = Signal(object)

    def __init__(
        self,
        panel: Panel,
        kinds: tuple[str, ...],
        none: str,
        hidden: tuple[str, ...] = (),
        by_hand: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self._panel, self._kinds, self._none, self._hidden = panel, kinds, none, hidden
        self._by_hand = by_hand
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(100)
        layers = panel.desk.viewer.layers
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

    def choose(self, layer: Any | None) -> None:
        """Choose a layer."""
        self.setCurrentIndex(self._layers.index(layer) + 1 if layer in self._layers else 0)

    def _fits(self, layer: Any) -> bool:
        kind = type(layer).__name__.lower()
        return kind in self._kinds and role_of(layer) not in self._hidden

    def _obvious(self, layer: Any) -> bool:
        return bool(role_of(layer)) or type(layer).__name__.lower() not in self._by_hand

    def _refill(self, _: Any = None) -> None:
        viewer = self._panel.desk.viewer
        if viewer is None:
            return
        kept = self.layer
        found = [layer for layer in viewer.layers if self._fits(layer)]
        new = [x for x in found if x not in self._layers and self._obvious(x)]
        self.blockSignals(True)
        self._layers = found
        self.clear()
        self.addItem(self._none)
        self.addItems([layer.name for layer in found])
        self.blockSignals(False)
        # The first layer of a kind is what people mean; later ones they choose.
        wanted = kept if kept in found else (new[-1] if new and kept is None else None)
        index = found.index(wanted) + 1 if wanted is not None else 0
        self.blockSignals(True)
        self.setCurrentIndex(index)
        self.blockSignals(False)
        if wanted is not kept:
            self.chosen.emit(wanted)
