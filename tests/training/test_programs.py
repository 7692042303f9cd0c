"""Programs are taken over where their content is the same, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.training import tracking_model as programs
from bridgetrack.training.components import build_training_set
from bridgetrack.training.tracking_model import Programs, TrackingModel
from bridgetrack.training.training_set import TrainingSet, balanced
from training.training_cases import plain_scene, says, some_true, with_annotations


def data_of(count: int, largest: int = 40) -> TrainingSet:
    plain = plain_scene()
    return build_training_set([with_annotations(plain, says(plain, some_true(count)))], largest)


def test_the_same_training_set_takes_over_everything() -> None:
    data = data_of(8)
    first = Programs.of(data)
    again = Programs.of(balanced(data, np.arange(8.0), 0.5), first)
    for a, b in zip(
        (*first.free, *first.compatible), (*again.free, *again.compatible), strict=True
    ):
        assert a.program is b.program


def test_other_annotations_keep_the_free_programs_only() -> None:
    data = data_of(8)
    first = Programs.of(data)
    changed = data.allowed.copy()
    changed[np.flatnonzero(~changed)[0]] = True
    again = Programs.of(replace(data, allowed=changed), first)
    assert all(a.program is b.program for a, b in zip(first.free, again.free, strict=True))
    kept = [a.program is b.program for a, b in zip(first.compatible, again.compatible, strict=True)]
    assert not all(kept)


def test_programs_no_longer_needed_are_forgotten() -> None:
    many, few = data_of(12), data_of(2)
    found = Programs.of(few, Programs.of(many))
    assert len(found.known) == len(found.free) + len(found.compatible)


def test_few_solvers_stay_open_and_the_others_answer_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = data_of(12)
    monkeypatch.setattr(programs, "SIZE", 40)
    everything = Programs.of(data)
    monkeypatch.setattr(programs, "OPEN", 3)
    few = Programs.of(data)
    assert sum(p.stays_open for p in few.known.values()) == 3 < len(few.known)
    assert all(p.stays_open for p in everything.known.values())
    rng = np.random.default_rng(1)
    for _ in range(4):
        scores = rng.normal(size=data.incidence.shape[0])
        for kind in ("free", "compatible"):
            for a, b in zip(getattr(few, kind), getattr(everything, kind), strict=True):
                mine = scores[a.columns]
                assert mine @ a.solve(scores) == pytest.approx(mine @ b.solve(scores), abs=1e-7)
    assert all((p._program is None) == (not p.stays_open) for p in few.known.values())
    other = replace(data, names=tuple(b"other" + name for name in data.names))
    for later in (data_of(14), other):
        assert sum(p.stays_open for p in Programs.of(later, few).known.values()) == 3


def test_what_was_taken_over_answers_the_same() -> None:
    earlier = TrackingModel(data_of(6))
    rng = np.random.default_rng(0)
    w = rng.normal(size=earlier.n_features)
    earlier.loss_augmented_batch(earlier.data.samples, -w)
    earlier.compatible_batch(earlier.data.samples, w + 1)
    data = data_of(12)
    fresh, taken = TrackingModel(data), TrackingModel(data, earlier=earlier)
    for _ in range(3):
        w = rng.normal(size=fresh.n_features)
        for call in ("inference_batch", "loss_augmented_batch", "compatible_batch"):
            one, two = (getattr(m, call)(data.samples, w) for m in (fresh, taken))
            np.testing.assert_allclose(one.bounds, two.bounds, atol=1e-7)


def test_training_sets_without_names_share_nothing() -> None:
    data = replace(data_of(8), names=())
    first = Programs.of(data)
    again = Programs.of(data, first)
    assert all(a.program is not b.program for a, b in zip(first.free, again.free, strict=True))
