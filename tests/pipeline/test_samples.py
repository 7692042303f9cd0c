"""Solutions sampled around the best one, against all solutions of a small scene."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.errors import InputError
from bridgetrack.pipeline.samples import sampled_tracks
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.cycles import cycle_spread


@pytest.fixture(scope="module")
def tracking() -> Tracking:
    """Two cells between two others: who comes from whom is a matter of taste."""
    frames = np.zeros((2, 24, 40), dtype=np.uint8)
    frames[0, 4:10, 10:16], frames[0, 4:10, 24:30] = 1, 2
    frames[1, 14:20, 16:22], frames[1, 5:11, 26:32] = 1, 2
    return bt.track(frames, axes="TYX")


def solutions(tracking: Tracking) -> list[tuple[int, ...]]:
    """All choices of hypotheses that cover every slot once, by trying every one."""
    rows = [set(r.indices.tolist()) for r in tracking.scene.problem.incidence]
    slots = tracking.scene.problem.n_slots
    by_slot = [[c for c, r in enumerate(rows) if s in r] for s in range(slots)]
    found = set()
    for pick in product(*by_slot):
        chosen = tuple(sorted(set(pick)))
        if sum(len(rows[c]) for c in chosen) == slots:
            found.add(chosen)
    return sorted(found)


def cells_of(tracks: bt.Tracks) -> dict[int, frozenset[int]]:
    """Cells of every track."""
    return {k: frozenset(ids) for k, ids in tracks.nodes.groupby("track_id")["id"]}


def test_each_sample_is_the_best_of_all_under_its_scores(tracking, monkeypatch) -> None:
    from bridgetrack.pipeline import samples as module

    every = solutions(tracking)
    assert 3 < len(every) < 2000
    seen = []
    choose = module.choose_events

    def noting(scene, scores, allowed):
        found = yield from choose(scene, scores, allowed)
        seen.append((scores, tuple(np.flatnonzero(found.chosen).tolist())))
        return found

    monkeypatch.setattr(module, "choose_events", noting)
    drawn = bt.run(sampled_tracks(tracking, 40, seed=1, temperature=3.0))
    for scores, chosen in seen:
        best = max(every, key=lambda c: scores[list(c)].sum())
        assert chosen == best
    assert len(Counter(chosen for _, chosen in seen)) > 1, "solutions differ"
    spread = cycle_spread(drawn)
    divisions = [int((t.events["event"] == "divide").sum()) for t in drawn]
    assert spread.table["divisions"].tolist() == divisions
    low, high = spread.interval("divisions")
    assert min(divisions) <= low <= high <= max(divisions)
    assert "40 solutions" in spread.words
    found = bt.track_spread(tracking.tracks, drawn)
    own = cells_of(tracking.tracks)
    for track, share in zip(found["track_id"], found["same_in_samples"], strict=True):
        assert share == np.mean([own[track] in cells_of(t).values() for t in drawn])
    assert 0 < found["same_in_samples"].min() < 1
    assert (found["shortest [frames]"] <= found["longest [frames]"]).all()
    assert bt.track_spread(tracking.tracks, []).empty
    again = bt.run(sampled_tracks(tracking, 3, seed=1, temperature=3.0))
    assert [t.events.equals(u.events) for t, u in zip(again, drawn, strict=False)] == [True] * 3


def test_without_noise_the_best_comes_back(tracking) -> None:
    (only,) = bt.run(sampled_tracks(tracking, 1, temperature=1e-9))
    assert only.events["event"].tolist() == tracking.tracks.events["event"].tolist()
    with pytest.raises(InputError, match="one sample or more"):
        bt.run(sampled_tracks(tracking, 0))
