"""Looking at the kept models, and at the movie only where there is something to compare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from bridgetrack.models.entry import ModelCard
from bridgetrack.models.library import Library
from bridgetrack.models.shipped import shipped_model, untrained_model
from bridgetrack.pipeline.movie_record import statistics_of
from bridgetrack.progress import run
from bridgetrack.session.start_choice import look_at, survey_steps


def test_the_movie_is_looked_at_only_for_models_that_know_theirs(session, tmp_path: Path):
    library, tracking = Library(tmp_path / "models"), session.tracking
    assert run(survey_steps(library, tracking, None))[0] == ()
    library.save("plain", shipped_model(), ModelCard())
    entries, known = run(survey_steps(library, tracking, None))
    assert [e.name for e in entries] == ["plain"]
    assert known is None
    mine = statistics_of(tracking.scene, tracking.solution.chosen)
    library.save("known", shipped_model(), ModelCard(statistics=mine))
    assert run(survey_steps(library, tracking, None))[1] is not None
    assert run(survey_steps(library, None, None))[1] is None
    assert run(survey_steps(library, None, mine))[1] is mine


def test_statistics_do_not_depend_on_the_model_in_use(session):
    untrained = untrained_model(session.scene.matrix.features)
    session.set_model(untrained)
    wanted = run(look_at(session.tracking))
    session.set_model(replace(untrained, weights=-untrained.weights, name="other"))
    found = run(look_at(session.tracking))
    assert np.allclose(found.mean, wanted.mean)
