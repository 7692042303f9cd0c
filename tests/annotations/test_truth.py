from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotations.annotation_cases import table_of
from bridgetrack.annotations.anchor import anchor
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.constraints import compile_constraints, required_events
from bridgetrack.annotations.contradictions import find_contradictions
from bridgetrack.annotations.from_tracks import draw_annotations, read_events
from bridgetrack.errors import InputError
from bridgetrack.evaluation.truth import true_events
from bridgetrack.hypotheses.events import Event, Events, active_slots
from bridgetrack.hypotheses.evidence import gather_evidence
from bridgetrack.hypotheses.generate import generate_hypotheses
from bridgetrack.io.ctc import read_ctc
from bridgetrack.progress import run
from gallery import measure

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data" / "01_GT"
N_FRAMES, PER_FRAME = 12, 40


def a_movie():
    """Cells on a grid that stay where they are, with some of each rarer event."""
    rng = np.random.default_rng(1)
    rows = [
        (t, k + 1, 20.0 * (k // 8) + rng.uniform(0, 3), 20.0 * (k % 8))
        for t in range(N_FRAMES)
        for k in range(PER_FRAME)
    ]
    detections = table_of(rows, N_FRAMES)
    at = {(t, k): t * PER_FRAME + k for t in range(N_FRAMES) for k in range(PER_FRAME)}
    events = []
    for t in range(N_FRAMES - 1):
        for k in range(0, PER_FRAME, 4):
            i, j = ([at[s, k + d] for d in range(4)] for s in (t, t + 1))
            if t == 3 and k < 12:
                events += [("divide", i[0], -1, j[0], j[1]), ("disappear", i[1], -1, -1, -1)]
                events += [("merge", i[2], i[3], j[2], -1), ("appear", -1, -1, j[3], -1)]
            elif t == 6 and k == 0:
                events += [("split", i[0], -1, j[0], j[1]), ("disappear", i[1], -1, -1, -1)]
                events += [("move", i[d], -1, j[d], -1) for d in (2, 3)]
            else:
                events += [("move", i[d], -1, j[d], -1) for d in range(4)]
    events += [("appear", -1, -1, 0, -1), ("disappear", at[N_FRAMES - 1, 0], -1, -1, -1)]
    kinds = np.array([Event.from_key(e[0]) for e in events], dtype=np.int8)
    cells = np.array([e[1:] for e in events])
    return detections, Events(kinds, cells[:, :2], cells[:, 2:])


CELLS, TRUTH = a_movie()


def keys(annotations):
    return {a.events[0].key for a in annotations}


def whole(events, detections):
    return draw_annotations(events, detections, fraction=1.0)


def test_the_whole_truth_as_confirmed_annotations():
    found = whole(TRUTH, CELLS)
    assert {a.kind for a in found} == {Kind.CONFIRM}
    assert {a.source for a in found} == {"simulated"}
    assert find_contradictions(found) == []
    rows, inside = read_events(TRUTH, CELLS), len(TRUTH) - 2
    assert len(rows) == inside  # the last two lie outside the movie's slots
    assert rows.find(TRUTH).tolist() == [*range(inside), -1, -1]
    drawn = anchor(found, CELLS).events
    assert len(drawn) == inside and (rows.find(drawn) >= 0).all()


@settings(max_examples=20, deadline=None)
@given(st.floats(0.001, 1.0), st.floats(0.001, 1.0), st.integers(0, 5))
def test_fractions_take_some_of_each_kind_and_nest(one, two, seed):
    small, large = sorted([one, two])
    less, more = (draw_annotations(TRUTH, CELLS, fraction=f, seed=seed) for f in (small, large))
    assert keys(less) <= keys(more)
    for kind, number in whole(TRUTH, CELLS).counts().items():
        assert less.counts()[kind] == min(number, max(1, int(small * number + 0.5))) * (number > 0)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_count_is_shared_out_among_kinds_and_what_one_lacks_are_others(seed):
    there = whole(TRUTH, CELLS).counts()
    found = draw_annotations(TRUTH, CELLS, count=20, seed=seed)
    kinds = found.counts()
    assert len(found) == 20 and kinds[Event.DIVIDE] == there[Event.DIVIDE] == 3, "of four"
    assert kinds[Event.MOVE] >= 12
    assert all(kinds[kind] >= 1 for kind in set(Event) - {Event.SKIP, Event.FALSE})
    every = draw_annotations(TRUTH, CELLS, count=9999, seed=seed)
    assert every.counts() == there


@pytest.mark.parametrize(
    ("events", "detections", "wishes", "words"),
    [
        (TRUTH, CELLS, {}, "either a count or a fraction"),
        (TRUTH, CELLS, {"count": 0}, "must be 1 or more"),
        (TRUTH, CELLS, {"fraction": 1.5}, "must be in"),
        (TRUTH.take(slice(-2, None)), CELLS, {"count": 1}, "no event"),
        (TRUTH, table_of([(0, 1, 5.0, 5.0)], N_FRAMES), {"count": 1}, "other detections"),
    ],
)
def test_what_cannot_be_drawn_is_refused(events, detections, wishes, words):
    with pytest.raises(InputError, match=words):
        draw_annotations(events, detections, **wishes)


@pytest.fixture(scope="module")
def sample():
    """The bundled movie's true masks as segmentation: labels, detections, true events."""
    truth = read_ctc(SAMPLE)
    detections = measure(truth.labels)
    events = true_events(detections, truth.labels, truth.tracks, truth.labels)
    return truth.labels, detections, events


def test_a_whole_ground_truth_compiles_to_one_output(sample):
    """Every slot that the truth settles is covered once by what the annotations force."""
    labels, detections, events = sample
    annotations = whole(events, detections)
    assert len(annotations) > 500
    found = anchor(annotations, detections, labels)
    assert found.lost == ()
    evidence = run(gather_evidence(detections, labels))
    hypotheses = generate_hypotheses(evidence, required_events(found))
    constraints = compile_constraints(found, hypotheses)
    assert len(constraints) + len(constraints.unused) == len(annotations)
    assert len(constraints.forced) == len(constraints)
    active = active_slots(detections)
    covered = np.asarray(hypotheses.incidence(active)[constraints.forced].sum(axis=0)).ravel()
    assert covered.max() == 1
    assert covered.sum() > 0.95 * active.sum()
    assert not np.intersect1d(constraints.forced, np.flatnonzero(~constraints.allowed)).size
