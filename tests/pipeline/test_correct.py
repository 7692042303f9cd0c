"""Solving again only what new annotations touch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.contradictions import conflicts_with
from bridgetrack.errors import ContradictionError
from bridgetrack.files import sample_folder
from bridgetrack.inference.solve import resolve
from bridgetrack.movie import open_labels
from bridgetrack.pipeline.scene import annotate, prepare
from bridgetrack.pipeline.tracking import resolve_steps, track_scene
from bridgetrack.progress import run


def labels(n: int) -> np.ndarray:
    return np.asarray(open_labels(sample_folder() / "01_GT" / "TRA").array[:n, 0].compute())


@pytest.fixture(scope="module")
def tracked():
    scene = run(prepare(open_labels(labels(6), axes="TYX")))
    return run(track_scene(scene))


def answers_for(tracking, seeds):
    """Confirmations and rejections of events drawn by number, without contradictions."""
    scene = tracking.scene
    chosen = AnnotationSet(scene.detections.geometry)
    for k, (number, kind) in enumerate(seeds):
        h = number % len(scene.hypotheses)
        (event,) = event_refs(scene.detections, scene.hypotheses.take(np.array([h])))
        new = Annotation(f"a{k}", kind, (event,))
        if not conflicts_with(chosen, [new]):
            chosen = chosen.edit(add=[new])
    return chosen


kinds = st.sampled_from([Kind.CONFIRM, Kind.CONFIRM, Kind.REJECT])
draws = st.lists(st.tuples(st.integers(0, 10**6), kinds), min_size=1, max_size=6)


@given(first=draws, second=draws)
@settings(max_examples=8, deadline=None)
def test_equals_a_full_solve_through_any_changes(tracked, first, second):
    current = tracked
    for seeds in (first, second):
        annotations = answers_for(tracked, seeds)
        try:
            scene = annotate(current.scene, annotations)
            full = run(track_scene(scene))
        except ContradictionError:
            continue
        current = run(resolve_steps(current, scene))
        assert current.solution.value == pytest.approx(full.solution.value, abs=1e-6)
        assert current.solution.gap <= full.solution.gap + 1e-6
        current.solution.check(scene.problem, current.scores)
    none = AnnotationSet(tracked.scene.detections.geometry)
    back = run(resolve_steps(current, annotate(tracked.scene, none)))
    assert back.solution.value == pytest.approx(tracked.solution.value, abs=1e-6)


def test_touches_little(tracked):
    annotations = answers_for(tracked, [(int(np.flatnonzero(tracked.solution.chosen)[40]),
                                         Kind.REJECT)])  # fmt: skip
    scene, before = annotate(tracked.scene, annotations), tracked.solution
    known = tracked.scores, scene.constraints.allowed, before.chosen, before
    solution, touched = resolve(scene.problem, *known)
    assert 0 < touched < len(tracked.scene.slots) / 4
    assert solution.value < before.value
