"""What answers about events say of masks: of moves, divisions, verified tracks and debris."""

from __future__ import annotations

import numpy as np

from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.annotations.annotation import VERIFIED, Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.mask_answers import MaskAnswers, as_candidates, with_events
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import open_labels
from bridgetrack.pipeline.scene import measure
from bridgetrack.progress import run
from bridgetrack.regions.mend import MaskAnswer, MendKind, pixels_of
from bridgetrack.regions.regions import labels_of
from drawn_movie import GEOMETRY, added, drawn

LABELS = open_labels(drawn()[1], axes="TYX")
CELLS = run(measure(LABELS))


def ref(t: int, k: int) -> CellRef:
    """A nucleus of a frame, by its number."""
    return cell_refs(CELLS, np.array([CELLS.row_of(t, k)]))[0]


def pixels(t: int, k: int) -> np.ndarray:
    """Its pixels."""
    return np.flatnonzero(LABELS.channel_frame(t) == k)


def said(*answers: tuple[Kind, EventRef, str], masks: MaskAnswers | None = None) -> MaskAnswers:
    """What some answers about events say of masks."""
    listed = [Annotation(f"a{n}", kind, (event,), source=source)
              for n, (kind, event, source) in enumerate(answers)]  # fmt: skip
    given = masks or MaskAnswers(GEOMETRY)
    return run(with_events(given, AnnotationSet(GEOMETRY, listed), CELLS, LABELS))


def right(found: MaskAnswers) -> set[tuple[int, int]]:
    """Frame and number of the cells that are right."""
    cells = [(a.frame, pixels_of(runs)) for a in found.held for runs in a.right]
    named = {(t, int(LABELS.channel_frame(t).ravel()[p[0]])) for t, p in cells}
    assert all(any(np.array_equal(pixels(*c), p) for _, p in cells) for c in named)
    return named


def test_cells_of_confirmed_events_are_right_and_false_ones_none() -> None:
    move = EventRef(Event.MOVE, (ref(0, 1),), (ref(1, 1),))
    divide = EventRef(Event.DIVIDE, (ref(1, 3),), (ref(2, 3), ref(2, 4)))
    gone = EventRef(Event.FALSE, (ref(3, 5),))
    other = EventRef(Event.MOVE, (ref(2, 5),), (ref(3, 5),))
    found = said(
        (Kind.CONFIRM, move, "click"), (Kind.CONFIRM, divide, "click"),
        (Kind.CONFIRM, gone, "click"), (Kind.REJECT, other, "click"),
    )  # fmt: skip
    assert right(found) == {(0, 1), (1, 1), (1, 3), (2, 3), (2, 4)}
    [(t, runs)] = [(a.frame, runs) for a in found.held for runs in a.wrong]
    assert t == 3 and np.array_equal(pixels_of(runs), pixels(3, 5))
    assert len(found) == 0 and not found.past, "they are no answers about masks"
    assert len(found.held) == 4, "what is right is kept frame by frame"


def test_masks_of_merges_and_cuts_are_left_open_unless_the_track_is_verified() -> None:
    merge = EventRef(Event.MERGE, (ref(0, 1), ref(0, 2)), (ref(1, 1),))
    move = EventRef(Event.MOVE, (ref(1, 1),), (ref(2, 1),))
    split = EventRef(Event.SPLIT, (ref(2, 4),), (ref(3, 4), ref(3, 5)))
    found = said(*((Kind.CONFIRM, e, "click") for e in (merge, move, split)))
    assert right(found) == {(2, 1)}
    found = said(*((Kind.CONFIRM, e, VERIFIED) for e in (merge, move)))
    assert right(found) == {(0, 1), (0, 2), (1, 1), (2, 1)}


def test_what_is_said_of_masks_goes_before_what_events_say_is_right() -> None:
    apart = np.sort(np.concatenate([pixels(1, 1), pixels(1, 2)]))
    masks = added(MaskAnswers(GEOMETRY), MaskAnswer.of(1, MendKind.PAINT, [apart]))
    move = EventRef(Event.MOVE, (ref(1, 1),), (ref(2, 1),))
    found = as_candidates(said((Kind.CONFIRM, move, "click"), masks=masks))
    frame = labels_of(found, found.frame == 1)
    assert np.array_equal(np.flatnonzero(frame), apart) and frame.max() == 1
    # But what is no cell now, was drawn before somebody said so.
    gone = EventRef(Event.FALSE, (ref(2, 3),))
    masks = added(MaskAnswers(GEOMETRY), MaskAnswer.of(2, MendKind.KEEP, [pixels(2, 3)]))
    assert not len(as_candidates(said((Kind.CONFIRM, gone, "click"), masks=masks)))
