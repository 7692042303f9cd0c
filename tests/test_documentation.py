"""What README and docs show works as it is shown, and links lead somewhere."""

import json
import re
import runpy
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tifffile
import zarr

import bridgetrack
from bridgetrack.annotations.files import load_annotations
from bridgetrack.cli.main import main
from short_sample import busy_part

PROJECT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(f"docs/{p.name}" for p in (PROJECT / "docs").glob("*.md")))


def blocks(page, language):
    """Code blocks of a page in one language."""
    text = (PROJECT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(page):
    """Commands of a page, those in blocks and those that are indented."""
    text = (PROJECT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(r"^(?:    )?(bridgetrack .*)$", text, re.MULTILINE)


def run_python(page, **names):
    """Run the blocks of a page one after another."""
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), names)


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """A part of the sample movie in its place, in the folder where the test runs."""
    monkeypatch.chdir(tmp_path)
    folder = busy_part(tmp_path / "sample_data")
    monkeypatch.setattr(bridgetrack, "sample_folder", lambda: folder)
    return folder


@pytest.mark.usefixtures("sample", "quick_scores")
def test_readme_and_tutorial_work_as_shown():
    shown = dict.fromkeys([*commands("README.md"), *commands("docs/tutorial.md")])
    lines = [shlex.split(line) for line in shown]
    assert {line[1] for line in lines} >= {"open", "demo", "segment", "track", "train", "check"}
    for line in lines:
        if "--judged" in line:  # somebody has written into the last column what is right
            judged = pd.read_csv(line[-1])
            judged.assign(**{judged.columns[-1]: "yes"}).to_csv(line[-1], index=False)
        if line[1] not in ("open", "demo"):
            assert main(line[1:]) == 0, line
    run_python("README.md")


def test_example_of_a_cluster(sample, monkeypatch):
    """Its scheduler is elsewhere; what takes work as dask's client does stands for it."""
    pytest.importorskip("distributed")
    for name, folder in (("labels", "01_GT/TRA"), ("movie", "01")):
        frames = [tifffile.imread(path) for path in sorted((sample / folder).glob("*.tif"))]
        zarr.save_array(f"{name}.ome.zarr", np.stack(frames))
    monkeypatch.setattr("distributed.Client", lambda address: ThreadPoolExecutor(1))
    run_python("docs/many_movies.md", __name__="__main__")
    assert (sample.parent / "result" / "detections.csv").exists()


@pytest.mark.usefixtures("sample", "quick_scores")
def test_python_examples():
    run_python("docs/python.md")


def test_annotation_example_is_valid(tmp_path):
    (example,) = blocks("docs/files.md", "json")
    (tmp_path / "a.json").write_text(example)
    annotations = json.loads(example)["annotations"]
    assert len(load_annotations(tmp_path / "a.json")) == len(annotations) == 2


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = PROJECT / page
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_commands_and_options_exist(capsys):
    text = "".join((PROJECT / page).read_text(encoding="utf-8") for page in PAGES)
    shown = re.findall(r"^(?:    )?bridgetrack (\w+) +(.*)$", text, re.MULTILINE)
    assert len({name for name, _ in shown}) == 12
    helped = {}
    for name, rest in [*shown, ("models", "")]:
        if name not in helped:
            assert main([name, "--help"]) == 0
            helped[name] = capsys.readouterr().out
            assert helped[name].startswith(f"Usage: bridgetrack {name}")
            assert ("--json" in helped[name]) == (name != "open")
        for option in re.findall(r"--[a-z][a-z-]*", rest):
            assert f"{option} " in helped[name], f"{name} {option}"
    assert "frank-wolfe" in helped["train"]


def test_public_names_are_there_and_documented():
    assert bridgetrack.__version__
    for name in bridgetrack.__all__:
        assert getattr(bridgetrack, name).__doc__, name
    reference = (PROJECT / "docs" / "reference.md").read_text(encoding="utf-8")
    for target in re.findall(r"^::: (\S+)$", reference, re.MULTILINE):
        assert hasattr(bridgetrack, target.rpartition(".")[2]), target


def test_the_page_of_features_is_that_of_the_code():
    made = runpy.run_path(str(PROJECT / "docs" / "make_features.py"))["page"]()
    assert made == (PROJECT / "docs" / "features.md").read_text(encoding="utf-8")


def test_import_is_light():
    code = "import sys, bridgetrack; print({'numpy', 'pandas', 'mip'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
