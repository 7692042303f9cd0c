"""The learners agree on tracking."""

from __future__ import annotations

from bridgetrack.progress import run
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.train import train_steps
from golden.test_golden import poor, scene


def test_one_component_is_fitted_to_the_end() -> None:
    """Its one slack makes minimisers leap to and fro, and the start contradicts most answers."""
    count = 0
    for seed in (2, 3):
        steps = train_steps(scene(6, seed), poor(), TrainingOptions(learner="n-slack"))
        found = run(steps).result
        assert found.converged
        count += found.n_inferences
    assert count < 3000
