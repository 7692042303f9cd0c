"""Measuring again only the frames that were touched up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bridgetrack.errors import InputError
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.pipeline.scene import fingerprints, prepare, remeasure
from bridgetrack.progress import run
from bridgetrack.sample import sample_folder


@pytest.fixture
def movie():
    folder = sample_folder()
    cells = open_labels(folder / "01_GT" / "TRA").array[:4, 0].compute()
    image = open_movie(folder / "01").array[:4, 0].compute()
    return cells, open_labels(cells, axes="TYX"), open_movie(image, axes="TYX")


def test_equals_measuring_everything(movie, monkeypatch):
    pixels, labels, image = movie
    before = run(prepare(labels, image))
    old = run(fingerprints(labels))
    pixels[2][pixels[2] == pixels[2].max()] = 0
    pixels[2, 5:12, 5:12] = 900
    new = run(fingerprints(labels))
    changed = [t for t in range(4) if old[t] != new[t]]
    assert changed == [2]
    read = []
    frame = type(image).frame

    def counted(self, t):
        if self is image:
            read.append(t)
        return frame(self, t)

    monkeypatch.setattr(type(image), "frame", counted)
    after = run(remeasure(before, labels, image, changed))
    assert read == [2]
    whole = run(prepare(labels, image))
    pd.testing.assert_frame_equal(after.detections.table, whole.detections.table)
    assert np.array_equal(after.hypotheses.sources, whole.hypotheses.sources)
    assert np.allclose(after.matrix.sparse().toarray(), whole.matrix.sparse().toarray())


def test_another_extent_is_refused(movie):
    pixels, labels, image = movie
    before = run(prepare(labels, image))
    with pytest.raises(InputError, match="extent"):
        run(remeasure(before, open_labels(pixels[:3], axes="TYX"), None, [0]))
