"""Projects: what is saved comes back, and repeating a run gives the same result."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.history import AnswerChange, AnswerHistory
from bridgetrack.errors import InputError
from bridgetrack.files import sample_folder
from bridgetrack.io.tables import read_detections_csv
from bridgetrack.models.model import untrained_model
from bridgetrack.movie import open_labels, save_labels
from bridgetrack.pipeline.inputs import RunInputs
from bridgetrack.pipeline.project import MovieFile, Project, is_project, load_project, save_project
from bridgetrack.progress import run
from project_files import write_project


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """The labels of four frames."""
    movie = open_labels(sample_folder() / "01_GT" / "TRA")
    first = open_labels(movie.array[:4, 0].compute(), axes="TYX", scale=movie.geometry.scale)
    return save_labels(first, tmp_path / "cells.tif")


@pytest.fixture
def folder(cells, tmp_path: Path) -> Path:
    """A project of these labels."""
    return write_project(tmp_path / "a.bridgetrack", cells, None, untrained_model())


def test_what_is_saved_comes_back(folder, cells, tmp_path):
    tracking = run(RunInputs.of_project(folder).open().tracked())
    chosen = np.flatnonzero(tracking.solution.chosen)[:3]
    hypotheses, detections = tracking.scene.hypotheses, tracking.scene.detections
    refs = event_refs(detections, hypotheses.take(chosen))
    history = AnswerHistory(AnnotationSet(detections.geometry))
    for k, ref in enumerate(refs):
        history = history.after(
            "answer", AnswerChange(added=(Annotation(f"a{k}", Kind.CONFIRM, (ref,)),))
        )[0]
    model, formats = untrained_model(), ["csv", "geff"]
    path = write_project(tmp_path / "b.bridgetrack", cells, history, model, formats=formats)
    assert is_project(path) and is_project(path / "project.json")
    again = load_project(path / "project.json")
    assert again.history.annotations == history.annotations
    assert again.history.past == history.past
    assert np.array_equal(again.model.weights, model.weights)
    assert again.formats == ("csv", "geff")
    assert (again.labels.path.resolve(), again.geometry) == (cells.resolve(), detections.geometry)


def test_movie_and_project_can_be_moved_together(folder, cells, tmp_path):
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in (folder, cells):
        path.rename(moved / path.name)
    labels, image = load_project(moved / "a.bridgetrack").open()
    assert labels.n_frames == 4
    assert image is None


@pytest.mark.filterwarnings("ignore:.*the size of a pixel is not known")
@pytest.mark.parametrize("name", ["cells.csv", "cells.tsv"])
def test_a_table_is_read_as_it_was_without_the_project(tmp_path, name):
    table, mark = tmp_path / name, "," if name.endswith("csv") else "\t"
    rows = ["frame", "y [um]", "x [um]", "area [px]"], *(map(str, (t, 9, t, 50)) for t in range(4))
    table.write_text("\n".join(map(mark.join, rows)))
    alone = read_detections_csv(table)
    history = AnswerHistory(AnnotationSet(alone.geometry))
    save_project(Project(MovieFile(table), None, alone.geometry, history), tmp_path)
    cells, _ = load_project(tmp_path).open()
    assert cells.geometry == alone.geometry
    assert cells.table["area"].tolist() == alone.table["area"].tolist() == [1] * 4


def test_a_movie_of_another_extent_is_refused(folder, tmp_path):
    save_labels([np.ones((9, 9), dtype=int)] * 3, tmp_path / "cells.tif")
    with pytest.raises(InputError, match="put the old file back"):
        load_project(folder).open()


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("project.json", {"labels": {"path": 3}}, r"labels\.path: should be a valid string"),
        ("project.json", {"movie": {"n_frames": 1, "shape": None, "scale": [True]}}, "scale"),
        ("answers.json", {"format": "x"}, "annotation"),
        ("answers.json", {"settings": {"model": {"format": "x"}}}, "model"),
    ],
)
def test_damaged_files_are_explained(folder, file, change, words):
    content = json.loads((folder / file).read_text()) | change
    (folder / file).write_text(json.dumps(content))
    with pytest.raises(InputError, match=words):
        load_project(folder)


def test_formats_of_earlier_versions_are_left_out(cells, tmp_path):
    path = write_project(tmp_path / "a.bridgetrack", cells, formats=["geff", "zarr"])
    assert load_project(path).formats == ("geff",)


def test_other_files_are_no_projects(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    for name in ("a.json", "b.json", "c.json", "."):
        assert not is_project(tmp_path / name)
    with pytest.raises(InputError, match="there is no such project"):
        load_project(tmp_path / "c.json")
    (tmp_path / "movie.tif").write_bytes(b"II*")
    for other in (tmp_path / "movie.tif", tmp_path):
        with pytest.raises(InputError, match=r"not a project; give the folder NAME.bridgetrack"):
            load_project(other)
