"""Repairs made in other programs become answers, and tracking honours them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from trackmate_file import trackmate_text


def links(tracks: bt.Tracks) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """Links as places in the segmentation."""
    nodes = tracks.nodes.set_index("id")
    ends = [list(zip(*(nodes.loc[tracks.edges[e], c] for c in ("frame", "label")), strict=True))
            for e in ("source", "target")]  # fmt: skip
    return set(zip(*ends, strict=True))


def swapped(tracks: bt.Tracks) -> bt.Tracks:
    """The tracks after somebody exchanged where two neighbours of a frame go."""
    nodes, edges = tracks.nodes.set_index("id"), tracks.edges
    moves = edges[edges["event"] == "move"]
    first = moves[nodes.loc[moves["source"], "frame"].to_numpy() == 4]
    place = nodes.loc[first["source"], ["y", "x"]].to_numpy()
    away = np.linalg.norm(place[:, None] - place[None], axis=2) + 1e9 * np.eye(len(place))
    i, j = np.unravel_index(np.argmin(away), away.shape)
    a, b = first.index[i], first.index[j]
    target = edges["target"].copy()
    target[[a, b]] = target[[b, a]].to_numpy()
    return replace(tracks, edges=edges.assign(target=target))


def as_trackmate(tracks: bt.Tracks, path: Path) -> Path:
    """The tracks as TrackMate saves them, with numbers of its own and positions in micrometres."""
    nodes = tracks.nodes
    places = {
        1000 + i: (f, 0.5 * x, 0.25 * y)
        for i, f, x, y in zip(*(nodes[c].tolist() for c in ("id", "frame", "x", "y")), strict=True)
    }
    ends = zip(tracks.edges["source"].tolist(), tracks.edges["target"].tolist(), strict=True)
    path.write_text(trackmate_text(places, [[(1000 + a, 1000 + b) for a, b in ends]]))
    return path


def test_repairs_made_in_trackmate_are_taken_over(run, truth: Path, tmp_path: Path) -> None:
    result = tmp_path / "result"
    assert run("track", truth, "--out", result).status == 0
    before = bt.read_tracks(result / "detections.csv")
    edited = swapped(before)
    file = as_trackmate(edited, tmp_path / "edited.xml")
    out = tmp_path / "answers.json"
    done = run("take-over", result, file, "--out", out, "--json")
    record = json.loads(done.out)
    assert done.status == 0, done.err
    assert record["kinds"] == {"confirm": 2, "reject": 0} and record["unknown"] == 0
    assert links(edited) != links(before)
    again = tmp_path / "again"
    assert run("track", truth, "--annotations", out, "--out", again).status == 0
    assert links(edited) - links(before) <= links(bt.read_tracks(again / "detections.csv"))
    same = run("take-over", result, as_trackmate(before, tmp_path / "same.xml"), "--out", out)
    assert same.status == 1 and "nothing to take over" in same.err
    far = replace(before, nodes=before.nodes.assign(x=before.nodes["x"] + 5000))
    wrong = run("take-over", result, as_trackmate(far, tmp_path / "far.xml"), "--out", out)
    assert wrong.status == 1 and "same movie" in wrong.err
    # How far numbers hang on doubtful events, of the same result.
    told = run("cycles", result, "--samples", "3", "--json")
    spread = json.loads(told.out)["spread"]
    assert spread["samples"] == 3 and spread["divisions"][0] <= spread["divisions"][1]
    refused = run("cycles", result / "detections.csv", "--samples", "3")
    assert refused.status == 1 and "run.json" in refused.err


@pytest.mark.parametrize("deleted", [False, True])
def test_cells_that_are_left_out(deleted: bool, truth: Path) -> None:
    before = bt.track(truth).tracks
    gone = int(before.edges["source"].iloc[0])
    edges = before.edges
    edited = replace(
        before,
        nodes=before.nodes[before.nodes["id"] != gone],
        edges=edges[(edges["source"] != gone) & (edges["target"] != gone)],
    )
    found = bt.corrections(before, edited, deleted=deleted)
    assert found.missing == 1
    kinds = [(a.kind.value, a.events[0].event.key) for a in found.annotations]
    assert kinds == ([("confirm", "false")] if deleted else [])
