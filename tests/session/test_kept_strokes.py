"""Strokes are there again as they were painted; damaged files are told."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bridgetrack.errors import InputError, OutputError
from bridgetrack.session.kept_strokes import STROKES_FILE, Strokes, load_strokes, save_strokes

MARKS = hnp.arrays(np.uint8, (4, 5), elements=st.integers(0, 3))


@given(marks=MARKS, frame=st.integers(0, 2), size=st.none() | st.floats(1, 100))
def test_strokes_are_read_as_they_were_written(tmp_path_factory, marks, frame, size):
    path = tmp_path_factory.mktemp("strokes") / "movie.strokes.json"
    kept = Strokes((3, 4, 5), {frame: marks}, size)
    save_strokes(kept, path)
    found = load_strokes(path, (3, 4, 5))
    assert found.same(kept) and found.frames[frame].dtype == np.uint8


def test_nothing_to_keep_leaves_no_file(tmp_path):
    path = tmp_path / "movie.strokes.json"
    save_strokes(Strokes((2, 3, 3), {1: np.ones((3, 3), np.uint8)}), path)
    assert load_strokes(path, (2, 3, 4)).empty, "another movie has taken its place"
    save_strokes(Strokes((2, 3, 3)), path)
    assert not path.exists() and load_strokes(path, (2, 3, 3)).empty
    path.mkdir()
    with pytest.raises(OutputError, match=path.name):
        save_strokes(Strokes((2, 3, 3)), path)


@pytest.mark.parametrize(
    "damage", [{"runs": [[0, 10, 1]]}, {"runs": [[0, 1, 4]]}, {"runs": [[0, 1]]}, {"frame": 2}]
)
def test_a_damaged_file_is_refused(tmp_path, damage):
    path, frame = tmp_path / "movie.strokes.json", {"frame": 1, "runs": [[0, 9, 1]]}
    content = {**STROKES_FILE.head, "shape": [2, 3, 3], "frames": [frame]}
    path.write_text(json.dumps(content))
    assert (load_strokes(path, (2, 3, 3)).frames[1] == 1).all()
    path.write_text(json.dumps({**content, "frames": [{**frame, **damage}]}))
    with pytest.raises(InputError, match=r"movie\.strokes\.json: (frames|runs)"):
        load_strokes(path, (2, 3, 3))


def test_a_shape_that_is_not_the_movies_takes_no_memory(tmp_path):
    path = tmp_path / "movie.strokes.json"
    huge = {"shape": [4, 2_000_000, 2_000_000], "frames": [{"frame": 1, "runs": [[0, 9, 1]]}]}
    path.write_text(json.dumps({**STROKES_FILE.head, **huge}))
    assert load_strokes(path, (4, 20, 20)).empty
