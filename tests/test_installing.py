"""What napari's plugin manager does: install the wheel and nothing else beside napari."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]

OPEN_EVERY_WIDGET = """
import napari
from npe2 import PluginManager

viewer = napari.Viewer(show=False)
manager = PluginManager.instance()
manager.discover()
widgets = manager.get_manifest("bridgetrack").contributions.widgets
for name in [widget.display_name for widget in widgets]:
    dock, widget = viewer.window.add_plugin_dock_widget("bridgetrack", name)
    assert widget.layout() is not None, name
    print("opened", name)
viewer.close()
"""


@pytest.mark.slow
def test_every_widget_opens_beside_napari_alone(tmp_path: Path) -> None:
    if not (PROJECT / "pyproject.toml").is_file():
        pytest.skip("tests run without the project's source")
    if not (sys.platform != "linux" or os.environ.get("DISPLAY")):
        pytest.skip("no screen: install Xvfb")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    built = _run([sys.executable, "-c", build, str(tmp_path)], PROJECT)
    wheel = tmp_path / built.split()[-1]
    _run([sys.executable, "-m", "venv", "fresh"], tmp_path)
    scripts = tmp_path / "fresh" / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    _run(
        [python, "-m", "pip", "install", "-q", "--no-compile", str(wheel), "napari[pyqt6]"],
        tmp_path,
    )
    home = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "PYTHONPATH": ""}
    opened = _run([python, "-P", "-c", OPEN_EVERY_WIDGET], tmp_path, home)
    manifest = (PROJECT / "napari.yaml").read_text()
    expected = manifest.split("\n  widgets:\n")[1].split("\n  sample_data:")[0].count("- command")
    assert opened.count("opened ") == expected > 0


def _run(command: list[str], folder: Path, extra: dict[str, str] | None = None) -> str:
    """Output of a command that must succeed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(extra or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout
