"""Scores agree with what py-ctcmetrics and traccuracy say of the same files."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bridgetrack.errors import DependencyError, InputError
from bridgetrack.evaluation.scores import evaluate, quietly
from bridgetrack.io.csv import write_csv
from bridgetrack.io.ctc import CtcTruth, read_ctc, write_ctc
from bridgetrack.io.results import write_results
from bridgetrack.tracks.tracks import assemble_tracks
from lineage_cases import DIVIDING, DIVIDING_ROWS, movie_of, write_ctc_folder
from simulator import SimulationSettings, simulate_to_folder

pytestmark = pytest.mark.usefixtures("quick_scores")

ALL = [
    "edge_precision", "edge_recall", "edge_f1", "division_precision", "division_recall",
    "division_f1", "division_f1_within_1", "complete_tracks", "tra", "det", "lnk", "ct", "tf", "bc",
    "bc_within_1", "bio", "chota",
]  # fmt: skip


@pytest.fixture
def truth(tmp_path):
    """The small dividing movie."""
    pytest.importorskip("ctc_metrics")
    pytest.importorskip("traccuracy")
    folder = tmp_path / "data" / "01_GT" / "TRA"
    return read_ctc(write_ctc_folder(folder, DIVIDING, DIVIDING_ROWS))


def part_of(tracks, cells, edges=None, geometry=None):
    """Some cells, and the edges between them or those that are given."""
    nodes = tracks.nodes[cells].drop(columns=["track_id", "lineage_id"])
    if edges is None:
        ends = tracks.edges[["source", "target"]]
        edges = tracks.edges[ends.isin(nodes["id"].tolist()).all(axis=1)]
    return assemble_tracks(nodes, edges[["source", "target"]], geometry or tracks.geometry)


def damaged(tracks, seed):
    """The same with a tenth of the edges gone and a tenth of the divisions' too."""
    keep = np.random.default_rng(seed).random(len(tracks.edges)) > 0.1
    return part_of(tracks, tracks.nodes["id"] >= 0, tracks.edges[keep])


def test_perfect_is_one(truth):
    scores = evaluate(truth.tracks, truth, labels=truth.labels).to_dict()
    assert {name: scores[name] for name in ALL} == dict.fromkeys(ALL, 1.0)
    assert (scores["n_cells"], scores["n_edges"], scores["n_divisions"]) == (9, 7, 1)


def test_every_kind_of_result(truth, tmp_path):
    folder = truth.labels.source
    write_results(truth.tracks, truth.labels, tmp_path / "out")
    expected = evaluate(truth.tracks, truth, labels=truth.labels)
    assert evaluate(tmp_path / "out", folder) == expected
    assert evaluate(tmp_path / "out" / "ctc", tmp_path / "data") == expected
    for name in ("detections.csv", "tracks.geff"):
        assert evaluate(tmp_path / "out" / name, folder, labels=truth.labels) == expected
    assert evaluate(folder, tmp_path / "out").edge_f1 == 1
    write_csv(truth.tracks, tmp_path / "points")
    points = evaluate(tmp_path / "points", folder)
    assert (points.matching, points.edge_f1, points.tra) == ("distance", 1.0, None)
    assert (points.ct, points.chota) == (1.0, None)


def test_frames_that_a_result_lacks_are_missed(truth):
    shorter = replace(truth.tracks.geometry, n_frames=3, shape=None)  # as tables without cells
    short = part_of(truth.tracks, truth.tracks.nodes["frame"] < 3, geometry=shorter)
    scores = evaluate(short, truth.tracks)
    assert (scores.matching, scores.ct) == ("distance", 2 / 5), "of five tracks two end before"
    assert scores.edge_recall == pytest.approx(4 / 7)
    assert scores.tf < 1


def test_micrometres_against_pixels(truth):
    known = replace(truth.tracks.geometry, scale=(0.5, 0.5), unit="micrometer")
    scaled = replace(truth.tracks, geometry=known)
    assert evaluate(scaled, truth.tracks).edge_f1 == 1.0
    assert evaluate(truth.tracks, scaled).edge_f1 == 1.0
    of_one = replace(truth.tracks, geometry=replace(known, scale=(1.0, 1.0)))
    with pytest.raises(InputError, match="different units"):
        evaluate(of_one, truth.tracks)


def test_a_late_division_counts_within_one_frame(tmp_path, truth):
    nodes = truth.tracks.nodes
    cells = zip(nodes["frame"], nodes["label"], strict=True)
    ids = dict(zip(cells, nodes["id"], strict=True))
    edges = [((0, 1), (1, 1)), ((1, 1), (2, 2)), ((2, 2), (3, 2)), ((2, 2), (3, 3))]
    table = pd.DataFrame([(ids[a], ids[b]) for a, b in edges], columns=["source", "target"])
    late = part_of(truth.tracks, nodes["id"] >= 0, table)
    scores = evaluate(late, truth, labels=truth.labels)
    assert (scores.division_f1, scores.division_f1_within_1) == (0.0, 1.0)
    assert (scores.bc, scores.bc_within_1) == (0.0, 1.0)


def test_sparse_truth_gives_only_what_is_safe(truth):
    sparse = CtcTruth(part_of(truth.tracks, truth.tracks.nodes["label"] != 4), truth.labels)
    scores = evaluate(truth.tracks, sparse, labels=truth.labels, sparse=True).to_dict()
    safe = {"edge_recall", "division_recall", "complete_tracks", "tf"}
    assert {k for k in (*ALL, "cca") if scores[k] is not None} == safe
    assert scores["holds_for_sparse_truth"] == sorted(safe, key=list(scores).index)
    assert all(scores[k] == 1.0 for k in safe)
    full = evaluate(truth.tracks, sparse, labels=truth.labels)
    assert full.edge_precision is not None
    assert full.edge_precision < 1


def test_what_cannot_be_compared(truth, tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        evaluate(tmp_path / "nowhere", truth)
    fewer = movie_of(DIVIDING[:3])
    frame = truth.tracks.nodes["frame"]
    short = part_of(truth.tracks, frame < 3, geometry=fewer.geometry)
    for labels in (fewer, None):
        with pytest.raises(InputError, match=r"3 frames, the ground truth has 4"):
            evaluate(short, truth, labels=labels)
    nothing = part_of(truth.tracks, frame < 0, geometry=fewer.geometry)
    with pytest.raises(InputError, match="no cells"):
        evaluate(nothing, truth, labels=fewer)


def test_missing_packages_are_named(truth, monkeypatch):
    for name in [m for m in sys.modules if m.split(".")[0] == "traccuracy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "traccuracy", None)
    with pytest.raises(DependencyError, match="pip install py-ctcmetrics traccuracy"):
        evaluate(truth.tracks, truth, labels=truth.labels)


def official(result, truth):
    """What py-ctcmetrics says of two folders, read and matched by itself."""
    from ctc_metrics.scripts.evaluate import evaluate_sequence

    metrics = ["Valid", "TRA", "DET", "LNK", "CT", "TF", "BC", "CCA", "CHOTA"]
    values: dict[str, Any] = evaluate_sequence(str(result), str(truth), metrics, threads=1)
    return values


def test_scores_are_the_official_ones(tmp_path):
    pytest.importorskip("ctc_metrics")
    settings = SimulationSettings(frames=12, cells=12, size=120, division_rate=0.05, seed=2)
    truth = read_ctc(simulate_to_folder(settings, tmp_path / "movie").parent / "01_GT")
    assert (truth.tracks.events["event"] == "divide").sum() == 5
    result = damaged(truth.tracks, 1)
    write_ctc(result, truth.labels, tmp_path / "out")
    write_ctc(truth.tracks, truth.labels, tmp_path / "GT" / "TRA")
    (tmp_path / "GT" / "TRA" / "res_track.txt").rename(tmp_path / "GT" / "TRA" / "man_track.txt")
    theirs = official(tmp_path / "out", tmp_path / "GT")
    ours = evaluate(result, truth, labels=truth.labels)
    assert theirs["Valid"] == 1
    assert ours.tra is not None
    assert ours.tra < 1
    names = {"bc": "BC(0)", "bc_within_1": "BC(1)", "bio": "BIO(0)"}
    for field in ("tra", "det", "lnk", "ct", "tf", "bc", "bc_within_1", "cca", "bio", "chota"):
        assert getattr(ours, field) == pytest.approx(theirs[names.get(field, field.upper())])


def test_traccuracy_agrees_on_edges(tmp_path, truth):
    with quietly():
        from traccuracy.loaders import load_ctc_data
        from traccuracy.matchers import CTCMatcher
        from traccuracy.metrics import BasicMetrics

        result = damaged(truth.tracks, 4)
        write_ctc(result, truth.labels, tmp_path / "out")
        write_ctc(truth.tracks, truth.labels, tmp_path / "truth")
        graphs = [load_ctc_data(str(tmp_path / n)) for n in ("truth", "out")]
        theirs = BasicMetrics().compute(CTCMatcher().compute_mapping(*graphs)).results
    ours = evaluate(result, truth, labels=truth.labels)
    assert ours.edge_recall == theirs["Edge Recall"]
    assert ours.edge_recall < 1
    assert ours.edge_precision == theirs["Edge Precision"]
