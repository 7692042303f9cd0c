"""``bridgetrack open``: start napari with the plugin, and with a movie where one is given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bridgetrack.errors import DependencyError


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
    for path in (image, labels):
        if path is not None and not path.exists():
            raise typer.BadParameter(f"{path}: no such file or folder")
    # By name: the layers below the plugin do not depend on it.
    importlib.import_module("bridgetrack.ui.launch").launch(image, labels)
