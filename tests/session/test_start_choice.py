"""What training starts from, without Qt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bridgetrack.models.library import SHIPPED, Library
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.session.session import Session
from bridgetrack.session.training import PRESENT, StartChoice


def learned() -> Model:
    """A model that says it was trained."""
    plain = shipped_model()
    return replace(plain, name="trained", loss="bridge", weights=plain.weights * 1.1)


def test_models_of_the_library_are_listed_by_name_and_used(
    starts: StartChoice, session: Session, library: Library
) -> None:
    starts.refresh()
    assert [s.key for s in starts.starts] == [SHIPPED]
    assert starts.chosen == SHIPPED
    library.add(learned(), "lab")
    starts.refresh()
    assert [s.key for s in starts.starts] == [SHIPPED, "library/lab"]
    assert starts.chosen == SHIPPED, "nothing is chosen for the user"
    starts.choose("library/lab")
    starts.refresh()
    assert starts.chosen == "library/lab"
    starts.use()
    assert session.model.name == "lab"
    np.testing.assert_array_equal(session.model.weights, learned().weights)


def test_a_model_in_use_is_gone_on_from(starts: StartChoice, session: Session) -> None:
    session.set_model(learned())
    assert starts.chosen == PRESENT


def test_a_damaged_model_is_told(starts: StartChoice, session: Session, library: Library) -> None:
    library.add(learned(), "bad").write_text("{")
    starts.refresh()
    starts.choose("library/bad")
    for act in (starts.train, starts.use):
        act()
        assert "bad" in starts.problem
    assert session.model.name == SHIPPED
