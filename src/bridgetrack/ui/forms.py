"""Forms made from dataclasses of settings, with the limits and words that the command line has."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from magicgui.widgets import create_widget
from qtpy.QtWidgets import QComboBox, QFormLayout, QHBoxLayout, QWidget

from bridgetrack.option import Option, options_of

Settings = TypeVar("Settings")

_STEPS = 100
"""How finely a number between two limits is set."""

_LARGEST = 1_000_000
"""Stands for a limit that there is not."""

_OPEN = "automatic"
"""What a field that is left open shows."""


class SettingsForm(Generic[Settings]):
    """A magicgui form for fields of a dataclass of settings, in the order of `titles`.

    A field that may be left open begins so, and shows "automatic"; `sliders` are fields with two
    limits whose number says nothing to people; `words` stand in a choice for its values.
    """

    def __init__(
        self,
        settings: type[Settings],
        titles: Mapping[str, str],
        *,
        sliders: Collection[str] = (),
        words: Mapping[Any, str] | None = None,
        in_a_row: bool = False,
    ) -> None:
        self._options = {option.name: option for option in options_of(settings, *titles)}
        self._widgets: dict[str, Any] = {}
        self.native = QWidget()  # the form, to be put into a panel
        layout: Any = QHBoxLayout(self.native) if in_a_row else QFormLayout(self.native)
        layout.setContentsMargins(0, 0, 0, 0)
        for name, option in self._options.items():
            made = _widget(option, titles[name], name in sliders, words or {})
            self._widgets[name] = made
            native = made.native
            if in_a_row:
                # What is left of the row goes to long words, which styles cut by a pixel else.
                layout.addWidget(native, native.sizeHint().width())
            else:
                layout.addRow(*([] if option.kind is bool else [titles[name]]), native)

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
        for name, option in self._options.items():
            with self[name].changed.blocked():
                self[name].value = _shown(option, getattr(settings, name))

    def applied_to(self, settings: Settings) -> Settings:
        """The settings with what the form says."""
        return replace(settings, **{name: self._value(name) for name in self._options})  # type: ignore[type-var]

    def _value(self, name: str) -> Any:
        option, value = self._options[name], self[name].value
        return None if value == _shown(option, None) else value


def _shown(option: Option, value: Any) -> Any:
    """What a widget shows for a value; what is left open has a word, or lies below all numbers."""
    if value is not None or not option.may_be_none:
        return value
    return _OPEN if option.choices else _lowest(option)


def _widget(option: Option, title: str, slider: bool, words: Mapping[Any, str]) -> Any:
    settings: dict[str, Any] = {"tooltip": option.help}
    if option.choices:
        known = [_OPEN] * option.may_be_none + list(option.choices)
        settings["choices"] = [(words.get(value, str(value)), value) for value in known]
        kind = "ComboBox"
    elif option.kind is bool:
        kind = "CheckBox"
    else:
        settings |= {"min": _lowest(option), "max": _most(option), "step": _step(option)}
        kind = ("Float" if option.kind is float else "") + ("Slider" if slider else "SpinBox")
        settings |= {"readout": False} if slider else {}
    value = _shown(option, option.default)
    made: Any = create_widget(
        value, name=option.name, label=title, widget_type=kind, options=settings
    )
    if option.choices:
        # Long words are cut rather than the panel made wider.
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        made.native.setSizeAdjustPolicy(policy)
        made.native.setMinimumContentsLength(10)
    if option.kind is bool:
        made.text = title
    if option.may_be_none and not option.choices:
        made.native.setSpecialValueText(_OPEN)
    return made


def _lowest(option: Option) -> float:
    """The least value, or where the field may be left open what stands for that."""
    least = max(option.least, option.above, -_LARGEST)
    excluded = option.above >= option.least
    if option.may_be_none and not excluded:
        least -= _step(option)
    elif excluded and not option.may_be_none:
        least += _step(option)
    return least if option.kind is float else int(least)


def _most(option: Option) -> float:
    most = min(option.most, option.below, _LARGEST)
    if option.below <= option.most and option.below < _LARGEST:
        most -= _step(option)
    return most if option.kind is float else int(most)


def _step(option: Option) -> float:
    """A round hundredth of the range, or of the default where the range has no end."""
    if option.kind is int:
        return 1
    low, high = max(option.least, option.above), min(option.most, option.below)
    span = high - low if math.isfinite(high - low) else option.default or 1.0
    return float(10 ** math.floor(math.log10(span / _STEPS)))
