"""Forms made from dataclasses of settings, with the limits and words that the command line has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from magicgui.widgets import create_widget
from qtpy.QtWidgets import QComboBox, QFormLayout, QHBoxLayout, QWidget

from bridgetrack.option import Option, options_of

Settings = TypeVar("Settings")


class SettingsForm(Generic[Settings]):
    """A magicgui form for fields of a dataclass of settings, in the order of `titles`.

    Fields are choices, yes or no, or numbers between two limits; `sliders` are numbers that say
    nothing to people.
    """

    def __init__(
        self,
        settings: type[Settings],
        titles: Mapping[str, str],
        *,
        sliders: Collection[str] = (),
        in_a_row: bool = False,
    ) -> None:
        self._widgets: dict[str, Any] = {}
        self.native = QWidget()  # the form, to be put into a panel
        layout: Any = QHBoxLayout(self.native) if in_a_row else QFormLayout(self.native)
        layout.setContentsMargins(0, 0, 0, 0)
        for option in options_of(settings, *titles):
            title = titles[option.name]
            made = self._widgets[option.name] = _widget(option, title, option.name in sliders)
            if in_a_row:
                # What is left of the row goes to long words, which styles cut by a pixel else.
                layout.addWidget(made.native, made.native.sizeHint().width())
            else:
                layout.addRow(*([] if option.kind is bool else [title]), made.native)
        self._fields = tuple(self._widgets)

    def __getitem__(self, name: str) -> Any:
        """The magicgui widget of a field."""
        return self._widgets[name]

    def begin_with(self, title: str, widget: Any) -> None:
        """Put a magicgui widget that is no field of the settings before the first one."""
        layout: Any = self.native.layout()
        layout.insertRow(0, title, widget.native)
        self._widgets[widget.name] = widget

    def listen(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever a person changes something in the form."""
        for widget in self._widgets.values():
            widget.changed.connect(lambda _: changed())

    def show(self, settings: Settings) -> None:
        """Show these settings, without a word to who listens."""
        for name in self._fields:
            with self[name].changed.blocked():
                self[name].value = getattr(settings, name)

    def applied_to(self, settings: Settings) -> Settings:
        """The settings with what the form says."""
        return replace(settings, **{name: self[name].value for name in self._fields})  # type: ignore[type-var]


def _widget(option: Option, title: str, slider: bool) -> Any:
    more: dict[str, Any] = {"tooltip": option.help}
    if option.choices:
        kind, more["choices"] = "ComboBox", list(option.choices)
    elif option.kind is bool:
        kind, more["text"] = "CheckBox", title
    else:
        more |= {"min": option.least, "max": option.most}
        more |= {"readout": False, "step": 0.01} if slider else {"step": 1.0}
        kind = "FloatSlider" if slider else "FloatSpinBox"
    made: Any = create_widget(option.default, name=option.name, widget_type=kind, options=more)
    if option.choices:
        # Long words are cut rather than the panel made wider.
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        made.native.setSizeAdjustPolicy(policy)
        made.native.setMinimumContentsLength(10)
    return made
