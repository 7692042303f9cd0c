"""The folder of models: what is added comes back, names do not mix, earlier folders are read."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridgetrack.errors import ModelError
from bridgetrack.models.library import ENVIRONMENT, Library, find_model, find_model_file
from bridgetrack.models.model import save_model, shipped_model

EARLIER = Path(__file__).parents[1] / "golden" / "files" / "library"


@pytest.fixture
def library(tmp_path):
    """An empty library in a folder that is not there yet."""
    return Library(tmp_path / "models")


def learned(factor=1.1):
    """A model that says it was trained."""
    plain = shipped_model()
    return replace(plain, name="trained", loss="bridge", weights=plain.weights * factor)


def put(library, model, name):
    """Copy a model file into the folder."""
    return save_model(model, library.folder / f"{name}.json")


def test_what_is_added_comes_back_until_it_is_deleted(library):
    assert library.names() == ()
    file = put(library, learned(), "my cells")
    assert library.names() == ("my cells",) and library.file("My Cells") == file
    model = library.load("my cells")
    assert model.name == "my cells" and np.array_equal(model.weights, learned().weights)
    (library.folder / "notes.txt").write_text("not a model")
    (library.folder / "folder.json").mkdir()
    assert library.names() == ("my cells",)
    file.unlink()
    assert library.names() == ()
    with pytest.raises(ModelError):
        library.load("my cells")


def test_folders_of_earlier_versions_are_read(tmp_path):
    shutil.copytree(EARLIER, tmp_path / "models")
    library = Library(tmp_path / "models")
    put(library, learned(), "another")
    assert library.names() == ("another", "lab one")
    assert library.load("lab one").trained
    weights = library.load("lab one").weights
    shared = find_model(EARLIER.parent / "exported.json")  # with a description and statistics
    assert len(shared.weights) == len(weights)


def test_a_damaged_model_is_refused_and_hides_no_other(library):
    put(library, learned(), "good")
    (library.folder / "bad.json").write_text("{")
    assert library.names() == ("bad", "good")
    with pytest.raises(ModelError, match="bad"):
        library.load("bad")
    assert library.load("good").trained


def test_what_a_model_is_found_by(library, tmp_path):
    put(library, learned(), "mine")
    file = save_model(learned(3.0), tmp_path / "file.json")
    assert np.array_equal(find_model(file, library).weights, learned(3.0).weights)
    assert np.array_equal(find_model("mine", library).weights, learned().weights)
    assert find_model_file("shipped", library) is None
    assert np.array_equal(find_model("Shipped", library).weights, shipped_model().weights)
    for given in ("other", tmp_path / "other.json", tmp_path):
        with pytest.raises(ModelError):
            find_model(given, library)


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "there"))
    put(Library(), learned(), "mine")
    assert (tmp_path / "there" / "mine.json").is_file()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there is no chmod")
def test_a_folder_that_cannot_be_used_is_told(tmp_path):
    (tmp_path / "file").write_text("no folder")
    library = Library(tmp_path / "file")
    with pytest.raises(ModelError):
        library.names()
