"""Training with the answers of earlier movies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet, History
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.project import MovieFile, Project, save_project
from bridgetrack.session.session import Session, Source
from bridgetrack.session.start_choice import MOVIES


def answers(session: Session, count: int) -> AnnotationSet:
    """Confirmations of what is tracked."""
    scene, columns = session.tracking.scene, np.flatnonzero(session.tracking.solution.chosen)
    h = scene.hypotheses
    columns = columns[:: max(len(columns) // max(count, 1), 1)][:count]
    refs = event_refs(scene.detections, h.take(columns))
    said = [Annotation(f"a{k}", Kind.CONFIRM, (ref,)) for k, ref in enumerate(refs)]
    return AnnotationSet(scene.detections.geometry, said)


def project(path: Path, source: Source, annotations: AnnotationSet) -> Path:
    """A project of the short movie."""
    labels = path.with_suffix(".npy")
    np.save(labels, np.asarray(source.labels.array[:, 0].compute()))
    geometry = source.labels.geometry
    history = History(annotations)
    movie = MovieFile(labels, "TYX")
    made = Project(
        movie, None, geometry.n_frames, geometry.shape, geometry.scale, geometry.unit, None,
        history, shipped_model(),
    )  # fmt: skip
    return save_project(made, path)


def test_earlier_movies(librarian, keeper, session, source, tmp_path: Path) -> None:
    librarian.choose(MOVIES)
    assert not librarian.ready
    librarian.train()
    assert "Add project files" in librarian.problem
    (tmp_path / "wrong.json").write_text("{}")
    librarian.add_movies([tmp_path / "wrong.json"])
    assert "no project file" in librarian.problem and librarian.movies == ()
    empty = project(tmp_path / "empty.json", source, answers(session, 0))
    librarian.add_movies([empty])
    assert librarian.ready and not librarian.needs_answers and not librarian.problem
    librarian.train()
    assert "holds no answers" in librarian._trainer.problem
    librarian.forget_movies()
    assert not librarian.ready
    earlier = project(tmp_path / "earlier.json", source, answers(session, 30))
    librarian.add_movies([earlier])
    librarian.use_strategy("union")
    assert len(session.annotations) == 0
    librarian.train()
    assert not librarian._trainer.problem
    assert librarian._trainer.training is not None
    assert session.model.provenance["strategy"] == "union"
    assert librarian.start.key == MOVIES and not keeper.why_not
