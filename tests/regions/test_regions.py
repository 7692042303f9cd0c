"""Candidate regions: pixels, exclusions and layers, against brute force on random sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage as ndi

from bridgetrack.regions.regions import (
    Regions,
    concatenate,
    exclusions,
    labels_of,
    largest_pieces,
    layer_numbers,
    layers,
    no_regions,
    regions_of_labels,
    shared_pixels,
)

SHAPE = (5, 7)


def made(sets: list[tuple[int, set[int]]], shape: tuple[int, ...] = SHAPE) -> Regions:
    """Regions from (frame, places)."""
    parts = []
    for t, places in sets:
        labels = np.zeros(shape, dtype=int)
        labels.flat[list(places)] = 1
        parts.append(regions_of_labels(labels, t, f"source {t}"))
    return concatenate(parts)


@st.composite
def some_regions(draw: st.DrawFn) -> Regions:
    places = st.sets(st.integers(0, 34), min_size=1, max_size=12)
    return made(draw(st.lists(st.tuples(st.integers(0, 2), places), min_size=1, max_size=9)))


def places_of(regions: Regions, r: int) -> set[int]:
    return set(regions.region_pixels(r).tolist())


@settings(max_examples=25, deadline=None)
@given(some_regions())
def test_exclusions_forbid_what_overlaps_and_nothing_else(regions: Regions) -> None:
    rows = exclusions(regions)
    atoms = [frozenset(rows[k].indices.tolist()) for k in range(rows.shape[0])]
    together = {pair for atom in atoms for pair in combinations(sorted(atom), 2)}
    overlapping = {
        (a, b)
        for a, b in combinations(range(len(regions)), 2)
        if regions.frame[a] == regions.frame[b] and places_of(regions, a) & places_of(regions, b)
    }
    assert together == overlapping
    assert all(len(atom) >= 2 for atom in atoms)
    assert not any(a < b for a in atoms for b in atoms)
    assert len(set(atoms)) == len(atoms)
    shared = {
        frozenset(
            r for r in range(len(regions)) if regions.frame[r] == t and regions.mask(r).flat[place]
        )
        for t in np.unique(regions.frame)
        for place in range(35)
    }
    assert set(atoms) == {
        s for s in shared if len(s) > 1 and not any(s < other for other in shared)
    }


@settings(max_examples=30, deadline=None)
@given(some_regions())
def test_layers_hold_every_region_whole_once(regions: Regions) -> None:
    for t in np.unique(regions.frame):
        rows = regions.rows(int(t))
        found: dict[int, set[int]] = {}
        for frame in layers(regions, int(t)):
            for label in np.unique(frame[frame > 0]).tolist():
                assert label not in found
                found[label] = set(np.flatnonzero(frame == label).tolist())
        assert found == {
            r - rows.start + 1: places_of(regions, r) for r in range(rows.start, rows.stop)
        }
    layer = layer_numbers(regions)
    first, second = regions.overlaps.nonzero()
    assert (layer[first] != layer[second])[first != second].all()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([(8, 9), (1, 12), (12, 1), (4, 5, 6), (1, 7, 7)]),
    st.sampled_from([0.3, 0.6, 0.8]),
)
def test_the_largest_piece_of_every_region_is_kept(
    seed: int, shape: tuple[int, ...], share: float
) -> None:
    rng = np.random.default_rng(seed)
    masks = [rng.random(shape) < share for _ in range(5)]
    masks = [m for m in masks if m.any()]
    regions = concatenate(
        [
            no_regions(shape),
            *(regions_of_labels(m.astype(int), t // 2) for t, m in enumerate(masks)),
        ]
    )
    whole = largest_pieces(regions)
    for r, mask in enumerate(masks):
        pieces, n = ndi.label(mask)
        largest = pieces == 1 + np.argmax(np.bincount(pieces.ravel(), minlength=n + 1)[1:])
        np.testing.assert_array_equal(whole.mask(r), ndi.binary_fill_holes(largest))


def test_numbers_of_a_frame() -> None:
    regions = made([(2, {0, 1}), (0, {8, 9, 10}), (2, {1, 2})])
    assert regions.frame.tolist() == [0, 2, 2]
    assert regions.rows(1) == slice(1, 1)
    assert regions.area.tolist() == [3, 2, 2]
    np.testing.assert_allclose(regions.centroid, [[1, 2], [0, 0.5], [0, 1.5]])
    assert shared_pixels(regions.select([0]), regions).toarray().tolist() == [[3, 0, 0]]
    assert shared_pixels(regions, made([(7, {1, 9})])).toarray().tolist() == [[1], [1], [1]]
    assert regions.overlaps.toarray().tolist() == [[3, 0, 0], [0, 2, 1], [0, 1, 2]]
    assert regions.mask(0).sum() == 3
    assert regions.sources == ("source 2", "source 0")
    assert regions.votes.tolist() == [[0, 1], [1, 0], [1, 0]]


@settings(max_examples=25, deadline=None)
@given(some_regions())
def test_runs_end_with_their_rows_and_say_where_regions_lie(regions: Regions) -> None:
    owner, place, length = regions.runs.owner, regions.runs.start, regions.runs.length
    assert [p for a, n in zip(place, length, strict=True) for p in range(a, a + n)] == list(
        regions.pixels
    )
    np.testing.assert_array_equal(np.repeat(owner, length), regions.owner)
    row = np.stack([place, place + length - 1]) // SHAPE[-1]
    np.testing.assert_array_equal(*row)
    border = np.ones(SHAPE, dtype=bool)
    border[1:-1, 1:-1] = False
    for r, edge in enumerate(regions.at_edge()):
        mask = regions.mask(r)
        np.testing.assert_allclose(regions.centroid[r], np.argwhere(mask).mean(axis=0))
        assert edge == (mask & border).any()
    n = len(regions)
    shared = [[len(places_of(regions, a) & places_of(regions, b)) for b in range(n)]
              for a in range(n)]  # fmt: skip
    same = regions.frame[:, None] == regions.frame
    np.testing.assert_array_equal(regions.overlaps.toarray(), np.reshape(shared, (n, n)) * same)


def test_no_regions() -> None:
    empty = no_regions(SHAPE)
    assert len(empty) == 0
    assert exclusions(empty).shape == (0, 0)
    assert empty.overlaps.shape == (0, 0)
    assert layers(empty, 0) == []
    assert empty.centroid.shape == (0, 2)
    assert labels_of(empty, np.zeros(0, dtype=bool)).shape == SHAPE
    assert len(concatenate([empty, made([(0, {1})])])) == 1
