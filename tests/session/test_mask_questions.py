"""Questions about masks in a session: which are asked, what answers do, and taking them back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.active.mask_questions import MaskQuestion, mask_questions, worth
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.annotations.annotation import EventRef, Kind
from bridgetrack.annotations.mask_store import load_mask_answers
from bridgetrack.errors import InputError, OutputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.pipeline import finding as finding_module
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.mask_candidates import MaskReader
from bridgetrack.pipeline.mask_doubts import MaskDoubt, mask_doubts
from bridgetrack.progress import run
from bridgetrack.regions.describe import Described
from bridgetrack.regions.mend import MendKind
from bridgetrack.session.movie import MovieAndCells
from drawn_movie import drawn

T = 1


@pytest.fixture(scope="module")
def movie() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Image, true labels, and labels in which in frame 1 two are one and one is missing."""
    images, truth = drawn()
    labels = truth.copy()
    labels[T][labels[T] == 2] = 1
    labels[T][labels[T] == 4] = 0
    return images, truth, labels


@pytest.fixture
def session(movie, tmp_path: Path):
    images, _, labels = movie
    made = bt.Session(labels.copy(), images, answers=tmp_path / "cells.annotations.json")
    yield made
    made.close()


@pytest.fixture
def asked(session):
    session.questions.masks.turn(True)
    return session


def frame_of(session, t: int) -> np.ndarray:
    return np.asarray(session.movie.labels.channel_frame(t))


def until(session, kind: MendKind) -> MaskQuestion:
    """The question of a kind, all others passed over."""
    for _ in range(30):
        found = session.ask()
        if isinstance(found, MaskQuestion) and found.kind == kind:
            return found
        session.answer(found, "skip")
    raise AssertionError(f"{kind} is not asked")


def pieces(labels: np.ndarray, truth: np.ndarray, cells: tuple[int, ...]) -> list[float]:
    """Overlap of true cells with the masks most like them."""
    best = []
    for cell in cells:
        there = truth == cell
        best.append(max(((labels == k) & there).sum() / ((labels == k) | there).sum()
                        for k in np.unique(labels[there])))  # fmt: skip
    return best


