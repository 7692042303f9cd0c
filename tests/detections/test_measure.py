"""Measures by weighted counts, against scikit-image's object by object."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.measure import regionprops

from bridgetrack.detections.labels import foreground
from bridgetrack.detections.measure import _faces, measure_frame
from bridgetrack.errors import InputError
from bridgetrack.movie import open_movie
from bridgetrack.pipeline import scene
from bridgetrack.progress import run
from gallery import measure, movie_of

FLAT = (1.0, 1.0)


def blobs(shape, n, seed, low=2.0):
    """Random ellipsoids that may touch, overlap and reach over the edge."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(s) for s in shape], indexing="ij"), axis=-1)
    labels = np.zeros(shape, dtype=np.int32)
    for _ in range(n):
        centre = rng.uniform(0, shape)
        radii = rng.uniform(low, 0.2 * min(shape) + low, len(shape))
        turn, _ = np.linalg.qr(rng.normal(size=(len(shape), len(shape))))
        inside = ((((grid - centre) @ turn) / radii) ** 2).sum(axis=-1) <= 1
        labels[inside] = int(rng.integers(1, 1000))
    return labels


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([((40, 50), (1.0, 1.0)), ((30, 60), (0.5, 0.5)), ((14, 24, 20), (2.5, 1, 1))]),
    st.integers(1, 8),
)
def test_areas_centroids_and_axes(seed, frame, n):
    shape, scale = frame
    labels = blobs(shape, n, seed)
    table = measure_frame(labels, None, scale)
    expected = regionprops(labels, spacing=scale)
    assert table["label"].tolist() == [p.label for p in expected]
    axes = ("z", "y", "x")[-len(shape) :]
    for row, region in zip(table.itertuples(), expected, strict=True):
        assert row.area == region.num_pixels
        centre = [getattr(row, a) for a in axes]
        np.testing.assert_allclose(np.multiply(centre, scale), region.centroid, rtol=1e-9)
        own = np.diag(np.square(scale)) / 12  # a pixel has an extent of its own
        spread = np.cov(region.coords_scaled.T, bias=True).reshape(own.shape) + own
        size = 4.0 if len(shape) == 2 else 2 * np.sqrt(5.0)
        lengths = size * np.sqrt(np.linalg.eigvalsh(spread))
        assert row.major == pytest.approx(lengths[-1])
        assert row.minor == pytest.approx(lengths[0])
        if len(set(scale)) == 1 and region.num_pixels > 20:  # scikit-image takes pixels for points
            theirs = np.sqrt(region.axis_major_length**2 + size**2 * scale[0] ** 2 / 12)
            assert row.major == pytest.approx(theirs, rel=1e-6)


@settings(max_examples=20)
@given(st.floats(0, np.pi), st.floats(10, 18), st.floats(0.4, 0.8))
def test_orientation(angle, major, ratio):
    y, x = np.mgrid[-20:21, -20:21]
    u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    labels = ((u / major) ** 2 + (v / (ratio * major)) ** 2 <= 1).astype(np.int32)
    row = measure_frame(labels, None, FLAT).iloc[0]
    region = regionprops(labels)[0]
    direction = np.array([row["axis_y"], row["axis_x"]])
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    theirs = np.array([np.cos(region.orientation), np.sin(region.orientation)])
    assert abs(direction @ theirs) == pytest.approx(1.0, abs=1e-4)
    assert row["major"] == pytest.approx(2 * major, rel=0.06)
    assert row["minor"] == pytest.approx(2 * ratio * major, rel=0.08)


def test_anisotropic_axes_are_in_the_unit_of_the_scale():
    z, y, x = np.mgrid[-8:9, -20:21, -20:21]
    ball = ((z * 2.0) ** 2 + (y * 1.0) ** 2 + (x * 1.0) ** 2 <= 12**2).astype(np.int32)
    row = measure_frame(ball, None, (2.0, 1.0, 1.0)).iloc[0]
    assert row["major"] == pytest.approx(24, rel=0.03)
    assert row["minor"] == pytest.approx(24, rel=0.03)
    assert row["roundness"] == pytest.approx(1.0, abs=0.06)
    flat = measure_frame(ball, None, (1.0, 1.0, 1.0)).iloc[0]
    assert flat["minor"] == pytest.approx(12, rel=0.05)


