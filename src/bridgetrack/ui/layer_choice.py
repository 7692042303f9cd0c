"""Choosing one of a viewer's layers, and which layers of cells belong to which movie."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from qtpy.QtCore import QSignalBlocker, Signal
from qtpy.QtWidgets import QComboBox, QSizePolicy

from bridgetrack.ui.layers import name_of, path_of, role_of


class LayerChoice(QComboBox):
    """Chooses one of some layers, or none; emits `chosen` with it where that changes."""

    chosen = Signal(object)

    def __init__(self, none: str, tip: str) -> None:
        super().__init__()
        self._none = none
        self._layers: list[Any] = []
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(100)
        self.setToolTip(tip)
        self.currentIndexChanged.connect(lambda _: self.chosen.emit(self.layer))

    @property
    def layer(self) -> Any:
        """The layer chosen, None where none is."""
        k = self.currentIndex() - 1
        return self._layers[k] if 0 <= k < len(self._layers) else None

    def __contains__(self, layer: Any) -> bool:
        """Whether a layer can be chosen."""
        return layer in self._layers

    def choose(self, layer: Any | None) -> None:
        """Choose a layer."""
        self.setCurrentIndex(self._layers.index(layer) + 1 if layer in self._layers else 0)

    def offer(self, words: Mapping[Any, str]) -> None:
        """List these layers by their words; the one that is chosen stays."""
        kept = self.layer
        with QSignalBlocker(self):
            self.clear()
            self._layers = list(words)
            self.addItems([self._none, *words.values()])
            self.choose(kept)
        if self.layer is not kept:
            self.chosen.emit(self.layer)


class MovieCells:
    """Remembers which layers of cells were used with which movie.

    A movie is known by its file, so that its other channels, and the same file opened again, have
    the same cells. One without a file is known by its name.
    """

    def __init__(self) -> None:
        self._movies: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()
        self._cells: dict[str, weakref.ref[Any]] = {}

    def join(self, image: Any, cells: Any) -> None:
        """These are used together."""
        if image is not None and cells is not None:
            self._movies.setdefault(cells, {})[_mark(image)] = str(image.name)
            self._cells[_mark(image)] = weakref.ref(cells)

    def part(self, image: Any) -> None:
        """Somebody wants no cells for this movie."""
        self._cells.pop(_mark(image), None)

    def cells_of(self, image: Any) -> Any | None:
        """The layer of cells that was used with a movie last; None where there was none."""
        known = None if image is None else self._cells.get(_mark(image))
        return None if known is None else known()

    def other_movie(self, image: Any, cells: Any) -> str:
        """Name of the movie whose cells these are, where it is another one; otherwise nothing."""
        known = {} if cells is None else self._movies.get(cells, {})
        if image is None or not known or _mark(image) in known:
            return ""
        return list(known.values())[-1]

    def show_instead(self, viewer: Any, before: Any, image: Any) -> None:
        """Hide what the plugin opened or made of the movie before, and show the one chosen."""
        if before is None or _mark(before) == _mark(image):
            return
        for movie, visible in ((before, False), (image, True)):
            for layer in (movie, self.cells_of(movie)):
                if layer is None or layer not in viewer.layers:
                    continue
                if visible or role_of(layer):
                    layer.visible = visible
        viewer.reset_view()


def _mark(image: Any) -> str:
    return str(path_of(image) or name_of(image))
