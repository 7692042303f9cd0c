"""What README and docs show works as it is shown."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bridgetrack
from bridgetrack.annotations.store import load_annotations
from bridgetrack.cli.main import main

PROJECT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(f"docs/{p.name}" for p in (PROJECT / "docs").glob("*.md")))


def blocks(page: str, language: str) -> list[str]:
    """Code blocks of a page in one language."""
    text = (PROJECT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_python(page: str) -> None:
    """Run the blocks of a page one after another."""
    found = blocks(page, "python")
    assert found
    names: dict[str, object] = {}
    for block in found:
        exec(compile(block, page, "exec"), names)


def test_quick_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = "".join(blocks("README.md", "sh")).replace("\\\n", " ")
    assert len(commands.splitlines()) == 8
    for line in commands.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "bridgetrack"
        assert main(words[1:]) == 0, line
    assert (tmp_path / "result" / "ctc" / "res_track.txt").is_file()
    run_python("README.md")


def test_python_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_python("docs/python.md")


@pytest.mark.parametrize("name", ["track_and_teach", "how_right"])
def test_notebooks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PROJECT / "docs" / "notebooks" / f"{name}.ipynb"
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert not any(cell.get("outputs") for cell in cells), "results are not kept"
    names: dict[str, object] = {}
    for block in code:
        exec(compile(block, str(page), "exec"), names)


def test_the_version_and_the_addresses_of_a_package() -> None:
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    made = ProjectMetadata(str(PROJECT), PluginManager())
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", made.version)
    text = made.core.readme
    targets = re.findall(r"\]\(([^)#][^)]*)\)", text)
    assert len(targets) > 10
    assert [t for t in targets if not t.startswith("https://")] == []
    assert "https://raw.githubusercontent.com/bridgetrack/bridgetrack/main/docs/images" in text


def test_annotation_example_is_valid(tmp_path: Path) -> None:
    (example,) = blocks("docs/files.md", "json")
    (tmp_path / "a.json").write_text(example)
    assert (
        len(load_annotations(tmp_path / "a.json")) == 2 == len(json.loads(example)["annotations"])
    )


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = PROJECT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_the_architecture_names_what_is_there() -> None:
    text = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = Path(bridgetrack.__file__).parent
    named = set(re.findall(r"`([a-z_]+/[a-z_]+\.py)`", text)) - {"docs/make_features.py"}
    assert len(named) > 30
    assert [name for name in sorted(named) if not (package / name).is_file()] == []
    folders = {f.name for f in package.iterdir() if (f / "__init__.py").is_file()}
    assert folders <= set(re.findall(r"`([a-z]+)`", text)) | {"_sample"}


def test_every_folder_has_its_layer() -> None:
    linted = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = linted["tool"]["importlinter"]["contracts"][0]
    layers = set(re.findall(r"bridgetrack\.(\w+)", " ".join(contract["layers"])))
    package = Path(bridgetrack.__file__).parent
    files = {f.stem for f in package.glob("*.py")} - {"__init__"}
    folders = {f.name for f in package.iterdir() if (f / "__init__.py").is_file()}
    assert layers == (files | folders) - {"_sample"}


def test_commands_and_options_exist(capsys: pytest.CaptureFixture[str]) -> None:
    text = (PROJECT / "docs" / "command_line.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    bridgetrack (\w+) +(.*)$", text, re.MULTILINE)
    assert len({name for name, _ in shown}) >= 6
    for name, rest in shown:
        group = [name, rest.split()[0]] if name == "models" and "|" not in rest else [name]
        assert main([*group, "--help"]) == 0
        known = capsys.readouterr().out
        for option in re.findall(r"--[a-z][a-z-]*", rest):
            assert f"{option} " in known, f"{name} {option}"


def test_public_names_are_there_and_documented() -> None:
    assert bridgetrack.__version__
    for name in bridgetrack.__all__:
        assert getattr(bridgetrack, name).__doc__, name
    assert set(bridgetrack.__all__) <= set(dir(bridgetrack))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = bridgetrack.nonsense


def test_import_is_light() -> None:
    code = "import sys, bridgetrack; print({'numpy', 'pandas', 'mip'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
