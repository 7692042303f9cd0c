"""``segment --candidates`` and ``--probability``: what other programs say, beside the image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from scipy import ndimage as ndi

import bridgetrack as bt
from bridgetrack.movie.opening import open_movie
from bridgetrack.pipeline.finding import how_found
from bridgetrack.segmentation.probability import cell_and_edge_of, open_probability
from cli.conftest import Run, write_tiff
from drawn_movie import textured

Rough = tuple[Path, np.ndarray, dict[str, Path]]


@pytest.fixture
def rough(tmp_path: Path) -> Rough:
    """A movie with a cell that the built-in segmentation does not see; its truth; what others say.

    One program sees all cells but that one, another this one only.
    """
    images, truth, others = textured()
    image = write_tiff(tmp_path / "image.tif", images.astype(np.float32))
    smooth = ndi.gaussian_filter((truth > 0).astype(np.float32), (0, 1, 1))
    said: dict[str, Any] = {
        "others": others + 20 * (others > 0),
        "one": np.where(truth == 4, 7, 0),
        "few": truth[:3],
    }
    files = {
        name: write_tiff(tmp_path / f"{name}.tif", labels.astype(np.uint16))
        for name, labels in said.items()
    }
    files["bytes"] = write_tiff(tmp_path / "bytes.tif", (250 * smooth).astype(np.uint8))
    edge = np.zeros_like(smooth)
    both = np.stack([edge, smooth], axis=1)
    files |= {"image": image, "both": write_tiff(tmp_path / "both.tif", both, "TCYX")}
    return image, truth, files


def seen(labels: Path, truth: np.ndarray) -> list[int]:
    """True cells that masks cover, in all frames."""
    found = tifffile.imread(labels) > 0
    return [k for k in range(1, 6) if found[truth == k].mean() > 0.8]


def test_cells_of_other_programs_are_candidates(run: Run, rough: Rough, tmp_path: Path) -> None:
    image, truth, files = rough
    out = tmp_path / "labels.tif"
    words = ("segment", image, "--out", out)
    assert run(*words).status == 0
    assert seen(out, truth) == [1, 2, 3, 5]
    two = ("--candidates", files["others"], files["one"])
    shown = run(*words, *two)
    assert shown.status == 0, shown.err
    assert seen(out, truth) == [1, 2, 3, 4, 5]
    record = json.loads((tmp_path / "labels.run.json").read_text())
    assert record["input"]["labels"] == [str(files["others"]), str(files["one"])]
    assert record["input"]["probability"] is None and record["repaired"]
    assert how_found(out) is None, "what others said is not seen in the image alone"
    first = tifffile.imread(out)[0]
    assert {int(np.bincount(first[truth[0] == k]).argmax()) for k in (1, 2, 3, 5)} == {
        k + 20 for k in (1, 2, 3, 5)
    }, "cells that stay keep their numbers of the first"
    found = bt.find_cells(image, labels=[files["others"], files["one"]])
    np.testing.assert_array_equal(np.asarray(found.labels.array[:, 0]), tifffile.imread(out))
    assert "what other programs say" in found.words


def test_probabilities_of_another_program_show_cells(
    run: Run, rough: Rough, tmp_path: Path
) -> None:
    image, truth, files = rough
    out = tmp_path / "labels.tif"
    words = ("segment", image, "--out", out, "--probability")
    shown = run(*words, files["bytes"])
    assert shown.status == 0, shown.err
    assert seen(out, truth) == [1, 2, 3, 4, 5]
    record = json.loads((tmp_path / "labels.run.json").read_text())
    assert record["input"]["probability"] == str(files["bytes"])
    found = bt.find_cells(image, probability=files["bytes"])
    np.testing.assert_array_equal(np.asarray(found.labels.array[:, 0]), tifffile.imread(out))
    before = out.read_bytes()
    for odd, said in (
        (files["both"], "none of which is called cell"),
        (files["few"], "probabilities"),
        (files["image"], "must lie between 0 and 1"),
    ):
        refused = run(*words, odd)
        assert refused.status == 1 and said in refused.err
    refused = run(*words[:-1], "--candidates", files["few"])
    assert refused.status == 1 and "give labels of this movie" in refused.err
    refused = run(*words[:-1], "--candidates", out)
    assert refused.status == 1 and "labels.tif" in refused.err
    assert out.read_bytes() == before
    with pytest.raises(bt.BridgetrackError, match="use 'jointly'"):
        bt.find_cells(image, labels=[files["one"]], choose="plain")


def test_edges_are_told_from_cells() -> None:
    images = open_movie(np.zeros((2, 4, 5)))
    cell, edge = np.full((2, 4, 5), 0.75), np.zeros((2, 4, 5))
    edge[:, :, 2] = 0.5
    both = open_movie(np.stack([edge, cell], axis=1), axes="TCYX", channels=["Edge", "cell"])
    found = cell_and_edge_of(open_probability(both, images), 1)
    np.testing.assert_allclose(found[0], 0.75)
    np.testing.assert_allclose(found[1], edge[1])
    whole = np.full((2, 4, 5), 51, np.uint8)
    alone = cell_and_edge_of(open_probability(whole, images), 0)
    np.testing.assert_allclose(alone[0], 0.2)
    assert alone[1] is None
