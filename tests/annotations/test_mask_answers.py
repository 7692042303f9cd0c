"""Answers about masks: what they say of candidates, which of them stand, and their file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.files import load_mask_answers, save_annotations
from bridgetrack.annotations.history import AnswerChange
from bridgetrack.annotations.mask_answers import MaskAnswers, as_candidates, honoured, targets
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import Geometry
from bridgetrack.regions.mend import MaskAnswer, MendKind
from bridgetrack.regions.regions import Regions, concatenate, regions_of_labels
from bridgetrack.schema import to_json
from drawn_movie import added

SHAPE = (20, 30)
MOVIE = Geometry(4, SHAPE, (1.0, 1.0))


def box(top: int, left: int, height: int, width: int) -> np.ndarray:
    """Places of a rectangle in the flat frame."""
    frame = np.zeros(SHAPE, dtype=bool)
    frame[top : top + height, left : left + width] = True
    return np.flatnonzero(frame)


def said(kind: MendKind, right=(), wrong=(), t: int = 1, after: int = 9) -> MaskAnswer:
    """A change of masks that says which sets are right and wrong."""
    changed = np.union1d(*[*right, *wrong, np.zeros(0, np.int64)][:2]).astype(np.int64)
    labels = np.full(len(changed), after)
    return MaskAnswer.of(t, kind, right, wrong, (changed, labels * 0 + 3, labels))


LEFT, RIGHT, BOTH = box(5, 2, 10, 10), box(5, 12, 10, 10), box(5, 2, 10, 20)
CUT = said(MendKind.CUT, [LEFT, RIGHT], [BOTH])


def given(*answers: MaskAnswer) -> MaskAnswers:
    """Some answers as they are kept."""
    return added(MaskAnswers(MOVIE), *answers)


def candidates(*sets: np.ndarray, t: int = 1) -> Regions:
    """Sets of pixels as candidates of a frame, overlapping as they do."""
    found = []
    for pixels in sets:
        frame = np.zeros(SHAPE, dtype=int)
        frame.ravel()[pixels] = 1
        found.append(regions_of_labels(frame, t))
    return concatenate(found)


def test_what_is_right_wrong_and_neither() -> None:
    answers = given(CUT)
    exact, near, rough = LEFT, box(5, 2, 10, 9), box(5, 2, 10, 7)
    whole, half, astride = BOTH, box(5, 2, 4, 10), box(5, 9, 10, 6)
    elsewhere = box(0, 25, 4, 4)
    found = targets(candidates(exact, near, rough, whole, half, astride, elsewhere, RIGHT), answers)
    assert found.tolist() == [1, 1, 0, -1, -1, -1, 0, 1]
    assert not targets(candidates(exact, whole, t=2), answers).any()


def test_the_best_candidate_is_right_even_where_none_is_exact() -> None:
    answers = given(CUT)
    assert targets(candidates(box(5, 2, 10, 7), box(5, 2, 10, 6)), answers).tolist() == [1, 1]
    assert targets(candidates(box(5, 2, 10, 8), box(5, 2, 10, 6)), answers).tolist() == [1, 0]


def test_no_cell_speaks_against_what_is_about_there() -> None:
    answers = given(said(MendKind.REMOVE, [], [LEFT]))
    found = targets(candidates(LEFT, box(5, 2, 10, 7), box(5, 2, 3, 3), RIGHT), answers)
    assert found.tolist() == [-1, -1, -1, 0]


def test_in_an_area_that_was_checked_all_else_is_no_cell() -> None:
    """Until a later answer says otherwise; outside the area nothing is known."""
    empty = np.setdiff1d(box(0, 0, 20, 26), BOTH)
    checked = said(MendKind.CHECK, [LEFT, RIGHT], [empty])
    answers = given(checked)
    beside, beyond = box(16, 3, 3, 8), box(5, 27, 10, 3)
    offered = candidates(LEFT, RIGHT, BOTH, box(5, 2, 10, 4), beside, beyond)
    assert targets(offered, answers).tolist() == [1, 1, -1, -1, -1, 0]
    assert answers.checked == 2
    there = said(MendKind.GROW, [beside])
    assert targets(offered, added(answers, there)).tolist() == [1, 1, -1, -1, 1, 0]
    labels = np.zeros(SHAPE, dtype=int)
    for k, pixels in enumerate((LEFT, RIGHT, beyond), 1):
        labels.ravel()[pixels] = k
    assert honoured(labels, answers, 1)
    labels.ravel()[beside] = 9
    assert not honoured(labels, answers, 1)


def test_later_answers_take_earlier_ones_back() -> None:
    answers = given(CUT, said(MendKind.JOIN, [BOTH], [LEFT, RIGHT]))
    assert targets(candidates(BOTH, LEFT, RIGHT), answers).tolist() == [1, -1, -1]
    [kept] = [as_candidates(answers)]
    assert len(kept) == 1
    np.testing.assert_array_equal(kept.pixels, BOTH)
    gone = added(answers, said(MendKind.REMOVE, [], [BOTH]))
    assert targets(candidates(BOTH, RIGHT), gone).tolist() == [-1, -1]
    assert len(as_candidates(gone)) == 0
    other = added(answers, said(MendKind.GROW, [box(0, 25, 3, 3)], [], t=0))
    assert as_candidates(other).frame.tolist() == [0, 1]


def test_candidates_of_another_movie_are_refused() -> None:
    with pytest.raises(InputError, match="candidates to frames of"):
        targets(regions_of_labels(np.eye(5, dtype=int)), given(CUT))


def test_ids_and_labels_are_never_given_twice() -> None:
    first = given(CUT)
    answers = first.edit(["m1"])
    assert len(answers) == 0
    again = added(answers, CUT)
    assert [a.id for a in again] == ["m2"]
    assert again.last_label == 9
    fewer = again.edit(["m2"])
    assert (len(fewer), fewer.last_id, fewer.last_label) == (0, 2, 9)


def test_masks_honour_answers_or_do_not() -> None:
    answers = given(CUT)
    t = CUT.frame
    after = np.zeros(SHAPE, int)
    after.ravel()[LEFT], after.ravel()[RIGHT] = 3, 9
    assert honoured(after, answers, t)
    assert honoured(np.full(SHAPE, 3), answers, t + 1), "nothing was said of that frame"
    one = np.where(after > 0, 3, 0)
    assert not honoured(one, answers, t)
    assert not honoured(np.zeros(SHAPE, int), answers, t)
    wiped = given(said(MendKind.REMOVE, [], [BOTH]))
    assert honoured(np.zeros(SHAPE, int), wiped, t)
    assert not honoured(one, wiped, t)


# ---------------------------------------------------------------------- the file


def kept(path: Path) -> AutosavingStore:
    """A store of a few answers, one of which was taken back."""
    store = AutosavingStore(path, MOVIE)
    for mend in (CUT, said(MendKind.REMOVE, [], [box(0, 0, 2, 2)], t=3)):
        store.edit(AnswerChange(masks_added=store.masks.next_for([mend])))
    store.edit(AnswerChange(masks_removed=(store.masks["m2"],)))
    return store


def test_answers_go_on_where_they_stopped_and_are_undone(tmp_path) -> None:
    path = tmp_path / "movie.annotations.json"
    store = kept(path)
    again = AutosavingStore(path, replace(MOVIE, n_frames=9))
    assert again.masks.past == store.masks.past == load_mask_answers(path).past
    assert (again.masks.last_id, again.masks.last_label) == (2, 9)
    again.undo()
    assert [a.id for a in again.masks] == ["m1", "m2"]
    again.undo()
    again.undo()
    assert not len(again.masks) and not again.history.past
    assert AutosavingStore(path, again.masks.geometry).history == again.history
    again.redo()
    assert [a.id for a in load_mask_answers(path)] == ["m1"]


def test_masks_chosen_anew_are_no_answers(tmp_path) -> None:
    pixels = np.arange(4)
    chosen = MaskAnswer.of(0, MendKind.PAINT, change=(pixels, pixels * 0, pixels * 0 + 5))
    store = kept(tmp_path / "movie.annotations.json")
    store.edit(AnswerChange(masks_added=store.masks.next_for([chosen, chosen])))
    assert [a.id for a in store.masks] == ["m1"] and len(store.masks.past) == 3
    assert store.masks.mended == 1 and store.masks.last_label == 9


def test_answers_about_another_movie_are_refused(tmp_path) -> None:
    path = tmp_path / "movie.annotations.json"
    kept(path)
    for other in (Geometry(4, (20, 31), (1.0, 1.0)), Geometry(3, SHAPE, (1.0, 1.0))):
        with pytest.raises(InputError, match="another movie"):
            AutosavingStore(path, other)


@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        ("right", [[5, 2, 6, 3]], "runs of pixels are not in order"),
        ("right", [[5, 0]], "runs of pixels are not in order"),
        ("change", [5, 2, -1, 3], "runs of pixels are not in order"),
        ("wrong", [[]], "a set of pixels is empty"),
        ("created", "today", "not a time"),
        ("right", [[10**12, 1]], "outside the movie"),
        ("frame", 4, "outside the movie"),
    ],
)
def test_a_file_that_was_tampered_with_is_refused_in_a_sentence(
    tmp_path, entry, value, words
) -> None:
    path = tmp_path / "movie.annotations.json"
    kept(path)
    content = json.loads(path.read_text().splitlines()[0])
    content["masks"]["answers"][0][entry] = value
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=words):
        load_mask_answers(path)
    content["masks"]["answers"][0] = {"id": "m1"}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="is missing"):
        load_mask_answers(path)


def test_files_of_earlier_versions_are_one_history(tmp_path) -> None:
    """Answers about events, about masks and masks chosen anew were three files."""
    path = tmp_path / "movie.annotations.json"
    first = AutosavingStore(path, MOVIE)
    leaves = EventRef(Event.DISAPPEAR, (CellRef(0, 1, (1.0, 1.0)),))
    one = Annotation("a1", Kind.CONFIRM, (leaves,), "2026-01-01T10:00:01+00:00")
    first.edit(AnswerChange(added=(one,)))
    first.edit(AnswerChange(removed=(one,)))
    first.undo()
    save_annotations(first.history, path)
    line = json.loads(path.read_text())
    path.write_text(json.dumps({**line, "version": 2}) + "\n")
    head = {"format": "bridgetrack-masks", "version": 2, "movie": line["movie"]}
    chosen = MaskAnswer.of(0, MendKind.PAINT, change=(BOTH, BOTH * 0, BOTH * 0 + 5))
    for mend, second, name in ((CUT, 2, "movie.masks.json"), (chosen, 0, "movie.chosen.json")):
        [answer] = MaskAnswers(MOVIE).next_for([mend])
        answer = replace(answer, created=f"2026-01-01T10:00:0{second}+00:00")
        shared = {**head, "answers": [], "last_id": 0, "last_label": 0}
        added = {"removed": [], "added": [to_json(answer)]}
        (tmp_path / name).write_text(json.dumps(shared) + "\n" + json.dumps(added) + "\n")
    store = AutosavingStore(path, MOVIE)
    assert store.resumed == 2 and [a.says_nothing for a in store.masks.past] == [True, False]
    store.redo()
    assert not len(store.annotations), "what was undone before"
    store.undo()
    store.undo()
    assert not len(store.masks) and len(store.masks.past) == len(store.annotations) == 1
    store.undo()
    assert not store.masks.past and len(store.annotations) == 1
    store.undo()
    assert not len(store.annotations) and not store.history.past
    assert AutosavingStore(path, MOVIE).history == store.history, "now one file"
