"""The main job from the command line, and the same for a project."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bridgetrack.io.csv import read_tracks_csv
from bridgetrack.models.model import untrained_model
from bridgetrack.pipeline.runs import given_run
from cli.conftest import project_of


def test_labels_to_tables(run, movie, truth, tmp_path):
    out = tmp_path / "out"
    shown = run("track", truth, "--image", movie / "01", "--out", out, "--format", "csv,ctc,geff")
    record = json.loads((out / "run.json").read_text())
    assert sorted(p.name for p in out.iterdir()) == sorted([*record["files"], "run.json"])
    assert {"detections.csv", "edges.csv", "events.csv", "ctc", "tracks.geff"} <= set(
        record["files"]
    )
    counts = record["counts"]
    assert f"{counts['cells']} cells in 6 frames: {counts['tracks']} tracks" in shown.out
    assert "least certain" in shown.out
    assert str(out) in shown.out
    tracks = read_tracks_csv(out / "detections.csv")
    assert tracks.n_tracks == counts["tracks"]
    assert len(tracks.nodes) == counts["cells"]
    assert (tracks.edges["event"] == "divide").sum() == 2 * counts["divide"] > 0


def test_record_says_how_it_was_made(run, movie, truth, tmp_path):
    out = tmp_path / "out"
    how = ("--frame-interval", "7", "--scale", "2,2", "--without", "merges,skip")
    record = run("track", truth, "--out", out, "--json", *how).json
    assert record == json.loads((out / "run.json").read_text())
    assert record["geometry"]["scale"] == [2, 2]
    assert record["geometry"]["unit"] == "micrometer"
    assert record["geometry"]["frame_interval_minutes"] == 7
    assert Path(record["input"]["labels"]) == truth
    assert record["input"]["image"] is None
    assert record["model"]["name"] == "shipped"
    assert record["inference"]["gap"] < 1e-6 * abs(record["inference"]["objective"])
    assert set(record["versions"]) >= {"python", "bridgetrack", "numpy", "mip"}
    assert record["seconds"] > 0
    assert record["settings"]["without"] == ["gaps", "merges"]
    assert any("no image" in note for note in record["notes"])
    methods = " ".join((out / "methods.txt").read_text(encoding="utf-8").split())
    assert "Excluded beforehand: cells missed in some frames, merges." in methods
    assert "(moves, appearances, disappearances, divisions, cells split into two masks" in methods
    options = given_run(out).options
    assert (options.scale, options.frame_interval) == ((2.0, 2.0), 7.0)
    assert options.without == ("gaps", "merges")
    # Earlier versions wrote the scale as one text, and fewer settings.
    earlier = {"scale": "2.0,2.0", "frame_interval": 7.0, "without": ["gaps", "merges"]}
    (out / "run.json").write_text(json.dumps(record | {"settings": earlier}))
    assert given_run(out).options == options


def test_masks_in_place_of_the_image_and_a_replaced_result_are_told(run, truth, tmp_path):
    shown = run("track", truth, "--image", truth, "--out", tmp_path / "out")
    assert "this image's pixels look like the numbers of cells" in shown.out
    assert "was replaced" not in shown.out
    again = run("track", truth, "--out", tmp_path / "out").out
    assert "note: The earlier result in this folder was replaced." in again


def test_a_table_of_detections_will_do(run, truth, tmp_path):
    first = run("track", truth, "--out", tmp_path / "one", "--json")
    cells = pd.read_csv(tmp_path / "one" / "detections.csv")[["t", "y", "x"]]
    cells["id"] = range(7000, 7000 + len(cells))
    cells.to_csv(tmp_path / "points.csv", index=False)
    record = run("track", tmp_path / "points.csv", "--out", tmp_path / "two", "--json").json
    assert record["counts"]["cells"] == first.json["counts"]["cells"]
    assert record["counts"]["move"] > 0
    tracked = pd.read_csv(tmp_path / "two" / "detections.csv")
    assert sorted(tracked["file_id"]) == cells["id"].tolist()
    assert any("table of detections" in note for note in record["notes"])


def test_a_record_takes_the_place_of_another(run, truth, clicks, tmp_path):
    out, model = tmp_path / "out", replace(untrained_model(), name="of the project")
    how = {"model": model, "formats": ("csv", "geff")}
    project = project_of(truth, clicks, tmp_path / "p.bridgetrack", **how)
    run("track", truth, "--out", out, "--format", "csv,ctc")
    assert (out / "ctc").is_dir(), "a record of another command, to be replaced"
    shown = run("run", project, "--out", out, "--json")
    record = json.loads((out / "run.json").read_text())
    assert shown.json.items() >= record.items()
    assert record["command"] == "run"
    assert record["input"]["project"] == str(project)
    assert record["input"]["labels"] == str(truth)
    assert record["model"]["name"] == "of the project"
    assert record["annotations"]["given"] > 5
    assert sorted([*record["files"], "run.json"]) == sorted(p.name for p in out.iterdir())
    # What explains its events tracks the project again.
    least = shown.json["least_certain"][0]
    (frame, label), *_ = least["cells"]
    words = ("--frame", frame, "--cell", label, "--event", least["event"])
    told = run("explain", out, *words, "--json").json
    assert told["was_chosen"]
    assert told["margin"] == pytest.approx(least["margin"], abs=1e-6)
    run("track", truth, "--out", out)
    record = json.loads((out / "run.json").read_text())
    assert (record["command"], record["input"]["project"]) == ("track", None)
    assert not (out / "tracks.geff").exists()
