"""Scores of links that another program gave, out of a table or a GEFF store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bridgetrack.errors import InputError
from bridgetrack.features.link_scores import LinkScores
from bridgetrack.importing.geff import read_geff_edges
from bridgetrack.importing.text_table import plain_names, read_text_table

_COLUMNS = {
    "frame": ("frame", "t", "source_frame", "frame_source", "time"),
    "source": ("source", "source_label", "label_source", "source_id", "from"),
    "target": ("target", "target_label", "label_target", "target_id", "to"),
    "score": ("score", "link_score", "probability", "weight", "edge_weight", "p"),
}
"""What columns are called, the first that is there."""


def read_link_scores(path: Path | str) -> LinkScores:
    """Read scores of links.

    Parameters
    ----------
    path
        A CSV table with a row per link: ``frame`` of the earlier cell, labels ``source`` and
        ``target``, and ``score``, 0 to 1; or a GEFF store whose nodes have labels and whose edges
        have an attribute of that name (``score``, ``probability``, ``weight``). Links over
        more than one frame are left out.

    Raises
    ------
    InputError
        Where it cannot be read, a column is missing, or a number is wrong; names file and row.
    """
    path = Path(path)
    if path.is_dir() or path.suffix.lower() == ".geff":
        return _of_geff(path)
    text = read_text_table(path)
    known = plain_names(text.header)
    found = {}
    for column, names in _COLUMNS.items():
        name = next((known[n] for n in names if n in known), None)
        if name is None:
            raise InputError(
                f"{path}: there is no column {column}; a table of link scores needs frame (of the "
                f"earlier cell), source and target (labels) and score; it has "
                f"{', '.join(text.header)}"
            )
        found[column] = name
    frame, source, target = (text.integers(found[c]) for c in ("frame", "source", "target"))
    return LinkScores(frame, source, target, text.numbers(found["score"]), str(path))


def _of_geff(path: Path) -> LinkScores:
    nodes, edges = read_geff_edges(path)
    name = next((n for n in _COLUMNS["score"] if n in edges.columns), None)
    if name is None:
        raise InputError(
            f"{path}: its edges have no score; one of {', '.join(_COLUMNS['score'])} is needed"
        )
    cells = nodes.set_index("id")[["frame", "label"]]
    ends = [cells.loc[edges[side]].to_numpy(dtype=np.int64) for side in ("source", "target")]
    score = pd.to_numeric(edges[name], errors="coerce").to_numpy(dtype=np.float64)
    near = (ends[1][:, 0] == ends[0][:, 0] + 1) & ~np.isnan(score)
    here = [end[near] for end in ends]
    return LinkScores(here[0][:, 0], here[0][:, 1], here[1][:, 1], score[near], str(path))
