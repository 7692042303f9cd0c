import json
import subprocess
import sys
import warnings
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotations.annotation_cases import event, says, step
from annotations.strategies import N_FRAMES, annotation_lists
from bridgetrack import files
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import (
    ANNOTATION_FILE,
    first_line,
    history_to_json,
    load_annotations,
)
from bridgetrack.annotations.history import AnswerChange, AnswerHistory
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import InputError, OutputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry

MOVIE = Geometry(N_FRAMES, (600, 600), (0.5, 0.5), "micrometer", 20.0)
MOVE = says("a1", "confirm", event(Event.MOVE, [1], [2]), seconds=1.5)
LEAVES = says("a2", "reject", event(Event.DISAPPEAR, [7]), created="2024-05-17T09:30:00+00:00")


@settings(max_examples=25, deadline=None)
@given(annotation_lists())
def test_encoding_and_decoding_is_identity(listed):
    history = AnswerHistory(AnnotationSet(MOVIE))
    for a in listed:
        history = step(history, add=[a])
    if len(listed) > 1:
        history = step(history, [listed[0].id]).after("undo")[0]
        history = step(history.after("undo")[0], [listed[0].id]).after("undo")[0]
    content = json.loads(json.dumps(history_to_json(history)))
    assert ANNOTATION_FILE.check(content, "x") == history


def _spoilt(path, change):
    history = AnswerHistory(AnnotationSet(MOVIE, [MOVE, LEAVES]))
    data = history_to_json(history)
    change(data)
    path.write_text(json.dumps(data))
    return path


def _set(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(data):
        for k in keys:
            data = data[k]
        data[last] = value

    return change


CELL = ("annotations", 1, "events", 0, "sources", 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("format", "other"), "not an annotation file"),
        (
            _set("version", 9),
            r"file version 9, but this program \(bridgetrack .+\) reads version 3;.*update Bridget",
        ),
        (_set("annotations", 1, "kind", "maybe"), r"annotations\.1\.kind: should be .*'maybe'"),
        (_set("annotations", 1, "id", "a1"), "two annotations with the id 'a1'"),
        (_set(*CELL, "frame", 1.5), r"sources\.0\.frame: .*integer.*1.5"),
        (_set(*CELL, "frame", 99), "beyond the movie's 6 frames"),
        (_set(*CELL, "position", [1, 10**400]), r"position\.1: .*a finite number"),
        (_set("annotations", 0, "seconds", -1.0), "seconds: .*0, not -1.0"),
        (_set(*CELL, "position", [1.0, 2.0, 3.0]), "has 3 numbers in a movie with 2"),
        (_set("history", {"undo": [], "redo": [{"removed": ["a9"], "added": []}]}), "'a9'"),
    ],
)
def test_errors_name_the_file_and_the_entry(tmp_path, change, words):
    path = _spoilt(tmp_path / "bad.json", change)
    with pytest.raises(InputError, match=words) as caught:
        load_annotations(path)
    assert "bad.json" in str(caught.value)


def test_every_change_is_appended_and_on_disk(tmp_path):
    path, before = tmp_path / "a.json", b""
    store = AutosavingStore(path, MOVIE)
    assert not path.exists()
    for change, there in (
        (partial(store.edit, AnswerChange(added=(MOVE,))), [MOVE]),
        (partial(store.edit, AnswerChange(added=(LEAVES,))), [MOVE, LEAVES]),
        (partial(store.edit, AnswerChange(removed=(MOVE,))), [LEAVES]),
        (store.undo, [MOVE, LEAVES]),
    ):
        change()
        assert load_annotations(path) == AnnotationSet(MOVIE, there)
        now = path.read_bytes()
        assert now.startswith(before) and now.count(b"\n") == before.count(b"\n") + 1
        before = now
    again = AutosavingStore(path, MOVIE)
    assert again.history == store.history
    again.redo()
    again.undo()
    again.undo()
    assert again.annotations == AnnotationSet(MOVIE, [MOVE])
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_no_id_is_given_again(tmp_path):
    """Not even where nobody can redo it any more, for somebody may have noted it elsewhere."""
    store = AutosavingStore(tmp_path / "a.json", MOVIE)
    store.edit(AnswerChange(added=(MOVE,)))
    store.edit(AnswerChange(added=(LEAVES,)))
    for act in (store.undo, partial(store.edit, AnswerChange(removed=(MOVE,))), store.undo):
        act()
        assert store.annotations.last_id == 2
        assert AutosavingStore(tmp_path / "a.json", MOVIE).annotations.last_id == 2


