"""Scores that another program gave to links count for the open movie, and are there again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bridgetrack.session.kept_settings import KeptSettings
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
    assert restored.restore() == ("scores of links",)
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
