"""The form of what training can be told."""

from __future__ import annotations

from qtpy.QtWidgets import QComboBox, QDoubleSpinBox, QFormLayout, QWidget

from bridgetrack.learning import LOSSES
from bridgetrack.training.options import TrainingOptions


class TrainingForm(QWidget):
    """Loss, regulariser and its strength."""

    def __init__(self) -> None:
        super().__init__()
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        self.loss = QComboBox()
        self.loss.addItems(list(LOSSES))
        self.loss.setCurrentText(TrainingOptions().loss)
        form.addRow("Loss", self.loss)
        self.regularizer = QComboBox()
        self.regularizer.addItems(["l2", "l1"])
        form.addRow("Regulariser", self.regularizer)
        self.strength = QDoubleSpinBox()
        self.strength.setRange(0.0, 1000.0)
        self.strength.setDecimals(3)
        self.strength.setSpecialValueText("chosen by the program")
        self.strength.setToolTip("How close to stay to the starting model (λ)")
        form.addRow("Strength λ", self.strength)

    @property
    def options(self) -> TrainingOptions:
        """What the form says."""
        return TrainingOptions(
            loss=self.loss.currentText(),
            regularizer="l1" if self.regularizer.currentText() == "l1" else "l2",
            strength=self.strength.value() or None,
        )
