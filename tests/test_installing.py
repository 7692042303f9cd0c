"""What napari's plugin manager does: install the wheel and nothing else beside napari."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = Path(__file__).parents[1]

OPEN_EVERY_WIDGET = """
import os
import sys

class Absent:
    def find_spec(self, name, *more):
        if name.partition(".")[0] in os.environ["ABSENT"].split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import bridgetrack
import napari
from npe2 import PluginManager

assert bridgetrack.__file__.startswith(os.environ["PYTHONPATH"])
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the project's source."""
    if not (PROJECT / "src").is_dir():
        pytest.skip("tests run without the project's source")
    folder = tmp_path_factory.mktemp("wheel")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    return folder / _run([sys.executable, "-c", build, str(folder)], PROJECT).split()[-1]


def test_an_installed_package_holds_the_sample(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = {n for n in file.namelist() if n.startswith("bridgetrack/_sample/")}
    ours = (p.relative_to(PROJECT) for p in (PROJECT / "sample_data").rglob("*") if p.is_file())
    assert names == {p.as_posix().replace("sample_data", "bridgetrack/_sample", 1) for p in ours}


@pytest.mark.slow
def test_every_widget_opens_beside_napari_alone(wheel, tmp_path):
    if not (sys.platform != "linux" or os.environ.get("DISPLAY")):
        pytest.skip("no screen: install Xvfb")
    shutil.unpack_archive(wheel, tmp_path / "wheel", "zip")
    [own] = metadata.distributions(name="bridgetrack", path=[str(tmp_path / "wheel")])
    there = _required([*map(Requirement, own.requires or ()), Requirement("napari[pyqt6]")])
    assert "bridgetrack" not in there and len(there) > 50
    owners = metadata.packages_distributions()
    absent = [top for top, names in owners.items() if not there.intersection(names)]
    assert {"pytest", "hypothesis", "distributed"} <= set(absent) and "bridgetrack" not in absent
    home = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    found = {"PYTHONPATH": str(tmp_path / "wheel"), "ABSENT": " ".join(absent)}
    opened = _run([sys.executable, "-P", "-c", OPEN_EVERY_WIDGET], tmp_path, home | found)
    manifest = (PROJECT / "napari.yaml").read_text()
    expected = manifest.split("\n  widgets:\n")[1].split("\n  sample_data:")[0].count("- command")
    assert opened.count("opened ") == expected > 0


def _required(wanted):
    """Names of what is required, and of what that requires in turn."""
    seen, todo = {}, [(r, extra) for r in wanted for extra in ("", *r.extras) if _applies(r, "")]
    while todo:
        requirement, extra = todo.pop()
        if (requirement.name, extra) in seen:
            continue
        found = metadata.distribution(requirement.name)
        assert requirement.specifier.contains(found.version, prereleases=True), requirement
        seen[requirement.name, extra] = found.name
        for more in map(Requirement, found.requires or ()):
            if _applies(more, extra):
                todo += [(more, name) for name in ("", *more.extras)]
    return set(seen.values())


def _applies(requirement, extra):
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _run(command, folder, extra=None):
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


def test_the_conda_recipe_asks_for_what_the_wheel_asks_for():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = project["optional-dependencies"]["gui"]
    called = {"dask": "dask-core", "matplotlib": "matplotlib-base"}  # the parts that are needed
    wheel = {
        (called.get(r.name, r.name), r.specifier)
        for r in map(Requirement, [*project["dependencies"], *extra])
    }
    text = (PROJECT / "tools/conda/bridgetrack/recipe.yaml").read_text(encoding="utf-8")
    run = yaml.safe_load(text)["requirements"]["run"]
    conda = {(r.name, r.specifier) for r in map(Requirement, run[1:])}
    assert conda == wheel


def test_the_lowest_versions_are_those_that_are_declared():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [r for extra in ("test", "all") for r in extras[extra] if "bridgetrack" not in r]
    wanted += project["dependencies"]
    wanted += [r for name in ("cluster", "evaluate", "gui", "qt") for r in extras[name]]
    declared = {
        (r.name.lower(), Version(s.version))
        for r in map(Requirement, wanted)
        for s in r.specifier
        if s.operator == ">="
    }
    lines = (PROJECT / ".ci/lowest.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    assert {(name, Version(version)) for name, version in pairs} == declared


def test_every_python_that_is_tested_is_declared():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [c.rsplit(" :: ", 1)[1] for c in project["classifiers"] if "Python :: 3." in c]
    workflow = (PROJECT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(workflow)["jobs"]["test"]["strategy"]["matrix"]["python"] == named
