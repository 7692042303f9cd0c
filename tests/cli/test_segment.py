"""Finding cells, also with what other programs say, and the whole way on the sample movie."""

import itertools
import json
import shutil
import sys
from typing import Any

import numpy as np
import pytest
import tifffile
from scipy import ndimage as ndi

import bridgetrack as bt
from bridgetrack.annotations.files import load_annotations
from bridgetrack.cli.console import Answer
from bridgetrack.models.model import load_model
from bridgetrack.movie.opening import open_labels
from bridgetrack.pipeline.finding import how_found
from cli.conftest import write_tiff
from drawn_movie import ringed, textured
from fake_networks import cellpose_that
from short_sample import busy_part


def test_segment_a_stack_and_a_folder(run, refused, few, tmp_path):
    how = ("--diameter", 22, "--choose", "plain")
    result = run("segment", few, "--out", tmp_path / "labels.tif", *how, "--json").json
    assert len(result["cells"]) == result["frames"] == 4
    assert min(result["cells"]) >= 8
    labels = tifffile.imread(tmp_path / "labels.tif")
    assert labels.shape == (4, 160, 160)
    assert [int(frame.max()) for frame in labels] == result["cells"]
    refused(("segment", few, "--out", tmp_path / "x", "--channel", 7), "7")
    folder = run("segment", few, "--out", tmp_path / "masks", *how)
    assert str(tmp_path / "masks") in folder.out
    assert len(list((tmp_path / "masks").glob("mask*.tif"))) == 4


def test_cells_go_through_ome_zarr(run, tried, few, tmp_path):
    labels = tmp_path / "cells.ome.zarr"
    how = ("--choose", "plain", "--diameter", 22)
    words = ("segment", few, "--out", labels, *how)
    for _ in range(2):  # what was written here is replaced
        run(*words)
    assert (tmp_path / "cells.run.json").is_file()
    run("segment", few, "--out", tmp_path / "cells.tif", *how)
    np.testing.assert_array_equal(
        np.asarray(open_labels(labels).array[:, 0]), tifffile.imread(tmp_path / "cells.tif")
    )
    run("track", labels, "--out", tmp_path / "result", "--format", "csv,ctc")
    tracks = open_labels(tmp_path / "result" / "ctc")
    assert tracks.n_frames == 4 and tracks.channel_frame(3).any()
    (labels / "zarr.json").write_text("{}")
    assert "changed since Bridgetrack wrote it" in tried(*words).err


@pytest.fixture
def few(movie, tmp_path_factory):
    """The first four images of the small movie."""
    folder = tmp_path_factory.mktemp("few")
    for path in sorted((movie / "01").glob("*.tif"))[:4]:
        shutil.copy(path, folder / path.name)
    return folder


def test_the_network_is_told_of_without_its_folder(run, few, truth, tmp_path, monkeypatch):
    masks = itertools.cycle(tifffile.imread(p) for p in sorted(truth.glob("*.tif"))[:4])
    cellpose_that(monkeypatch, lambda _: next(masks))
    labels, mine = tmp_path / "labels.tif", tmp_path / "weights" / "mine"
    words = ("--backend", "cellpose", "--network", mine, "--out", labels)
    run("segment", few, *words)
    found = how_found(labels)
    assert found is not None and found.network == str(mine)
    assert found.words == "by cellpose (mine)"
    run("track", labels, "--out", tmp_path / "result")
    methods = " ".join((tmp_path / "result" / "methods.txt").read_text().split())
    assert "found by Bridgetrack, by cellpose (mine)" in methods


