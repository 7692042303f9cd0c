"""Cells chosen among candidates of a movie, and what a choice changed of labels brought along."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels, open_movie
from bridgetrack.pipeline.joint import FrameChoice
from bridgetrack.pipeline.masks import (
    ChangeKind,
    Given,
    MaskSettings,
    changes,
    choose_masks,
    keep_numbers,
    segment_by_choice,
)
from bridgetrack.progress import run
from bridgetrack.regions.mend import MendSite, remove
from bridgetrack.regions.regions import labels_of
from bridgetrack.segmentation.movie import SegmentedFrame
from bridgetrack.segmentation.settings import SegmentationSettings
from drawn_movie import PLACES, SIZE, drawn


def found(image: Movie, **about: object) -> list[np.ndarray]:
    steps = segment_by_choice(image, **about)  # type: ignore[arg-type]
    frames = [s for s in steps if isinstance(s, SegmentedFrame)]
    assert [f.frame for f in frames] == list(range(image.n_frames))
    return [f.labels for f in frames]


@pytest.mark.parametrize("how", ["jointly", "frame"])
def test_nuclei_are_found_in_every_frame(how: str) -> None:
    images, labels = drawn()
    got = found(open_movie(images), settings=MaskSettings(choose=how))  # type: ignore[arg-type]
    for true, mask in zip(labels, got, strict=True):
        assert mask.max() == len(PLACES)
        for k in range(1, len(PLACES) + 1):
            own = mask[true == k]
            assert (own == np.bincount(own).argmax()).mean() > 0.7


def test_labels_brought_along_are_mended() -> None:
    images, labels = drawn()
    given_ = labels.copy()
    given_[1][given_[1] == 2] = 1  # two drawn as one
    given_[2][given_[2] == 3] = 0  # one missed
    got = found(open_movie(images), given=Given(labels=(open_labels(given_),)))
    pairs = zip(given_, got, strict=True)
    kinds = [{c.kind for c in changes(a, b, t)} for t, (a, b) in enumerate(pairs)]
    assert ChangeKind.CUT in kinds[1]
    assert ChangeKind.ADDED in kinds[2]
    assert not (kinds[0] | kinds[3]) - {ChangeKind.OUTLINE}
    for k in (1, 4, 5):
        assert (got[0][labels[0] == k] == k).mean() > 0.7


def test_what_was_brought_along_is_among_the_choices() -> None:
    images, labels = drawn()
    odd = np.zeros_like(labels)
    odd[:, 84:90, 5:60] = 1  # where the image shows nothing
    odd[:, 70:94, 62:66] = 2  # across a nucleus
    chosen: list[FrameChoice] = []
    known = Given(labels=(open_labels(odd),))
    few = MaskSettings(per_cell=1.0)
    run(choose_masks(open_movie(images), chosen.append, settings=few, given=known))
    for c in chosen:
        regions = c.candidates.regions
        areas = regions.area[regions.votes[:, regions.sources.index("labels")] > 0]
        assert {6 * 55, 24 * 4} <= set(areas.tolist())


def test_an_answer_holds() -> None:
    images, labels = drawn()
    image, masks = open_movie(images), open_labels(labels)
    site = MendSite(1, labels[1], SegmentationSettings(diameter=14.0), free=99)
    gone = remove(site, (64, 71))
    answers = MaskAnswers(masks.geometry).added(gone)
    chosen: list[FrameChoice] = []
    run(choose_masks(image, chosen.append, given=Given(answers=answers)))
    masks_now = [labels_of(c.candidates.regions, c.chosen, c.frame) for c in chosen]
    assert masks_now[1][65, 70] == 0
    assert all(m.max() >= len(PLACES) - 1 for m in masks_now)  # nothing else is lost


def test_an_answer_where_nothing_is_teaches_nothing() -> None:
    labels = np.zeros((3, SIZE, SIZE), dtype=np.int32)
    labels[1, 40:50, 40:50] = 1
    site = MendSite(1, labels[1], SegmentationSettings(diameter=14.0), free=99)
    answers = MaskAnswers(open_labels(labels).geometry).added(remove(site, (45, 45)))
    got = found(open_movie(np.full((3, SIZE, SIZE), 100.0)), given=Given(answers=answers))
    assert not any(mask.any() for mask in got)


def test_each_kind_of_change() -> None:
    before, after = np.zeros((2, 30, 30), dtype=np.int32)
    before[2:8, 2:14] = 1
    after[2:8, 2:8], after[2:8, 8:14] = 1, 2  # cut
    before[12:18, 2:8], before[12:18, 8:14] = 2, 3
    after[12:18, 2:14] = 3  # joined
    before[22:26, 2:6] = 4  # dropped
    after[22:26, 20:24] = 4  # added
    before[2:8, 20:26] = 5
    after[2:8, 20:24] = 5  # another outline
    before[12:18, 20:26], after[12:18, 20:26] = 6, 6  # the same
    told = {c.kind: (c.before, c.after) for c in changes(before, after, 3)}
    assert told == {
        ChangeKind.CUT: ((1,), (1, 2)),
        ChangeKind.JOINED: ((2, 3), (3,)),
        ChangeKind.DROPPED: ((4,), ()),
        ChangeKind.ADDED: ((), (4,)),
        ChangeKind.OUTLINE: ((5,), (5,)),
    }


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_numbers_are_kept_and_stay_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = np.kron(rng.integers(0, 6, (4, 4)), np.ones((3, 3), int)).astype(np.int32)
    after = before.copy()
    after[rng.random(after.shape) < 0.2] = 0
    _, renamed = np.unique(after, return_inverse=True)
    shuffled = renamed.reshape(after.shape).astype(np.int32)
    kept = keep_numbers(before, shuffled)
    pairs = np.unique(np.stack([shuffled.ravel(), kept.ravel()]), axis=1)
    assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]
    assert (kept[shuffled == 0] == 0).all()
    for label in np.unique(before[before > 0]):
        old, new = before == label, after == label
        if (old & new).sum() > 0.5 * (old | new).sum():
            assert (kept[new] == label).all()
    assert not changes(before, before, 0)
