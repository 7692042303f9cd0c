"""Files of microscopes, read by bioio where it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.movie import open_movie


def test_without_bioio_it_is_told_what_to_install(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "bioio", None)
    (tmp_path / "a.nd2").write_bytes(b"abc")
    with pytest.raises(bt.BridgetrackError, match=r"a\.nd2: .*pip install bioio bioio-nd2"):
        open_movie(tmp_path / "a.nd2")
    (tmp_path / "a.docx").write_bytes(b"abc")
    with pytest.raises(bt.BridgetrackError, match=r"a\.docx: unknown kind of file; give a TIFF"):
        open_movie(tmp_path / "a.docx")


def test_bioio_reads_what_we_do_not(tmp_path: Path) -> None:
    pytest.importorskip("bioio_imageio")
    from imageio.v3 import imwrite

    frames = np.zeros((4, 24, 30), dtype=np.uint8)
    for t in range(4):
        frames[t, 5:15, 4 + t : 14 + t] = 200
    imwrite(tmp_path / "cells.gif", frames, loop=0)
    movie = open_movie(tmp_path / "cells.gif")
    assert movie.array.shape == (4, 1, 24, 30) and movie.array.dtype == np.uint8
    assert np.abs(movie.array[:, 0].compute().astype(int) - frames).max() <= 1
    (tmp_path / "broken.gif").write_bytes(b"GIF89a")
    with pytest.raises(bt.BridgetrackError, match=r"broken\.gif: bioio cannot read it"):
        open_movie(tmp_path / "broken.gif")
