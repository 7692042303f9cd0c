"""How large a pixel is and how long a frame takes: shown, and set where the file does not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qtpy.QtWidgets import QDoubleSpinBox, QWidget

from bridgetrack.session.kept import Scale
from bridgetrack.ui.layer_scale import set_scale
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.source_panel import SourceChooser
from bridgetrack.ui.widgets import button, form_in, text

_LARGEST = 1e6
_UNKNOWN = "not known"


@dataclass(frozen=True)
class Calibration:
    """Micrometres of a pixel and between planes, minutes of a frame; 0 where that is not known."""

    pixel: float = 0.0
    plane: float = 0.0
    minutes: float = 0.0


class ScaleBox(QWidget):
    """Three numbers and a button; all lengths and times follow."""

    def __init__(self, panel: Panel, source: SourceChooser) -> None:
        super().__init__()
        self._panel, self._source = panel, source
        self._form = form_in(self)
        self.pixel = _number("Side of a pixel in the plane, in micrometres")
        self.plane = _number("Distance of two planes, in micrometres")
        self.minutes = _number("Time between two frames, in minutes")
        self._form.addRow("Pixel, µm", self.pixel)
        self._form.addRow("Between planes, µm", self.plane)
        self._form.addRow("Frame, minutes", self.minutes)
        self.set = button(
            "Use for all numbers", "Measure and track anew with these; your answers stay",
            self.apply, icon="yes",
        )  # fmt: skip
        self._form.addRow(self.set)
        self.words = text(dim=True)
        self._form.addRow(self.words)
        for field in (self.pixel, self.plane, self.minutes):
            field.valueChanged.connect(self._on_edit)
        panel.listen(panel.session.movie_changed, self._on_movie)
        self._on_movie()

    @property
    def known(self) -> Calibration:
        """What is known of the open movie."""
        movie = self._panel.session.movie
        if movie is None:
            return Calibration()
        geometry = movie.geometry
        minutes = geometry.frame_interval or 0.0
        if geometry.unit != "micrometer":
            return Calibration(minutes=minutes)
        plane = geometry.scale[0] if geometry.ndim == 3 else 0.0
        return Calibration(geometry.scale[-1], plane, minutes)

    @property
    def given(self) -> Calibration:
        """What the fields say."""
        return Calibration(self.pixel.value(), self.plane.value(), self.minutes.value())

    def _on_movie(self) -> None:
        movie, known = self._panel.session.movie, self.known
        self.setVisible(movie is not None)
        deep = movie is not None and movie.geometry.ndim == 3
        self._form.setRowVisible(self.plane, deep)
        fields = (self.pixel, known.pixel), (self.plane, known.plane), (self.minutes, known.minutes)
        for field, value in fields:
            field.blockSignals(True)
            field.setValue(value)
            field.blockSignals(False)
        self._on_edit()

    def _on_edit(self, _: Any = None) -> None:
        given, known = self.given, self.known
        self.set.setEnabled(given != known)
        where = "micrometres" if known.pixel else "pixels"
        when = "minutes" if known.minutes else "frames"
        self.words.setText(f"Tables and speeds are in {where} and {when}.")

    def apply(self) -> None:
        """Set the scale of both layers, and open the movie anew with it."""
        movie, given = self._panel.session.movie, self.given
        if movie is None:
            return
        side = given.pixel or 1.0
        space = (given.plane or side, side, side)[-movie.geometry.ndim :]
        unit = "micrometer" if given.pixel else "pixel"
        scale = Scale(space, unit, given.minutes or None)
        self._panel.state.settings.set_scale(scale)
        set_scale(self._panel.state.viewer, *movie.layers, scale)
        self._source.open_again()
        self._panel.state.viewer.reset_view()


def _number(tip: str) -> QDoubleSpinBox:
    made = QDoubleSpinBox()
    made.setRange(0.0, _LARGEST)
    made.setDecimals(4)
    made.setSpecialValueText(_UNKNOWN)
    made.setToolTip(tip)
    return made
