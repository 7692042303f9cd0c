"""The estimate of accuracy: unbiased, and its interval covers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.active.accuracy import (
    AskedSlot,
    Judged,
    estimate_from,
    fair_sample,
    random_answers,
)
from bridgetrack.active.options import SuggestOptions
from bridgetrack.active.questions import random_order, slot_name, within
from bridgetrack.active.records import Record
from bridgetrack.annotations.annotation import Kind
from training.training_cases import plain_scene


def outcomes(errors: list[float], width: int = 2) -> list[AskedSlot]:
    return [AskedSlot(f"a{k}", e, width) for k, e in enumerate(errors)]


def test_plain_share() -> None:
    assert estimate_from([]) is None
    found = estimate_from(outcomes([0, 0, 1, 0]))
    assert found is not None
    assert found.accuracy == 0.75
    assert found.low < 0.75 < found.high
    assert (found.n_annotations, found.random) == (4, True)
    assert "cells like those" not in found.words


def test_the_interval_reaches_from_unseen_to_seen_errors() -> None:
    plain = estimate_from(outcomes([0, 0, 1, 0]))
    learned = estimate_from([replace(o, least=0.0) for o in outcomes([0, 0, 1, 0])])
    assert plain is not None
    assert learned is not None
    assert (learned.accuracy, learned.low) == (plain.accuracy, plain.low)
    assert plain.high < learned.high == 1.0


def test_without_errors_every_answer_counts() -> None:
    found = estimate_from(outcomes([0.0] * 8))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.025 ** (1 / 8), 1))


def test_events_count_once_however_many_slots_they_cover() -> None:
    sample = [
        AskedSlot("a", 1.0, 1),
        AskedSlot("b", 0.0, 3),
        AskedSlot("c", 0.0, 3),
        AskedSlot("d", 0.0, 3),
    ]
    found = estimate_from(sample)
    assert found is not None
    assert found.accuracy == pytest.approx(0.5)


@pytest.mark.parametrize("accuracy", [0.99, 0.95, 0.8])
@pytest.mark.parametrize("n", [10, 25, 60])
def test_coverage(accuracy: float, n: int) -> None:
    rng = np.random.default_rng(3)
    covered, runs = 0, 400
    for _ in range(runs):
        found = estimate_from(outcomes((rng.random(n) > accuracy).astype(float).tolist()))
        assert found is not None
        covered += found.low <= accuracy <= found.high
    assert covered >= 0.9 * runs


def test_the_slot_sample_is_unbiased_for_the_share_of_events() -> None:
    rng = np.random.default_rng(1)
    width = rng.integers(1, 4, 400)
    wrong = (rng.random(400) < np.where(width == 3, 0.5, 0.1)).astype(float)
    slots = np.repeat(np.arange(400), width)
    means = []
    for _ in range(300):
        events = list(dict.fromkeys(rng.permutation(slots)[:60].tolist()))
        found = estimate_from([AskedSlot(str(e), float(wrong[e]), int(width[e])) for e in events])
        assert found is not None
        means.append(1 - found.accuracy)
    assert np.mean(means) == pytest.approx(wrong.mean(), abs=0.02)


def test_the_sample_ends_at_the_first_slot_nobody_answered() -> None:
    scene = plain_scene()
    order = random_order(scene, 2).tolist()
    known = {slot: AskedSlot(f"a{k}", 0.0, 2) for k, slot in enumerate(order[:9])}
    assert len(fair_sample(scene, known, 2)) == 9
    del known[order[4]]
    assert len(fair_sample(scene, known, 2)) == 4
    assert len(fair_sample(scene, known, 2, frozenset([order[4]]))) == 8
    known[order[4]] = AskedSlot("undecided", None, 1)
    assert len(fair_sample(scene, known, 2)) == 8
    twice = known | {order[3]: known[order[2]]}
    assert len(fair_sample(scene, twice, 2)) == 7


def drawn(right: tuple[bool | None, ...]) -> list[Record]:
    """Answers to the first slots of the random order."""
    scene, records = plain_scene(), []
    for k, number in enumerate(random_order(scene, 0)[: len(right)].tolist()):
        slots = (slot_name(scene, number),)
        records.append(Record(f"a{k}", Kind.CONFIRM, slots, right[k], True, 0.5, 1.0))
    return records


def test_what_no_model_was_judged_on_goes_by_the_proposals() -> None:
    scene, options = plain_scene(), SuggestOptions(seed=0)
    records = drawn((True, False, None, True))
    found = random_answers(scene, records, Judged(seen={"a1": 0.25}), [], options)
    assert [(a.id, a.wrong, a.least, a.width) for a in found] == [
        ("a0", 0.0, 0.0, 1),
        ("a1", 1.0, 0.25, 1),
        ("a3", 0.0, 0.0, 1),
    ]
    # one that was passed over is left out, one that nobody was asked ends the sample
    passed = list(records[1].slots)
    short = random_answers(scene, [records[0], *records[2:]], Judged(), passed, options)
    assert [a.id for a in short] == ["a0", "a3"]
    assert [a.id for a in random_answers(scene, records[:1], Judged(), [], options)] == ["a0"]


def test_the_least_error_is_that_of_the_present_model_where_it_was_judged() -> None:
    scene, records = plain_scene(), drawn((False, False, None))
    judged = Judged(unseen={"a0": 1.0, "a1": 0.5}, seen={"a0": 0.25, "a2": 0.0})
    found = {a.id: a for a in random_answers(scene, records, judged, [], SuggestOptions(seed=0))}
    assert (found["a0"].wrong, found["a0"].least) == (1.0, 0.25)
    assert (found["a1"].wrong, found["a1"].least) == (0.5, 0.5)
    assert all(a.wrong is not None for a in found.values()), "nobody could tell"


def test_the_sample_keeps_to_the_frames_asked_about() -> None:
    scene = plain_scene()
    inside = within(scene, (1, 3))
    order = random_order(scene, 0)
    first = order[inside[order]][:5]
    known = {int(s): AskedSlot(str(s), 0.0, 1) for s in first}
    assert len(fair_sample(scene, known, 0, frames=(1, 3))) == 5