def test_work_that_fails_is_told(session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise InputError("the image cannot be read")

    told: list[tuple[str, str]] = []
    session.message.connect(lambda kind, words: told.append((kind, words)))
    monkeypatch.setattr("bridgetrack.session.mask_questions.mask_doubts", fails)
    session.questions.masks.turn(True)
    session.ask()
    assert ("warning", "Masks are not asked about any more: the image cannot be read") in told
    assert not session.questions.masks.on


def test_doubts_are_where_masks_are_wrong(movie) -> None:
    images, truth, labels = movie
    image = open_movie(images)
    found = run(mask_doubts(image, open_labels(labels), range(4)))
    wrong = {q.kind: q for q in mask_questions(found) if q.value > 0.5}
    assert {q.frame for q in wrong.values()} == {T}
    assert set(wrong) >= {MendKind.CUT, MendKind.GROW}
    cut = wrong[MendKind.CUT].doubt
    for k in (1, 2):
        there = np.flatnonzero(truth[T] == k)
        assert max(len(np.intersect1d(there, p)) / len(there) for p in cut.instead) > 0.8
    right = run(mask_doubts(image, open_labels(truth), range(4)))
    assert all(q.value < 0.5 for q in mask_questions(right)), "true masks are hardly doubted"


def test_some_frames_are_doubted_as_in_the_whole_movie(movie) -> None:
    images, _, labels = movie
    found = run(mask_doubts(open_movie(images), open_labels(labels), range(2, 4)))
    assert {d.frame for d in found} <= {2, 3}


def test_masks_are_asked_about_on_demand_only(session) -> None:
    assert not session.questions.masks.on
    assert isinstance(session.ask(), Suggestion)
    session.questions.masks.turn(True)
    assert session.questions.masks.open


def test_cells_of_confirmed_events_are_not_asked_about(session) -> None:
    table = session.scene.detections
    one, next_one = cell_refs(table, np.array([table.row_of(t, 1) for t in (T, T + 1)]))
    session.note(Kind.CONFIRM, EventRef(Event.MOVE, (one,), (next_one,)), "click")
    masks = session.questions.masks
    masks.turn(True)
    assert (T, MendKind.GROW) in [(q.frame, q.kind) for q in masks.open]
    assert (T, MendKind.CUT) not in [(q.frame, q.kind) for q in masks.open]


def test_masks_that_were_chosen_here_are_asked_about(movie) -> None:
    images, _, labels = movie
    made = bt.Session()
    cells = MovieAndCells(open_labels(labels), open_movie(images), found=Finding())
    assert made.open(cells)
    assert made.questions.masks.on
    assert made.open(MovieAndCells(open_labels(labels), open_movie(images)))
    assert not made.questions.masks.on
    made.close()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Frames whose candidates were looked for, two frames asked about together."""
    seen: list[int] = []
    frame = MaskReader.frame

    def counted(self: MaskReader, t: int) -> Described:
        seen.append(t)
        return frame(self, t)

    monkeypatch.setattr(MaskReader, "frame", counted)
    monkeypatch.setattr("bridgetrack.session.mask_questions.BLOCK", 2)
    monkeypatch.setattr("bridgetrack.session.mask_questions.LOW", 99)
    return seen


def test_what_is_learned_of_masks_is_learned_once(session, read) -> None:
    session.questions.masks.turn(True)
    learned = [1, 2, 3]
    assert sorted(read) == sorted(learned + 2 * [0, 1, 2, 3])
    read.clear()
    session.choose_again()
    assert sorted(read) == sorted(2 * [0, 1, 2, 3]), "nor by what chooses masks again"
    read.clear()
    session.mend("remove", T, (21.0, 20.0))
    session.choose_again()
    assert sorted(read) == sorted([*learned, 0, 1, 2, 3]), "an answer teaches something"


def test_cells_that_were_found_bring_what_was_learned(movie, read, monkeypatch) -> None:
    images, _, labels = movie
    image = open_movie(images)
    found = run(Finding().taught(image))
    read.clear()
    made = bt.Session()
    assert made.open(MovieAndCells(open_labels(labels), image, found=found))
    made.questions.prepare()
    assert sorted(read) == sorted(2 * [0, 1, 2, 3])
    values = [(q.frame, q.kind, q.value) for q in made.questions.masks.open]
    # The disk keeps how they were found without what was learned: that is learned in the same way.
    learned_from, learn = [], finding_module.learn_masks

    def noted(image, settings, how, given, *rest, **more):
        learned_from.append(given.labels)
        return learn(image, settings, how, given, *rest, **more)

    monkeypatch.setattr(finding_module, "learn_masks", noted)
    back = replace(found, learned=None)
    assert made.open(MovieAndCells(open_labels(labels), image, found=back, kept=True))
    made.questions.prepare()
    assert learned_from == [()], "not from the masks that are asked about"
    assert [(q.frame, q.kind, q.value) for q in made.questions.masks.open] == values
    # Of those that were repaired the disk does not know how, so that they are as brought along.
    repaired = replace(found, given=open_labels(labels))
    assert made.open(MovieAndCells(open_labels(labels), image, found=repaired))
    assert not made.questions.masks.on
    made.close()


def test_what_puts_most_right_is_asked_first(asked) -> None:
    first = asked.ask()
    assert isinstance(first, MaskQuestion) and first.frame == T
    assert asked.ask() is first
    queue = [s for s in asked.questions.active.queue if not s.random]
    assert first.value > max(map(worth, queue))
    values = [q.value for q in asked.questions.masks.open]
    assert values == sorted(values, reverse=True)


def test_an_answer_says_what_happened(asked) -> None:
    told: list[str] = []
    asked.message.connect(lambda _, words: told.append(words))
    asked.answer(until(asked, MendKind.CUT), "no")
    assert "Noted: two cells; the masks and the tracks have changed" in " ".join(told)
    asked.answer(until(asked, MendKind.GROW), "yes")
    assert "Noted: no cell, as drawn; the masks stay" in " ".join(told)


def test_no_makes_the_alternative_and_undo_asks_again(asked, movie) -> None:
    _, truth, labels = movie
    question = until(asked, MendKind.CUT)
    assert question.question == "Is this one cell, or two?"
    assert question.answers == ("one cell, as drawn", "two cells")
    cells = len(asked.scene.detections)
    assert min(pieces(frame_of(asked, T), truth[T], (1, 2))) < 0.6
    asked.answer(question, "no")
    assert min(pieces(frame_of(asked, T), truth[T], (1, 2))) > 0.6
    assert len(asked.scene.detections) == cells + 1
    assert asked.tracking.scene is asked.scene, "the tracks follow"
    assert asked.masks.answers.past[-1].kind == MendKind.CUT
    assert asked.ask() is not question
    asked.questions.engaged = True
    asked.undo()
    np.testing.assert_array_equal(frame_of(asked, T), labels[T])
    assert asked.questions.current is question
    asked.redo()
    assert min(pieces(frame_of(asked, T), truth[T], (1, 2))) > 0.6
    assert asked.ask() is not question


def test_yes_keeps_the_masks_and_is_learned_from(asked, movie, tmp_path: Path) -> None:
    labels = movie[2]
    question = until(asked, MendKind.CUT)
    scene = asked.scene
    asked.answer(question, "yes")
    np.testing.assert_array_equal(frame_of(asked, T), labels[T])
    assert asked.scene is scene, "nothing is measured anew"
    assert "1 about masks" in asked.questions.report.effort
    known = load_mask_answers(tmp_path / "cells.masks.json")
    [answer] = known.past
    assert answer.kind == MendKind.KEEP and answer.change == ()
    assert len(answer.right) == 1 and len(answer.wrong) == 2
    image = open_movie(movie[0])
    from bridgetrack.pipeline.mask_candidates import GivenMasks

    again = run(mask_doubts(image, asked.masks.labels, range(4), given=GivenMasks(answers=known)))
    kinds = {q.kind for q in mask_questions(again) if q.frame == T and q.near(question)}
    assert MendKind.CUT not in kinds, "the answer holds"
    asked.undo()
    assert len(asked.masks.answers) == 0 and not asked.can_undo
    assert "about masks" not in asked.questions.report.effort


def test_the_same_is_proposed_in_frames_beside_after_a_no_alone(movie) -> None:
    images, truth, labels = movie[0], movie[1], movie[2].copy()
    labels[T + 1][labels[T + 1] == 2] = 1
    session = bt.Session(labels, images)
    session.questions.masks.turn(True)
    question = until(session, MendKind.CUT)
    [other] = {T, T + 1} - {question.frame}
    session.answer(question, "yes")
    assert session.proposed == []
    session.undo()

    def take_back(work: str, step: object) -> None:
        if work == "propose" and step is not None:
            session.undo()

    session.progress.connect(take_back)
    session.answer(question, "no")
    assert session.proposed == [], "it was taken back while the others were looked through"
    session.progress.disconnect(take_back)
    session.answer(question, "no")
    assert [(m.frame, m.kind) for m in session.proposed] == [(other, MendKind.CUT)]
    np.testing.assert_array_equal(frame_of(session, other), labels[other])
    session.accept(session.proposed[0])
    for t in (T, T + 1):
        assert min(pieces(frame_of(session, t), truth[t], (1, 2))) > 0.6
    assert session.proposed == []
    session.close()


def test_a_missing_cell_is_drawn(asked, movie) -> None:
    truth, labels = movie[1], movie[2]
    question = until(asked, MendKind.GROW)
    assert question.answers == ("no cell, as drawn", "one cell")
    asked.answer(question, "no")
    assert pieces(frame_of(asked, T), truth[T], (4,))[0] > 0.6
    new = set(np.unique(frame_of(asked, T))) - set(np.unique(labels[T]))
    assert len(new) == 1 and min(new) > labels.max()


def test_who_cannot_tell_is_not_asked_again(asked) -> None:
    question = until(asked, MendKind.CUT)
    asked.answer(question, "cannot tell")
    assert len(asked.masks.answers) == 0
    assert question not in asked.questions.masks.open


def test_a_mended_cell_is_not_asked_about_any_more(asked) -> None:
    question = until(asked, MendKind.CUT)
    asked.mend("remove", T, (21.0, 20.0))
    assert asked.ask() is not question
    with pytest.raises(InputError, match="the masks have changed there since"):
        asked.answer(question, "no")


def test_masks_that_are_chosen_anew_are_looked_at_anew(asked, movie) -> None:
    truth = movie[1]
    before = asked.questions.masks.open
    assert {q.kind for q in before if q.frame == T} >= {MendKind.CUT, MendKind.GROW}
    asked.choose_again()
    assert len(np.unique(frame_of(asked, T))) == len(np.unique(truth[T]))
    assert not {q.kind for q in asked.questions.masks.open} & {MendKind.CUT, MendKind.GROW}
    assert not any(q in before for q in asked.questions.masks.open)


def test_only_yes_and_no(asked) -> None:
    question = until(asked, MendKind.CUT)
    for answer in (0, "perhaps"):
        with pytest.raises(InputError, match="about masks"):
            asked.answer(question, answer)


def test_an_answer_that_cannot_be_kept_changes_nothing(asked, movie, monkeypatch) -> None:
    question = until(asked, MendKind.CUT)

    def full(*_: object) -> None:
        raise OutputError("the disk is full")

    monkeypatch.setattr(asked.masks._store, "keep", full)
    with pytest.raises(OutputError):
        asked.answer(question, "no")
    np.testing.assert_array_equal(frame_of(asked, T), movie[2][T])
    assert asked.ask() is question


def test_an_alternative_keeps_numbers_and_gives_free_ones() -> None:
    labels = np.zeros((10, 30), dtype=np.int32)
    labels[2:8, 2:20] = 7
    flat = np.arange(labels.size).reshape(labels.shape)
    sides = tuple(np.sort(flat[2:8, a:b].ravel()) for a, b in ((2, 6), (6, 12), (12, 20)))
    doubt = MaskDoubt(0, labels.shape, (np.flatnonzero(labels),), sides, 0.5, 1, 4)
    three = MaskQuestion(doubt)
    assert three.answers == ("one cell, as drawn", "3 cells")
    mend = three.mend(labels, False, 40)
    after = mend.applied(labels)
    assert [after[4, x] for x in (15, 8, 3)] == [7, 40, 41], "the largest keeps its number"
    assert mend.fits(labels) and mend.inverse.applied(after).tolist() == labels.tolist()