LINES = [MOVE, LEAVES, says("a3", "confirm", event(Event.MOVE, [3], [4]))]


def _journal(path):
    """A journal of answers, an undo and a redo, with the history after each of its lines."""
    store = AutosavingStore(path, MOVIE)
    after = []
    for change in (
        *(partial(store.edit, AnswerChange(added=(a,))) for a in LINES),
        store.undo,
        store.redo,
        partial(store.edit, AnswerChange(removed=(MOVE,))),
    ):
        change()
        after.append(store.history)
    return after


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "a.json"
    return path, path.parent / "cut.json", _journal(path)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_any_beginning_of_a_journal_opens_to_the_answers_of_its_whole_lines(journal, data):
    path, cut, after = journal
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    length = data.draw(st.integers(first, len(whole)))
    cut.write_bytes(whole[:length])
    # a line without its end is whole if nothing else of it is missing: some editors save it so
    complete = whole[length : length + 1] == b"\n" and whole[:length][-1:] != b"\n"
    lines = whole[:length].count(b"\n") + complete
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert load_annotations(cut) == after[lines - 1].annotations
    torn = whole[:length][-1:] != b"\n" and not complete
    assert ["its last line is incomplete" in str(w.message) for w in said] == [True] * torn
    store = AutosavingStore(cut, MOVIE)
    assert store.history == after[lines - 1]
    assert bool(store.notice) == torn
    more = says("a9", "confirm", event(Event.DISAPPEAR, [9]))
    store.edit(AnswerChange(added=(more,)))
    again = AutosavingStore(cut, MOVIE)
    assert again.history == store.history and more in list(again.annotations)
    assert not again.notice


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "a.json"
    _journal(path)
    lines = path.read_text().splitlines()
    for damage, words in (
        ("}", "line 3: this is not an annotation file"),
        ('{"do": "red', "line 3: .*damaged or truncated.*restore it from a backup"),
        ('{"do": "redo"}', "line 3.*nothing to redo"),
        ('{"do": "answer", "removed": ["a7"]}', "line 3.*'a7'"),
    ):
        path.write_text("\n".join([*lines[:2], damage, *lines[3:]]) + "\n")
        with pytest.raises(InputError, match=words):
            load_annotations(path)


@pytest.mark.parametrize("begun", [True, False], ids=["a journal", "no file yet"])
def test_an_answer_by_another_program_is_kept_and_the_next_here_refused(tmp_path, begun):
    path = tmp_path / "a.json"
    if begun:
        AutosavingStore(path, MOVIE).edit(AnswerChange(added=(MOVE,)))
    ours, theirs = AutosavingStore(path, MOVIE), AutosavingStore(path, MOVIE)
    theirs.edit(AnswerChange(added=(LEAVES,)))
    before, known = path.read_bytes(), ours.history
    with pytest.raises(OutputError, match="changed by another program"):
        ours.edit(AnswerChange(added=(LINES[2],)))
    assert path.read_bytes() == before and ours.history == known


def kept(*annotations):
    return AutosavingStore(None, MOVIE, AnswerHistory(AnnotationSet(MOVIE, annotations)))


def test_an_answer_replaces_what_it_contradicts_as_one_step():
    rest = says("a2", "confirm", event(Event.MOVE, [3], [4]))
    store = kept(MOVE, rest)
    said = [(Kind.CONFIRM, event(Event.MOVE, [1], [5]))]
    [noted], gone = store.answer(said, "click", 2.0)
    assert (noted.id, noted.source, noted.seconds, gone) == ("a3", "click", 2.0, 1)
    assert list(store.annotations) == [rest, noted]
    store.undo()
    assert list(store.annotations) == [MOVE, rest]


