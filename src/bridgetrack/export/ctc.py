"""Masks and track table of the Cell Tracking Challenge."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.export.atomic import staged_folder
from bridgetrack.export.ctc_form import CtcForm, ctc_form
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks

TABLE = "res_track.txt"
_OURS = re.compile(r"^(mask\d+\.tif|res_track\.txt)$")


def write_ctc(tracks: Tracks, labels: Movie, folder: Path | str) -> tuple[str, ...]:
    """Write ``maskNNN.tif`` and ``res_track.txt``.

    The masks are the segmentation renamed to tracks, frame by frame; pieces of one cell get one
    label, and detections that belong to no track are erased.

    Parameters
    ----------
    tracks
        The tracks; ``label`` of their nodes refers to `labels`.
    labels
        The segmentation.
    folder
        Where to. A folder that holds nothing but an earlier result is replaced.

    Returns
    -------
    tuple of str
        What the format cannot hold (see `ctc_form`).

    Raises
    ------
    InputError
        Where a node is not drawn in the segmentation.
    OutputError
        Where the files cannot be written; nothing is left behind then.
    """
    form = ctc_form(tracks)
    notes = list(form.notes)
    dtype: type[np.unsignedinteger[Any]] = np.uint16
    if form.label.max(initial=0) > np.iinfo(np.uint16).max:
        dtype = np.uint32
        notes.append("more than 65,535 tracks: the masks have 32 bits, the format asks for 16")
    frame = tracks.nodes["frame"].to_numpy(dtype=np.int64)
    order = np.argsort(frame, kind="stable")
    starts = np.searchsorted(frame[order], np.arange(labels.n_frames + 1))
    digits = max(3, len(str(labels.n_frames - 1)))
    with staged_folder(Path(folder), lambda name: _OURS.match(name) is not None) as staging:
        for t in range(labels.n_frames):
            nodes = order[starts[t] : starts[t + 1]]
            renamed = _rename(tracks, labels, form, t, nodes).astype(dtype)
            tifffile.imwrite(
                staging / f"mask{t:0{digits}d}.tif",
                renamed,
                compression="zlib",
                photometric="minisblack",
            )
        rows = (" ".join(str(v) for v in row) for row in form.table.tolist())
        text = "".join(row + "\n" for row in rows)
        (staging / TABLE).write_text(text, encoding="ascii")
    return tuple(notes)


def _rename(
    tracks: Tracks, labels: Movie, form: CtcForm, t: int, nodes: NDArray[np.int64]
) -> NDArray[Any]:
    image = labels.channel_frame(t)
    old = tracks.nodes["label"].to_numpy(dtype=np.int64)[nodes]
    table = np.zeros(max(int(image.max(initial=0)), int(old.max(initial=0))) + 1, dtype=np.int64)
    table[old] = form.label[nodes]
    present = np.zeros(len(table), dtype=bool)
    present[image.ravel()] = True
    if not present[old].all():
        raise InputError(
            f"{labels.source}, frame {t}: the cell {old[~present[old]][0]} is in the tracks but "
            "not in the segmentation; give the segmentation that was tracked"
        )
    return np.asarray(table[image])