def test_readings_that_disagree_are_told_and_kept(run, tmp_path):
    image, out = write_tiff(tmp_path / "ringed.tif", ringed()), tmp_path / "labels.tif"
    words = ("segment", image, "--out", out, "--choose", "plain")
    shown = run(*words)
    assert "warning: cells are taken as structured and 19 pixels wide, but dark and" in shown.out
    assert "if it is wrong give look and size (--foreground, --diameter)" in shown.out
    record = json.loads((tmp_path / "labels.run.json").read_text())
    first, second = record["readings"]
    assert (first["foreground"], second["foreground"]) == ("texture", "dark")
    assert first["diameter"] == record["settings"]["diameter"]
    assert (first["cells"], first["again"], first["likely"]) == (9, 1.0, True)
    assert first["worth"] > second["worth"] > first["worth"] / 1.5
    # What is said is not tried, and not in doubt.
    shown = run(*words, "--foreground", "bright", "--diameter", 12)
    assert "warning" not in shown.out
    [only] = json.loads((tmp_path / "labels.run.json").read_text())["readings"]
    assert (only["foreground"], only["diameter"], only["cells"]) == ("bright", 12, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_scores")
def test_demo_goes_the_whole_way(run, tmp_path, monkeypatch):
    sample, out = busy_part(tmp_path / "sample"), tmp_path / "demo"
    monkeypatch.setattr("bridgetrack.cli.track.sample_folder", lambda: sample)
    clicks = len(load_annotations(sample / "annotations.json"))
    assert clicks >= 5
    result = run("demo", "--out", out, "--json").json
    before, after = result["scores"].values()
    assert 0.8 < before["edge_f1"] <= after["edge_f1"]
    assert 0.8 < before["tra"] <= after["tra"]
    # They are about the cells that are found today: else sample_data/README.md says how to renew
    # them.
    answers = result["run"]["annotations"]
    assert (answers["used"], answers["lost"], answers["unused"]) == (clicks, [], [])
    assert load_model(out / "model.json").keys
    for name in ("detections.csv", "ctc", "tracks.geff", "lineages.svg", "run.json"):
        assert (out / "result" / name).exists()


@pytest.mark.parametrize("lacking", ["traccuracy", "ctc_metrics"])
def test_demo_without_the_packages_of_scores(run, tmp_path, monkeypatch, lacking):
    """As after an installation without extras; the steps before are those of other tests."""
    monkeypatch.setitem(sys.modules, lacking, None)
    for step in ("segment", "track", "train"):
        done = Answer({}, [f"{step} done"])
        monkeypatch.setattr(f"bridgetrack.cli.track.{step}", lambda *_, done=done: done)
    shown = run("demo", "--out", tmp_path / "demo")
    assert "track done" in shown.out
    assert "scores need the packages py-ctcmetrics and traccuracy; run: pip" in shown.out


HOW = ("--diameter", 14, "--foreground", "bright")


@pytest.fixture
def rough(tmp_path):
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


def seen(labels, truth):
    """True cells that masks cover, in all frames."""
    found = tifffile.imread(labels) > 0
    return [k for k in range(1, 6) if found[truth == k].mean() > 0.8]


def test_cells_of_other_programs_are_candidates(run, rough, tmp_path):
    image, truth, files = rough
    out = tmp_path / "labels.tif"
    words = ("segment", image, "--out", out, *HOW)
    run(*words)
    assert seen(out, truth) == [1, 2, 3, 5]
    two = ("--candidates", files["others"], files["one"])
    run(*words, *two)
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
    assert "with masks from other programs" in found.words


def test_cells_of_a_map_of_probabilities_are_candidates(run, rough, tmp_path):
    """It is a picture in which cells are bright."""
    image, truth, files = rough
    out, probable = tmp_path / "labels.tif", tmp_path / "probable.tif"
    run("segment", files["bytes"], "--out", probable, *HOW)
    assert seen(probable, truth) == [1, 2, 3, 4, 5]
    run("segment", image, "--out", out, "--candidates", probable, *HOW)
    assert seen(out, truth) == [1, 2, 3, 4, 5]


def test_labels_that_are_no_candidates_are_refused(run, refused, rough, tmp_path):
    image, _, files = rough
    out = tmp_path / "labels.tif"
    words = ("segment", image, "--out", out, "--candidates")
    run(*words[:-1], "--choose", "plain")
    for wrong, said in (
        (files["few"], "must be the same"),
        (out, "labels.tif"),
        (image, "is this the image"),
        (files["yes"], "is a binary mask"),
    ):
        refused((*words, wrong), said)
    refused((*words, files["one"], "--choose", "plain"), "--choose jointly")
