"""What Python is asked for so that it holds the window up less while threads work."""

from __future__ import annotations

import contextlib
import gc
import sys
from typing import Any

from qtpy.QtCore import QTimer

_HANDOVER = 0.0002
"""Seconds after which a thread that computes lets the window's thread go on, which asks for it
hundreds of times in a drawing; Python's own 0.005 would make half a second of these."""

_SETTLED = 1000
"""Milliseconds after which the modules, the window and its layers are there."""

_RARER = 5


class Responsive:
    """While it is open, threads hand over soon, and searching for garbage holds nothing up.

    Such a search stops all threads, for a third of a second where it goes through the million
    objects of programs and windows. These are left out. They are searched where a layer is
    removed, which napari asks for then; else what that layer held would stay in memory. Where
    somebody else left objects out already, that is left to them.

    Parameters
    ----------
    layers
        Of the viewer.
    """

    def __init__(self, layers: Any) -> None:
        self._handover, self._searches = sys.getswitchinterval(), gc.get_threshold()
        sys.setswitchinterval(min(self._handover, _HANDOVER))
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SETTLED)
        self._timer.timeout.connect(gc.freeze)
        self._layers: Any = None
        if gc.get_freeze_count():
            return
        self._layers = layers
        layers.events.removing.connect(self._on_removing)
        # Python searches all where a quarter is new: soon, now that most is left out.
        gc.set_threshold(*self._searches[:2], _RARER * self._searches[2])
        self._timer.start()

    def _on_removing(self, _: Any = None) -> None:
        gc.unfreeze()
        self._timer.start()

    def close(self) -> None:
        """Leave everything as it was."""
        # Of several windows the one opened first may be closed first.
        sys.setswitchinterval(max(self._handover, sys.getswitchinterval()))
        layers, self._layers = self._layers, None
        if layers is None:
            return
        layers.events.removing.disconnect(self._on_removing)
        # At the end of the program Qt may be gone before this is called.
        with contextlib.suppress(RuntimeError):
            self._timer.stop()
        gc.unfreeze()
        gc.set_threshold(*self._searches)
