"""Evidence, hypotheses and features of simulated movies and situations, shared by tests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bridgetrack.detections.table import Detections
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureMatrix, FeatureSet
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.hypotheses.generate import generate_hypotheses
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from bridgetrack.progress import run
from gallery import Situation, measure, movie_of
from simulator import SimulatedMovie, SimulationSettings, simulate


@cache
def simulated(
    dim: int = 2, cells: int = 30, frames: int = 6, seed: int = 1, **more: float
) -> SimulatedMovie:
    """A small simulated movie."""
    settings = SimulationSettings(
        frames=frames, cells=cells, dim=dim, seed=seed, diameter=12.0, **more
    )
    return simulate(settings)


def label_movie(movie: SimulatedMovie) -> Movie:
    """Its labels, opened."""
    scale = movie.geometry.scale
    return movie_of(movie.labels.astype(np.int32), scale=scale, source="simulated")


def image_movie(pixels: NDArray[np.generic], scale: tuple[float, ...]) -> Movie:
    """An image movie of one channel from (T, [Z,] Y, X)."""
    return movie_of(pixels, scale=scale, source="image")


def channels_movie(pixels: NDArray[np.generic], scale: tuple[float, ...]) -> Movie:
    """An image movie from (T, C, [Z,] Y, X)."""
    array = da.from_array(pixels, chunks=(1, 1, *pixels.shape[2:]))
    geometry = Geometry(len(pixels), pixels.shape[2:], scale)
    return Movie(array, geometry, tuple(str(k) for k in range(pixels.shape[1])), "image")


def evidence_of(labels: Movie | Detections, image: Movie | None = None) -> Evidence:
    """Measured and compared frames."""
    if isinstance(labels, Movie):
        return run(gather_evidence(measure(labels, image), labels))
    return run(gather_evidence(labels))


@dataclass(frozen=True)
class Described:
    """A movie up to its features."""

    evidence: Evidence
    hypotheses: Events
    matrix: FeatureMatrix


def described(
    labels: Movie | Detections, image: Movie | None = None, features: FeatureSet | None = None
) -> Described:
    """Evidence, hypotheses and features of a movie."""
    evidence = evidence_of(labels, image)
    hypotheses = generate_hypotheses(evidence)
    return Described(
        evidence, hypotheses, FeatureMatrix(evidence, hypotheses, features or default_features())
    )


def keys_of(hypotheses: Events) -> list[tuple[int, ...]]:
    """Event and rows named, one tuple per hypothesis."""
    columns = [hypotheses.event, hypotheses.sources, hypotheses.targets]
    return [tuple(row) for row in np.column_stack(columns).tolist()]


def events_of(hypotheses: Events) -> set[tuple[Event, tuple[int, ...], tuple[int, ...]]]:
    """Event, rows before and rows after, without the empty places."""
    return {
        (Event(e), tuple(r for r in (a, b) if r >= 0), tuple(r for r in (c, d) if r >= 0))
        for e, a, b, c, d in keys_of(hypotheses)
    }


def true_moves_and_divisions(
    movie: SimulatedMovie, detections: Detections
) -> set[tuple[Event, tuple[int, ...], tuple[int, ...]]]:
    """Moves and divisions between neighbouring frames of a simulated movie."""
    row = {
        (int(t), int(k)): r
        for r, (t, k) in enumerate(zip(detections.frame, detections.label, strict=True))
    }
    found = set()
    for (t, k), r in row.items():
        if (t + 1, k) in row:
            found.add((Event.MOVE, (r,), (row[t + 1, k],)))
    for parent, family in movie.tracks[movie.tracks["parent"] > 0].groupby("parent"):
        begin = int(family["begin"].iloc[0])
        mother = row.get((begin - 1, int(parent)))
        daughters = [row.get((begin, int(k))) for k in family["label"]]
        if mother is not None and len(daughters) == 2 and None not in daughters:
            found.add((Event.DIVIDE, (mother,), tuple(sorted(daughters))))  # type: ignore[type-var]
    return found


@cache
def situation_scene(situation: Situation) -> Described:
    """A situation of the gallery, described."""
    return described(situation.movie)
