"""Merge trees against flooding by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage as ndi

from bridgetrack.regions.tree import distinct, merge_tree


def landscape(seed: int, shape: tuple[int, ...], distinct_values: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if distinct_values:
        return rng.permutation(np.prod(shape)).reshape(shape).astype(np.float32) + 1
    return rng.integers(1, 4, shape).astype(np.float32)


SHAPES = st.sampled_from([(6, 7), (1, 9), (3, 4, 5)])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), SHAPES, st.booleans())
def test_nodes_are_nested_and_leaves_are_hills(
    seed: int, shape: tuple[int, ...], distinct_values: bool
) -> None:
    height = landscape(seed, shape, distinct_values)
    mask = np.random.default_rng(seed + 1).random(shape) < 0.7
    tree = merge_tree(height, mask)
    assert sorted(tree.pixels.tolist()) == np.flatnonzero(mask).tolist()
    count = int(tree.hills.max())
    assert len(tree.start) == 2 * count - (tree.parent < 0).sum()
    for node, up in enumerate(tree.parent.tolist()):
        own = tree.pixels[tree.start[node] : tree.stop[node]]
        assert height.ravel()[own].max() == tree.peak[node]
        assert tree.death[node] <= tree.birth[node] <= tree.peak[node]
        if node < count:
            assert set(own.tolist()) == set(np.flatnonzero(tree.hills == node + 1).tolist())
        if up >= 0:
            assert tree.start[up] <= tree.start[node] < tree.stop[node] <= tree.stop[up]
            assert tree.death[node] == tree.birth[up]
        else:
            assert tree.death[node] == height.ravel()[own].min()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([(6, 7), (3, 4, 5)]))
def test_hills_join_where_components_above_a_level_do(seed: int, shape: tuple[int, ...]) -> None:
    height = landscape(seed, shape, True)
    mask = np.ones(shape, dtype=bool)
    tree = merge_tree(height, mask)
    faces = ndi.generate_binary_structure(len(shape), 1)
    for level in np.unique(height)[::5]:
        pieces = ndi.label(height >= level, faces)[0].ravel()
        alive = (tree.birth >= level) & (tree.death < level)
        for node in np.flatnonzero(alive):
            own = tree.pixels[tree.start[node] : tree.stop[node]]
            above = own[height.ravel()[own] >= level]
            everything = np.flatnonzero(pieces == pieces[above[0]])
            # steepest ascent goes over corners too: a node may hold several pieces
            assert set(everything.tolist()) <= set(own.tolist())


def test_nearly_equal_nodes_are_one() -> None:
    height = np.zeros((1, 40), dtype=np.float32)
    height[0, :18] = np.arange(20, 2, -1)
    height[0, 18:20] = (2.5, 2.7)  # a hill of one pixel beside one of 19
    height[0, 20:] = np.arange(2, 22)
    tree = merge_tree(height, np.ones_like(height, dtype=bool))
    assert sorted(tree.area.tolist()) == [1, 19, 20, 20, 40]
    nodes, lasting = distinct(tree, 5, 100, 0.9)
    assert sorted(tree.area[nodes].tolist()) == [20, 20, 40]
    # the hill lasts from its peak to its last pass, although the small one joins it before
    assert sorted(lasting.tolist())[1:] == [0.9, 19 / 21]
    assert distinct(tree, 5, 39, 0.9)[0].tolist() == nodes[tree.area[nodes] < 40].tolist()
