"""Readers, writers and sample data, as napari calls them."""

from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest
from napari.layers import Image, Labels

from bridgetrack.files import sample_folder
from bridgetrack.ui.file_menu import reader, sample_movie
from bridgetrack.ui.layers import KEY, share_scale


def test_the_sample_is_an_image_with_cells():
    image, labels = sample_movie()
    assert (image[2], labels[2]) == ("image", "labels")
    assert image[0].shape == labels[0].shape
    assert image[1]["scale"] == labels[1]["scale"] == (1.0, 0.645, 0.645)
    assert image[1]["metadata"][KEY]["path"] is None, "nothing is kept beside the sample"


def test_a_ctc_folder_is_read():
    folder = sample_folder() / "01_GT" / "TRA"
    read = reader(str(folder))
    assert read is not None
    layers = read(str(folder))
    assert [layer[2] for layer in layers] == ["image", "labels", "tracks"]
    scales = {layer[1]["scale"] for layer in layers}
    assert scales == {(1.0, 0.645, 0.645)}, "masks take the pixel size of the images"


def test_other_things_are_left_to_other_readers(tmp_path):
    (tmp_path / "a.csv").write_text("name,colour\ncat,black\n")
    (tmp_path / "a.json").write_text("{}")
    for name in ("", "a.csv", "a.json"):
        assert reader(str(tmp_path / name)) is None
    assert reader([str(tmp_path / "a.csv")]) is None


def test_a_file_of_trackmate_is_a_layer_of_tracks_whatever_it_is_called(tmp_path):
    path = str(tmp_path / "trackmate7.txt")
    copyfile(Path(__file__).parents[1] / "io" / "files" / "trackmate7.xml", path)
    [(data, options, kind)] = reader(path)(path)
    assert (options["name"], kind, len(data)) == ("trackmate7", "tracks", 4)
    assert options["graph"]
    assert options["metadata"][KEY]["tracks"].nodes["id"].tolist() == [1, 2, 3, 4]


FINE, COARSE = (1.0, 0.5, 0.5), (1.0, 0.8, 0.8)


@pytest.mark.parametrize(
    ("image", "labels", "after"),
    [
        (FINE, None, (FINE, FINE)),
        (None, FINE, (FINE, FINE)),
        (None, None, ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))),
        (FINE, COARSE, (FINE, COARSE)),
    ],
)
def test_only_a_layer_that_says_nothing_takes_the_scale_of_the_other(image, labels, after):
    pixels = np.zeros((3, 20, 30), dtype=np.uint8)
    pair = [
        make(pixels, scale=scale, units=("pixel", "um", "um") if scale else None)
        for make, scale in ((Image, image), (Labels, labels))
    ]
    share_scale(*pair)
    assert [tuple(layer.scale) for layer in pair] == list(after)
