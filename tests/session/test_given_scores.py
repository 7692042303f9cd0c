"""Scores that another program gave to links count for the open movie, and are there again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bridgetrack.session.kept_settings import KeptSettings
from bridgetrack.session.movie import measured
from bridgetrack.session.session import Session


@pytest.fixture
def links(session):
    """Links of the tracks: frame, source and target."""
    table, edges = session.tracking.tracks.nodes.set_index("id"), session.tracking.tracks.edges
    one, two = table.loc[edges["source"]], table.loc[edges["target"]]
    near = two["frame"].to_numpy() == one["frame"].to_numpy() + 1
    found = pd.DataFrame(
        {"frame": one["frame"], "source": one["label"], "target": two["label"].to_numpy()}
    )
    return found[near].reset_index(drop=True)


def worth(session) -> float:
    """What the tracks score."""
    tracking = session.tracking
    return float(tracking.scores[tracking.solution.chosen].sum())


def test_scores_count_and_are_there_again(session, source, links, library, tmp_path):
    kept = KeptSettings(session)
    assert kept.restore() == ()
    path, without = tmp_path / "scores.csv", len(session.scene.matrix.features)
    before = worth(session)
    links.assign(score=0.001).to_csv(path, index=False)
    session.link_scores.use(path)
    assert "move.link_score" in session.scene.matrix.features.keys
    assert session.link_scores.words == (
        f"{len(links):,} of {len(links):,} scored links join cells of this movie."
    )
    assert worth(session) < before - len(links)
    # Painting measures anew with them, and so does opening again.
    session.measure(touched={0})
    assert "move.link_score" in session.scene.matrix.features.keys
    session.close()
    again = Session(library=library)
    restored = KeptSettings(again)
    assert again.open(source, tmp_path / "answers.json")
    assert restored.restore() == ()
    assert "move.link_score" in again.scene.matrix.features.keys
    # Others that cannot be read leave those in use, and say what is wrong.
    with again.hearing() as heard:
        again.link_scores.use(tmp_path / "none.csv")
    assert len(heard) == 1
    assert again.link_scores.problem and again.link_scores.path == path
    assert "move.link_score" in again.scene.matrix.features.keys
    again.link_scores.drop()
    assert len(again.scene.matrix.features) == without and not again.link_scores.words
    again.close()


def test_scores_that_do_not_fit_are_told(session, said, links, tmp_path):
    path = tmp_path / "scores.csv"
    links.assign(score=0.5, source=links["source"] + 10_000).to_csv(path, index=False)
    session.link_scores.use(path)
    [(level, words)] = said
    assert level == "error" and "scores.csv: none of its" in words
    assert session.link_scores.path is None and session.link_scores.problem == words
    assert "move.link_score" not in session.scene.matrix.features.keys
    path.write_text("a,b\n1,2\n")
    session.link_scores.use(path)
    assert "there is no column frame" in session.link_scores.problem
    np.testing.assert_equal(session.features, None)
    taught = Session()
    taught.link_scores.use(path)
    assert "no movie" in taught.link_scores.problem


def test_a_file_that_cannot_be_read_now_is_not_forgotten(session, source, links, library, tmp_path):
    kept, path = KeptSettings(session), tmp_path / "scores.csv"
    kept.restore()
    links.assign(score=0.5).to_csv(path, index=False)
    session.link_scores.use(path)
    session.close()
    path.rename(tmp_path / "away.csv")
    for there in (False, True):
        again = Session(library=library)
        restored = KeptSettings(again)
        with again.hearing():
            assert again.open(source, tmp_path / "answers.json")
            restored.restore()
        assert again.link_scores.path == path
        assert bool(again.link_scores.problem) is not there
        assert ("move.link_score" in again.scene.matrix.features.keys) is there
        again.close()
        if not there:
            (tmp_path / "away.csv").rename(path)


def test_the_cells_stay_while_the_movie_is_described_anew(session, links, tmp_path, monkeypatch):
    path, base = tmp_path / "scores.csv", session._base
    links.assign(score=0.5).to_csv(path, index=False)
    seen = []
    monkeypatch.setattr(
        "bridgetrack.session.tracked_movie.measured",
        lambda *args, made=measured: seen.append(session._base) or made(*args),
    )
    session.link_scores.use(path)
    assert seen == [base], "training and exporting go on with these"
    assert session._base is not base
