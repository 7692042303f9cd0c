"""The cells in the colours of their tracks, as a movie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile

import bridgetrack as bt
from bridgetrack.tracks.colours import colouring
from lineage_cases import DIVIDING, DIVIDING_ROWS, write_ctc_folder


def test_cells_are_painted_and_the_rest_is_black(tmp_path: Path):
    folder = write_ctc_folder(tmp_path / "TRA", DIVIDING, DIVIDING_ROWS)
    out = tmp_path / "cells.tif"
    tracks, labels = bt.read_tracks(folder), bt.open_labels(folder)
    assert bt.run(bt.save_coloured(tracks, labels, out, "generation")).high == 1
    found = tifffile.imread(out)
    shades = colouring(tracks, "generation")
    colour = {
        (t, k): c
        for t, k, c in zip(
            shades.frame, shades.track_id, (255 * shades.colours).round(), strict=True
        )
    }
    for t, frame in enumerate(DIVIDING):
        assert not found[t][frame == 0].any()
        for label in np.unique(frame[frame > 0]):
            assert (found[t][frame == label] == colour[t, label]).all(), (t, label)
    assert colour[0, 1].tolist() != colour[2, 2].tolist() == colour[2, 3].tolist()
    with pytest.raises(bt.BridgetrackError, match="choose from family"):
        bt.run(bt.save_coloured(tracks, labels, tmp_path / "other.tif", "smell"))
    other = bt.open_labels(np.stack([*DIVIDING[:3], DIVIDING[1]]), axes="TYX")
    with pytest.raises(bt.BridgetrackError, match="not in the segmentation"):
        bt.run(bt.save_coloured(tracks, other, tmp_path / "other.tif"))
    short = replace(tracks, geometry=replace(tracks.geometry, n_frames=5))
    with pytest.raises(bt.BridgetrackError, match="have 5"):
        bt.run(bt.save_coloured(short, other, tmp_path / "other.tif"))
    assert not (tmp_path / "other.tif").exists()
