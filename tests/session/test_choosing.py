"""Masks searched, and chosen again after answers about them, which hold; undo brings them back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage as ndi

import bridgetrack as bt
from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.annotations.annotation import CellRef, EventRef, Kind
from bridgetrack.annotations.mask_answers import MaskAnswers, honoured
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.pipeline.finding import CellSearch, Finding
from bridgetrack.progress import run
from bridgetrack.regions.mend import MaskAnswer, MendKind, pixels_of
from bridgetrack.session.background import BackgroundWork
from bridgetrack.session.masks import JOB
from bridgetrack.session.movie import MovieAndCells
from drawn_movie import NUCLEI, PLACES, added, drawn, squares

T = 2


@pytest.fixture(scope="module")
def images():
    """A movie of nuclei drawn by hand, two of which touch, and its true labels."""
    return drawn()


@pytest.fixture
def opened(images, tmp_path):
    """A session in which the touching nuclei are one in frame T; its label array; the truth."""
    picture, truth = images
    array = truth.copy()
    array[T][array[T] == 2] = 1
    movie = MovieAndCells(
        open_labels(array, axes="TYX"), open_movie(picture, axes="TYX"), pixels=array
    )
    session = bt.Session()
    assert session.open(movie, tmp_path / "a.annotations.json")
    yield session, array, truth
    session.close()


def at(k: int, t: int) -> tuple[float, float]:
    """Where a nucleus is in a frame."""
    return PLACES[k][0] + t, PLACES[k][1] + 0.5 * t


def cells(frame: np.ndarray) -> list[frozenset[int]]:
    """The pixels of each cell of a frame."""
    return [frozenset(np.flatnonzero(frame.ravel() == k)) for k in np.unique(frame[frame > 0])]


def test_answers_hold_when_masks_are_chosen_again(opened) -> None:
    session, array, _ = opened
    cut = session.mend("cut", T, at(0, T))
    session.mend("remove", 1, at(3, 1))  # the image shows a cell there, which would come back
    event = session.ask().event
    session.edits.note(Kind.CONFIRM, event, "click")
    before, answers = array.copy(), list(session.masks.answers)
    session.choose_again()
    assert list(session.masks.answers) == answers and len(session.annotations) == 1
    assert {frozenset(pixels_of(runs).tolist()) for runs in cut.right} <= set(cells(array[T]))
    assert array[1][tuple(np.rint(at(3, 1)).astype(int))] == 0
    # Cells that stay keep their numbers, so that answers go on naming them.
    for t in range(len(array)):
        for k in np.unique(before[t][before[t] > 0]):
            there = before[t] == k
            assert ((array[t] == k) & there).sum() > 0.7 * there.sum()
    assert not session.scene.anchored.lost
    after = array.copy()
    if (after != before).any():
        session.undo()
        np.testing.assert_array_equal(array, before)
        session.redo()
        np.testing.assert_array_equal(array, after)


def test_masks_of_a_file_that_were_chosen_anew_are_there_again(images, tmp_path) -> None:
    picture, truth = images
    of_file = truth.copy()
    of_file[T][of_file[T] == 5] = 0
    answers = tmp_path / "c.annotations.json"

    def open_file(pixels: np.ndarray) -> tuple[bt.Session, np.ndarray, list[tuple[str, str]]]:
        array, heard = pixels.copy(), []
        made = bt.Session()
        made.message.connect(lambda *said: heard.append(said))
        movie = MovieAndCells(
            open_labels(array, axes="TYX"), open_movie(picture, axes="TYX"), pixels=array,
            files=(None, tmp_path / "cells.tif"), found=Finding(NUCLEI),
        )  # fmt: skip
        assert made.open(movie, answers)
        return made, array, heard

    session, array, _ = open_file(of_file)
    session.mend("remove", 1, at(3, 1))
    session.choose_again()
    assert array[T][tuple(np.rint(at(4, T)).astype(int))] > 0
    session.mend("remove", 0, at(4, 0))
    chosen = array.copy()
    session.close()

    session, array, heard = open_file(of_file)
    np.testing.assert_array_equal(array, chosen)
    assert len(session.masks.answers) == session.answers.resumed == 2
    assert not any(level == "warning" for level, _ in heard)
    session.undo()
    assert array[0][tuple(np.rint(at(4, 0)).astype(int))] > 0
    session.redo()
    np.testing.assert_array_equal(array, chosen)
    session.export(tmp_path / "out", ["csv"])
    methods = " ".join((tmp_path / "out" / "methods.txt").read_text(encoding="utf-8").split())
    assert "2 answers of a person about masks" in methods
    session.close()

    # Kept between two changes, as by a window that was killed.
    between = of_file.copy()
    between[1] = chosen[1]
    session, array, _ = open_file(between)
    np.testing.assert_array_equal(array, chosen)
    session.close()

    other = np.where(truth > 0, truth + 10, 0)
    session, array, heard = open_file(other)
    np.testing.assert_array_equal(array, other)
    assert any(level == "warning" and "were not applied" in words for level, words in heard)
    session.close()


class Held(BackgroundWork):
    """Chooses masks only when it is told to."""

    finish = None

    def do(self, name, work, stopped, step, done, failed) -> None:
        """Leave choosing for later."""
        if name == JOB:
            steps = work()
            self.finish = lambda: done(run(steps))
        else:
            super().do(name, work, stopped, step, done, failed)


def test_masks_that_changed_or_were_locked_meanwhile_stay(images) -> None:
    picture, truth = images
    labels = np.where((truth == 5) & (np.arange(len(truth)) < T)[:, None, None], 0, truth)
    labels[T][labels[T] == 2] = 1
    work, heard = Held(), []
    session = bt.Session(labels, picture, work=work)
    session.message.connect(lambda *said: heard.append(said))
    session.choose_again()
    session.mend("remove", 1, at(3, 1))
    session.edits.verify(CellRef(T, 1, at(0, T)))
    before = [session.movie.labels.channel_frame(t).copy() for t in range(len(labels))]
    work.finish()
    after = [session.movie.labels.channel_frame(t) for t in range(len(labels))]
    assert after[0][tuple(np.rint(at(4, 0)).astype(int))] > 0
    np.testing.assert_array_equal(after[1:], before[1:])
    assert heard[-1] == (
        "warning", "In 2 frames you changed masks meanwhile, or a verified track is locked: "
        "nothing is changed there.",
    )  # fmt: skip


def test_frames_in_which_the_file_has_changed_are_told(images, tmp_path) -> None:
    picture, truth = images
    of_file, heard = np.where(truth == 5, 0, truth), list[tuple[str, str]]()

    def reopened(pixels):
        array, made = pixels.copy(), bt.Session()
        made.message.connect(lambda *said: heard.append(said))
        labels, image = open_labels(array, axes="TYX"), open_movie(picture, axes="TYX")
        movie = MovieAndCells(labels, image, pixels=array, found=Finding(NUCLEI))
        assert made.open(movie, tmp_path / "d.annotations.json")
        return made, array

    session, array = reopened(of_file)
    session.choose_again()
    chosen = array.copy()
    assert (chosen != of_file).any(axis=(1, 2)).all()
    session.close()
    changed = np.where((truth == 5) & (np.arange(len(truth)) == T)[:, None, None], 9, of_file)
    session, array = reopened(changed)
    np.testing.assert_array_equal(array[T], changed[T])
    np.testing.assert_array_equal(np.delete(array, T, 0), np.delete(chosen, T, 0))
    assert "In 1 frame the masks have changed" in heard[-1][1] and heard[-1][0] == "warning"
    session.close()


def test_masks_are_not_chosen_without_an_image(opened, images) -> None:
    session = bt.Session(images[1])
    with pytest.raises(InputError, match="image"):
        session.choose_again()


@pytest.mark.parametrize("found", [None, Finding(NUCLEI)], ids=["brought", "found here"])
def test_a_choice_that_would_leave_no_cell_is_refused(found, tmp_path) -> None:
    picture, masks = squares()
    if found is not None:
        picture[:] = 7.0
    array = masks.copy()
    movie = MovieAndCells(open_labels(array), open_movie(picture), pixels=array, found=found)
    session = bt.Session()
    assert session.open(movie, tmp_path / "s.annotations.json")
    with pytest.raises(InputError, match="remove all of its cells"):
        session.choose_again()
    np.testing.assert_array_equal(array, masks)
    assert not session.can_undo and len(session.scene.detections) == 20
    session.close()


def test_any_answer_about_masks_can_be_taken_back(opened, tmp_path) -> None:
    session, array, _ = opened
    start = array.copy()
    session.mend("cut", T, at(0, T))
    session.mend("remove", 1, at(3, 1))
    session.mend("remove", 0, at(4, 0))
    before, all_three = array.copy(), session.masks.answers
    session.edits.remove(a for a in session.masks.answers if a.id in ("m1", "m3"))
    assert [a.id for a in session.masks.answers] == ["m2"]
    np.testing.assert_array_equal(array[[0, T]], start[[0, T]])
    np.testing.assert_array_equal(array[1], before[1])
    session.undo()
    np.testing.assert_array_equal(array, before)
    assert session.masks.answers.past == all_three.past
    session.redo()
    session.undo()
    for _ in range(3):
        session.undo()
    np.testing.assert_array_equal(array, start)
    assert not session.can_undo and len(session.masks.answers) == 0


def test_what_is_painted_away_stays_away(opened) -> None:
    session, array, _ = opened
    before, pixels = array[1].copy(), np.flatnonzero(array[1] == 4)
    array[1].ravel()[pixels] = 0
    session.masks.note_painting(1, pixels, np.full(len(pixels), 4))
    session.tracker.measure(touched={1})
    session.choose_again()
    assert honoured(array[1], session.masks.answers, 1)
    assert not honoured(before, session.masks.answers, 1)
    assert array[0][tuple(np.rint(at(3, 0)).astype(int))] > 0


def test_a_repair_draws_no_cell_otherwise_than_somebody_did(opened) -> None:
    session, _, truth = opened
    drawn = np.flatnonzero(ndi.binary_dilation(truth[1] == 4, iterations=2))
    keep = MaskAnswer.of(1, MendKind.KEEP, [drawn])
    answers = added(MaskAnswers(session.movie.geometry), keep)
    movie, frames = session.movie, []
    run(CellSearch(movie.image, Finding(given=movie.labels), answers).steps(frames.append))
    np.testing.assert_array_equal(np.flatnonzero(frames[1] == 4), drawn)


def row_ref(session: bt.Session, t: int, k: int) -> CellRef:
    """A cell by its number in a frame."""
    table = session.scene.detections
    return cell_refs(table, np.array([table.row_of(t, k)]))[0]


@pytest.fixture
def doubtful(opened, images, tmp_path):
    """The same where masks are found here, with a cell (9) in all frames that the image lacks."""
    session, array, truth = opened
    array[:, 78:88, 20:32] = 9
    found = replace(session.movie, found=Finding(NUCLEI))
    assert session.open(found, tmp_path / "d.annotations.json")
    return session, array, truth


def test_cells_of_verified_tracks_and_confirmed_events_stay_as_drawn(doubtful) -> None:
    session, array, _ = doubtful
    heard, before = [], array.copy()
    session.message.connect(lambda *said: heard.append(said))
    session.choose_again()
    assert not (array == 9).any() and array[T].max() > 9, "neither is as the image shows"
    session.undo()
    np.testing.assert_array_equal(array, before)
    session.edits.note(Kind.CONFIRM, EventRef(Event.MOVE, (row_ref(session, 0, 9),),
                                        (row_ref(session, 1, 9),)), "click")  # fmt: skip
    session.edits.note(Kind.CONFIRM, EventRef(Event.FALSE, (row_ref(session, 3, 4),)), "click")
    session.choose_again()
    for t in (0, 1):
        np.testing.assert_array_equal(array[t] == 9, before[t] == 9)
    assert not (array[2:] == 9).any(), "nobody spoke of these"
    assert not array[3][tuple(np.rint(at(3, 3)).astype(int))]
    assert array[2][tuple(np.rint(at(3, 2)).astype(int))]
    while session.can_undo:
        session.undo()
    heard.clear()
    for k in (1, 9):
        assert session.edits.verify(row_ref(session, T, k))
    verified = {c.cell for a in session.annotations for c in a.cells}
    assert {(t, 9) for t in range(4)} | {(T, 1)} <= verified
    session.mend("remove", 0, at(3, 0))
    session.choose_again()
    for t, k in verified:
        np.testing.assert_array_equal(array[t] == k, before[t] == k)
    assert not session.scene.anchored.lost
    assert not any(level == "warning" for level, _ in heard)


def test_progress_of_a_search_only_goes_forward() -> None:
    movie, shares = open_movie(drawn(2)[0], axes="TYX"), list[float]()
    run(CellSearch(movie, Finding()).in_memory(), lambda s: shares.append(s.done))
    assert len(set(shares)) > 2 and shares == sorted(shares) and shares[-1] <= 1
