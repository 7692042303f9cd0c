import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from annotations.annotation_cases import everything_between, pattern_of, ref, says, table_of
from bridgetrack.annotations.anchor import anchor, event_refs
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.constraints import compile_constraints, required_events
from bridgetrack.errors import ContradictionError
from bridgetrack.hypotheses.events import Event, Events, active_slots
from bridgetrack.inference.problem import Problem
from partition_problems import all_choices

# rows 0-2 in frame 0, 3-5 in frame 1, 6-7 in frame 2
CELLS = table_of(
    [(t, k, 50.0 * k, 10.0 + 3 * t) for t, n in ((0, 3), (1, 3), (2, 2)) for k in range(1, n + 1)],
    3,
)
N = len(CELLS)
ALL = everything_between(CELLS)


def at(kind, sources=(), targets=()):
    return ref(CELLS, kind, sources, targets)


def anchored(*answers):
    listed = [says(f"a{k}", kind, *events) for k, (kind, *events) in enumerate(answers, 1)]
    return anchor(AnnotationSet(CELLS.geometry, listed), CELLS)


def compiled(*answers, hypotheses=ALL):
    return compile_constraints(anchored(*answers), hypotheses)


def test_what_says_nothing_here_is_listed_with_the_reason():
    few = everything_between(CELLS, false=False)
    made = compiled(
        ("cannot_tell", at(Event.MOVE, [0], [3])),
        ("confirm", at(Event.APPEAR, [], [0])),
        ("confirm", at(Event.DISAPPEAR, [7])),
        ("reject", at(Event.FALSE, [1])),
        ("confirm", at(Event.MOVE, [2], [5])),
        hypotheses=few,
    )
    assert made.ids == ("a5",)
    assert made.annotation.tolist() == [4]
    reasons = made.unused
    assert "a1" not in reasons and made.unsure == 1
    assert "outside the movie" in reasons["a2"]
    assert reasons["a3"] == reasons["a2"]
    assert reasons["a4"] == "what it rejects is not proposed here anyway"


def test_rejecting_everything_proposed_is_listed_and_constrains_nothing():
    few = Events(
        np.array([Event.MOVE, Event.APPEAR, Event.DISAPPEAR], dtype=np.int8),
        np.array([[0, -1], [-1, -1], [0, -1]]),
        np.array([[3, -1], [3, -1], [-1, -1]]),
    )
    made = compiled(("reject", at(Event.MOVE, [0], [3])), hypotheses=few)
    assert made.sets[0].indices.tolist() == [2]
    made = compiled(
        ("reject", at(Event.MOVE, [0], [3])), ("reject", at(Event.DISAPPEAR, [0])), hypotheses=few
    )
    assert len(made) == 0
    assert set(made.unused) == {"a1", "a2"}
    assert "everything proposed" in made.unused["a1"]


def test_required_events_are_what_annotations_say_may_hold():
    found = required_events(
        anchored(
            ("confirm", at(Event.DIVIDE, [0], [3, 4])),
            ("confirm", at(Event.DIVIDE, [0], [3, 4])),
            ("one_of", at(Event.MOVE, [1], [5]), at(Event.DISAPPEAR, [1])),
            ("reject", at(Event.MOVE, [2], [5])),
            ("cannot_tell", at(Event.MOVE, [3], [6])),
            ("confirm", at(Event.APPEAR, [], [0])),
        )
    )
    assert found.event.tolist() == [Event.MOVE, Event.DIVIDE, Event.DISAPPEAR]
    assert found.sources.tolist() == [[1, -1], [0, -1], [1, -1]]
    assert found.targets.tolist() == [[5, -1], [3, 4], [-1, -1]]


def outputs():
    """Every way to cover all active slots of a smaller movie exactly once."""
    small = table_of([(0, 1, 0, 0), (0, 2, 50, 0), (1, 1, 0, 0), (1, 2, 50, 0)], 2)
    hypotheses = everything_between(small)
    choices = all_choices(Problem(hypotheses.covering(active_slots(small))))
    return small, hypotheses, [frozenset(choice.tolist()) for choice in choices]


SMALL, SMALL_ALL, OUTPUTS = outputs()


def truth_of(annotation, output, refs):
    """Whether an annotation is true of an output, from its words alone."""
    (first, *_) = annotation.events
    keys = {refs[h].key for h in output}
    if annotation.kind == Kind.REJECT and not first.complete:
        hit = any(refs[h].event == first.event and first.slots[0] in refs[h].slots for h in output)
        return not hit
    said = any(e.key in keys for e in annotation.events)
    return not said if annotation.kind == Kind.REJECT else said


REFS = event_refs(SMALL, SMALL_ALL)


@st.composite
def answers_about(draw):
    listed = []
    for k in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["confirm", "reject", "pattern", "one_of"]))
        h = draw(st.integers(0, len(REFS) - 1))
        if kind == "pattern":
            listed.append(says(f"a{k}", "reject", pattern_of(REFS[h])))
        elif kind == "one_of":
            slot = draw(st.sampled_from(REFS[h].slots))
            here = [r for r in REFS if slot in r.slots]
            choice = st.lists(st.sampled_from(here), min_size=1, max_size=4, unique=True)
            some = draw(choice)
            listed.append(says(f"a{k}", "one_of" if len(some) > 1 else "confirm", *some))
        else:
            listed.append(says(f"a{k}", kind, REFS[h]))
    return listed


@settings(max_examples=60, deadline=None)
@given(answers_about())
def test_constraints_hold_exactly_where_the_annotations_are_true(listed):
    """Brute force over all outputs: S_a sums to 1 iff a is true, to 0 otherwise, and pins agree."""
    found = anchor(AnnotationSet(SMALL.geometry, listed), SMALL)
    good = [y for y in OUTPUTS if all(truth_of(a, y, REFS) for a in listed)]
    try:
        made = compile_constraints(found, SMALL_ALL)
    except ContradictionError:
        assert good == []
        return
    said = [found.listed[k] for k in made.annotation.tolist()]
    must, forbid = (set(p.tolist()) for p in (made.forced, np.flatnonzero(~made.allowed)))
    for y in OUTPUTS:
        sums = [len(y & set(made.sets[r].indices.tolist())) for r in range(len(made))]
        assert sums == [int(truth_of(a, y, REFS)) for a in said]
        assert (not y & forbid and must <= y) == (min(sums, default=1) == 1)
    for name, why in made.unused.items():
        fits = [truth_of(found.annotations[name], y, REFS) for y in OUTPUTS]
        assert all(fits) or "outside the movie" in why or "everything proposed" in why
        if "everything proposed" in why:
            assert good == []
