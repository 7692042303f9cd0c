"""Masks found, repaired and explained from Python, as by the commands."""

from functools import partial

import numpy as np
import pytest
import tifffile

import bridgetrack as bt
from bridgetrack.cli.main import main
from bridgetrack.errors import BridgetrackWarning
from cli.conftest import write_tiff
from drawn_movie import answered, textured


@pytest.fixture(scope="module")
def sample():
    """Four frames of a part of the sample movie, and its true labels."""
    folder, part = bt.sample_folder(), np.s_[:3, 60:200, 60:200]
    image, truth = bt.open_movie(folder / "01"), bt.open_labels(folder / "01_GT" / "TRA")
    seen, true = (np.asarray(movie.array[:, 0][part]) for movie in (image, truth))
    return seen, true


@pytest.fixture(scope="module")
def found(sample):
    """Cells found in it."""
    return bt.find_cells(sample[0], scale=(0.6, 0.6), frame_interval=5)


@pytest.fixture(scope="module")
def by_command(sample, tmp_path_factory):
    """Where the command wrote what it found in the same images."""
    folder = tmp_path_factory.mktemp("found")
    told("segment", write_tiff(folder / "image.tif", sample[0]), "--out", folder / "labels.tif")
    return folder


def pixels_of(movie):
    return np.asarray(movie.array[:, 0])


def told(*words):
    assert main([str(word) for word in words]) == 0


def test_cells_are_found_as_by_the_command(sample, found, by_command):
    image, truth = sample
    labels = by_command / "labels.tif"
    np.testing.assert_array_equal(pixels_of(found.labels), tifffile.imread(labels))
    geometry = found.labels.geometry
    assert (geometry.scale, geometry.frame_interval) == ((0.6, 0.6), 5)
    assert "together with their tracks" in found.words and not found.changes
    many = len(np.unique(truth[0])) - 1
    assert abs(len(np.unique(pixels_of(found.labels)[0])) - 1 - many) <= 2
    assert bt.track(found.labels, image).tracks.n_tracks
    plain = bt.find_cells(image[:1], bt.SegmentationSettings(diameter=20), choose="plain")
    assert "by the plain segmentation" in plain.words and "20 pixels" in plain.words


def test_answers_count(tmp_path):
    images, truth, labels = textured()
    steps: list[bt.Progress] = []
    mended = bt.repair(labels, images, progress=steps.append)
    assert steps and mended.labels.geometry == bt.open_labels(labels).geometry
    stays = (labels > 0) & (truth != 4)
    np.testing.assert_array_equal(pixels_of(mended.labels)[stays], labels[stays])
    one = answered(tmp_path / "said.masks.json", one=True)
    kept = pixels_of(bt.find_cells(images, answers=one).labels)[1]
    assert len(np.unique(kept[(truth[1] == 1) | (truth[1] == 2)])) == 1
    assert len(np.unique(kept)) > 3


def test_what_cannot_be_done_is_said(sample, tmp_path):
    image, truth = sample
    (tmp_path / "cells.csv").write_text("t,y,x\n0,1,1\n")
    with pytest.raises(bt.BridgetrackError, match="plain"):
        bt.find_cells(image, choose="often")
    with pytest.raises(bt.BridgetrackError, match="same"):
        bt.repair(truth[:2], image)
    with pytest.raises(bt.BridgetrackError, match="table"):
        bt.repair(tmp_path / "cells.csv", image)
    events = tmp_path / "events.json"
    bt.save_annotations(bt.AnnotationSet(bt.open_labels(truth).geometry), events)
    for work in (bt.find_cells, partial(bt.repair, truth)):
        with pytest.raises(bt.BridgetrackError, match="no answers about masks"):
            work(image, answers=events)


def test_masks_in_place_of_a_picture_are_told(sample):
    with pytest.warns(BridgetrackWarning, match="look like the numbers of cells"):
        bt.find_cells(sample[1][:1], choose="plain")
