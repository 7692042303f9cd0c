"""The built-in features: documented, finite, and the same at any scale, place and gain."""

import numpy as np
import pytest

from bridgetrack.detections.table import Detections
from bridgetrack.features.default import default_features
from bridgetrack.hypotheses.events import Event
from gallery import GALLERY, movie_of
from scenes import channels_movie, described, image_movie, keys_of, label_movie, simulated

FEATURES = default_features()
ids = [s.name for s in GALLERY]


def movie_2d():
    movie = simulated(cells=25, frames=5, division_rate=0.05)
    return movie.labels.astype(np.int32), movie.image.astype(float), movie.geometry.scale


def beside_six_that_stay():
    """Labels of two frames with six cells that stay, for the scale and the usual overlap."""
    labels = np.zeros((2, 60, 160), dtype=np.int32)
    for k in range(6):
        labels[:, 5 + 2 * k : 15 + 2 * k, 60 + 15 * k : 70 + 15 * k] = 10 + k
    return labels


def named(scene, row):
    """Features of an event by their names."""
    return dict(zip(FEATURES.keys, scene.matrix.row(row), strict=True))


def values(scene):
    return scene.matrix.sparse().toarray()


def assert_same_features(one, two, tolerance=1e-7):
    np.testing.assert_array_equal(one.hypotheses.event, two.hypotheses.event)
    np.testing.assert_array_equal(one.hypotheses.sources, two.hypotheses.sources)
    np.testing.assert_array_equal(one.hypotheses.targets, two.hypotheses.targets)
    difference = np.abs(values(one) - values(two)).max(axis=0)
    wrong = [FEATURES.keys[k] for k in np.flatnonzero(difference > tolerance)]
    assert not wrong


@pytest.mark.parametrize("dim", [2, 3])
def test_finite_and_in_bounds_with_an_image(dim):
    movie = simulated(dim=dim, frames=5, cells=20)
    image = image_movie(movie.image.astype(float), movie.geometry.scale)
    scene = described(label_movie(movie), image)
    assert scene.evidence.detections.channels
    phi = values(scene)
    assert np.isfinite(phi).all()
    assert np.abs(phi).max() <= 9.0, "no feature may dwarf the others"
    used = (np.ptp(phi, axis=0) > 0) | np.array([k.endswith("bias") for k in FEATURES.keys])
    rare = {f"{e}.{n.name}" for e in ("skip", "false") for n in FEATURES.of(Event.from_key(e))}
    # masks of the simulation are true: nothing wavers, and no cell is missed
    beyond = {k for k in FEATURES.keys if k.endswith((".wavering", ".lonely", ".late"))}
    idle = {FEATURES.keys[k] for k in np.flatnonzero(~used)} - rare - beyond
    assert not idle


@pytest.mark.parametrize("factor", [0.01, 30.0])
def test_the_size_of_a_pixel_does_not_matter(factor):
    labels, image, _ = movie_2d()
    one = described(movie_of(labels), image_movie(image, (1.0, 1.0)))
    scale = (factor, factor)
    two = described(movie_of(labels, scale=scale), image_movie(image, scale))
    assert_same_features(one, two)


def test_the_place_in_the_frame_matters_to_the_border_only():
    labels, image, _ = movie_2d()
    one = described(movie_of(labels), image_movie(image, (1.0, 1.0)))
    wide = [(0, 0), (13, 40), (29, 0)]
    background = float(np.median(image))
    two = described(
        movie_of(np.pad(labels, wide)),
        image_movie(np.pad(image, wide, constant_values=background), (1.0, 1.0)),
    )
    assert len(one.hypotheses) == len(two.hypotheses)
    border = [k for k, key in enumerate(FEATURES.keys) if key.endswith(".border")]
    # the background is a quantile of the frame, so intensities follow it a little
    bright = [k for k, f in enumerate(FEATURES.features) if f.needs == "image"]
    rest = np.setdiff1d(np.arange(len(FEATURES)), border + bright)
    np.testing.assert_allclose(values(two)[:, rest], values(one)[:, rest], atol=1e-9)
    assert values(two)[:, border].sum() < values(one)[:, border].sum()
    assert np.abs(values(two)[:, bright] - values(one)[:, bright]).max() < 0.5


@pytest.mark.parametrize(("gain", "offset"), [(3.0, 100.0), (0.01, -5.0)])
def test_gain_and_offset_of_the_camera_do_not_matter(gain, offset):
    labels, image, scale = movie_2d()
    one = described(movie_of(labels, scale=scale), image_movie(image, scale))
    two = described(movie_of(labels, scale=scale), image_movie(image * gain + offset, scale))
    assert_same_features(one, two, 1e-6)


def test_equally_bright_cells_differ_in_no_brightness():
    labels, _, scale = movie_2d()
    image = np.where(labels > 0, 61_234.567, 1_000.1)
    scene = described(movie_of(labels, scale=scale), image_movie(image, scale))
    names = ("source_brightness", "level_change", "mother_brightness", "brightness_gain")
    columns = [k for k, f in enumerate(FEATURES.features) if f.name in names]
    assert np.abs(values(scene)[:, columns]).max() < 1e-4


def test_equal_channels_count_as_one():
    labels, image, scale = movie_2d()
    opened = movie_of(labels, scale=scale)
    one = described(opened, image_movie(image, scale))
    two = described(opened, channels_movie(np.stack([image, image], axis=1), scale))
    assert len(two.evidence.detections.channels) == 2
    assert_same_features(one, two)


