"""Which tracks are chosen, and what all are coloured by: one for tables, trees, plots, layers."""

from __future__ import annotations

from collections.abc import Iterable

from napari.utils.colormaps import Colormap
from psygnal import Signal
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import QComboBox

from bridgetrack.tracks.colours import PALETTES, UNKNOWN, Colouring, colouring, colourings
from bridgetrack.tracks.tracks import Tracks

USUAL = "family"


class Looks:
    """What is chosen and the colours, shared by the panels of a viewer.

    Signals: `chosen_changed`, `colour_changed`.
    """

    chosen_changed = Signal()
    colour_changed = Signal()

    def __init__(self) -> None:
        self.chosen: tuple[int, ...] = ()
        self.colour = USUAL
        self._made: tuple[Tracks, Colouring] | None = None

    def choose(self, tracks: Iterable[int]) -> None:
        """Choose tracks by their numbers, and none else."""
        chosen = tuple(tracks)
        if chosen != self.chosen:
            self.chosen = chosen
            self.chosen_changed.emit()

    def colour_by(self, colour: str) -> None:
        """Colour tracks, cells and trees by something else."""
        if colour != self.colour:
            self.colour = colour
            self.colour_changed.emit()

    def colouring(self, tracks: Tracks) -> Colouring:
        """The colours of some tracks; by family where they lack what was chosen."""
        made = self._made
        by = self.colour if self.colour in colourings(tracks) else USUAL
        if made is None or made[0] is not tracks or made[1].by != by:
            self._made = made = tracks, colouring(tracks, by)
        return made[1]


def colormap_of(palette: str) -> Colormap:
    """A palette for napari."""
    return Colormap(PALETTES[palette], name=f"bridgetrack {palette}", nan_color=(*UNKNOWN, 1.0))


class ColourBox(QComboBox):
    """Says what all are coloured by, and lets people choose."""

    def __init__(self, looks: Looks) -> None:
        super().__init__()
        self._looks = looks
        self.setToolTip(
            "Colours of tracks, cells and family trees; for certainty orange is doubtful, blue sure"
        )
        self.offer(None)
        self.currentIndexChanged.connect(self._on_chosen)

    def offer(self, tracks: Tracks | None) -> None:
        """List what these tracks can be coloured by."""
        known = {"family": "family", "certainty": "certainty"}
        known = known if tracks is None else colourings(tracks)
        names = [self.itemData(k) for k in range(self.count())]
        with QSignalBlocker(self):
            if names != list(known):
                self.clear()
                for name, words in known.items():
                    self.addItem(f"Colour by {words}", name)
        self.follow()

    def follow(self) -> None:
        """Show what is chosen elsewhere."""
        with QSignalBlocker(self):
            self.setCurrentIndex(max(self.findData(self._looks.colour), 0))

    def _on_chosen(self, k: int) -> None:
        if k >= 0:
            self._looks.colour_by(str(self.itemData(k)))
