"""What lies beyond an event: parts that are one again, cells that were two."""

import numpy as np
import pytest

from bridgetrack.features.default import default_features
from bridgetrack.features.view import STEPS
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.models.model import shipped_model
from bridgetrack.pipeline.scene import prepare
from bridgetrack.progress import run
from gallery import movie_of

FEATURES = default_features()
WHOLE, TWO, APART = "one mask", "two masks that touch", "two masks apart"
SHORT = "one mask that lacks much of the second"


def frame(how, size=60):
    """A cell with its mask in one piece or two, and others around it that stay as they are."""
    labels = np.zeros((size, size), dtype=np.int32)
    for label, (y, x) in enumerate(((8, 8), (8, 48), (48, 8), (48, 48)), 10):
        labels[y - 4 : y + 5, x - 4 : x + 5] = label
    labels[24:36, 20:40] = 1
    if how == SHORT:
        labels[24:36, 36:40] = 0
    if how in (TWO, APART):
        labels[24:36, 30:40] = 2
    if how == APART:
        labels[:, 27:33] = 0
    return labels


def scene_of(*frames):
    movie = np.stack([frame(how) for how in frames])
    return run(prepare(movie_of(movie), None))


def feature(scene, event, name, t):
    """A feature of the event that names both parts, between frames t and t + 1."""
    detections, hypotheses = scene.detections, scene.hypotheses
    row = {(int(f), int(n)): k for k, (f, n) in
           enumerate(zip(detections.frame, detections.label, strict=True))}  # fmt: skip
    two, one = (t, t + 1) if event == Event.MERGE else (t + 1, t)
    parts, whole = {row[two, 1], row[two, 2]}, row[one, 1]
    for k in np.flatnonzero(hypotheses.event == event).tolist():
        source, target = hypotheses.sources[k], hypotheses.targets[k]
        pair, other = (source, target) if event == Event.MERGE else (target, source)
        if set(pair.tolist()) == parts and other[0] == whole:
            return float(scene.matrix.row(k)[FEATURES.keys.index(f"{event.key}.{name}")])
    raise AssertionError("not proposed")


def chosen(scene):
    """Kinds of the chosen events that are no moves."""
    weights = shipped_model().aligned(scene.matrix.features)
    solution = solve(scene.problem, scene.matrix.scores(weights))
    kinds = scene.hypotheses.event[solution.chosen]
    return {Event(k).key for k in kinds} - {"move"}


@pytest.mark.parametrize("last", [1, 3])
@pytest.mark.parametrize("true", [WHOLE, TWO])
def test_wrong_masks_are_right_again(true, last):
    """A cell is drawn as two and is one again, or two are drawn as one and were two."""
    wrong, first, then = (
        (TWO, Event.SPLIT, Event.MERGE) if true == WHOLE else (WHOLE, Event.MERGE, Event.SPLIT)
    )
    scene = scene_of(true, true, *[wrong] * last, true, true)
    assert feature(scene, first, "wavering", 1) == 1
    assert feature(scene, then, "wavering", 1 + last) == 1
    assert feature(scene, Event.DIVIDE, "wavering", 1 if true == WHOLE else 1 + last) == 1
    assert chosen(scene) == {"split", "merge"}


def test_of_both_pieces_the_one_counts_that_is_covered_less():
    assert feature(scene_of(WHOLE, TWO, SHORT, SHORT), Event.SPLIT, "wavering", 0) == 0


def test_both_signs_count_once():
    scene = scene_of(TWO, WHOLE, TWO, WHOLE, TWO)
    assert feature(scene, Event.SPLIT, "wavering", 1) == 1
    assert feature(scene, Event.MERGE, "wavering", 2) == 1


def test_daughters_stay_two():
    for parts in (TWO, APART):
        scene = scene_of(WHOLE, WHOLE, WHOLE, parts, parts, parts, parts)
        assert feature(scene, Event.DIVIDE, "wavering", 2) == 0
        assert feature(scene, Event.SPLIT, "wavering", 2) == 0
        assert chosen(scene) == {"divide"}


def test_what_lies_farther_off_is_not_looked_at():
    scene = scene_of(WHOLE, *[TWO] * (STEPS + 1), WHOLE, WHOLE)
    assert feature(scene, Event.SPLIT, "wavering", 0) == 0
    scene = scene_of(TWO, TWO, *[WHOLE] * (STEPS + 1), TWO)
    assert feature(scene, Event.SPLIT, "wavering", STEPS + 2) == 0


def test_cells_that_do_not_touch_are_not_parts_of_one():
    scene = scene_of(WHOLE, APART, WHOLE, WHOLE)
    assert feature(scene, Event.SPLIT, "wavering", 0) == 0
