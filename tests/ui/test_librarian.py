"""What training starts from, and keeping models, without Qt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bridgetrack.models.entry import Record
from bridgetrack.models.library import SHIPPED as SHIPPED_NAME
from bridgetrack.models.library import Library
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.movie_record import statistics_of
from bridgetrack.session.keep_model import Keeper
from bridgetrack.session.session import Session
from bridgetrack.session.start_choice import MOVIES, PRESENT, SHIPPED, Librarian


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
