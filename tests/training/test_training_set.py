"""Samples out of annotated movies: what belongs to them, and how a later training knows them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from bridgetrack.annotations.annotation import RANDOM, UNIFORM, Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import BALANCE, balanced, build_training_set
from training.training_cases import (
    bad_prior,
    confirmed,
    plain_scene,
    says,
    some_true,
    tiny_set,
    true_columns,
    with_annotations,
)


def names(data):
    return {s.key for s in data.samples}


@pytest.fixture(scope="module")
def data():
    return build_training_set(confirmed(plain_scene(), some_true(12)))


def test_samples_are_whole_annotated_components(data):
    scene = confirmed(plain_scene(), some_true(12))
    assert data.n_annotations == len(scene.constraints) == 12
    covered = np.asarray(data.incidence.sum(axis=1)).ravel()
    assert (covered > 0).all()
    slots = [np.flatnonzero(data.slot_sample == k) for k in range(len(data.samples))]
    for k, mine in enumerate(slots):
        touching = np.flatnonzero(np.asarray(data.incidence[:, mine].sum(axis=1)).ravel())
        assert (data.column_sample[touching] == k).all()
        assert (data.annotation_sample == k).any()
    # a column of the movie that covers a slot of a sample is in the training set
    assert data.incidence.shape[0] <= len(scene.hypotheses)
    assert data.incidence.shape[1] < len(scene.slots)


def test_what_annotations_say_of_themselves():
    scene, rows = plain_scene(), some_true(8, divisions=2)
    others = [
        *says(scene, rows[:3], prefix="r", source=RANDOM),
        *says(scene, rows[3:4], prefix="u", source=UNIFORM),
        *says(scene, rows[4:5], prefix="c"),
        *says(scene, rows[5:6], prefix="i", source="import"),
        *says(scene, rows[6:], Kind.REJECT, prefix="n"),
    ]
    annotated = with_annotations(scene, others)
    found = build_training_set(annotated)
    ids = np.array([i[0] for i in annotated.constraints.ids])
    slots = np.diff(scene.problem.incidence.indptr)
    assert len(set(slots[rows[:3]])) > 1, "divisions and moves among them"
    np.testing.assert_array_equal(found.drawn[ids == "r"], slots[rows[:3]])
    np.testing.assert_array_equal(found.drawn[ids == "u"], 1)
    # what was taken over from elsewhere is what differs from these tracks
    np.testing.assert_array_equal(found.drawn[np.isin(ids, list("cin"))], 0)
    np.testing.assert_array_equal(found.single, ids != "n")
    np.testing.assert_array_equal(found.event[ids == "n"], -1)
    np.testing.assert_array_equal(
        found.event[ids != "n"], scene.hypotheses.event[rows[[4, 5, *range(4)]]]
    )
    source = scene.hypotheses.sources[rows, 0]
    frames = dict(zip([*"1234"], scene.detections.frame[source[:4]], strict=True))
    for name, pair in zip(annotated.constraints.ids, found.pair, strict=True):
        if name[0] == "r":
            assert pair == frames[name[1]]


def test_large_components_are_cut_into_frame_pairs():
    plain = plain_scene(3)
    false = np.flatnonzero(plain.hypotheses.event == Event.FALSE)
    named = says(plain, false[:1], prefix="f")
    free = [a for a in says(plain, some_true(12, seed=3)) if not _share(a, named[0])]
    scene = with_annotations(plain, [*free, *named])
    whole, cut = build_training_set(scene), build_training_set(scene, largest=1)
    assert cut.n_annotations == whole.n_annotations
    assert len(cut.samples) > len(whole.samples)
    bias = scene.matrix.features.keys.index("false.bias")
    assert np.count_nonzero(whole.phi[:, bias].toarray()) > 1
    (kept,) = np.flatnonzero(cut.phi[:, bias].toarray())
    assert kept in cut.sets.indices
    compatible = TrackingModel(cut).compatible_inference(cut.samples, bad_prior().weights)
    assert compatible.losses.max() < 1e-6


def _share(one, other):
    return bool({c.cell for c in one.cells} & {c.cell for c in other.cells})


def test_a_sample_with_a_corrected_annotation_has_another_key():
    """Also where it only moves from one hypothesis of a slot to another."""
    scene = plain_scene()
    row = int(some_true(1, divisions=0)[0])
    slot = int(scene.problem.incidence[row].indices[0])
    rivals = scene.problem.by_slot[slot].indices
    other = int(rivals[rivals != row][0])
    first, second = (build_training_set(confirmed(scene, np.array([c]))) for c in (row, other))
    assert len(first.samples) == len(second.samples) == 1
    assert first.samples[0].key != second.samples[0].key
    rejected = with_annotations(scene, says(scene, np.array([row]), Kind.REJECT))
    assert build_training_set(rejected).samples[0].key != first.samples[0].key


def test_added_annotations_change_only_their_own_samples():
    scene, rows = plain_scene(), true_columns()
    few = build_training_set(confirmed(scene, rows[:60:6]))
    more = build_training_set(confirmed(scene, rows[[*range(0, 60, 6), -1]]))
    changed = names(few) - names(more)
    assert len(changed) <= 1
    assert len(names(few) & names(more)) >= len(few.samples) - 1


def test_balance(data):
    population = np.bincount(data.event, minlength=len(Event)) * 1.0
    population[Event.MOVE] *= 50
    found = balanced(data, population)
    assert (found.importance > 0).all()
    per_annotation = found.importance[found.annotation_sample]
    assert 2**-0.125 <= per_annotation.mean() <= 2**0.125, "rounded to quarters of an octave"
    divisions = np.isin(
        found.annotation_sample, found.annotation_sample[data.event == Event.DIVIDE]
    )
    assert per_annotation[divisions].mean() < per_annotation[~divisions].mean()
    changed = found.importance != data.importance
    pairs = zip(found.samples, data.samples, changed, strict=True)
    assert changed.any() and all((a.key != b.key) == differs for a, b, differs in pairs)
    assert isinstance(found.phi, sp.csr_matrix)


def test_what_was_rejected_is_of_no_kind():
    """Whatever else is proposed there: it neither counts as annotated, nor counts less for it."""
    data = tiny_set(np.random.default_rng(0), 9)
    kind = np.repeat([Event.MOVE, Event.DIVIDE, -1], [4, 2, 3]).astype(np.int8)
    data = replace(data, event=kind[data.annotation_sample])
    population = np.array([99.0, 9, 0, 0, 0, 0, 0, 0])
    found = balanced(data, population).importance
    np.testing.assert_array_equal(found[6:], 1.0)
    moves, divisions = ((data.event == e).sum() for e in (Event.MOVE, Event.DIVIDE))
    factor = np.array([100 / 116 / moves, 10 / 116 / divisions]) ** BALANCE
    factor /= (moves * factor[0] + divisions * factor[1]) / (moves + divisions)
    np.testing.assert_allclose(found[[0, 4]], 2 ** (np.rint(4 * np.log2(factor)) / 4))
    none = balanced(replace(data, event=np.full_like(data.event, -1)), population)
    np.testing.assert_array_equal(none.importance, 1.0)


def test_a_rare_event_weighs_little_beside_a_common_one():
    """Errors are at rare events; a common one in the same component must not lend its weight."""
    data = tiny_set(np.random.default_rng(0), 9)
    owner = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    event = np.array([Event.MOVE, Event.DIVIDE, *[Event.MOVE] * 7, Event.DIVIDE], dtype=np.int8)
    sets = sp.csr_matrix((len(event), data.phi.shape[0]))
    data = replace(data, event=event, annotation_sample=owner, sets=sets)
    population = np.array([999.0, 9, 0, 0, 0, 0, 0, 0])
    mixed, move, division = balanced(data, population).importance[[0, 1, 8]]
    assert division < mixed < (move + division) / 3
