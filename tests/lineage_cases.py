"""Small drawn movies and random lineages, shared by the tests of files and scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import tifffile
from hypothesis import strategies as st
from numpy.typing import NDArray
from pandas.testing import assert_frame_equal

from bridgetrack.detections.table import Detections
from bridgetrack.io.ctc import nodes_of
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import MARGIN, Tracks, assemble_tracks

SHAPE = (40, 60)
Box = tuple[int, int, int, int]


def frame_of(cells: dict[int, Box], shape: tuple[int, int] = SHAPE) -> NDArray[np.uint16]:
    """A label image with a rectangle (top, left, height, width) per label."""
    image = np.zeros(shape, dtype=np.uint16)
    for label, (y, x, h, w) in cells.items():
        image[y : y + h, x : x + w] = label
    return image


def movie_of(frames: list[NDArray[Any]], **geometry: Any) -> Movie:
    """A label movie from its frames."""
    shape = frames[0].shape
    given = {"scale": (1.0,) * len(shape), **geometry}
    array = da.from_array(np.stack(frames)[:, None], chunks=(1, 1, *shape))
    return Movie(array, Geometry(len(frames), shape, **given), ("labels",))


def detections_of(movie: Movie) -> Detections:
    """Detections of a label movie with position and area only."""
    return Detections(nodes_of(movie), movie.geometry)


def write_ctc_folder(folder: Path, frames: list[NDArray[Any]], rows: list[str]) -> Path:
    """Masks and ``man_track.txt`` in a folder."""
    folder.mkdir(parents=True)
    for t, frame in enumerate(frames):
        tifffile.imwrite(folder / f"man_track{t:03d}.tif", frame)
    (folder / "man_track.txt").write_text("\n".join(rows) + "\n")
    return folder


#: A cell (1) that divides into 2 and 3 after frame 1, and one (4) that is not drawn in frame 1.
DIVIDING = [
    frame_of({1: (10, 10, 8, 8), 4: (25, 40, 6, 6)}),
    frame_of({1: (10, 11, 8, 8)}),
    frame_of({2: (6, 8, 6, 6), 3: (16, 14, 6, 6), 4: (25, 42, 6, 6)}),
    frame_of({2: (5, 8, 6, 6), 3: (18, 14, 6, 6), 4: (25, 43, 6, 6)}),
]
DIVIDING_ROWS = ["1 0 1 0", "2 2 3 1", "3 2 3 1", "4 0 3 0"]


def tracks_of(
    nodes: list[tuple[int, int, float, float, int]],
    edges: list[tuple[int, int, str]],
    links: list[tuple[int, int, str]] | None = None,
    *,
    n_frames: int = 6,
    **geometry: Any,
) -> Tracks:
    """Tracks from (frame, label, y, x, track) per node, whose id is its place in the list."""
    table = pd.DataFrame(nodes, columns=["frame", "label", "y", "x", "track_id"])
    table.insert(0, "id", np.arange(len(table)))
    table = table.astype({"y": np.float64, "x": np.float64})
    table["area"] = 10.0
    given = {"shape": SHAPE, "scale": (1.0, 1.0), **geometry}
    linked = None
    if links is not None:
        linked = pd.DataFrame(links, columns=["track_id", "parent_id", "event"])
    return assemble_tracks(
        table,
        pd.DataFrame(edges, columns=["source", "target", "event"]),
        Geometry(n_frames, **given),
        links=linked,
    )


def regained_identity() -> Tracks:
    """Cells 1 and 2 are drawn as one region (track 3) in frame 1 and part again."""
    nodes = [(0, 1, 5, 5, 1), (0, 2, 5, 9, 2), (1, 1, 5, 7, 3), (2, 1, 5, 5, 1), (2, 2, 5, 9, 2)]
    edges = [(0, 2, "merge"), (1, 2, "merge"), (2, 3, "split"), (2, 4, "split")]
    return tracks_of(nodes, edges, [(3, 1, "merge"), (3, 2, "merge")], n_frames=3)


def cut_cell() -> Tracks:
    """A cell that is cut in two in frame 1."""
    nodes = [(0, 1, 5, 5, 1), (1, 1, 5, 4, 1), (1, 2, 5, 6, 1), (2, 1, 5, 5, 1)]
    edges = [(0, 1, "split"), (0, 2, "split"), (1, 3, "merge"), (2, 3, "merge")]
    return tracks_of(nodes, edges, n_frames=3)


finite = st.floats(-1e6, 1e6, allow_nan=False)


@st.composite
def random_tracks(draw: st.DrawFn) -> Tracks:
    """Lineages with moves, skips, divisions and merges, odd numbers and columns of their own."""
    ndim = draw(st.sampled_from([2, 3]))
    counts = draw(st.lists(st.integers(0, 4), min_size=2, max_size=5).filter(sum))
    frame = np.repeat(np.arange(len(counts)), counts)
    n = len(frame)
    ids = np.sort(draw(st.lists(st.integers(0, 500), min_size=n, max_size=n, unique=True)))
    nodes = pd.DataFrame({"id": ids, "frame": frame})
    nodes["label"] = np.concatenate([np.arange(1, c + 1) for c in counts])
    for axis in "zyx"[-ndim:]:
        nodes[axis] = draw(st.lists(finite, min_size=n, max_size=n))
    nodes["area"] = draw(st.lists(st.floats(0.1, 1e5), min_size=n, max_size=n))
    nodes["mean_0"] = draw(st.lists(finite | st.just(np.nan), min_size=n, max_size=n))
    nodes["kept"] = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    nodes["count"] = draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n))
    pairs = [(i, j) for j in range(n) for i in range(n) if 0 < frame[j] - frame[i] <= 2]
    chosen = sorted(draw(st.sets(st.sampled_from(pairs), max_size=2 * n))) if pairs else []
    edges = pd.DataFrame(
        [(ids[i], ids[j]) for i, j in chosen], columns=["source", "target"], dtype=np.int64
    )
    values = st.lists(finite | st.just(np.nan), min_size=len(edges), max_size=len(edges))
    edges["score"], edges[MARGIN] = draw(values), draw(values)
    geometry = Geometry(
        n_frames=len(counts) + draw(st.integers(0, 2)),
        shape=draw(st.none() | st.just((30, 40, 50)[-ndim:])),
        scale=tuple(draw(st.lists(st.floats(0.01, 10), min_size=ndim, max_size=ndim))),
        unit=draw(st.sampled_from(["pixel", "micrometer"])),
        frame_interval=draw(st.none() | st.floats(0.1, 60)),
    )
    notes = tuple(draw(st.lists(st.text("abc ü", min_size=1, max_size=9), max_size=2)))
    return assemble_tracks(nodes, edges, geometry, notes=notes)


def assert_same_tracks(found: Tracks, expected: Tracks) -> None:
    """Every table, the geometry and the notes are equal to the last bit."""
    for name in ("nodes", "edges", "events", "links"):
        a, b = getattr(found, name), getattr(expected, name)
        assert_frame_equal(_plain(a), _plain(b), check_exact=True, obj=name)
    assert found.geometry == expected.geometry
    assert found.notes == expected.notes


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    table = table[sorted(table.columns)]
    return table.assign(event=list(table["event"])) if "event" in table else table
