"""From labels to tracks, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotations.annotation_cases import ref
from bridgetrack import track
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.table import Detections
from bridgetrack.errors import ContradictionError, InputError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import Feature
from bridgetrack.files import sample_folder
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference import solver
from bridgetrack.io.tables import read_detections_csv
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels, open_movie
from bridgetrack.pipeline.scene import prepare
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import track_steps
from bridgetrack.progress import Progress, run
from gallery import BY_NAME, GALLERY, Situation, movie_of
from scenes import events_of

EASY = [s for s in GALLERY if not s.hard]
HARD = [s for s in GALLERY if s.hard]


def cells_of(tracking: Tracking) -> set[frozenset[int]]:
    nodes = tracking.tracks.nodes
    return {frozenset(group["id"].tolist()) for _, group in nodes.groupby("track_id")}


def annotated(detections: Detections, *annotations: Annotation) -> AnnotationSet:
    return AnnotationSet(detections.geometry, annotations)


@pytest.mark.parametrize("situation", EASY, ids=[s.name for s in EASY])
def test_easy_situations_without_training(situation: Situation) -> None:
    result = track(situation.movie)
    assert cells_of(result) == set(situation.expected_cells(result.scene.detections))


@pytest.mark.parametrize("situation", HARD, ids=[s.name for s in HARD])
def test_hard_situations_with_the_answer_pinned(situation: Situation) -> None:
    """The untrained weights prefer something else (`Situation.hard` says what)."""
    plain = track(situation.movie)
    detections = plain.scene.detections
    expected = set(situation.expected_cells(detections))
    assert cells_of(plain) != expected, "not hard any more: move it to the easy ones"
    true = [e for e in situation.true_events(detections) if e[0] not in (Event.MOVE,)]
    refs = [ref(detections, *event) for event in true]
    named = [Annotation(f"a{k}", Kind.CONFIRM, (event,)) for k, event in enumerate(refs)]
    result = track(situation.movie, annotations=annotated(detections, *named))
    assert cells_of(result) == expected
    listed = result.tracks.events[["event", "sources", "targets"]].itertuples(index=False)
    assert set(true) <= {(Event.from_key(e), before, after) for e, before, after in listed}


def test_a_pinned_event_that_was_not_proposed() -> None:
    situation = BY_NAME["two cells pass each other"]
    plain = track(situation.movie)
    d = plain.scene.detections
    far = (0, d.rows(2).start - 1)
    assert (Event.MOVE, (far[0],), (far[1],)) not in events_of(plain.scene.hypotheses)
    pin = Annotation("a1", Kind.CONFIRM, (ref(d, Event.MOVE, far[:1], far[1:]),))
    result = track(situation.movie, annotations=annotated(d, pin))
    edges = set(zip(result.tracks.edges["source"], result.tracks.edges["target"], strict=True))
    assert far in edges
    assert result.solution.value < plain.solution.value


def test_a_rejected_event_does_not_come_back() -> None:
    situation = BY_NAME["a division"]
    plain = track(situation.movie)
    d = plain.scene.detections
    mother = (situation.row(d, 1, "A"),)
    daughters = tuple(situation.row(d, 2, c) for c in "bc")
    division = (Event.DIVIDE, mother, daughters)
    assert "divide" in set(plain.tracks.events["event"])
    reject = Annotation("a1", Kind.REJECT, (ref(d, *division),))
    result = track(situation.movie, annotations=annotated(d, reject))
    assert "divide" not in set(result.tracks.events["event"])


def test_answers_that_exclude_each_other_in_a_circle_are_named() -> None:
    """Two cells that may not appear, with one cell to come from that may not divide."""
    labels = np.zeros((2, 40, 40), dtype=np.int32)
    labels[0, 16:24, 16:24] = 1
    labels[1, 16:24, 8:16], labels[1, 16:24, 24:32] = 2, 3
    movie = movie_of(labels)
    scene = run(prepare(movie))
    d, h = scene.detections, scene.hypotheses
    excluded = [
        e
        for e in sorted(events_of(h))
        if e[0] in (Event.DIVIDE, Event.SPLIT, Event.APPEAR)
        or (e[0] == Event.FALSE and e[1][0] > 0)
    ]
    assert {e[0] for e in excluded} >= {Event.DIVIDE, Event.APPEAR}
    needed = [Annotation(f"r{k}", Kind.REJECT, (ref(d, *e),)) for k, e in enumerate(excluded)]
    idle = Annotation("idle", Kind.REJECT, (ref(d, Event.DISAPPEAR, (0,)),))
    for k in range(len(needed)):
        some = [a for j, a in enumerate(needed) if j != k]
        track(movie, annotations=annotated(d, idle, *some))
    with pytest.raises(ContradictionError, match="cannot all be true") as caught:
        track(movie, annotations=annotated(d, idle, *needed))
    message = str(caught.value)
    assert all(f"({a.id})" in message for a in needed)
    assert "idle" not in message and "infeasible" not in message
    assert "not: cell 2 in frame 1 appears (" in message


def test_an_empty_frame_in_the_middle() -> None:
    inside = np.pad(BY_NAME["the stage drifts"].labels[0], 40)
    labels = np.stack([inside] * 5)
    labels[2] = 0
    result = track(movie_of(labels))
    assert result.tracks.n_tracks == 13
    assert (result.tracks.edges["event"] == "skip").sum() == 13


def test_three_dimensions() -> None:
    flat = BY_NAME["a division"].labels
    deep = np.zeros((len(flat), 6, *flat.shape[1:]), dtype=np.int32)
    deep[:, 1:5] = flat[:, None]
    result = track(movie_of(deep, scale=(3.0, 1.0, 1.0)))
    assert "divide" in set(result.tracks.events["event"])
    assert result.tracks.n_tracks == 13


def test_a_feature_of_ones_own_needs_no_trained_model() -> None:
    features = default_features().with_feature(
        Feature(Event.MOVE, "half", "d / 2", "diameters", lambda v: v.offset / 2)
    )
    movie = BY_NAME["a division"].movie
    result = track(movie, features=features)
    assert "move.half" in result.model.keys
    assert cells_of(result) == cells_of(track(movie))


def test_progress_names_the_stages_and_rises_within_each() -> None:
    seen: list[Progress] = []
    result = run(track_steps(BY_NAME["a division"].movie), seen.append)
    assert isinstance(result, Tracking)
    stages = list(dict.fromkeys(p.stage for p in seen))
    assert len(stages) >= 4
    for stage in stages:
        shares = [p.done for p in seen if p.stage == stage]
        assert shares == sorted(shares)
        assert shares[0] >= 0.0 and shares[-1] <= 1.0
    assert [p.stage for p in seen] == sorted((p.stage for p in seen), key=stages.index)


def test_a_closed_run_reads_no_more_frames() -> None:
    read: list[int] = []

    class Counted(Movie):
        def channel_frame(self, t: int, channel: int = 0) -> np.ndarray:
            read.append(t)
            return super().channel_frame(t, channel)

    plain = movie_of(np.ones((200, 6, 6), dtype=np.int32))
    steps = track_steps(Counted(plain.array, plain.geometry, plain.channels))
    next(steps)
    next(steps)
    steps.close()
    before = len(read)
    assert 0 < before < 30
    assert list(steps) == []
    assert len(read) == before


def test_kinds_of_events_that_do_not_occur_are_not_proposed() -> None:
    folder = sample_folder()
    movies = open_labels(folder / "01_GT" / "TRA"), open_movie(folder / "01")
    labels, image = (movie.array[:10, 0].compute() for movie in movies)
    usual = track(labels, image)
    found = {e for e in Event if (usual.scene.hypotheses.event == e).any()}
    assert {Event.MERGE, Event.FALSE, Event.SPLIT} <= found
    without = ("merges", "skip", "specks", "splits", "appearances")  # the last in earlier versions
    with pytest.warns(UserWarning, match="'appearances': cells may always appear"):
        result = track(labels, image, without=without)
    kinds = set(result.scene.hypotheses.event.tolist())
    assert kinds & {Event.MERGE, Event.SKIP, Event.FALSE, Event.SPLIT} == set()
    result.solution.check(result.scene.problem, result.scores)
    assert result.scene.kinds.words == ("gaps", "splits", "merges", "specks")

    event = usual.scene.hypotheses.take(usual.scene.hypotheses.of(Event.MERGE)[:1])
    merge = event_refs(usual.scene.detections, event)
    answers = annotated(usual.scene.detections, Annotation("m1", Kind.CONFIRM, tuple(merge)))
    with pytest.raises(ContradictionError, match=r"says: .* \(m1\), but .*excluded in this movie"):
        track(labels, image, annotations=answers, without=("merges",))
    assert track(labels, image, annotations=answers, without=("gaps",)).scene.constraints.ids
    with pytest.raises(InputError, match="'wonders' is not a kind of event"):
        track(labels, image, without=("wonders",))


def test_a_crowd_leaves_little_to_branch_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few columns lie within the gap of a choice that was repaired; of the rounded one 3,826 do.

    Programs of so many columns made 100 frames of 1,000 cells take minutes.
    """
    rng = np.random.default_rng(0)
    place, rows = rng.uniform(0, 200, (500, 2)), []
    for t in range(6):
        rows += [(t, k + 1, y, x) for k, (y, x) in enumerate(place)]
        place = np.clip(place + rng.normal(scale=3, size=place.shape), 0, 200)
    table = tmp_path / "crowd.csv"
    pd.DataFrame(rows, columns=["t", "label", "y", "x"]).to_csv(table, index=False)
    columns, exactly = [], solver.solve_integer

    def watched(problem: Any, scores: np.ndarray, *more: Any) -> Any:
        columns.append(len(scores))
        return exactly(problem, scores, *more)

    for place_of in ("solve_integer", "solve_bounded"):
        monkeypatch.setattr(f"bridgetrack.inference.solve.{place_of}", watched)
    track(read_detections_csv(table))
    assert 0 < max(columns) < 500
