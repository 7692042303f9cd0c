"""``bridgetrack open``: start napari with the plugin, and with a movie where one is given."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from bridgetrack.errors import BridgetrackError, DependencyError


def open_(
    image: Annotated[
        Path | None, typer.Argument(metavar="[IMAGE]", help="Movie, or a project file.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Argument(metavar="[LABELS]", help="Its cells, as a label movie.")
    ] = None,
) -> None:
    """Open the plugin in napari."""
    import importlib
    from importlib.util import find_spec

    if find_spec("napari") is None or find_spec("superqt") is None:
        raise DependencyError(
            'napari is not installed; install it by: pip install "bridgetrack[gui,qt]"'
        )
    _check_display()
    for path in (image, labels):
        if path is not None and not path.exists():
            raise typer.BadParameter(f"{path}: no such file or folder")
    # By name: the layers below the plugin do not depend on it.
    importlib.import_module("bridgetrack.ui.workflow").launch(image, labels)


def _check_display() -> None:
    """Refuse where Qt would abort the program: on Linux without any display.

    Raises
    ------
    BridgetrackError
        As above.
    """
    wanted = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in wanted):
        raise BridgetrackError(
            "no display was found (DISPLAY and WAYLAND_DISPLAY are not set), and a window needs "
            "one: run this on a desktop, log in with ssh -X, or start it with xvfb-run bridgetrack "
            "open (or set QT_QPA_PLATFORM=offscreen, to test without seeing anything). Without a "
            "window, use bridgetrack track"
        )
