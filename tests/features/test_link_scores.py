"""Scores that another program gave to links count, are learned, and are missed where they lack."""

import json
import shutil
from dataclasses import replace

import geff_spec
import numpy as np
import pandas as pd
import pytest
from geff.core_io import write_arrays

import bridgetrack as bt
from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.history import AnswerHistory
from bridgetrack.cli.main import main
from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.geff import write_geff
from bridgetrack.io.results import read_link_scores
from bridgetrack.models.model import model_to_json
from bridgetrack.pipeline.project import MovieFile, Project, save_project

FRAMES, PAIRS = 6, 5
LACKING = "trained with link scores of another program"


@pytest.fixture
def cells(tmp_path):
    """Pairs of cells that exchange their places from frame to frame; a tracker sees none move."""
    rows = [
        (t, 30.0 + 2 * np.sin(5 * t + k), 60.0 * k + 4.0 * ((side + t) % 2), 2 * k + side + 1)
        for t in range(FRAMES)
        for k in range(PAIRS)
        for side in (0, 1)
    ]
    path = tmp_path / "cells.csv"
    table = pd.DataFrame(rows, columns=["t", "y", "x", "label"]).assign(area=80.0)
    table.to_csv(path, index=False)
    return path


@pytest.fixture
def scores(tmp_path):
    """What somebody else knows: who exchanged places with whom."""
    rows = []
    for t in range(FRAMES - 1):
        for k in range(PAIRS):
            one, two = 2 * k + 1, 2 * k + 2
            rows += [(t, one, one, 0.97), (t, two, two, 0.97), (t, one, two, 0.03)]
            rows.append((t, two, one, 0.03))
    path = tmp_path / "scores.csv"
    pd.DataFrame(rows, columns=["Frame", "Source", "Target", "Score"]).to_csv(path, index=False)
    return path


def followed(tracking):
    """Share of links that keep the label."""
    nodes = tracking.tracks.nodes.set_index("id")["label"]
    edges = tracking.tracks.edges
    return float(np.mean(nodes[edges["source"]].to_numpy() == nodes[edges["target"]].to_numpy()))


def test_scores_count(cells, scores):
    assert followed(bt.track(cells)) <= 0.1
    table = pd.read_csv(scores)
    table.loc[0, "Score"] = 1  # counts as 4
    table.to_csv(scores, index=False)
    scored = bt.track(cells, link_scores=scores)
    assert followed(scored) >= 0.9
    column = scored.scene.matrix.features.keys.index("move.link_score")
    logits = scored.scene.matrix.sparse()[:, column].data
    assert set(logits.round(3)) == {4.0, *np.log([0.97 / 0.03, 0.03 / 0.97]).round(3)}
    assert followed(bt.track(cells, link_scores=scores, window=3)) == followed(scored)


def test_scores_of_trackastra(cells, scores):
    """Its links may skip frames."""
    table = pd.read_csv(scores)
    table.columns = ["source_frame", "source_label", "target_label", "weight"]
    near = table.assign(target_frame=table["source_frame"] + 1)
    far = near.assign(target_frame=near["target_frame"] + 1)
    pd.concat([near, far]).to_csv(scores, index=False)
    with pytest.warns(BridgetrackWarning, match="100 of 200 links do not end in the next frame"):
        assert followed(bt.track(cells, link_scores=scores)) >= 0.9


def candidates(folder, cells, scores, *, labels=False, alone=""):
    """A store as HOCT writes it (``hoct track --full-graph``); its cells have no labels.

    Nodes are in no order, edges also skip a frame, and one that was not scored has -1. With
    `alone`, the score has this name and edges have no other property.
    """
    nodes = pd.read_csv(cells).sample(frac=1, random_state=0).reset_index(drop=True)
    row = {key: k for k, key in enumerate(zip(nodes["t"], nodes["label"], strict=True))}
    links = [
        (row[t, one], row[t + 1, two], score, 1.0)
        for t, one, two, score in pd.read_csv(scores).itertuples(index=False, name=None)
    ]
    links += [(row[0, 1], row[2, 1], 0.9, 2.0), (row[0, 1], row[1, 9], -1.0, 1.0)]
    table = pd.DataFrame(links, columns=["source", "target", "similarity", "delta_t"])
    node_props = {name: nodes[name].to_numpy() for name in ("t", "y", "x")}
    node_props |= {"z": np.zeros(len(nodes)), "bbox": np.zeros((len(nodes), 6), dtype=np.int64)}
    node_props |= {"label": nodes["label"].to_numpy()} if labels else {}
    edge_props = {
        "distance": np.full(len(table), 4.0),
        "delta_t": table["delta_t"].to_numpy(np.float32),
        "similarity": table["similarity"].to_numpy(np.float32),
        "solution": np.ones(len(table), dtype=bool),
    }
    edge_props = {alone: edge_props["similarity"]} if alone else edge_props
    axes = [geff_spec.Axis(name=n, type="space" if n != "t" else "time") for n in "tzyx"]
    metadata = geff_spec.GeffMetadata(
        directed=True, axes=axes, node_props_metadata={}, edge_props_metadata={}
    )

    def props(found):
        return {name: {"values": values, "missing": None} for name, values in found.items()}

    ends = table[["source", "target"]].to_numpy(np.uint64)
    ids = np.arange(len(nodes), dtype=np.uint64)
    write_arrays(folder, ids, props(node_props), ends, props(edge_props), metadata)
    return folder


