"""No command writes over a file that it reads, and remarks on the movie are not lost."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import tifffile

from cli.conftest import Run


def test_inputs_are_kept(run: Run, tmp_path: Path) -> None:
    movie = tmp_path / "movie.tif"
    tifffile.imwrite(movie, np.zeros((5, 8, 8), dtype=np.uint8), photometric="minisblack")
    own = tmp_path / "own.json"
    own.write_text("{}")
    tries = (
        (movie, ("segment", movie, "--out", movie)),
        (own, ("train", movie, "--annotations", own, "--out", own)),
    )
    for file, words in tries:
        before = file.read_bytes()
        shown = run(*words)
        assert shown.status == 2
        assert "another name" in shown.err
        assert file.read_bytes() == before


def test_remarks_on_the_movie_are_in_the_record(run: Run, tmp_path: Path) -> None:
    labels = np.zeros((5, 40, 40), dtype=np.uint16)
    labels[:, 2:8, 2:8] = 1
    labels[:, 30:36, 30:36] = 1
    tifffile.imwrite(tmp_path / "labels.tif", labels, photometric="minisblack")
    shown = run("track", tmp_path / "labels.tif", "--out", tmp_path / "result", "--json")
    assert shown.status == 0, shown.err
    assert "far apart" in json.dumps(json.loads(shown.out)["notes"])
