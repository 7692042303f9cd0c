"""Files that people saved with earlier versions go on opening."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.active.session import ActiveSession
from bridgetrack.annotations.files import load_mask_answers
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.cli.main import main
from bridgetrack.features.default import default_features
from bridgetrack.pipeline.inputs import RunInputs
from bridgetrack.pipeline.project import load_project
from bridgetrack.session.project import kept_cells
from session_fixtures import load_settings

FILES = Path(__file__).parent / "files"
HERE = {"axes": "TYX", "scale": (0.645, 0.645), "frame_interval": 10.0}
"""Calibration of the movie."""


@pytest.fixture
def files(tmp_path):
    """A copy of the files."""
    return Path(shutil.copytree(FILES, tmp_path / "files"))


def _answers(path):
    store = AutosavingStore(path, bt.load_annotations(path).geometry)
    while store.history.past:
        store.undo()
    while store.history.future:
        store.redo()
    return [a.id for a in store.annotations]


def _masks(path):
    movie = path.with_name("movie.annotations.json")
    shutil.copy(path, path.with_name("movie.masks.json"))
    store = AutosavingStore(movie, load_mask_answers(path).geometry)
    assert store.masks == load_mask_answers(path)
    store.undo()
    assert load_mask_answers(movie) == store.masks != load_mask_answers(path)
    return [str(store.masks.last_id), *(a.id for a in store.masks)]


def _model(path):
    model = bt.load_model(path)
    bt.save_model(model, path.with_name("again.json"))
    again = bt.load_model(path.with_name("again.json"))
    np.testing.assert_array_equal(again.weights, model.weights)
    assert np.isfinite(model.aligned(default_features())).all()
    return [model.name, str(len(model.keys)), str(model.tightness is not None)]


def _project(path):
    shutil.copy(FILES / "cells.tif", path.parent)
    shutil.copy(FILES / "image.tif", path.parent)
    project = load_project(path)
    cells, image = project.open()
    assert isinstance(cells, bt.Movie) and image is not None
    session = bt.Session.from_project(path)
    assert session.project.path == path.with_name(f"{path.stem}-project.bridgetrack")
    assert list(session.annotations) == list(project.history.annotations)
    np.testing.assert_array_equal(session.model.weights, project.model.weights)
    session.close()
    return [str(cells.n_frames), *(a.id for a in project.history.annotations), *project.formats]


def test_what_stands_beside_a_movie_is_taken_over_into_its_project(files):
    shutil.copy(files / "answers.json", files / "image.annotations.json")
    cells = bt.open_labels(files / "cells.tif", **HERE)
    bt.save_labels(cells, files / "image.cells.zarr")
    before = {path: path.read_bytes() for path in files.iterdir() if path.is_file()}
    folder = files / "image.bridgetrack"
    kept = kept_cells(folder, cells.geometry)
    assert kept is not None
    session = bt.Session(kept[0], files / "image.tif", project=folder)
    assert [a.id for a in session.annotations] == [f"s{k}" for k in range(1, 41)]
    session.close()
    earlier = bt.load_annotations(files / "image.annotations.json")
    assert bt.load_annotations(folder / "answers.json") == earlier
    assert {path: path.read_bytes() for path in before} == before, "they stay as they are"
    assert (folder / "cells.zarr").is_dir()
    assert bt.run(RunInputs.of_project(folder).open().tracked()).scene.labels.n_frames == 9


def _settings(path):
    shutil.copy(path, path.with_name("movie.settings.json"))
    kept = load_settings(path.with_name("movie.annotations.json"))
    assert kept.model is not None and kept.given is not None
    return [kept.model.name, *kept.kinds.words, kept.given.unit]


@pytest.mark.parametrize(
    ("name", "opened", "found"),
    [
        ("earlier/annotations-1.json", _answers, ["a1", "a2", "a3", "a5"]),
        ("earlier/annotations-2.json", _answers, ["a1", "a2", "a3", "a5"]),
        ("answers.json", _answers, [f"s{k}" for k in range(1, 41)]),
        ("journal.json", _answers, ["s2", "s3"]),
        ("earlier/masks-1.json", _masks, ["2"]),
        ("earlier/model-first.json", _model, ["untrained", "80", "False"]),
        ("earlier/model-tightness.json", _model, ["shipped", "88", "True"]),
        ("trained.json", _model, ["trained", "80", "False"]),
        ("exported.json", _model, ["lab one", "80", "False"]),
        ("poor.json", _model, ["poor", "80", "False"]),
        ("earlier/project-first.json", _project, ["9", "a1", "a2", "a3", "csv", "geff"]),
        ("earlier/settings-1.json", _settings, ["mine", "merges", "micrometer"]),
    ],
)
def test_it_opens(files, name, opened, found):
    assert opened(files / name) == found


def test_a_project_is_run_again(files, tmp_path):
    out = tmp_path / "out"
    assert main(["run", str(files / "project.json"), "--out", str(out)]) == 0
    assert bt.count_events(bt.read_tracks_csv(out / "detections.csv"))["cells"] == 123


def test_a_result_is_read(files, tmp_path):
    shutil.unpack_archive(files / "result.zip", tmp_path)
    out = tmp_path / "result"
    tracks = [
        bt.read_tracks_csv(out / "detections.csv"),
        bt.read_geff(out / "tracks.geff"),
        bt.read_ctc(out / "ctc").tracks,
    ]
    counts = [bt.count_events(t) for t in tracks]
    for key in ("cells", "move", "divide"):
        assert len({count[key] for count in counts}) == 1, key


def test_a_session_goes_on(files, tmp_path):
    project, kept = json.loads((files / "project.json").read_text()), tmp_path / "answers.json"
    kept.write_text(json.dumps(project["annotations"]))
    answers = bt.load_annotations(kept)
    labels, image = (
        opened(files / name, **HERE)
        for opened, name in ((bt.open_labels, "cells.tif"), (bt.open_movie, "image.tif"))
    )
    scene = bt.run(bt.prepare(labels, image, answers))
    session = ActiveSession(scene)
    assert len(session.counted) > 5
    session.adopt(bt.run(session.update()))
    assert session.next() is not None