def test_without_an_image_its_features_are_zero():
    labels, image, scale = movie_2d()
    bare = values(described(movie_of(labels, scale=scale)))
    full = values(described(movie_of(labels, scale=scale), image_movie(image, scale)))
    needs = np.array([f.needs == "image" for f in FEATURES.features])
    assert (bare[:, needs] == 0).all()
    assert (full[:, needs] != 0).any(axis=0).sum() >= 8
    np.testing.assert_array_equal(bare[:, ~needs], full[:, ~needs])


def test_without_masks_their_features_are_zero_and_overlaps_are_those_of_discs():
    labels, _, scale = movie_2d()
    full = described(movie_of(labels, scale=scale))
    detections = full.evidence.detections
    columns = ["frame", "label", "y", "x", "area"]
    points = Detections(detections.table[columns], detections.geometry, has_masks=False)
    scene = described(points)
    phi = values(scene)
    assert np.isfinite(phi).all()
    needs = np.array([bool(f.needs) for f in FEATURES.features])
    assert (phi[:, needs] == 0).all()
    overlap = FEATURES.keys.index("move.overlap")
    moves = scene.hypotheses.of(Event.MOVE)
    mutual = phi[moves, FEATURES.keys.index("move.mutual")] == 1
    assert phi[moves][mutual, overlap].mean() > 0.5
    assert phi[moves][~mutual, overlap].mean() < 0.2


def test_a_skip_is_measured_from_where_the_drift_has_carried_the_cell():
    rng = np.random.default_rng(3)
    labels = np.zeros((4, 120, 200), dtype=np.int32)
    places = [(y, x) for y in range(10, 110, 20) for x in range(10, 110, 20)]
    shake = rng.integers(-4, 5, (len(places), 2))
    for t in range(4):
        for k, (y, x) in enumerate(places):
            if k == 12 and t in (1, 2):
                continue
            top, left = y + shake[k, 0], x + shake[k, 1] + 14 * t
            labels[t, top : top + 8, left : left + 8] = k + 1
    scene = described(movie_of(labels))
    d = scene.evidence.detections
    wanted = (Event.SKIP, d.row_of(0, 13), -1, d.row_of(3, 13), -1)
    value = named(scene, keys_of(scene.hypotheses).index(wanted))
    assert value["skip.distance"] == pytest.approx(0, abs=0.1)
    assert value["skip.gap"] == 1.0


def test_division_geometry():
    labels = beside_six_that_stay()
    labels[0, 20:30, 20:30] = 1
    labels[1, 20:30, 8:18], labels[1, 20:30, 32:42] = 2, 3
    scene = described(movie_of(labels))
    d = scene.evidence.detections
    wanted = (Event.DIVIDE, d.row_of(0, 1), -1, d.row_of(1, 2), d.row_of(1, 3))
    value = named(scene, keys_of(scene.hypotheses).index(wanted))
    diameter = scene.evidence.motion.diameter
    assert value["divide.angle"] == pytest.approx(0.0, abs=1e-6)
    assert value["divide.middle"] == pytest.approx(0.0, abs=1e-6)
    assert value["divide.separation"] == pytest.approx(24 / diameter)
    assert value["divide.growth"] == pytest.approx(np.log(2))
    assert value["divide.size_asymmetry"] == pytest.approx(0.0)
    assert value["divide.orphans"] == 2.0
    assert not any(v for k, v in value.items() if not k.startswith("divide."))


def test_a_move_says_what_it_leaves_without_overlap_and_to_whom_others_are_nearer():
    labels = beside_six_that_stay()
    labels[0, 20:30, 5:15], labels[1, 28:38, 13:23] = 1, 2  # they share 4 of 100 pixels
    labels[0, 40:50, 20:30], labels[1, 40:50, 20:27], labels[1, 40:50, 27:30] = 3, 4, 5
    scene = described(movie_of(labels))
    h, label = scene.hypotheses, scene.evidence.detections.label
    usual = np.quantile([*[1.0] * 6, 0.7, 0.04], 0.1)
    far = (8 * np.sqrt(2) / scene.evidence.motion.diameter - 0.9) / 0.3
    expected = {(1, 2): (far * (1 - 5 * 0.04), 0.0), (3, 4): (0.0, 0.0), (3, 5): (0.0, 0.7 - 0.3)}
    columns = [FEATURES.keys.index(f"move.{name}") for name in ("without_overlap", "outdone")]
    for row in h.of(Event.MOVE):
        pair = int(label[h.sources[row, 0]]), int(label[h.targets[row, 0]])
        if pair in expected:
            found = scene.matrix.row(row)[columns]
            np.testing.assert_allclose(found, usual * np.array(expected.pop(pair)), rtol=0.02)
    assert not expected


def test_a_merge_says_what_of_a_cell_the_region_leaves_uncovered():
    labels = beside_six_that_stay()
    labels[0, 20:30, 20:30], labels[0, 20:30, 30:40] = 1, 2
    labels[1, 20:30, 20:34] = 3
    scene = described(movie_of(labels))
    (row,) = scene.hypotheses.of(Event.MERGE)
    value = named(scene, row)
    usual = np.quantile([*[1.0] * 6, 100 / 140], 0.1)
    assert value["merge.uncovered"] == pytest.approx(usual * 0.6)
