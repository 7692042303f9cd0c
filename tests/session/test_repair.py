"""Cells that were brought along are repaired by the image, and each change can be taken back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage as ndi

import bridgetrack as bt
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.pipeline.mask_changes import ChangeKind
from bridgetrack.progress import run
from bridgetrack.regions.mend import Mend, MendKind
from bridgetrack.session.mask_work import repair
from bridgetrack.session.movie import MovieAndCells
from drawn_movie import squares


@pytest.fixture(scope="module")
def damaged():
    """Five frames of a part of the sample, in which two nuclei are one, and one is missing."""
    folder = bt.sample_folder()
    part = np.s_[:5, 60:330, 60:330]
    image = np.asarray(open_movie(folder / "01").array[:, 0][part])
    truth = np.asarray(open_labels(folder / "01_GT" / "TRA").array[:, 0][part])
    a, b = truth[2][:, :-3], truth[2][:, 3:]
    met = (a > 0) & (b > 0) & (a != b)
    pairs = zip(a[met].tolist(), b[met].tolist(), strict=True)
    first, second = next(p for p in pairs if min((truth[2] == k).sum() for k in p) > 150)
    alone = np.setdiff1d(np.unique(truth[2][40:230, 40:230]), [0, first, second])
    lost = max(alone.tolist(), key=lambda k: (truth[2] == k).sum())
    labels = truth.copy()
    labels[2][labels[2] == second] = first
    labels[2][labels[2] == lost] = 0
    given = MovieAndCells(open_labels(labels, axes="TYX"), open_movie(image, axes="TYX"))
    return given, labels, truth, (first, second, lost), run(repair(given, bt.Session().model))


def test_what_is_wrong_is_repaired_and_listed(damaged):
    _, labels, truth, (first, second, lost), found = damaged
    assert found.labels.shape == labels.shape
    kinds = {c.kind for c in found.changes if c.frame == 2}
    assert ChangeKind.CUT in kinds or ChangeKind.ADDED in kinds
    cuts = [c for c in found.changes if c.kind == ChangeKind.CUT and first in c.before]
    added = [c for c in found.changes if c.kind == ChangeKind.ADDED and c.frame == 2]
    assert any((found.labels[2][truth[2] == lost] == c.after[0]).mean() > 0.5 for c in added)
    assert [c.frame for c in cuts] == [2] and second not in cuts[0].before


def test_a_repair_needs_masks_and_image(damaged):
    given = damaged[0]
    with pytest.raises(InputError, match="both"):
        run(repair(replace(given, image=None), bt.Session().model))


def test_a_repair_that_would_leave_no_cell_is_refused():
    image, labels = squares()
    given = MovieAndCells(open_labels(labels), open_movie(image))
    with pytest.raises(InputError, match=r"leave none of its cells"):
        run(repair(given, bt.Session().model))


def test_what_somebody_drew_is_not_drawn_as_it_was_given(damaged):
    given, labels, _, _, found = damaged
    named = {k for c in found.changes if c.frame == 1 for k in c.before}
    k = next(k for k in np.unique(labels[1])[1:].tolist() if k not in named)
    wider = ndi.binary_dilation(labels[1] == k, iterations=2) & np.isin(labels[1], (0, k))
    drawn, none = np.flatnonzero(wider), np.zeros(0, dtype=np.int64)
    keep = Mend(MendKind.KEEP, 1, (), none, none, none, (k,), (drawn,), ())
    answers = MaskAnswers(given.geometry).added(keep)
    again = run(repair(given, bt.Session().model, answers))
    np.testing.assert_array_equal(np.flatnonzero(again.labels[1] == k), drawn)
