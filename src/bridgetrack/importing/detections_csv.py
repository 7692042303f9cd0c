"""Detections from a table of centroids."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bridgetrack.detections.table import Detections
from bridgetrack.importing.cells_csv import CellTable, CsvOptions, read_cells
from bridgetrack.importing.columns import Columns


def read_detections_csv(
    path: Path | str,
    columns: Columns | Mapping[str, str | None] | None = None,
    *,
    scale: tuple[float, ...] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
    shape: tuple[int, ...] | None = None,
    n_frames: int | None = None,
    positions: str | None = None,
) -> Detections:
    """Read detections from a CSV file that has only centroids.

    Parameters
    ----------
    path
        Parted by commas, semicolons or tabs; TrackMate's four header rows are understood.
    columns
        What the columns mean, all of it (`Columns`) or corrections of the guess
        (role → column); see `guess_columns`.
    scale, unit, frame_interval, shape, n_frames, positions
        See `CsvOptions`.

    Returns
    -------
    Detections
        ``label`` is the file's label, id or track where unique in the frame, else a running
        number; ``id`` keeps the file's id. ``has_masks`` is False; the area is that of a disc or
        ball of the file's radius, 1 where sizes are unknown. ``border_distance`` (from the
        centroid) is there where `shape` is known.

    Raises
    ------
    InputError
        Where a column is missing, a number is unreadable or an id repeats; names file and row.

    Warns
    -----
    UserWarning
        Where rows were left out.
    """
    options = CsvOptions(scale, unit, frame_interval, shape, n_frames, positions)
    cells = read_cells(path, columns, options)
    for note in cells.notes:
        warnings.warn(f"{path}: {note}", UserWarning, stacklevel=2)
    return detections_of(cells)


def detections_of(cells: CellTable) -> Detections:
    """The cells of a file as detections, without any lineage."""
    geometry = cells.geometry
    table = cells.table[["frame", "label", *geometry.axes, "area", "id"]]
    table = table.sort_values(["frame", "label"], kind="stable").reset_index(drop=True)
    if geometry.shape is not None:
        pixels = table[list(geometry.axes)].to_numpy(dtype=np.float64)
        far_edge = np.asarray(geometry.shape, dtype=np.float64) - 1 - pixels
        gaps = np.minimum(pixels, far_edge) * geometry.scale_array
        table["border_distance"] = np.maximum(gaps.min(axis=1), 0.0)
    return Detections(table, geometry, has_masks=False)
