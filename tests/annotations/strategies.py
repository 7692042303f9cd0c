"""Random annotations for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.hypotheses.events import N_SOURCES, N_TARGETS, Event

N_FRAMES = 6
LABELS = st.integers(1, 6)


@st.composite
def events(draw, pattern=False):
    kind = draw(st.sampled_from(list(Event)))
    t = draw(st.integers(0, N_FRAMES - 4))
    gap = draw(st.integers(2, 3)) if kind == Event.SKIP else 1

    def cells(frame, number):
        labels = draw(st.lists(LABELS, min_size=number, max_size=number, unique=True))
        x = draw(st.floats(0, 500))
        return tuple(CellRef(frame, i, (10.0 * i, x)) for i in labels)

    sources, targets = cells(t, N_SOURCES[kind]), cells(t + gap, N_TARGETS[kind])
    if pattern and draw(st.booleans()):
        return EventRef(kind, sources[:1], () if sources else targets[:1])
    return EventRef(kind, sources, targets)


@st.composite
def annotations(draw, name="a1"):
    kind = draw(st.sampled_from(list(Kind)))
    if kind == Kind.ONE_OF:
        source = CellRef(2, draw(LABELS), (1.0, 2.0))
        labels = draw(st.lists(LABELS, min_size=2, max_size=4, unique=True))
        options = tuple(
            EventRef(Event.MOVE, (source,), (CellRef(3, i, (0.5, 0.25)),)) for i in labels
        )
    else:
        options = (draw(events(pattern=kind in (Kind.REJECT, Kind.CANNOT_TELL))),)
    return Annotation(
        name,
        kind,
        options,
        draw(st.sampled_from([None, "2024-05-17T09:30:00+00:00"])),
        draw(st.sampled_from(["click", "review", "import", "random"])),
        draw(st.none() | st.floats(0, 100)),
    )


@st.composite
def annotation_lists(draw, max_size=12):
    number = draw(st.integers(0, max_size))
    return [draw(annotations(name=f"a{k}")) for k in range(1, number + 1)]
