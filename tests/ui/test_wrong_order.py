"""Keys and acts at the wrong moment: each says one sentence, and nothing is recorded.

One movie serves all of them, for none may change anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.files import sample_folder
from bridgetrack.models.library import Library
from bridgetrack.movie import open_labels
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.picking import Mode

FRAMES = 4


class Person:
    """Somebody with keys and a pointer, and what is told them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        whole = open_labels(sample_folder() / "01_GT" / "TRA")
        pixels = np.asarray(whole.array[:FRAMES, 0, :160, :160].compute())
        # A place without a cell, for a click on nothing.
        self.nowhere = tuple(map(float, np.argwhere(pixels[0] == 0)[0]))
        self.session = Session(pixels, library=Library(folder / "models"))
        self.told: list[str] = []
        self.session.message.connect(lambda _, words: self.told.append(words))
        self.keys = Annotator(self.session)
        self.session.scene_changed.emit()

    def cell(self, frame: int) -> Any:
        """Reference to the first cell of a frame."""
        assert self.session.scene is not None and self.keys.finder is not None
        row = int(np.flatnonzero(self.session.scene.detections.frame == frame)[0])
        return self.keys.finder.ref(row)

    def away(self) -> None:
        """Point at nothing."""
        self.keys.hover(0, (-5.0, -5.0))

    def pick(self, mode: Mode, *frames: int) -> None:
        """A key, then clicks on a cell of each frame."""
        self.keys.set_mode(mode)
        for frame in frames:
            self.keys.click(frame, self.cell(frame).position)

    def file(self, name: str, text: str) -> Path:
        """A file of somebody."""
        path = self.folder / name
        path.write_text(text)
        return path


@pytest.fixture(scope="module")
def someone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """The person whom all moves happen to."""
    made = Person(tmp_path_factory.mktemp("moves"))
    yield made
    made.session.close()


def _edit(act: Callable[[Person], object]) -> Callable[[Person], None]:
    """An act on whole tracks, as the canvas does it."""

    def do(p: Person) -> None:
        with p.session.telling():
            act(p)

    return do


MOVES: dict[str, Callable[[Person], object]] = {
    "undo with nothing done": lambda p: p.keys.undo(),
    "Enter with no cell outlined": lambda p: (p.keys.set_mode(Mode.DISAPPEAR), p.keys.accept()),
    "connect a cell with one of the frame before": lambda p: p.pick(Mode.MOVE, 1, 0),
    "a click beside all cells while connecting": lambda p: (
        p.pick(Mode.MOVE, 0),
        p.keys.click(1, (-5.0, -5.0)),
    ),
    "take over tracks of another movie": _edit(
        lambda p: p.session.edits.take_over(
            p.file("far.csv", "track_id,frame,y,x\n1,0,9000,9000\n1,1,9000,9000\n")
        )
    ),
    "train without answers": lambda p: (
        p.session.trainer.train(),
        p.told.append(p.session.trainer.problem),
    ),
    "load a model that is none": lambda p: p.session.trainer.use(p.file("model.json", "{}")),
    "choose masks again without an image": _edit(lambda p: p.session.choose_again()),
    "mend where there is no cell": lambda p: (
        p.keys.set_mode(Mode.REMOVE),
        p.keys.click(0, p.nowhere),
    ),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_move_at_the_wrong_moment_says_so_and_records_nothing(someone, move) -> None:
    session, tracking, model = someone.session, someone.session.tracking, someone.session.model
    someone.keys.set_mode(Mode.REVIEW)
    someone.away()
    someone.told.clear()
    MOVES[move](someone)
    assert any(someone.told), "something is said"
    assert not len(session.annotations) and not session.can_undo
    assert session.tracking is tracking and session.model is model
    someone.keys.set_mode(Mode.REVIEW)


def test_acts_without_a_movie_say_what_is_missing(tmp_path: Path) -> None:
    session = Session(library=Library(tmp_path / "models"))
    told: list[str] = []
    session.message.connect(lambda _, words: told.append(words))
    keys = Annotator(session)
    keys.click(0, (3.0, 3.0))
    assert told[-1] == "Choose a movie with its cells first; see the step Cells."
    keys.suggest()
    assert "step Cells" in keys.hint and "Choose a movie" in told[-1] and len(told) == 2
    assert keys.picking.mode == Mode.REVIEW and not session.questions.engaged
    session.trainer.train()
    assert "Choose a movie" in session.trainer.problem
    for act in (session.ask, session.train, session.choose_again):
        with pytest.raises(InputError, match="no movie"):
            act()
    assert session.tracker.track() is None and session.tracking is None
