"""The models that can be used, without Qt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bridgetrack.models.library import SHIPPED, Library
from bridgetrack.models.model import Model, save_model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.session.session import Session
from bridgetrack.session.training import PRESENT


def learned() -> Model:
    """A model that says it was trained."""
    plain = shipped_model()
    return replace(plain, name="trained", loss="bridge", weights=plain.weights * 1.1)


def test_models_of_the_library_are_listed_by_name_and_used(
    session: Session, library: Library
) -> None:
    trainer = session.trainer
    assert list(trainer.models()) == [SHIPPED]
    save_model(learned(), library.folder / "lab.json")
    assert list(trainer.models()) == [SHIPPED, "lab"], "nothing is chosen for the user"
    trainer.use("lab")
    assert session.model.name == "lab"
    np.testing.assert_array_equal(session.model.weights, learned().weights)
    assert list(trainer.models()) == [PRESENT, SHIPPED, "lab"]


def test_a_damaged_model_is_told(
    session: Session, library: Library, said: list[tuple[str, str]]
) -> None:
    save_model(learned(), library.folder / "bad.json").write_text("{")
    session.trainer.use("bad")
    assert said[-1][0] == "error" and "bad" in said[-1][1]
    assert session.model.name == SHIPPED
