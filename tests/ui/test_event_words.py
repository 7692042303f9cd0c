"""Events in few words."""

from __future__ import annotations

import pytest

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.words import describe_masks
from bridgetrack.hypotheses.events import N_SOURCES, N_TARGETS, Event
from bridgetrack.regions.mend import MendKind
from bridgetrack.session.names import short_answer, short_words
from bridgetrack.ui.event_looks import MEND_SIGNS, MEND_WORDS


def event_of(event: Event) -> EventRef:
    """Cells 1, 2 of frame 3 become cells 5, 6 of a later one."""
    before = [CellRef(3, k, (0.0, 0.0)) for k in (1, 2)]
    later = 5 if event == Event.SKIP else 4
    after = [CellRef(later, k, (0.0, 0.0)) for k in (5, 6)]
    return EventRef(event, tuple(before[: N_SOURCES[event]]), tuple(after[: N_TARGETS[event]]))


@pytest.mark.parametrize("event", Event)
def test_every_event_names_its_other_cells(event):
    ref = event_of(event)
    fate, past = short_words(ref, False), short_words(ref, True)
    others = [] if event == Event.APPEAR else ref.targets
    assert all(str(c.label) in fate for c in others)
    alone = event in (Event.DISAPPEAR, Event.APPEAR, Event.FALSE)
    assert (fate == past) == alone
    assert alone or all(str(c.label) in past for c in ref.sources)


@pytest.mark.parametrize("kind", MendKind)
def test_every_answer_about_masks_has_words_and_a_sign(kind):
    assert describe_masks(3, kind).startswith("frame 3: ")
    assert MEND_SIGNS[kind] and MEND_WORDS[kind]


def test_an_answer_leaves_out_the_frame_that_stands_beside_it():
    given = Annotation("a1", Kind.CONFIRM, (event_of(Event.DIVIDE),))
    assert short_answer(given) == "cell 1 divides into cell 5 and cell 6"
    given = Annotation("a2", Kind.CONFIRM, (event_of(Event.DISAPPEAR),))
    assert short_answer(given) == "cell 1 leaves"
