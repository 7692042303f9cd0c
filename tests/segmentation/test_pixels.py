"""A few strokes teach what is a cell; the model is kept in a file that is safe to read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bridgetrack as bt
from bridgetrack.errors import InputError, ModelError
from bridgetrack.segmentation import pixels
from bridgetrack.segmentation.pixel_features import feature_count, pixel_features, tiles
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.strokes import with_guesses
from pictures import blobs, found_share, photograph

CENTRES = [(25.0, 25.0), (60.0, 40.0), (30.0, 90.0), (62.0, 100.0)]
TRUTH = np.stack([blobs((90, 130), [(y, x + 2 * t) for y, x in CENTRES], 9) for t in range(4)])


def _with_stripe(truth: NDArray[np.int32], seed: int = 0) -> NDArray[np.float32]:
    """Cells beside a bright stripe, which is none."""
    picture = photograph(truth, seed=seed)
    picture[75:] += 70
    return picture


PICTURES = np.stack([_with_stripe(frame, t) for t, frame in enumerate(TRUTH)])


def _strokes() -> NDArray[np.uint8]:
    """Background, with the stripe, and three cells, on the first and the last frame."""
    drawn = np.zeros(TRUTH.shape, np.uint8)
    drawn[0, 45:48, 5:60] = drawn[0, 80:84, 20:110] = drawn[3, 72:77, 50:110] = 1
    drawn[0, 10:14, 15:45] = 1
    for t, place in ((0, np.s_[23:29, 14:37]), (3, np.s_[48:74, 42:48]), (3, np.s_[28:33, 84:108])):
        drawn[t][place] = np.where(TRUTH[t][place] > 0, 2, 1)  # from rim to rim
    return drawn


MODEL = bt.learn_pixels(PICTURES, _strokes(), diameter=18)


def test_strokes_teach_what_brightness_does_not_say() -> None:
    plain = bt.segment_frame(PICTURES[1])
    assert plain[80:].any()  # the stripe is bright
    found = bt.segment_frame(PICTURES[1], model=MODEL)
    assert not found[80:].any()
    assert found_share(TRUTH[1], found) == 1.0
    assert found.max() == len(CENTRES)


def test_probabilities_of_all_classes() -> None:
    probable = MODEL.probability(PICTURES[1])
    assert MODEL.classes == ("background", "cell")
    assert probable.shape == (2, *PICTURES[1].shape)
    assert probable.dtype == np.float32
    np.testing.assert_allclose(probable.sum(axis=0), 1, atol=1e-5)
    inside = TRUTH[1] > 0
    assert probable[1][inside].mean() > 0.7
    assert probable[1][~inside].mean() < 0.1


def test_brightness_may_change_from_movie_to_movie() -> None:
    other = PICTURES[2] * 7 + 300
    np.testing.assert_allclose(MODEL.probability(other), MODEL.probability(PICTURES[2]), atol=0.05)


def test_edges_part_cells_that_touch() -> None:
    truth = np.zeros((60, 90), np.int32)
    truth[15:45, 10:40], truth[15:45, 40:70] = 1, 2
    picture = np.where(truth > 0, 100.0, 20.0) + np.random.default_rng(0).normal(0, 2, truth.shape)
    picture[15:45, 39:41] = 80
    drawn = np.zeros((1, *truth.shape), np.uint8)
    drawn[0, :8, 5:80] = 1
    drawn[0, 20:40, 15:30] = drawn[0, 20:40, 48:60] = 2
    drawn[0, 18:42, 39:41] = 3
    model = bt.learn_pixels(picture[np.newaxis], drawn, diameter=30)
    assert model.classes == ("background", "cell", "edge")
    found = bt.segment_frame(picture, model=model)
    assert found_share(truth, found) == 1.0
    assert found[30, 15] != found[30, 60]
    assert found[30, 35] == found[30, 15]


def test_volumes() -> None:
    truth = blobs((9, 60, 70), [(4, 20, 20), (4, 40, 50)], 9, scale=(2.0, 1.0, 1.0))
    picture = photograph(truth)
    drawn = np.zeros((1, *truth.shape), np.uint8)
    drawn[0, 4, 2:6, 5:60] = drawn[0, 0, 20:40, 20:40] = drawn[0, 4, 30, 20:35] = 1
    drawn[0, :, 17:21, 6:34] = np.where(truth[:, 17:21, 6:34] > 0, 2, 1)
    movie = bt.open_movie(picture[np.newaxis], scale=(2.0, 1.0, 1.0))
    labels = bt.open_labels(drawn, scale=(2.0, 1.0, 1.0))
    model = bt.learn_pixels(movie, labels, diameter=18)
    found = next(bt.segment_movie(movie, model=model)).labels
    assert found_share(truth, found) == 1.0


@pytest.mark.parametrize(
    ("shape", "sampling", "diameter"),
    [
        ((130, 170), (1.0, 1.0), 11.0),
        ((150, 90), (1.0, 1.0), 40.0),
        ((6, 70, 60), (3.0, 1, 1), 9.0),
    ],
)
def test_tiles_give_what_the_whole_frame_gives(
    shape: tuple[int, ...], sampling: tuple[float, ...], diameter: float
) -> None:
    image = np.random.default_rng(0).normal(size=(3, *shape)).astype(np.float32)
    whole = pixel_features(image, diameter, sampling)
    assert len(whole) == feature_count(len(shape))
    covered = np.zeros(shape, int)
    for outer, inner, place in tiles(shape, diameter, sampling, 1500):
        part = pixel_features(image[(slice(None), *outer)], diameter, sampling)[
            (slice(None), *inner)
        ]
        np.testing.assert_allclose(part, whole[(slice(None), *place)], atol=1e-4)
        covered[place] += 1
    assert (covered == 1).all()
    assert sum(1 for _ in tiles(shape, diameter, sampling, 1500)) > 1


def test_the_probability_does_not_depend_on_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = MODEL.probability(PICTURES[0])
    monkeypatch.setattr(pixels, "_TILE", 2000)
    np.testing.assert_allclose(MODEL.probability(PICTURES[0]), whole, atol=1e-4)


def test_a_part_of_a_frame_is_as_probable_as_in_the_whole() -> None:
    crowd = blobs((200, 200), [(y, x) for y in range(10, 90, 17) for x in range(10, 90, 17)], 9)
    picture = photograph(crowd)
    whole, views = MODEL.probability(picture), MODEL.views(picture)
    part = (slice(20, 71), slice(15, 66))
    near = MODEL.probability_in(views, part)
    np.testing.assert_allclose(near, whole[:, *part], atol=0.12)
    np.testing.assert_allclose(
        near[:, 18:-18, 18:-18], whole[:, *part][:, 18:-18, 18:-18], atol=0.04
    )
    alone = MODEL.probability(picture[part])
    assert np.abs(alone - whole[:, *part]).mean() > 0.1, "what lies beyond makes a difference"


def test_the_file_gives_the_same_model(tmp_path: Path) -> None:
    again = bt.load_pixel_model(bt.save_pixel_model(MODEL, tmp_path / "model.json"))
    np.testing.assert_array_equal(again.probability(PICTURES[2]), MODEL.probability(PICTURES[2]))
    assert (again.diameter, again.sampling, again.classes) == (
        MODEL.diameter, MODEL.sampling, MODEL.classes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "not a pixel model"),
        ({"version": 2}, "later release"),
        ({"features": "AAAA"}, "features"),
        ({"features": "no base64!"}, "base64"),
        ({"classes": ""}, "must be 1 to 6"),
        ({"classes": "/w=="}, "must be 1 to 6"),
        ({"diameter": -1}, "diameter"),
        ({"sampling": [1.0]}, "sampling"),
        ({"sampling": [1.0, -1.0]}, "sampling"),
    ],
)
def test_files_that_are_no_models(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = bt.save_pixel_model(MODEL, tmp_path / "model.json")
    content = json.loads(path.read_text()) | change
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match=words) as caught:
        bt.load_pixel_model(path)
    assert str(path) in str(caught.value)


def test_a_model_with_a_number_that_is_none(tmp_path: Path) -> None:
    features = MODEL.painted.features.copy()
    features[3, 3] = np.nan
    broken = replace(MODEL, painted=replace(MODEL.painted, features=features))
    path = bt.save_pixel_model(broken, tmp_path / "model.json")
    with pytest.raises(ModelError, match="finite"):
        bt.load_pixel_model(path)


def test_cells_left_out_at_the_edge_teach_no_background() -> None:
    picture, marks = PICTURES[0][20:], _strokes()[0][20:]
    known = SegmentationSettings(diameter=18, foreground="bright")
    wanted = with_guesses(picture, marks, replace(known, clear_border=True))
    np.testing.assert_array_equal(wanted, with_guesses(picture, marks, known))


def test_strokes_that_teach_nothing() -> None:
    with pytest.raises(InputError, match="nothing is painted"):
        bt.learn_pixels(PICTURES, np.zeros_like(_strokes()))
    only = np.where(_strokes() == 2, 2, 0).astype(np.uint8)
    with pytest.raises(InputError, match="only cell is painted"):
        bt.learn_pixels(PICTURES, only, diameter=18)
    with pytest.raises(InputError, match="must be the same"):
        bt.learn_pixels(PICTURES, _strokes()[:3])
    with pytest.raises(InputError, match="are these labels of cells"):
        bt.learn_pixels(PICTURES, TRUTH)


def test_cells_need_strokes_on_cells() -> None:
    without = np.where(_strokes() == 2, 3, _strokes())
    model = bt.learn_pixels(PICTURES, without, diameter=18)
    with pytest.raises(InputError, match="never shown a cell"):
        bt.segment_frame(PICTURES[0], model=model)


def test_the_size_of_the_cells_need_not_be_known() -> None:
    model = bt.learn_pixels(PICTURES, _strokes())
    assert model.diameter == pytest.approx(18, rel=0.5)
    assert found_share(TRUTH[1], bt.segment_frame(PICTURES[1], model=model)) == 1.0


def test_models_go_on_to_other_movies() -> None:
    more = np.zeros_like(_strokes())
    more[2, 5:8, 5:80] = 1
    both = bt.learn_pixels(PICTURES, more, start=MODEL)
    painted = [np.count_nonzero(model.painted.classes <= 3) for model in (MODEL, both)]
    assert painted[1] == painted[0] + np.count_nonzero(more)
    micrometres = bt.open_movie(PICTURES, scale=(0.5, 0.5), unit="micrometer")
    here = bt.learn_pixels(micrometres, bt.open_labels(_strokes()), diameter=18)
    finer = bt.open_movie(PICTURES, scale=(0.25, 0.25), unit="micrometer")
    assert here.fitted_to(finer.geometry).diameter == 36
    with pytest.raises(InputError, match="3D"):
        MODEL.fitted_to(bt.open_movie(np.zeros((2, 3, 20, 20))).geometry)


def test_many_pixels_are_thinned_out_evenly() -> None:
    drawn = np.zeros_like(_strokes())
    drawn[:, 10:60] = 1
    drawn[TRUTH > 0] = 2
    model = bt.learn_pixels(PICTURES, drawn, diameter=18)
    assert np.count_nonzero(drawn == 1) > 5000
    assert np.bincount(model.painted.classes)[1] == 5000


def test_the_most_doubtful_place_is_not_painted() -> None:
    steps = bt.uncertain_pixels(
        bt.open_movie(PICTURES), MODEL, bt.open_labels(_strokes()), frames=[0, 1]
    )
    places = bt.run(steps)
    assert sorted(place.frame for place in places) == [0, 1]
    assert places[0].doubt >= places[1].doubt > 0
    for place in places:
        y, x = place.point
        near = _strokes()[place.frame, max(0, y - 5) : y + 6, max(0, x - 5) : x + 6]
        assert not near.any()


def test_probability_movies_are_lazy_and_named() -> None:
    movie = bt.open_movie(PICTURES)
    found = bt.probability_movie(movie, MODEL)
    assert found.channels == ("cell",)
    assert found.geometry == movie.geometry
    np.testing.assert_allclose(found.channel_frame(2), MODEL.probability(PICTURES[2])[1])
    with pytest.raises(InputError, match="no probability"):
        bt.probability_movie(movie)
    with pytest.raises(InputError, match="networks of its own"):
        bt.probability_movie(movie, MODEL, backend="cellpose")


def test_pixels_without_a_number_are_no_cell() -> None:
    picture = PICTURES[1].copy()
    picture[15:35, 15:40] = np.nan
    found = bt.segment_frame(picture, model=MODEL)
    assert not found[15:35, 15:40].any()
    assert found.max() == len(CENTRES) - 1
