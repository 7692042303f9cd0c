"""Project files: what is saved comes back, and repeating a run gives the same result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet, AnswerHistory
from bridgetrack.errors import InputError
from bridgetrack.files import sample_folder
from bridgetrack.models.shipped import untrained_model
from bridgetrack.movie import open_labels, save_labels
from bridgetrack.pipeline.project import (
    MovieFile,
    Project,
    is_project,
    load_project,
    run_project,
)
from bridgetrack.progress import run
from project_files import write_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    movie = open_labels(sample_folder() / "01_GT" / "TRA")
    first = open_labels(movie.array[:4, 0].compute(), axes="TYX", scale=movie.geometry.scale)
    cells = save_labels(first, tmp_path / "cells.tif")
    geometry = first.geometry
    return Project(
        MovieFile(cells, "TYX"),
        None,
        4,
        tuple(geometry.shape or ()),
        geometry.scale,
        geometry.unit,
        geometry.frame_interval,
        AnswerHistory(AnnotationSet(geometry)),
        untrained_model(),
    )


def test_what_is_saved_comes_back(project, tmp_path):
    tracking = run(run_project(project))
    chosen = np.flatnonzero(tracking.solution.chosen)[:3]
    hypotheses, detections = tracking.scene.hypotheses, tracking.scene.detections
    refs = event_refs(detections, hypotheses.take(chosen))
    history = project.history
    for k, ref in enumerate(refs):
        history = history.record(add=[Annotation(f"a{k}", Kind.CONFIRM, (ref,))])
    full = replace(project, history=history, formats=("csv", "geff"))
    path = write_project(full, tmp_path / "a.json")
    again = load_project(path)
    assert is_project(path)
    assert again.history == full.history
    assert np.array_equal(again.model.weights, full.model.weights)
    assert replace(again, history=full.history, model=full.model, labels=full.labels) == full
    assert again.labels.path == full.labels.path.resolve()


def test_the_folder_can_be_moved(project, tmp_path):
    write_project(project, tmp_path / "a.json")
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("a.json", "cells.tif"):
        (tmp_path / name).rename(moved / name)
    labels, image = load_project(moved / "a.json").open()
    assert labels.n_frames == 4
    assert image is None


def test_a_movie_of_another_extent_is_refused(project, tmp_path):
    save_labels([np.ones((9, 9), dtype=int)] * 3, tmp_path / "cells.tif")
    with pytest.raises(InputError, match="put the old file back"):
        project.open()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "not a project"),
        ({"version": 99}, "update Bridgetrack"),
        ({"labels": {"path": 3}}, r"labels\.path: expected text, found 3"),
        ({"scale": [True]}, r"scale\[0\]: expected a number"),
        ({"export": {"formats": ["xls"]}}, "formats"),
        ({"annotations": {"format": "x"}}, "annotations"),
    ],
)
def test_damaged_files_are_explained(project, tmp_path, change, words):
    path = write_project(project, tmp_path / "a.json")
    content = json.loads(path.read_text()) | change
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=words):
        load_project(path)


def test_formats_of_earlier_versions_are_left_out(project, tmp_path):
    path = write_project(project, tmp_path / "a.json")
    export = {"formats": ["geff", "zarr"], "preset": "ilastik"}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"export": export}))
    assert load_project(path).formats == ("geff",)


def test_a_cut_off_file_is_called_damaged(project, tmp_path):
    path = write_project(project, tmp_path / "a.json")
    path.write_text(path.read_text()[:-200])
    with pytest.raises(InputError, match=r"a\.json: .*damaged or truncated"):
        load_project(path)


def test_other_files_are_no_projects(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    assert not is_project(tmp_path / "a.json")
    assert not is_project(tmp_path / "b.json")
    assert not is_project(tmp_path / "c.json")
    with pytest.raises(InputError, match="cannot be read"):
        load_project(tmp_path / "c.json")
