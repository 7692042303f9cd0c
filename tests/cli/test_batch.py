"""``bridgetrack batch``: every movie of a folder with one model."""

import json

import numpy as np
import pandas as pd
import pytest
import tifffile

from cli.conftest import content, write_tiff
from drawn_movie import drawn


@pytest.fixture
def many(movie, truth, tmp_path):
    """A folder with a raw movie, masks, one with its masks, and a damaged one."""
    folder = tmp_path / "many"
    (folder / "raw").mkdir(parents=True)
    images = [tifffile.imread(p) for p in sorted((movie / "01").glob("*.tif"))]
    labels = np.stack([tifffile.imread(p) for p in sorted(truth.glob("*.tif"))])
    for t, image in enumerate(images[:3]):
        tifffile.imwrite(folder / "raw" / f"t{t:03d}.tif", image)
    tifffile.imwrite(folder / "both.tif", np.stack(images)[::3], photometric="minisblack")
    tifffile.imwrite(folder / "both_masks.tif", labels[::3], photometric="minisblack")
    tifffile.imwrite(folder / "masks.tif", labels, photometric="minisblack")
    (folder / "damaged.tif").write_text("no movie")
    (folder / "notes.txt").write_text("looked at on Monday, with care")
    (folder / "notes.csv").write_text("who,when,what\nEve,Monday,with care\n")
    (folder / "01_GT").mkdir()
    return folder


def test_a_folder_of_movies(tried, many, tmp_path):
    out = tmp_path / "out"
    before = content(many)
    how = ("--choose", "plain", "--diameter", 20)
    words = ("batch", many, "--out", out, *how)
    shown = tried(*words, "--json")
    assert shown.status == 1
    assert shown.err.startswith("error: 1 of 4 movies failed\ndamaged: ")
    said = shown.json
    assert len(said["notes"]) == 1 and "positions" in said["notes"][0]
    assert said["notes"][0].endswith(": notes.csv")
    table = pd.read_csv(out / "batch.csv")
    assert [m["movie"] for m in said["movies"]] == list(table["movie"])
    assert table["movie"].iloc[-1] == "damaged"
    assert "damaged.tif" in table["problem"].iloc[-1]
    good = table.iloc[:-1].set_index("movie")
    assert set(good.index) == {"raw", "both", "masks"}
    assert good["certainty"].is_monotonic_increasing
    assert not (out / "damaged").exists()
    for name in good.index:
        record = json.loads((out / name / "run.json").read_text())
        assert record["counts"]["cells"] == good.loc[name, "cells"] > 0
        assert record["counts"]["divide"] == good.loc[name, "divisions"]
        assert (out / name / "labels.tif").is_file() == (name == "raw")
    assert "found by Bridgetrack" in (out / "raw" / "methods.txt").read_text(encoding="utf-8")
    assert content(many) == before
    (out / "raw" / "tracks.csv").write_text("mine")
    divided = json.loads((out / "masks" / "run.json").read_text())["counts"]["divide"]
    little = tried("batch", many, "--out", tmp_path / "little", "--memory", "1MB", *how)
    assert "4 of 4 movies failed" in little.err
    assert [line.partition(":")[0] for line in little.err.splitlines()[1:]] == [
        "both", "damaged", "masks", "raw"
    ]  # fmt: skip
    assert "need about" in little.err
    again = tried(*words, "--without", "divide", "--memory", "900GB")
    assert "2 of 4 movies failed" in again.err, "what somebody changed is not written over"
    assert (out / "raw" / "tracks.csv").read_text() == "mine"
    record = json.loads((out / "masks" / "run.json").read_text())
    assert record["settings"]["without"] == ["divisions"]
    assert record["settings"]["memory"] == "900GB"
    assert record["counts"]["divide"] == 0 < divided


def test_masks_that_were_brought_along_are_repaired_on_demand(run, tmp_path):
    seen, truth = drawn()
    truth[1][truth[1] == 2] = 1
    (tmp_path / "many").mkdir()
    cells = truth.astype(np.uint16)
    image = write_tiff(tmp_path / "many" / "both.tif", seen.astype(np.float32))
    write_tiff(tmp_path / "many" / "both_labels.tif", cells)
    write_tiff(tmp_path / "many" / "masks.tif", cells)
    shown = run("batch", image.parent, "--repair", "--out", tmp_path / "out", "--json")
    words = ("--repair", "--image", image, "--out", tmp_path / "alone")
    run("track", tmp_path / "many" / "both_labels.tif", *words)
    known = [tmp_path / place for place in ("alone", "out/both")]
    told = [(place / "repairs.csv").read_text() for place in known]
    assert told[0] == told[1] and "1,cut,1," in told[0]
    records = [json.loads((place / "run.json").read_text()) for place in known]
    assert records[0]["repair"] == records[1]["repair"]
    rows = {row["movie"]: row for row in shown.json["movies"]}
    assert "masks were not repaired" in rows["masks"]["warnings"]
    assert (rows["both"]["cells"], rows["masks"]["cells"]) == (20, 19)
    assert not rows["both"]["warnings"]


def test_folders_that_cannot_be_tracked(refused, many, tmp_path):
    for words, said in (
        ((many, "--out", many), "results need a folder of their own"),
        ((many / "raw", "--out", tmp_path / "x"), "this folder is itself a movie"),
        ((many / "01_GT", "--out", tmp_path / "x"), "there are no movies in this folder"),
        ((tmp_path / "gone", "--out", tmp_path / "x"), "there is no such folder"),
        ((many / "masks.tif", "--out", tmp_path / "x"), "this is a file; give the folder that"),
        ((many, "--out", tmp_path / "x", "--labels", many / "01_GT"), "there are no masks in"),
    ):
        refused(("batch", *words), said)