@pytest.mark.parametrize(("labels", "alone"), [(False, ""), (True, ""), (False, "trust")])
def test_scores_of_hoct(cells, scores, tmp_path, labels, alone):
    store = candidates(tmp_path / "full.geff", cells, scores, labels=labels, alone=alone)
    with pytest.warns(BridgetrackWarning, match="1 of 101 links do not end in the next frame"):
        scored = bt.track(cells, link_scores=store)
    assert followed(scored) >= 0.9
    same = bt.track(cells, link_scores=scores).tracks
    pd.testing.assert_frame_equal(scored.tracks.edges, same.edges, rtol=1e-6)


def test_stores_without_scores(cells, scores, tmp_path):
    elsewhere = tmp_path / "elsewhere.csv"
    pd.read_csv(cells).assign(y=lambda table: table["y"] + 2).to_csv(elsewhere, index=False)
    store = candidates(tmp_path / "moved.geff", elsewhere, scores)
    with (
        pytest.warns(BridgetrackWarning, match="next frame"),
        pytest.raises(InputError, match=r"100 of 100 links name cells .* positions"),
    ):
        bt.track(cells, link_scores=store)
    tracks = bt.track(cells).tracks
    edges = tracks.edges.rename(columns={"score": "cost"})
    for named, numbers in ((edges, "'cost', 'margin"), (edges[["source", "target"]], "none")):
        write_geff(replace(tracks, edges=named), tmp_path / "other.geff")
        with pytest.raises(InputError, match=f"its numbers are {numbers}"):
            read_link_scores(tmp_path / "other.geff")
        shutil.rmtree(tmp_path / "other.geff")


def test_on_the_command_line(cells, scores, tmp_path, capsys):
    answers = AnnotationSet(bt.track(cells).tracks.geometry)
    place = pd.read_csv(cells).set_index(["t", "label"])[["y", "x"]]

    def ref(t, label):
        y, x = place.loc[(t, label)]
        return CellRef(t, label, (float(y), float(x)))

    for t in range(4):
        for label in (1, 4, 5):
            event = EventRef(Event.MOVE, (ref(t, label),), (ref(t + 1, label),))
            new = Annotation(f"a{t}-{label}", Kind.CONFIRM, (event,))
            answers = answers.edit(add=[new])
    bt.save_annotations(answers, tmp_path / "a.json")
    model, out = tmp_path / "m.json", tmp_path / "out"
    # So little said that only a learned weight follows it.
    faint = pd.read_csv(scores).assign(Score=lambda table: 0.5 + 0.1 * (table["Score"] - 0.5))
    faint.to_csv(scores, index=False)
    given = ["--link-scores", str(scores)]
    words = ["train", str(cells), "--annotations", str(tmp_path / "a.json"), "--out", str(model)]
    assert main([*words, "--lambda", "1", *given]) == 0
    learned = dict(zip(bt.load_model(model).keys, bt.load_model(model).weights, strict=True))
    assert "move.link_score" in learned
    track = ["track", str(cells), "--model", str(model), "--out", str(out)]
    capsys.readouterr()
    assert main([*track, *given, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["input"]["link_scores"] == str(scores)
    assert not any("link scores" in note or "scores that" in note for note in record["notes"])
    assert main(["explain", str(out), "--frame", "0", "--cell", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["event"].startswith("cell 1 in frame")
    suggest = ["suggest", str(cells), "--model", str(model), "--count", "3", "--json"]
    assert main([*suggest, *given]) == 0
    with_scores = json.loads(capsys.readouterr().out)
    assert not any("link scores" in note for note in with_scores["notes"])
    assert main(suggest) == 0
    without = json.loads(capsys.readouterr().out)
    assert any(LACKING in note for note in without["notes"])
    assert without["suggestions"] != with_scores["suggestions"]
    history = AnswerHistory(answers, settings={"model": model_to_json(bt.load_model(model))})
    project = Project(MovieFile(cells), None, answers.geometry, history)
    save_project(project, tmp_path / "cells.bridgetrack")
    (tmp_path / "many").mkdir()
    shutil.copy(cells, tmp_path / "many")
    for words in (
        track,
        ["run", str(tmp_path / "cells.bridgetrack"), "--out", str(tmp_path / "of project")],
        ["batch", str(tmp_path / "many"), "--model", str(model), "--out", str(tmp_path / "all")],
    ):
        assert main(words) == 0
        assert LACKING in capsys.readouterr().out
    with pytest.warns(BridgetrackWarning, match=r"move\.link_score, divide\.link_score"):
        bt.track(cells, model=model)


def test_scores_that_cannot_be_used(cells, scores, tmp_path):
    text, wrong = scores.read_text(), tmp_path / "wrong.csv"
    for changed, said in (
        (text.replace("Score", "Cost"), "there is no column score"),
        (text.replace("0.97", "7", 1), "the score 7 is no probability"),
        (text.replace("0.97", "x", 1), r"wrong.csv, row 2, column 'Score': 'x' is not a number"),
        (text + "0,1,1,0.5\n", "cell 1 in frame 0 to cell 1 is scored twice"),
        ("Frame,Source,Target,Score\n900,1,1,0.5\n", "1 of 1 links name cells"),
    ):
        wrong.write_text(changed)
        with pytest.raises(InputError, match=said):
            bt.track(cells, link_scores=wrong)
    wrong.write_text(text.replace("\n0,", "\n900,"))
    with pytest.warns(BridgetrackWarning, match="20 of 100"):  # most of them fit
        bt.track(cells, link_scores=wrong)
