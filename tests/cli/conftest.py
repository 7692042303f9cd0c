"""A small movie and a way to run commands on it."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import tifffile

from bridgetrack.annotations.files import load_annotations
from bridgetrack.cli.main import main
from bridgetrack.models.model import untrained_model
from project_files import write_project
from simulator import SimulationSettings, simulate_to_folder


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        """What it printed, where that is JSON."""
        return json.loads(self.out)


@pytest.fixture
def tried(capsys):
    """Run a command in this process."""

    def command(*words):
        capsys.readouterr()
        status = main([str(w) for w in words])
        shown = capsys.readouterr()
        return Outcome(status, shown.out, shown.err)

    return command


@pytest.fixture
def run(tried):
    """Run a command that must succeed."""

    def command(*words):
        shown = tried(*words)
        assert (shown.status, shown.err) == (0, "")
        return shown

    return command


@pytest.fixture
def refused(tried, tmp_path):
    """Run a command that must end with one line that has some words, and change no file."""

    def command(words, *says):
        before = content(tmp_path)
        shown = tried(*words)
        assert shown.status in (1, 2) and shown.out == "", shown
        assert one_line(shown.err) and shown.err.startswith("error: "), shown.err
        for said in says:
            assert str(said) in shown.err
        assert content(tmp_path) == before, words

    return command


@pytest.fixture(scope="session")
def movie(tmp_path_factory):
    """Folder with images in ``01`` and truth in ``01_GT``: 6 frames, a few dividing cells."""
    folder = tmp_path_factory.mktemp("movie")
    settings = SimulationSettings(frames=6, cells=12, size=160, division_rate=0.02, seed=3)
    simulate_to_folder(settings, folder)
    return folder


@pytest.fixture(scope="session")
def truth(movie):
    """Masks of the small movie."""
    return movie / "01_GT" / "TRA"


def content(folder):
    """All files in a folder, the names of links and folders too."""
    return {
        str(p.relative_to(folder)): str(p.readlink()).encode()
        if p.is_symlink()
        else p.read_bytes()
        if p.is_file()
        else b""
        for p in sorted(folder.rglob("*"))
    }


def folder(path):
    """A new folder."""
    path.mkdir()
    return path


def squares(n_frames=3):
    """Masks of two still squares."""
    labels = np.zeros((n_frames, 40, 40), dtype=np.uint16)
    labels[:, 5:12, 5:12], labels[:, 25:32, 25:32] = 1, 2
    return labels


def write_tiff(path, frames, axes="TYX"):
    """A stack that says the order of its axes."""
    tifffile.imwrite(path, frames, photometric="minisblack", metadata={"axes": axes})
    return path


@pytest.fixture(scope="session")
def many_clicks(movie, truth, tmp_path_factory):
    """25 answers about the small movie, to be copied."""
    out = tmp_path_factory.mktemp("clicks") / "a.json"
    words = ("--ground-truth", str(movie / "01_GT"), "--count", "25", "--out", str(out))
    assert main(["annotate", str(truth), *words]) == 0
    return out


@pytest.fixture
def clicks(many_clicks, tmp_path):
    """A few answers about the small movie."""
    return Path(shutil.copy(many_clicks, tmp_path / "a.json"))


def project_of(truth, answers, out, **more):
    """A project of the small movie with answers and the untrained model."""
    given = {"model": untrained_model(), **more}
    return write_project(out, truth, load_annotations(answers), **given)


def one_line(text):
    """Whether a text is exactly one line."""
    return text.count("\n") == 1 and text.endswith("\n") and len(text) > 2
