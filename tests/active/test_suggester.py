"""Suggestions: open, apart, in order, and random where they should be."""

from __future__ import annotations

import numpy as np
import pytest

from active.active_cases import slots_of
from bridgetrack.active.suggester import believe_steps, suggest
from bridgetrack.active.suggestion import SuggestOptions
from bridgetrack.annotations.annotation import FATE, HISTORY, Kind
from bridgetrack.detections.table import cell_diameter
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.models.model import untrained_model
from bridgetrack.pipeline.scene import prepare
from bridgetrack.progress import run
from scenes import label_movie, simulated
from training.training_cases import plain_scene, says, with_annotations

ALL = SuggestOptions(random_share=0.0, separation=0.0)


def test_proposals_are_chosen_events_the_most_uncertain_of_a_kind_first() -> None:
    scene = plain_scene()
    found = suggest(scene, untrained_model(), 8, SuggestOptions(random_share=0.0))
    scores = scene.matrix.scores(untrained_model().aligned(scene.matrix.features))
    solution = solve(scene.problem, scores)
    assert len(found) == 8
    assert all(solution.chosen[s.hypothesis] for s in found)
    moves = [s.margin for s in found if s.event.event == Event.MOVE]
    assert moves == sorted(moves) and min(moves) >= 0
    for s in found:
        assert len(s.beliefs) == 1 + len(s.alternatives) > 1, "each event has its own"
        assert s.event not in s.alternatives
        assert all(s.slot in other.slots for other in s.alternatives)
    rivals = [s for s in found if s.reason.startswith("perhaps it ")]
    for s in rivals:
        words = HISTORY if s.slot[0] == "history" else FATE
        assert s.reason.split(maxsplit=2)[2] in [
            f"{words[e.event]} instead" for e in s.alternatives
        ]
    assert rivals


def test_kinds_that_were_hardly_answered_weigh_more() -> None:
    """Uncertainty alone asks about hardly anything but moves."""
    scene = plain_scene()
    found = suggest(scene, untrained_model(), 8, SuggestOptions(random_share=0.0))
    turned = [
        (one, other)
        for k, one in enumerate(found)
        for other in found[k + 1 :]
        if one.margin > other.margin
    ]
    assert turned, "not by uncertainty alone"
    # what an answer may turn out to be counts, so that the event itself may be a move, too
    assert all(one.margin < other.margin - np.log(0.3) for one, other in turned)


def test_the_margins_of_suggestions_are_exact() -> None:
    scene = plain_scene()
    scores = scene.matrix.scores(untrained_model().weights)
    found = suggest(scene, untrained_model(), 8, SuggestOptions(random_share=0.25))
    solution = solve(scene.problem, scores)
    for s in found:
        allowed = np.ones(len(scores), dtype=bool)
        allowed[s.hypothesis] = False
        without = solve(scene.problem, scores, allowed).value
        assert s.margin == pytest.approx(solution.value - without, abs=1e-6)
    assert len({round(s.margin, 9) for s in found}) > 4


def test_a_batch_holds_no_neighbours() -> None:
    scene = plain_scene()
    options = SuggestOptions(random_share=0.0, separation=3.0)
    found = suggest(scene, untrained_model(), 30, options)
    reach = 3.0 * cell_diameter(scene.detections)
    first = {s.hypothesis: (s.event.sources or s.event.targets)[0].position for s in found}
    scale = np.asarray(scene.detections.geometry.scale)
    pairs = [(a, b) for a in found for b in found if a.hypothesis < b.hypothesis]
    assert pairs
    for a, b in pairs:
        if abs(a.frame - b.frame) <= 1:
            apart = np.subtract(first[a.hypothesis], first[b.hypothesis]) * scale
            assert np.linalg.norm(apart) >= reach * 0.99


def test_what_was_answered_is_not_asked_again_but_what_else_a_rejected_event_may_be() -> None:
    scene = plain_scene(cells=12, frames=5)
    answered = [s.hypothesis for s in suggest(scene, untrained_model(), 5, ALL)[:4]]
    kinds = [Kind.CONFIRM, Kind.CANNOT_TELL, Kind.CONFIRM, Kind.REJECT]
    noted = [
        says(scene, np.asarray([h]), kind, prefix=f"x{k}")[0]
        for k, (h, kind) in enumerate(zip(answered, kinds, strict=True))
    ]
    later = with_annotations(scene, noted)
    everything = suggest(later, untrained_model(), 10_000, ALL)
    settled = set().union(*(slots_of(scene, h) for h in answered[:3]))
    asked = {s.hypothesis: slots_of(later, s.hypothesis) for s in everything}
    assert asked and not any(settled & slots for slots in asked.values())
    rejected = answered[3]
    place = min(slots_of(scene, rejected))
    assert rejected not in asked and any(place in slots for slots in asked.values())


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_the_share_of_random_ones(share: float) -> None:
    options = SuggestOptions(random_share=share)
    found = suggest(plain_scene(), untrained_model(), 20, options)
    assert sum(s.random for s in found) == round(20 * share)
    assert len({s.slot for s in found}) == 20
    one_by_one = [
        suggest(plain_scene(), untrained_model(), 1, options, answered=k)[0].random
        for k in range(5)
    ]
    assert one_by_one == [s.random for s in found[:5]]


def test_random_ones_do_not_depend_on_the_model_but_on_the_seed() -> None:
    scene = plain_scene()
    zero = np.zeros(len(scene.matrix.features))
    options = SuggestOptions(random_share=1.0, seed=3)
    one = [s.slot for s in suggest(scene, untrained_model(), 12, options)]
    assert one == [s.slot for s in suggest(scene, zero, 12, options)]
    other = SuggestOptions(random_share=1.0, seed=4)
    assert one != [s.slot for s in suggest(scene, untrained_model(), 12, other)]


def test_beliefs_are_shares_of_what_the_events_of_a_slot_cost() -> None:
    scene = plain_scene()
    beliefs = run(believe_steps(scene, untrained_model().weights))
    weight = np.exp(-beliefs.cost)
    assert (beliefs.cost[beliefs.solution.chosen] == 0).all()
    for slot in range(0, scene.problem.n_slots, 7):
        here = scene.problem.by_slot[slot].indices
        assert beliefs.total[slot] == pytest.approx(weight[here].sum())
        share = np.bincount(scene.hypotheses.event[here], weight[here], len(Event))
        np.testing.assert_allclose(beliefs.kinds[slot], share / share.sum())


def test_nothing_is_left_to_ask_once_all_is_answered() -> None:
    scene = plain_scene(cells=8, frames=4)
    everything = suggest(scene, untrained_model(), 10_000, ALL)
    noted = says(scene, np.asarray([s.hypothesis for s in everything]))
    assert suggest(with_annotations(scene, noted), untrained_model(), 5, ALL) == []


def test_three_dimensions_and_tables() -> None:
    movie = simulated(dim=3, cells=12, frames=4)
    scene = run(prepare(label_movie(movie)))
    found = suggest(scene, untrained_model(), 5)
    assert [len(s.position) for s in found] == [3] * 5
    table = run(prepare(scene.detections))
    again = suggest(table, untrained_model(), 5)
    assert len(again) == 5
    assert all(s.slot in s.event.slots for s in again)
