"""Corrections made in other programs become answers, and tracking honours them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from short_sample import short_sample
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


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """True masks of a few frames."""
    return short_sample(tmp_path_factory.mktemp("sample"), 8) / "01_GT" / "TRA"


def test_corrections_made_in_trackmate_become_answers(truth: Path, tmp_path: Path) -> None:
    before = bt.track(truth).tracks
    edited = swapped(before)
    found = bt.corrections(before, bt.read_tracks(as_trackmate(edited, tmp_path / "edited.xml")))
    assert [a.kind.value for a in found.annotations] == ["confirm"] * 2 and not found.unknown
    again = bt.track(truth, annotations=found.annotations).tracks
    assert links(edited) != links(before)
    assert links(edited) - links(before) <= links(again)
    far = replace(before, nodes=before.nodes.assign(x=before.nodes["x"] + 5000))
    with pytest.raises(bt.BridgetrackError):
        bt.corrections(before, bt.read_tracks(as_trackmate(far, tmp_path / "far.xml")))


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
