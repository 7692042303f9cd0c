"""Movies of one stem beside each other have projects of their own."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile

import bridgetrack as bt
from bridgetrack.session.movie import MovieAndCells


@pytest.fixture
def namesakes(tmp_path):
    """Cells of one extent as a TIFF file, an array file, and a folder of frames."""
    labels = np.zeros((3, 24, 24), np.uint16)
    for t in range(3):
        labels[t, 5:10, 4 + t : 9 + t], labels[t, 15:20, 12:17] = 1, 2
    tifffile.imwrite(tmp_path / "a.tif", labels, photometric="minisblack", metadata={"axes": "TYX"})
    np.save(tmp_path / "a.npy", labels)
    (tmp_path / "a").mkdir()
    for t, frame in enumerate(labels):
        tifffile.imwrite(tmp_path / "a" / f"t{t:03}.tif", frame)
    return tmp_path / "a.tif", tmp_path / "a.npy", tmp_path / "a"


def opened(path):
    session = bt.Session()
    assert session.open(MovieAndCells(bt.open_labels(path), path=path, files=(None, path)))
    return session


def test_no_movie_takes_the_answers_of_another_of_the_same_name(namesakes):
    for n, path in enumerate(namesakes, 1):
        session = opened(path)
        assert not len(session.annotations), path
        for _ in range(n):
            session.answer(session.ask(), "yes")
    folders = {path: opened(path).project.path.name for path in namesakes}
    assert list(folders.values()) == [
        "a.bridgetrack", "a.npy.bridgetrack", "a-folder.bridgetrack",
    ]  # fmt: skip
    for n, path in enumerate(namesakes, 1):
        assert len(opened(path).annotations) == n, path
        # the others stay where they are when one is deleted
        path.rename(path.with_name(f"gone-{n}"))


def test_a_project_goes_on_with_its_movie_in_another_format(namesakes):
    first, second, _ = namesakes
    session = opened(first)
    session.answer(session.ask(), "yes")
    first.unlink()
    assert len(opened(second).annotations) == 1
