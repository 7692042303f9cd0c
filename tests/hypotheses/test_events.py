"""Tables of events: in order, each once, and found again."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.hypotheses.events import N_SOURCES, N_TARGETS, Event, Events

# Rows of a few frames fit into one number, those of a long movie do not.
ROWS = st.sampled_from([0, 1, 2, 3, 50_000, 900_000])
LOWEST = st.sampled_from([0, 7, 40_000_000])
NAMED = st.tuples(st.sampled_from(Event), st.lists(ROWS, min_size=4, max_size=4))


def table(named, lowest):
    """Events of rows that are that much higher."""
    kinds = np.array([kind for kind, _ in named], dtype=np.int8)
    rows = np.array([rows for _, rows in named], dtype=np.int64).reshape(-1, 2, 2) + lowest
    for counts, side in ((N_SOURCES, 0), (N_TARGETS, 1)):
        many = np.array([counts[kind] for kind, _ in named], dtype=np.int64)
        rows[:, side] = np.where(np.arange(2) < many[:, None], rows[:, side], -1)
    return Events(kinds, rows[:, 0], rows[:, 1])


def as_tuples(events):
    """Kind and rows of every event."""
    rows = np.column_stack([events.event, events.sources, events.targets])
    return [tuple(row) for row in rows.tolist()]


@given(st.lists(NAMED, max_size=30), LOWEST)
@settings(max_examples=40)
def test_in_order_and_each_once(named, lowest):
    events = table(named, lowest)
    assert as_tuples(events.unique()) == sorted(set(as_tuples(events)))
    first = [as_tuples(events).index(row) for row in as_tuples(events.unique())]
    assert events.in_order().tolist() == first


@given(st.lists(NAMED, max_size=20), st.lists(NAMED, max_size=5), LOWEST)
@settings(max_examples=40)
def test_others_join(named, more, lowest):
    events, others = table(named, lowest).unique(), table(more, lowest)
    joined = events.with_others(others)
    assert as_tuples(joined) == sorted({*as_tuples(events), *as_tuples(others)})
    where = joined.find(others)
    assert as_tuples(joined.take(where)) == as_tuples(others)
    assert (events.with_others(events.take(slice(0, 2))) is events) or not len(events)
