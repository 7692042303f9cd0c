"""Why a link was chosen, or why not."""

import pandas as pd
import pytest

from bridgetrack.cli.main import main


@pytest.fixture(scope="module")
def result(truth, tmp_path_factory):
    """The small movie, tracked."""
    out = tmp_path_factory.mktemp("tracked") / "out"
    assert main(["track", str(truth), "--out", str(out)]) == 0
    return out


def labels_of(result, event):
    """Frame and label of the source of an event, and labels of its targets."""
    cells = pd.read_csv(result / "detections.csv").set_index("id")
    edges = pd.read_csv(result / "edges.csv")
    edges = edges[edges["event"] == event]
    source = edges["source"].iloc[0]
    targets = edges.loc[edges["source"] == source, "target"]
    return (
        int(cells.loc[source, "t"]),
        int(cells.loc[source, "label"]),
        [int(cells.loc[t, "label"]) for t in targets],
    )


def test_contributions_add_up_to_the_margin(run, result):
    frame, cell, targets = labels_of(result, "divide")
    told = run("explain", result, "--frame", frame, "--cell", cell, "--json").json
    assert told["was_chosen"]
    assert "divides into" in told["event"]
    total = sum(c["contribution"] for c in told["contributions"])
    assert total == pytest.approx(told["margin"])
    assert total > 0
    to = ",".join(map(str, targets))
    asked = run("explain", result, "--frame", frame, "--cell", cell, "--to", to, "--json")
    assert asked.json == told
    for one in targets:
        other = run("explain", result, "--frame", frame, "--cell", cell, "--to", one, "--json").json
        assert not other["was_chosen"]
        assert other["event"] == f"cell {cell} in frame {frame} moves to cell {one}"


def test_labels_or_an_export_of_the_window_in_place_of_a_result(refused, truth, tmp_path):
    cell = ("--frame", 0, "--cell", 1)
    refused(("explain", truth, *cell), "give the folder of a result")
    (tmp_path / "methods.txt").write_text("")
    refused(("explain", tmp_path, *cell), "exported from the window", "bridgetrack run NAME.")


def test_a_result_of_windows_knows_its_alternatives(run, result, truth, tmp_path):
    words = ("--out", tmp_path / "windows", "--window", 9)
    run("track", truth, *words)
    frame, cell, _ = labels_of(result, "divide")
    words = ("--frame", frame, "--cell", cell, "--json")
    whole, parts = (run("explain", r, *words).json for r in (result, tmp_path / "windows"))
    assert parts.pop("contributions") and whole.pop("contributions")
    assert parts["margin"] == pytest.approx(whole["margin"])
    assert parts["alternative"] == whole["alternative"]


@pytest.mark.parametrize(
    ("frame", "cell", "why"),
    [
        (0, 99_999, "no cell with label 99999 in frame 0; its labels are 1, 2, 3"),
        (77, 1, "the movie has the frames 0 to 5"),
    ],
)
def test_a_cell_that_is_not_there(refused, result, frame, cell, why):
    refused(("explain", result, "--frame", frame, "--cell", cell), why)


@pytest.mark.parametrize("text", ['{"input": 3}', "[" * 100_000 + "]" * 100_000])
def test_a_damaged_record(refused, tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    refused(("explain", tmp_path, "--frame", 0, "--cell", 1), "run.json: this is")
