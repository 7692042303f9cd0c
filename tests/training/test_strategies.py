"""The strategies of Table 1.4 on simulated movies, from end to end."""

import numpy as np
import pytest

from bridgetrack.errors import InputError, ModelError
from bridgetrack.models.model import Model, load_model, save_model
from bridgetrack.progress import run
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.train import TIE, train_steps
from training.training_cases import bad_prior, blind_prior, confirmed, plain_scene, right, some_true


def earlier_movie(seed=2, count=80):
    """Another simulated movie, annotated."""
    return confirmed(plain_scene(seed), some_true(count, seed, divisions=8))


def this_movie(count=20, divisions=2):
    """The movie of interest with a few annotations."""
    return confirmed(plain_scene(), some_true(count, divisions=divisions))


USER = TrainingOptions(lambda_=0.4)
L1 = TrainingOptions(regularizer="l1")


def test_earlier_movies_help(tmp_path):
    movies = {"strategy": "transfer", "sources": [earlier_movie()]}
    found = run(train_steps(this_movie(), bad_prior(), USER, **movies))
    before = right(bad_prior())
    assert before < 0.6
    assert right(found.model) > before + 0.3
    assert found.estimate is not None
    assert (found.n_annotations, found.rho) == (20, TIE / 20)
    saved = load_model(save_model(found.model, tmp_path / "m.json")).provenance
    assert (saved["strategy"], saved["annotations"]) == ("transfer", 20)
    assert len(saved["sources"]) == 1 and "80 annotations" in saved["sources"][0]
    assert found.origin == ("transfer", *saved["sources"])


def test_without_annotations_the_earlier_movies_are_taken_over():
    for strategy in ("source", "union", "transfer"):
        training = run(
            train_steps(plain_scene(), bad_prior(), strategy=strategy, sources=[earlier_movie()])
        )
        assert training.n_annotations == 0
        assert right(training.model) > right(bad_prior()) + 0.3


def test_delta_takes_a_source_that_lacks_features():
    whole = blind_prior()
    keep = [k for k, key in enumerate(whole.keys) if not key.endswith("distance_squared")]
    source = Model(
        tuple(whole.keys[k] for k in keep),
        whole.weights[keep],
        tuple(whole.units[k] for k in keep),
        name="smaller",
    )
    with pytest.raises(ModelError, match="distance_squared"):
        run(train_steps(this_movie(), strategy="prior", sources=[source]))
    delta = run(train_steps(this_movie(6), strategy="delta", sources=[source], options=USER))
    assert delta.model.keys == whole.keys
    assert any(
        "distance_squared" in str(note) and "new to the source" in str(note) for note in delta.notes
    )


def test_wrong_use():
    movie = earlier_movie()
    with pytest.raises(InputError, match="no strategy 'best'"):
        run(train_steps(this_movie(), strategy="best"))
    with pytest.raises(InputError, match="no usable annotations"):
        run(train_steps(this_movie(), strategy="transfer", sources=[plain_scene(2)]))
    with pytest.raises(InputError, match="needs the regularizer l2"):
        run(train_steps(this_movie(), None, L1, strategy="union", sources=[movie]))
    keys = (*movie.matrix.features.keys, "move.magic")
    foreign = Model(keys, np.zeros(len(keys)), ("1",) * len(keys), name="other")
    with pytest.raises(ModelError, match=r"move\.magic"):
        run(train_steps(this_movie(), strategy="delta", sources=[foreign]))
