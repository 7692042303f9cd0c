"""Random forests as a baseline in the same integer program."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.experiments.forest import train_forest
from bridgetrack.inference.solve import solve
from training.training_cases import confirmed, plain_scene, some_true, true_columns


def test_forests_learn_what_is_true_elsewhere_in_the_movie() -> None:
    scene = plain_scene()
    forest = train_forest(confirmed(scene, some_true(60)), seed=0, trees=50)
    scores = forest.scores(scene)
    assert np.isfinite(scores).all()
    chosen = solve(scene.problem, scores).chosen
    assert chosen[true_columns()].mean() > 0.9
    again = train_forest(confirmed(scene, some_true(60)), seed=0, trees=50).scores(scene)
    np.testing.assert_array_equal(scores, again)


def test_forests_need_a_confirmed_event() -> None:
    with pytest.raises(InputError, match="needs confirmed events"):
        train_forest(plain_scene())
