"""What training starts from, and keeping models, without Qt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridgetrack.annotations.anchored import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.history import History
from bridgetrack.models.library import Library
from bridgetrack.models.model import Model
from bridgetrack.models.names import SHIPPED as SHIPPED_NAME
from bridgetrack.models.record import Record
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.movie_statistics import statistics_of
from bridgetrack.pipeline.project import MovieFile, Project
from bridgetrack.pipeline.project_file import save_project
from bridgetrack.ui.keeper import Keeper
from bridgetrack.ui.librarian import Librarian
from bridgetrack.ui.session import Session, Source
from bridgetrack.ui.starts import MOVIES, PRESENT, SHIPPED
from bridgetrack.ui.trainer import Trainer


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """An empty library."""
    return Library(tmp_path / "models")


@pytest.fixture
def librarian(session: Session, library: Library) -> Librarian:
    """A controller over the short movie, which is tracked already."""
    return Librarian(session, Trainer(session), library)


@pytest.fixture
def keeper(librarian: Librarian, session: Session) -> Keeper:
    """Keeps models in the library."""
    return Keeper(session, librarian._trainer, librarian)


def learned(name: str = "trained", factor: float = 1.1) -> Model:
    """A model that says it was trained."""
    plain = shipped_model()
    return replace(plain, name=name, loss="bridge", weights=plain.weights * factor)


def statistics(session: Session):
    """Of the short movie."""
    return statistics_of(session.tracking.scene, session.tracking.solution.chosen)


def test_without_models_training_starts_from_the_shipped_one(
    librarian: Librarian, keeper: Keeper
) -> None:
    librarian.refresh()
    assert [s.key for s in librarian.starts] == [SHIPPED, MOVIES]
    assert librarian.start.key == SHIPPED and librarian.ready
    assert "train first" in keeper.why_not
    assert not keeper.keep("x")
    assert keeper.problem == keeper.why_not


def test_a_very_similar_model_is_chosen(
    librarian: Librarian, session: Session, library: Library
) -> None:
    mine = statistics(session)
    far = replace(mine, mean=mine.mean + 3.0)
    library.save("far", learned(), Record("other cells", statistics=far))
    librarian.refresh()
    assert librarian.start.key == SHIPPED and not librarian.suited
    library.save("near", learned(factor=1.2), Record("my cells", statistics=mine))
    librarian.refresh()
    assert librarian.suited == "near" == librarian.start.name
    assert "my cells" in librarian.start.words and "Very similar" in librarian.start.words
    (far_start,) = [s for s in librarian.starts if s.name == "far"]
    assert far_start.title == "far – different"
    librarian.choose(SHIPPED)
    librarian.refresh()
    assert librarian.start.key == SHIPPED and not librarian.suited
    librarian.choose("library/near")
    librarian.use()
    assert session.model.name == "near"


def test_a_model_in_use_is_not_replaced_by_a_choice(
    librarian: Librarian, session: Session, library: Library
) -> None:
    library.save("near", learned(factor=1.2), Record(statistics=statistics(session)))
    session.set_model(learned())
    librarian.refresh()
    assert librarian.start.key == PRESENT and not librarian.suited


def test_keep_remove_undo(
    librarian: Librarian, keeper: Keeper, session: Session, library: Library
) -> None:
    session.set_model(learned())
    librarian._trainer.training = object()  # type: ignore[assignment]
    said: list[str] = []
    session.message.connect(lambda level, words: said.append(words))
    keeper.keep(SHIPPED_NAME)
    assert "cannot be called" in keeper.problem
    keeper.keep("mine", "a test")
    assert said == ["Kept as mine."] and not keeper.problem
    (entry,) = library.entries()
    assert entry.record is not None and entry.record.description == "a test"
    assert entry.record.statistics is not None and entry.preview is not None
    assert "kept already" in keeper.why_not
    librarian.choose("library/mine")
    assert "very similar" in librarian.start.title
    assert not librarian.can_undo
    librarian.remove()
    assert library.names() == () and librarian.can_undo
    assert librarian.start.key == PRESENT
    librarian.undo_remove()
    assert library.names() == ("mine",) and not librarian.can_undo


def test_a_model_that_was_not_trained_here_is_kept_without_statistics(
    librarian: Librarian, keeper: Keeper, session: Session, library: Library
) -> None:
    session.set_model(learned())
    keeper.keep("mine")
    (entry,) = library.entries()
    assert entry.record is not None and entry.record.statistics is None


def test_a_taken_name_is_told(
    librarian: Librarian, keeper: Keeper, session: Session, library: Library
) -> None:
    library.save("mine", shipped_model(), Record())
    session.set_model(learned())
    keeper.keep("mine")
    assert "'mine 2'" in keeper.problem and len(library.names()) == 1


def test_a_damaged_model_says_so_and_cannot_be_started_from(
    librarian: Librarian, library: Library
) -> None:
    library.save("bad", learned(), Record())
    library.save("good", learned(), Record())
    (library.folder / "bad" / "entry.json").write_text("{")
    librarian.refresh()
    titles = [s.title for s in librarian.starts]
    assert titles == ["the shipped model", "good", "bad (damaged)", "my earlier movies…"]
    librarian.choose("library/bad")
    assert not librarian.ready and "damaged" in librarian.start.words
    librarian.train()
    assert "damaged" in librarian.problem


def test_share_a_model(
    librarian: Librarian, keeper: Keeper, library: Library, tmp_path: Path
) -> None:
    library.save("mine", learned(), Record("words"))
    librarian.refresh()
    librarian.choose("library/mine")
    librarian.export_file(tmp_path / "theirs.json")
    keeper.import_file(tmp_path / "theirs.json")
    assert library.names() == ("mine", "theirs")
    record = library.entry("theirs").record
    assert record is not None and record.description == "words"
    (tmp_path / "broken.json").write_text("{}")
    keeper.import_file(tmp_path / "broken.json")
    assert "not a model file" in keeper.problem


def answers(session: Session, count: int) -> AnnotationSet:
    """Confirmations of what is tracked."""
    scene, columns = session.tracking.scene, np.flatnonzero(session.tracking.solution.chosen)
    h = scene.hypotheses
    columns = columns[:: max(len(columns) // max(count, 1), 1)][:count]
    refs = event_refs(scene.detections, h.event[columns], h.sources[columns], h.targets[columns])
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
