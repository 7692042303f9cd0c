"""Large movies: the frames in view come first, the others follow, and nothing said is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridgetrack.active.suggestion import SessionOptions
from bridgetrack.annotations.annotation import Kind
from bridgetrack.errors import InputError
from bridgetrack.files import sample_folder
from bridgetrack.models.library import Library
from bridgetrack.movie import Movie, open_labels
from bridgetrack.progress import run
from bridgetrack.session.background import Done, Factory, Failed, Report
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.proposals import chosen_event, proposals
from bridgetrack.session.session import Session

VIEW = 8


class OneByOne:
    """Work waits until the test lets it happen, as it would in threads."""

    def __init__(self) -> None:
        self.waiting: dict[str, tuple[Factory, Done, Failed]] = {}

    def start(self, name: str, work: Factory, done: Done, failed: Failed, report: Report) -> None:
        self.waiting[name] = (work, done, failed)

    def do(self, name: str) -> None:
        """Do what waits under a name."""
        work, done, _ = self.waiting.pop(name)
        done(run(work()))

    def cancel(self, name: str) -> None:
        self.waiting.pop(name, None)

    def running(self, name: str) -> bool:
        return name in self.waiting

    def close(self) -> None:
        self.waiting.clear()


def small_movie() -> Movie:
    """A corner of the sample."""
    whole = open_labels(sample_folder() / "01_GT" / "TRA")
    return open_labels(np.asarray(whole.array[:16, 0, :160, :160].compute()), axes="TYX")


@pytest.fixture
def near(tmp_path: Path) -> Iterator[tuple[Session, OneByOne]]:
    """A session that has looked at the frames in view of a movie taken for a large one."""
    labels = small_movie()
    runner = OneByOne()
    options = SessionOptions(queue=6, update_every=1000, rejudge_every=1000)
    made = Session(runner=runner, library=Library(tmp_path / "models"), options=options)
    assert made.large is not None
    made.large, made.view = 1, VIEW
    assert made.open(MovieAndCells(labels, None, "large"), tmp_path / "answers.json")
    runner.do("measure")
    yield made, runner
    made.close()


def finish(session: Session, runner: OneByOne) -> None:
    """Look at all frames."""
    runner.do("measure")
    runner.do("track")
    assert session.partial is None


def test_questions_come_before_all_frames_are_looked_at(near: Any) -> None:
    session, runner = near
    questions = session.questions
    assert session.partial == range(VIEW - 3, VIEW + 4)
    assert session.tracking is None, "nothing that could be taken for the whole result"
    questions.prepare()
    runner.do("suggest")
    questions.take_keys(True)
    first = questions.current
    assert first is not None and first.frame in session.partial
    questions.confirm(first)
    second = questions.current
    assert second is not None and second is not first
    runner.do("correct")
    session.trainer.train()
    assert "still being looked at" in session.trainer.problem
    assert not session.trainer.busy
    finish(session, runner)
    assert session.tracking is not None
    assert questions.current is second, "the question in view stays"
    assert questions.active is not None and questions.active.scene.frames is None
    assert [r.slots for r in questions.active.records] == [first.event.slots]
    assert questions.active.options.suggest.random_share > 0
    runner.do("suggest")
    frames = {s.frame for s in questions.active.queue}
    assert frames - set(range(VIEW - 3, VIEW + 4)), "now all frames are asked about"
    session.trainer.train()
    assert session.trainer.busy


def test_an_answer_holds_at_once_and_in_all_frames(near: Any) -> None:
    session, runner = near
    known = session.known
    assert known is not None
    rows = np.flatnonzero(known.scene.detections.frame == VIEW).tolist()
    row, other = next(
        (r, p[1].event) for r in rows if len(p := proposals(known, r)) > 1 and not p[1].excluded
    )
    session.questions.prepare()
    runner.cancel("suggest")
    session.note(Kind.CONFIRM, other, "click")
    runner.do("correct")
    assert chosen_event(session.known, row).key == other.key
    cell = known.scene.detections.frame[row], known.scene.detections.label[row]
    finish(session, runner)
    if runner.running("correct"):
        runner.do("correct")
    whole = session.tracking
    assert chosen_event(whole, whole.scene.detections.row_of(*map(int, cell))).key == other.key


def test_where_frames_in_view_fail_the_movie_is_looked_at_as_a_whole(near: Any) -> None:
    session, runner = near
    session.measure()
    _, _, failed = runner.waiting.pop("measure")
    session.message.connect(lambda *_: None)
    failed(InputError("no"))
    assert session.partial is None and session.known is None
    finish(session, runner)
    assert session.tracking is not None


def test_small_movies_are_looked_at_at_once(tmp_path: Path) -> None:
    runner = OneByOne()
    session = Session(runner=runner, library=Library(tmp_path / "models"))
    labels = small_movie()
    session.open(MovieAndCells(labels, None, "small"), tmp_path / "answers.json")
    runner.do("measure")
    assert session.scene is None and session.partial is None
    finish(session, runner)
    assert session.tracking is not None
    session.close()
