"""Training with the answers of earlier movies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet, AnswerHistory
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.project import MovieFile, Project
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.session import Session
from bridgetrack.session.training import MOVIES
from project_files import write_project


def answers(session: Session, count: int) -> AnnotationSet:
    """Confirmations of what is tracked."""
    scene, columns = session.tracking.scene, np.flatnonzero(session.tracking.solution.chosen)
    h = scene.hypotheses
    columns = columns[:: max(len(columns) // max(count, 1), 1)][:count]
    refs = event_refs(scene.detections, h.take(columns))
    said = [Annotation(f"a{k}", Kind.CONFIRM, (ref,)) for k, ref in enumerate(refs)]
    return AnnotationSet(scene.detections.geometry, said)


def project(path: Path, source: MovieAndCells, annotations: AnnotationSet) -> Path:
    """A project of the short movie."""
    labels = path.with_suffix(".npy")
    np.save(labels, np.asarray(source.labels.array[:, 0].compute()))
    geometry = source.labels.geometry
    history = AnswerHistory(annotations)
    movie = MovieFile(labels, "TYX")
    made = Project(
        movie, None, geometry.n_frames, geometry.shape, geometry.scale, geometry.unit, None,
        history, shipped_model(),
    )  # fmt: skip
    return write_project(made, path)


def test_earlier_movies(starts, session, source, said, tmp_path: Path) -> None:
    starts.choose(MOVIES)
    assert not starts.ready
    starts.train()
    assert "Add project files" in starts.problem
    (tmp_path / "wrong.json").write_text("{}")
    starts.add_movies([tmp_path / "wrong.json"])
    assert "no project file" in starts.problem and starts.movies == ()
    empty = project(tmp_path / "empty.json", source, answers(session, 0))
    starts.add_movies([empty])
    assert starts.ready and not starts.needs_answers and not starts.problem
    starts.train()
    assert "holds no answers" in session.trainer.problem
    starts.forget_movies()
    assert not starts.ready
    earlier = project(tmp_path / "earlier.json", source, answers(session, 30))
    starts.add_movies([earlier])
    starts.use_strategy("union")
    assert len(session.annotations) == 0
    starts.train()
    assert not session.trainer.problem
    assert session.trainer.training is not None
    assert session.model.provenance["strategy"] == "union"
    assert starts.start.key == MOVIES
