"""Work that ends because its movie is left says so, and what comes too late is not used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.annotations.annotation import Kind
from bridgetrack.session import questions
from bridgetrack.session.background import BackgroundWork
from bridgetrack.session.project import JOB

SLOW = {
    "choose": "Choosing the masks again",
    "take over": "The import of theirs.csv",
    "train": "Training",
}
"""Work that does not come to its end here, and what is told of it."""


class Slow(BackgroundWork):
    """Does not come to do some work."""

    def do(self, name, *given) -> None:
        """Leave slow work where it is."""
        if name not in SLOW:
            super().do(name, *given)


@pytest.mark.parametrize("other", [True, False], ids=["another movie", "no movie"])
def test_what_ends_with_its_movie_is_told(source, tmp_path, other) -> None:
    session = bt.Session(work=Slow())
    heard: list[tuple[str, str]] = []
    session.message.connect(lambda level, words: heard.append((level, words)))
    assert session.open(source, tmp_path / "a.bridgetrack")
    session.edits.note(Kind.CONFIRM, session.ask().event, "click")
    session.choose_again()
    session.edits.take_over(tmp_path / "theirs.csv")
    session.trainer.train()
    assert session.busy(*SLOW) and all(session.busy(name) for name in SLOW)
    heard.clear()
    if other:
        assert session.open(source, tmp_path / "b.bridgetrack")
    else:
        session.forget()
    told = [words for level, words in heard if level == "warning"]
    assert len(told) == 1
    for words in SLOW.values():
        assert words in told[0]
    assert "ended before it was done" in told[0]
    # Once it is told, it is told.
    heard.clear()
    session.forget()
    assert not [words for level, words in heard if level == "warning"]
    session.close()


class Late(BackgroundWork):
    """Does not come to write the project."""

    def do(self, name, *given) -> None:
        """Leave it for later."""
        if name != JOB:
            super().do(name, *given)


def test_a_project_is_whole_where_a_window_closes_at_once(source, tmp_path) -> None:
    cells, folder = (
        bt.save_labels(source.labels, tmp_path / "cells.tif"),
        tmp_path / "a.bridgetrack",
    )
    session = bt.Session(cells, project=folder, work=Late())
    session.answer(session.ask(), "yes")
    assert {path.name for path in folder.iterdir()} == {"answers.json"}
    session.project.keep_now()
    assert {path.name for path in folder.iterdir()} == {"answers.json", "project.json"}
    session.close()


@pytest.mark.parametrize("leave", ["open", "forget", "close"])
def test_cells_are_kept_before_their_movie_is_left(source, tmp_path, leave) -> None:
    session = bt.Session(work=Late())
    folder = tmp_path / "a.bridgetrack"
    assert session.open(source, folder) and not folder.exists()
    given = (source, tmp_path / "b.bridgetrack") if leave == "open" else ()
    getattr(session, leave)(*given)
    assert {path.name for path in folder.iterdir()} == {"cells.zarr", "project.json"}
    session.close()


def test_what_could_not_be_kept_is_told_when_its_movie_is_left(source, tmp_path) -> None:
    session, heard = bt.Session(work=Late()), list[str]()
    session.message.connect(lambda _, words: heard.append(words))
    assert session.open(source, tmp_path / "a" / "a.bridgetrack")
    (tmp_path / "a").write_text("in the way")
    session.forget()
    assert "The project that was open could not be saved" in heard[-1]


class Held(BackgroundWork):
    """Learns only when it is told to, and then also what was cancelled."""

    holds, held = False, ()

    def do(self, name, *given) -> None:
        """Leave learning for later."""
        if self.holds and name == questions.JOB:
            self.held = (*self.held, given)
        else:
            super().do(name, *given)

    def finish(self, order) -> list:
        """Learn, and report in some order; what was learned, in the order of its start."""
        held, self.held = self.held, ()
        made = [bt.run(work()) for work, *_ in held]
        for n in range(len(held))[::order]:
            held[n][3](made[n])
        return made


@pytest.mark.parametrize("order", [1, -1])
def test_what_was_learned_from_an_earlier_model_or_movie_is_not_used(source, order) -> None:
    work = Held()
    session = bt.Session(source.labels.array[:, 0].compute(), work=work)
    for _ in range(2):
        session.answer(session.ask(), "yes")
    work.holds = True
    while not work.held:
        session.answer(session.ask(), "yes")
    active, model = session.questions.active, session.model
    session.settings.set_model(replace(model, weights=0.5 * model.weights, name="other"))
    assert active.last is None and active.prior.name == "other" and session.questions.busy
    earlier, now = work.finish(order)
    assert session.questions.active is active and active.last is now is not earlier
    fresh = type(active)(active.scene, active.prior, active.answers)
    weights = bt.run(fresh.update()).learned.weights
    np.testing.assert_allclose(now.learned.weights, weights, atol=1e-6)

    while not work.held:
        session.answer(session.ask(), "yes")
    place = session.scene.detections.table.iloc[0]
    session.mend("remove", 0, (place.y, place.x))
    assert len(session.scene.detections) < len(active.scene.detections)
    assert session.questions.active is not active
    *_, now = work.finish(order)
    assert session.questions.active.last is now is not active.last
    assert now.scene.detections is session.scene.detections
