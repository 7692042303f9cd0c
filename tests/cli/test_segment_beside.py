"""``segment --candidates``: what other programs say, beside the image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from scipy import ndimage as ndi

import bridgetrack as bt
from bridgetrack.pipeline.finding import how_found
from cli.conftest import Run, write_tiff
from drawn_movie import textured

HOW = ("--diameter", 14, "--foreground", "bright")
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
        "yes": 255 * (truth > 0),
    }
    files = {
        name: write_tiff(tmp_path / f"{name}.tif", labels.astype(np.uint16))
        for name, labels in said.items()
    }
    files["bytes"] = write_tiff(tmp_path / "bytes.tif", (250 * smooth).astype(np.uint8))
    return image, truth, files


def seen(labels: Path, truth: np.ndarray) -> list[int]:
    """True cells that masks cover, in all frames."""
    found = tifffile.imread(labels) > 0
    return [k for k in range(1, 6) if found[truth == k].mean() > 0.8]


def test_cells_of_other_programs_are_candidates(run: Run, rough: Rough, tmp_path: Path) -> None:
    image, truth, files = rough
    out = tmp_path / "labels.tif"
    words = ("segment", image, "--out", out, *HOW)
    assert run(*words).status == 0
    assert seen(out, truth) == [1, 2, 3, 5]
    two = ("--candidates", files["others"], files["one"])
    shown = run(*words, *two)
    assert shown.status == 0, shown.err
    assert seen(out, truth) == [1, 2, 3, 4, 5]
    record = json.loads((tmp_path / "labels.run.json").read_text())
    assert record["input"]["labels"] == [str(files["others"]), str(files["one"])]
    assert record["repaired"]
    assert how_found(out) is None, "what others said is not seen in the image alone"
    first = tifffile.imread(out)[0]
    assert {int(np.bincount(first[truth[0] == k]).argmax()) for k in (1, 2, 3, 5)} == {
        k + 20 for k in (1, 2, 3, 5)
    }, "cells that stay keep their numbers of the first"
    settings = bt.SegmentationSettings(diameter=14, foreground="bright")
    found = bt.find_cells(image, settings, labels=[files["others"], files["one"]])
    np.testing.assert_array_equal(np.asarray(found.labels.array[:, 0]), tifffile.imread(out))
    assert "what other programs say" in found.words


def test_cells_of_a_map_of_probabilities_are_candidates(
    run: Run, rough: Rough, tmp_path: Path
) -> None:
    """It is a picture in which cells are bright."""
    image, truth, files = rough
    out, probable = tmp_path / "labels.tif", tmp_path / "probable.tif"
    assert run("segment", files["bytes"], "--out", probable, *HOW).status == 0
    assert seen(probable, truth) == [1, 2, 3, 4, 5]
    shown = run("segment", image, "--out", out, "--candidates", probable, *HOW)
    assert shown.status == 0, shown.err
    assert seen(out, truth) == [1, 2, 3, 4, 5]


def test_labels_that_are_no_candidates_are_refused(run: Run, rough: Rough, tmp_path: Path) -> None:
    image, _, files = rough
    out = tmp_path / "labels.tif"
    words = ("segment", image, "--out", out, "--candidates")
    assert run(*words[:-1], "--choose", "plain").status == 0
    before = out.read_bytes()
    refused = run(*words, files["few"])
    assert refused.status == 1 and "must be the same" in refused.err
    refused = run(*words, out)
    assert refused.status == 1 and "labels.tif" in refused.err
    for wrong, said in ((image, "is this the image"), (files["yes"], "is a yes/no mask")):
        refused = run(*words, wrong)
        assert refused.status == 1 and said in refused.err
    refused = run(*words, files["one"], "--choose", "plain")
    assert refused.status == 2 and "--choose jointly" in refused.err
    assert out.read_bytes() == before
