"""Clicks that mend masks in a session: honoured, kept, undone, proposed in other frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.errors import InputError, OutputError
from bridgetrack.movie import open_labels
from bridgetrack.regions.mend import MendKind, pixels_of


def touching(labels: np.ndarray) -> tuple[int, int]:
    """Two cells of the sample that lie beside each other in its first frames."""
    frame = labels[0]
    a, b = frame[:, :-3], frame[:, 3:]
    met = (a > 0) & (b > 0) & (a != b)
    for pair in zip(a[met].tolist(), b[met].tolist(), strict=True):
        if all((labels[t] == k).sum() > 150 for t in range(4) for k in pair):
            return pair
    raise AssertionError("no two cells of the sample touch")


def middle(mask: np.ndarray) -> tuple[float, ...]:
    """A pixel inside, near the centroid."""
    inside = np.argwhere(mask)
    return tuple(
        float(k) for k in inside[np.abs(inside - inside.mean(axis=0)).sum(axis=1).argmin()]
    )


@pytest.fixture
def merged(pixels):
    """Image, labels in which two cells are drawn as one in four frames, the truth, the pair."""
    image, truth = pixels
    first, second = touching(truth)
    labels = truth.copy()
    labels[:4][labels[:4] == second] = first
    return image, labels, truth, (first, second)


@pytest.fixture
def mended(merged, tmp_path):
    """A session on those labels, and what `merged` gives."""
    image, labels, truth, pair = merged
    made = bt.Session(labels, image, project=tmp_path / "cells.bridgetrack")
    yield made, labels, truth, pair
    made.close()


def frame_of(session: bt.Session, t: int) -> np.ndarray:
    return session.movie.labels.channel_frame(t)


def test_numbers_of_new_cells_are_never_used_again(mended) -> None:
    session, labels, truth, (first, _) = mended
    given, array, n = [], labels.copy(), len(session.scene.detections)
    for _ in range(3):
        given.append(session.mend("cut", 1, middle(truth[1] == first)).labels - {first})
        assert len(session.scene.detections) == n + 1, "shown at once in cells and tracks"
        assert session.tracking is not None and session.tracking.scene is session.scene
        np.testing.assert_array_equal(labels, array, "what was given is not written into")
        session.undo()
    numbers = [number for each in given for number in each]
    assert len(set(numbers)) == 3 and min(numbers) > labels.max()


def test_a_number_that_the_labels_have_no_place_for_is_refused(merged, tmp_path) -> None:
    image, labels, truth, (first, _) = merged
    _, small = np.unique(labels, return_inverse=True)
    labels = np.where(small == small.max(), 255, small).reshape(labels.shape).astype(np.uint8)
    session = bt.Session(labels, image, project=tmp_path / "cells.bridgetrack")
    with pytest.raises(InputError, match="uint8 and has no free number left for a new cell"):
        session.mend("cut", 1, middle((truth[1] == first) & (labels[1] > 0)))
    assert not len(session.masks.answers)
    np.testing.assert_array_equal(frame_of(session, 1), labels[1])
    session.close()


def test_what_was_mended_is_there_again_and_can_be_undone(mended, merged, tmp_path) -> None:
    session, labels, truth, (first, _) = mended
    session.mend("cut", 1, middle(truth[1] == first))
    session.mend("remove", 2, middle(labels[2] == first))
    kept = [frame_of(session, t).copy() for t in range(4)]
    session.close()
    image, path = merged[0], tmp_path / "cells.bridgetrack"
    again = bt.Session(labels.copy(), image, project=path)
    for t in range(4):
        np.testing.assert_array_equal(frame_of(again, t), kept[t])
    again.undo()
    np.testing.assert_array_equal(frame_of(again, 2), labels[2])
    again.redo()
    again.close()
    # Labels that hold the changes already are left as they are.
    saved = bt.Session(np.stack([*kept, *labels[4:]]), image, project=path)
    np.testing.assert_array_equal(frame_of(saved, 1), kept[1])
    saved.close()
    # Another segmentation keeps its own masks.
    other = labels.copy()
    other[1][other[1] == first] = 0
    different = bt.Session(other, image, project=path)
    np.testing.assert_array_equal(frame_of(different, 1), other[1])
    np.testing.assert_array_equal(frame_of(different, 2), kept[2])
    different.undo()
    np.testing.assert_array_equal(frame_of(different, 2), labels[2])
    different.undo()
    np.testing.assert_array_equal(frame_of(different, 1), other[1])
    different.close()


def test_painting_is_an_answer_and_is_undone_like_others(source, tmp_path) -> None:
    array = source.labels.array[:, 0].compute()
    movie = replace(
        source, labels=open_labels(array, axes="TYX", scale=(0.645, 0.645)), pixels=array
    )
    session = bt.Session()
    session.open(movie, tmp_path / "p.annotations.json")
    t, label = 2, int(array[2].max())
    pixels = np.flatnonzero(array[t] == label)[:40]
    before = array[t].ravel()[pixels].copy()
    array[t].ravel()[pixels] = 0
    session.masks.note_painting(t, pixels, before)
    session.tracker.measure(touched={t})
    whole = bt.run(bt.prepare(session.movie.labels, session.movie.image))
    np.testing.assert_array_equal(session.scene.hypotheses.sources, whole.hypotheses.sources)
    matrix = session.scene.matrix.sparse().toarray()
    np.testing.assert_allclose(matrix, whole.matrix.sparse().toarray())
    [answer] = session.masks.answers
    assert answer.kind == MendKind.PAINT
    rest = np.flatnonzero(array[t] == label)
    assert {tuple(pixels_of(runs)) for runs in answer.right} == {tuple(rest)}
    session.undo()
    assert (array[t].ravel()[pixels] == label).all()
    session.redo()
    assert (array[t].ravel()[pixels] == 0).all()
    # Undone with the painting tools, the answer goes as well, and comes with redo.
    for painted, n in ((before, 0), (0, 1), (before, 0)):
        array[t].ravel()[pixels] = painted
        session.tracker.measure()
        assert len(session.masks.answers) == n and session.can_undo == bool(n)
    session.close()


def test_what_cannot_be_mended_says_why(mended) -> None:
    session = mended[0]
    state = len(session.masks.answers)
    with pytest.raises(InputError, match="choose among cut, join"):
        session.mend("melt", 1, (3, 3))
    with pytest.raises(InputError, match="cut needs 1 or 2"):
        session.mend("cut", 1)
    place = middle(mended[1][1] == mended[3][0])
    with pytest.raises(InputError, match=r"frame 1: #\d+ was pointed at twice"):
        session.mend("join", 1, place, place)
    with pytest.raises(InputError, match="no frame 99"):
        session.mend("remove", 99, (3, 3))
    points = bt.Session(session.scene.detections)
    with pytest.raises(InputError, match="no masks to correct"):
        points.mend("remove", 0, (3, 3))
    assert len(session.masks.answers) == state


def test_a_project_takes_the_answers_about_masks_along(mended, tmp_path) -> None:
    session, _, truth, (first, _) = mended
    session.mend("cut", 1, middle(truth[1] == first))
    folder = session.save(tmp_path / "project" / "movie")
    again = bt.Session.from_project(folder)
    assert again.masks.answers == session.masks.answers
    np.testing.assert_array_equal(frame_of(again, 1), frame_of(session, 1))
    again.undo()
    undone = frame_of(again, 1)
    assert (undone == first).sum() > (frame_of(session, 1) == first).sum()
    again.close()
    once_more = bt.Session.from_project(folder)
    np.testing.assert_array_equal(frame_of(once_more, 1), undone, "though it was kept before")
    once_more.close()


def test_nothing_changes_where_the_answer_cannot_be_saved(mended, tmp_path) -> None:
    session, labels, truth, (first, _) = mended
    session.mend("cut", 1, middle(truth[1] == first))
    (tmp_path / "cells.bridgetrack" / "answers.json").write_text("{}")
    with pytest.raises(OutputError):
        session.mend("remove", 2, middle(labels[2] == first))
    np.testing.assert_array_equal(frame_of(session, 2), labels[2])
    with pytest.raises(OutputError):
        session.undo()
    assert session.can_undo
    assert len(session.masks.answers) == 1


def test_masks_of_a_verified_track_are_locked_until_it_is_released(mended, tmp_path) -> None:
    session, labels, _, _ = mended
    heard = []
    session.message.connect(lambda *said: heard.append(said))
    k = touching(labels)[0]
    place = middle(labels[1] == k)
    cell = cell_refs(session.scene.detections, np.array([session.scene.detections.row_of(1, k)]))[0]
    # What was said of its mask before cannot be taken back either.
    session.mend("outline", 1, place)
    assert (frame_of(session, 1) != labels[1]).any()
    assert session.edits.verify(cell)
    before = frame_of(session, 1).copy()
    beside = middle(before == touching(labels)[1])
    refused = (("remove", place), ("outline", place), ("join", place, beside))
    for kind, *places in refused:
        with pytest.raises(InputError, match=r"verified and locked, at #\d+✓ in frame"):
            session.mend(kind, 1, *places)
    np.testing.assert_array_equal(frame_of(session, 1), before)
    assert len(session.masks.answers) == 1 and session.names.verified(cell)
    assert not any("no longer there" in words for _, words in heard)
    # All is right as drawn: that changes nothing.
    session.mend("check", 1)
    assert not session.edits.verify(cell)
    session.mend("remove", 1, place)
    assert not (frame_of(session, 1) == k).any()


def test_answers_about_one_place_are_deleted_and_come_back(mended) -> None:
    session, labels, truth, (first, _) = mended
    cut = session.mend("cut", 1, middle(truth[1] == first))
    session.mend("join", 1, *(middle(frame_of(session, 1) == k) for k in sorted(cut.labels)))
    joined = frame_of(session, 1).copy()
    session.edits.remove([session.masks.answers["m1"]])
    session.undo()
    assert len(session.masks.answers) == 2
    np.testing.assert_array_equal(frame_of(session, 1), joined, "the step back is exact")
    session.mend("remove", 1, middle(joined == first))
    session.edits.remove(list(session.masks.answers))
    np.testing.assert_array_equal(frame_of(session, 1), labels[1])
    session.undo()
    assert len(session.masks.answers) == 3
    np.testing.assert_array_equal(frame_of(session, 1), np.where(joined == first, 0, joined))
