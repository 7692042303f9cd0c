"""Icons of buttons follow the theme."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")


def _mean_brightness(button) -> float:
    """Brightness of an icon's opaque pixels, 0 to 255."""
    picture = button.icon().pixmap(16, 16).toImage()
    colours = [picture.pixelColor(x, y) for x in range(16) for y in range(16)]
    opaque = [c.lightness() for c in colours if c.alpha() > 128]
    assert opaque, "the icon is drawn"
    return sum(opaque) / len(opaque)


def test_every_glyph_is_in_the_font():
    from fonticon_mdi7 import MDI7

    from bridgetrack.ui.widgets import GLYPHS

    assert [g for g in GLYPHS.values() if not hasattr(MDI7, g)] == []


def test_icons_are_drawn_and_follow_the_theme(viewer, qtbot):
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    widget.open_step(1)
    qtbot.wait(50)
    undo = widget.annotate.actions["undo"]
    undo.setEnabled(True)
    viewer.theme = "dark"
    dark = _mean_brightness(undo)
    viewer.theme = "light"
    assert _mean_brightness(undo) < 128 < dark
    assert not widget.tabs[0].icon().isNull()
