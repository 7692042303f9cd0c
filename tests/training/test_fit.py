"""How far from the starting to the fitted weights training goes."""

import numpy as np

from bridgetrack.learning import L2, LOSSES
from bridgetrack.learning.risk import Risk
from bridgetrack.models.shipped import untrained_model
from bridgetrack.progress import run
from bridgetrack.training.fit import TEMPERATURE, Objective, share_of_step
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import build_training_set
from training.training_cases import bad_prior, confirmed, plain_scene, some_true


def test_it_is_the_mean_of_the_posterior_along_the_way() -> None:
    scene = confirmed(plain_scene(), some_true(4))
    model = TrackingModel(build_training_set(scene))
    start = bad_prior().weights
    fitted = (start + untrained_model().weights) / 2
    objective = Objective(model, (), start, None, 0.02)
    found = run(share_of_step(objective, scene, fitted))
    shares = np.linspace(0, 1, 41)
    values, risk = [], Risk(model, model.data.samples, None, LOSSES["bridge"])
    for s in shares:
        w = start + s * (fitted - start)
        values.append(risk.loss_of_each(w).sum() + 4 * L2(0.02, start).value(w))
    density = np.exp((min(values) - np.array(values)) / TEMPERATURE)
    expected = np.trapezoid(density * shares, shares) / np.trapezoid(density, shares)
    assert abs(found - expected) < 0.01
    assert abs(expected - 0.5) > 0.05