def test_touching_and_border_distance():
    labels = np.zeros((12, 20), dtype=np.int32)
    labels[4:8, 2:6] = 1  # four of its sixteen faces touch cell 2
    labels[4:8, 6:10] = 2
    labels[5:7, 17:20] = 3  # at the edge
    labels[9, 13] = 4
    table = measure_frame(labels, None, (0.5, 2.0)).set_index("label")
    # faces across x have length 0.5, those across y have length 2
    outline = 8 * 0.5 + 8 * 2.0
    assert table["touching"].tolist() == pytest.approx([2.0 / outline, 2.0 / outline, 0, 0])
    assert table["border_distance"].tolist() == pytest.approx([4 * 0.5, 4 * 0.5, 0.0, 1.0])


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(5, 7), (1, 6), (3, 4, 5)]))
def test_outlines_and_contacts_equal_counting(seed, shape):
    labels = np.random.default_rng(seed).integers(0, 4, shape)
    scale = np.array([2.0, 0.5, 0.3])[-len(shape) :]
    fg = foreground(labels)
    outline, touching = _faces(fg, scale)
    expected = np.zeros((2, 4))
    around = np.pad(labels, 1)
    for axis in range(len(shape)):
        face = np.prod(scale) / scale[axis]
        for turned in (around, np.flip(around, axis)):
            here = np.moveaxis(turned, axis, 0)
            pairs = np.stack([here[1:].ravel(), here[:-1].ravel()], axis=1)
            for own, other in pairs[pairs[:, 0] != pairs[:, 1]].tolist():
                expected[:, own] += face * np.array([1, other > 0])
    assert np.allclose(outline, expected[0, fg.labels])
    assert np.allclose(touching, expected[1, fg.labels])


def test_intensities_of_two_channels():
    labels = np.zeros((20, 20), dtype=np.int32)
    labels[2:6, 2:6], labels[10:14, 10:16] = 3, 8
    rng = np.random.default_rng(0)
    image = np.stack([np.full((20, 20), 10.0), rng.uniform(5, 6, (20, 20))])
    image[0][labels == 3] += rng.uniform(50, 100, 16)
    table = measure_frame(labels, image, FLAT).set_index("label")
    for k in range(2):
        background = np.quantile(image[k], 0.05)
        for label in (3, 8):
            pixels = image[k][labels == label]
            row = table.loc[label]
            assert row[f"mean_{k}"] == pytest.approx(pixels.mean() - background)
            assert row[f"std_{k}"] == pytest.approx(pixels.std(), abs=1e-9)
            assert row[f"sum_{k}"] == pytest.approx((pixels - background).sum())


def test_pixels_that_are_not_numbers_are_left_out():
    labels = np.zeros((20, 20), dtype=np.int32)
    labels[2:6, 2:6], labels[10:14, 10:14] = 1, 2
    image = np.full((1, 20, 20), 10.0)
    image[0][labels == 1] = 30.0
    image[0, 2, 2], image[0, 3, 3], image[0, 0, 0] = np.nan, np.inf, -np.inf
    image[0][labels == 2] = np.nan
    table = measure_frame(labels, image, FLAT).set_index("label")
    assert table.loc[1, "mean_0"] == pytest.approx(20.0)
    assert table.loc[1, "std_0"] == pytest.approx(0.0)
    assert table.loc[2, ["mean_0", "std_0", "sum_0"]].tolist() == [0.0, 0.0, 0.0]


def test_movies_with_empty_frames():
    labels = np.zeros((4, 9, 9), dtype=np.uint16)
    labels[1, 2:4, 2:4], labels[3, 5:8, 5:8] = 7, 2
    detections = measure(movie_of(labels))
    assert detections.frame.tolist() == [1, 3]
    assert detections.label.tolist() == [7, 2]
    assert detections.offsets.tolist() == [0, 0, 1, 1, 2]
    assert detections.row_of(3, 2) == 1
    with pytest.raises(InputError, match="no cell with label 2 in frame 1"):
        detections.row_of(1, 2)
    with pytest.raises(InputError, match="in frame 9"):
        detections.row_of(9, 2)


def test_no_cell_at_all():
    with pytest.raises(InputError, match="no cell in any of the 3 frames"):
        measure(movie_of(np.zeros((3, 5, 5), dtype=int), source="empty.tif"))


def test_image_and_labels_of_different_extent():
    labels = movie_of(np.ones((3, 8, 9), dtype=int))
    with pytest.raises(InputError, match=r"3 frames of 9 × 8 pixels; the labels .* 8 × 9 pixels"):
        run(scene.measure(labels, movie_of(np.ones((3, 9, 8)))))
    with pytest.raises(InputError, match="2 frames of 8 × 9 pixels"):
        run(scene.measure(labels, movie_of(np.ones((2, 8, 9)))))


def test_channel_names_are_kept():
    labels = np.ones((2, 6, 6), dtype=int)
    names = ("nuclei", "cytoplasm")
    image = open_movie(np.ones((2, 2, 6, 6)), axes="TCYX", channels=names)
    detections = measure(movie_of(labels), image)
    assert detections.channels == names
    assert {"mean_0", "mean_1", "sum_1"} <= set(detections.table.columns)
    assert measure(movie_of(labels)).channels == ()
