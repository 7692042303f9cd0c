"""Work that ends because its movie is left says so, each in a sentence."""

from __future__ import annotations

import pytest

import bridgetrack as bt
from bridgetrack.annotations.annotation import Kind
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
