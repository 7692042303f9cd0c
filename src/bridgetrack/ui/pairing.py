"""Which cells are those of which movie, as far as this window has seen them together."""

from __future__ import annotations

import weakref
from typing import Any

from bridgetrack.ui.layers import name_of, path_of


class Pairs:
    """Remembers the layers that were open together.

    A movie is known by its file: its other channels, and the same file opened again, have the same
    cells.
    """

    def __init__(self) -> None:
        self._movies: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()
        self._cells: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()

    def join(self, image: Any, cells: Any) -> None:
        """These belong together."""
        if image is not None and cells is not None:
            self._movies.setdefault(cells, {})[_mark(image)] = str(image.name)
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
        return _mark(one) != _mark(other)

    def movie_of(self, image: Any, cells: Any) -> str:
        """The movie whose cells these are, where it is another one; otherwise nothing."""
        if image is None or cells is None:
            return ""
        known = self._movies.get(cells, {})
        return "" if not known or _mark(image) in known else list(known.values())[-1]


def _mark(image: Any) -> str:
    return str(path_of(image) or name_of(image))
