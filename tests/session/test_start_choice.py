"""What training starts from, and keeping models, without Qt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bridgetrack.models.entry import ModelCard
from bridgetrack.models.library import SHIPPED as SHIPPED_NAME
from bridgetrack.models.library import Library
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.movie_record import statistics_of
from bridgetrack.session.keep_model import ModelKeeper
from bridgetrack.session.session import Session
from bridgetrack.session.start_choice import MOVIES, PRESENT, SHIPPED, StartChoice
from bridgetrack.session.training import Outcome


def learned(name: str = "trained", factor: float = 1.1) -> Model:
    """A model that says it was trained."""
    plain = shipped_model()
    return replace(plain, name=name, loss="bridge", weights=plain.weights * factor)


def statistics(session: Session):
    """Of the short movie."""
    return statistics_of(session.tracking.scene, session.tracking.solution.chosen)


def test_without_models_training_starts_from_the_shipped_one(
    starts: StartChoice, keeper: ModelKeeper
) -> None:
    starts.refresh()
    assert [s.key for s in starts.starts] == [SHIPPED, MOVIES]
    assert starts.start.key == SHIPPED and starts.ready
    assert "train first" in keeper.why_not
    assert not keeper.keep("x")
    assert keeper.problem == keeper.why_not


def test_a_very_similar_model_is_chosen(
    starts: StartChoice, session: Session, library: Library
) -> None:
    mine = statistics(session)
    far = replace(mine, mean=mine.mean + 3.0)
    library.save("far", learned(), ModelCard("other cells", statistics=far))
    starts.refresh()
    assert starts.start.key == SHIPPED and not starts.suited
    library.save("near", learned(factor=1.2), ModelCard("my cells", statistics=mine))
    starts.refresh()
    assert starts.suited == "near" == starts.start.name
    assert "my cells" in starts.start.words and "Very similar" in starts.start.words
    (far_start,) = [s for s in starts.starts if s.name == "far"]
    assert far_start.title == "far – different"
    starts.choose(SHIPPED)
    starts.refresh()
    assert starts.start.key == SHIPPED and not starts.suited
    starts.choose("library/near")
    starts.use()
    assert session.model.name == "near"


def test_a_model_in_use_is_not_replaced_by_a_choice(
    starts: StartChoice, session: Session, library: Library
) -> None:
    library.save("near", learned(factor=1.2), ModelCard(statistics=statistics(session)))
    session.set_model(learned())
    starts.refresh()
    assert starts.start.key == PRESENT and not starts.suited


def test_keep_remove_undo(
    starts: StartChoice, keeper: ModelKeeper, session: Session, library: Library
) -> None:
    session.set_model(learned())
    session.trainer.resume(Outcome(("Learned here.",)))
    said: list[str] = []
    session.message.connect(lambda level, words: said.append(words))
    keeper.keep(SHIPPED_NAME)
    assert "cannot be called" in keeper.problem
    keeper.keep("mine", "a test")
    assert said == ["Kept as mine."] and not keeper.problem
    (entry,) = library.entries()
    assert entry.card is not None and entry.card.description == "a test"
    assert entry.card.statistics is not None and entry.preview is not None
    assert "kept already" in keeper.why_not
    starts.choose("library/mine")
    assert "very similar" in starts.start.title
    assert not starts.can_undo
    starts.remove()
    assert library.names() == () and starts.can_undo
    assert starts.start.key == PRESENT
    starts.undo_remove()
    assert library.names() == ("mine",) and not starts.can_undo


def test_a_model_that_was_not_trained_here_is_kept_without_statistics(
    starts: StartChoice, keeper: ModelKeeper, session: Session, library: Library
) -> None:
    session.set_model(learned())
    keeper.keep("mine")
    (entry,) = library.entries()
    assert entry.card is not None and entry.card.statistics is None


def test_a_taken_name_is_told(
    keeper: ModelKeeper, session: Session, library: Library, said: list[tuple[str, str]]
) -> None:
    library.save("mine", shipped_model(), ModelCard())
    session.set_model(learned())
    keeper.keep("mine")
    assert said[-1] == ("error", keeper.problem)
    assert "'mine 2'" in keeper.problem and len(library.names()) == 1


def test_a_damaged_model_says_so_and_cannot_be_started_from(
    starts: StartChoice, library: Library
) -> None:
    library.save("bad", learned(), ModelCard())
    library.save("good", learned(), ModelCard())
    (library.folder / "bad" / "entry.json").write_text("{")
    starts.refresh()
    titles = [s.title for s in starts.starts]
    assert titles == ["the shipped model", "good", "bad (damaged)", "my earlier movies…"]
    starts.choose("library/bad")
    assert not starts.ready and "damaged" in starts.start.words
    starts.train()
    assert "damaged" in starts.problem


def test_share_a_model(
    starts: StartChoice, keeper: ModelKeeper, library: Library, tmp_path: Path
) -> None:
    library.save("mine", learned(), ModelCard("words"))
    starts.refresh()
    starts.choose("library/mine")
    starts.export_file(tmp_path / "theirs.json")
    keeper.import_file(tmp_path / "theirs.json")
    assert library.names() == ("mine", "theirs")
    card = library.entry("theirs").card
    assert card is not None and card.description == "words"
    (tmp_path / "broken.json").write_text("{}")
    keeper.import_file(tmp_path / "broken.json")
    assert "not a model file" in keeper.problem