def test_the_same_answer_is_the_annotation_that_is_there():
    store = kept(MOVE)
    assert store.answer([(Kind.CONFIRM, MOVE.events[0])], "click") == ([MOVE], 0)
    assert store.history.past == ()


def test_another_name_of_an_end_replaces_the_answer_without_one():
    store = AutosavingStore(None, MOVIE)
    leaves = [(Kind.CONFIRM, event(Event.DISAPPEAR, [7]))]
    store.answer(leaves, "click")
    [stands], replaced = store.answer(leaves, "click", named="death")
    assert (replaced, list(store.annotations)) == (1, [stands])
    assert stands.named == "death"


def test_a_failed_write_changes_nothing(tmp_path):
    folder = tmp_path / "sub"
    folder.mkdir()
    store = AutosavingStore(folder / "a.json", MOVIE)
    store.edit(AnswerChange(added=(MOVE,)))
    before = store.history
    (folder / "a.json").unlink()
    folder.rmdir()
    folder.write_text("in the way")
    with pytest.raises(OutputError, match="the annotations cannot be written"):
        store.edit(AnswerChange(added=(LEAVES,)))
    assert store.history == before
    folder.unlink()
    store.edit(AnswerChange(added=(LEAVES,)))
    assert len(load_annotations(folder / "a.json")) == 2


@pytest.mark.parametrize("moment", ["_flush", "_replace"])
def test_a_change_at_the_very_moment_of_writing_is_not_lost(tmp_path, monkeypatch, moment):
    path = tmp_path / "a.json"
    ours, step = AutosavingStore(path, MOVIE), getattr(files, moment)
    theirs = AnnotationSet(MOVIE, [LEAVES])

    def interrupted(*given):
        monkeypatch.undo()
        step(*given)
        path.write_text(first_line(AnswerHistory(theirs)))

    monkeypatch.setattr(files, moment, interrupted)
    with suppress(OutputError):
        ours.edit(AnswerChange(added=(MOVE,)))
    with pytest.raises(OutputError, match="changed by another program"):
        ours.edit(AnswerChange(added=(LEAVES if MOVE.id in ours.annotations else MOVE,)))
    assert load_annotations(path) == theirs
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_another_movie_is_refused(tmp_path):
    AutosavingStore(tmp_path / "a.json", MOVIE).edit(AnswerChange(added=(MOVE,)))
    with pytest.raises(InputError, match="2 spatial axes, this one has 3"):
        AutosavingStore(tmp_path / "a.json", Geometry(6, None, (1.0, 1.0, 1.0)))


BESIDE = """
import sys
from bridgetrack.annotations.annotation import CellRef, EventRef, Kind
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import OutputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry

store, k, last = None, int(sys.argv[2]), int(sys.argv[3])
sys.stdin.readline()  # both begin at once
while k < last:
    store = store or AutosavingStore(sys.argv[1], Geometry(6, (600, 600), (1.0, 1.0)))
    event = EventRef(Event.DISAPPEAR, (CellRef(0, k + 1, (1.0, float(k))),))
    try:
        store.answer([(Kind.CONFIRM, event)], "click")
        k += 1
    except OutputError:
        store = None  # opened again, as the message says
"""


def test_two_programs_that_answer_into_one_file_lose_nothing(tmp_path):
    path, each = tmp_path / "a.json", 60
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", BESIDE, str(path), str(k), str(k + each)],
            stdin=subprocess.PIPE,
            text=True,
        )
        for k in (0, each)
    ]
    for program in begun:
        program.stdin.write("go\n")
        program.stdin.close()
    assert [program.wait() for program in begun] == [0, 0]
    kept = load_annotations(path)
    assert sorted(a.events[0].cells[0].label for a in kept) == list(range(1, 2 * each + 1))
