"""Simulated movies: reproducible, biologically plausible, with an exact truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from bridgetrack.errors import InputError
from bridgetrack.simulation.movie import SimulatedMovie, Simulation, simulate
from bridgetrack.simulation.settings import SimulationSettings

SMALL = SimulationSettings(frames=10, cells=25, division_rate=0.03, seed=5)


@pytest.fixture(scope="module")
def flat() -> SimulatedMovie:
    return simulate(replace(SMALL, frames=30))


@pytest.fixture(scope="module")
def stack() -> SimulatedMovie:
    return simulate(replace(SMALL, dim=3, frames=8, cells=30, depth=10))


def check_truth(movie: SimulatedMovie) -> None:
    """Everything that CTC asks of a truth."""
    present = {
        (t, int(label))
        for t, frame in enumerate(movie.labels)
        for label in np.unique(frame)
        if label
    }
    stated = {(t, label) for label, b, e, _ in movie.man_track.tolist() for t in range(b, e + 1)}
    assert present == stated
    assert present == set(movie.nodes[["frame", "label"]].itertuples(index=False, name=None))
    span = {label: (b, e) for label, b, e, _ in movie.man_track.tolist()}
    children: dict[int, int] = {}
    for _, begin, _, parent in movie.man_track.tolist():
        if parent:
            assert span[parent][1] == begin - 1
            children[parent] = children.get(parent, 0) + 1
    assert set(children.values()) <= {2}
    assert set(children) == set(movie.tracks.loc[movie.tracks["fate"] == "divide", "label"])


def test_same_seed_same_pixels() -> None:
    first, second = simulate(SMALL), simulate(SMALL)
    other = simulate(replace(SMALL, seed=6))
    assert np.array_equal(first.image, second.image)
    assert np.array_equal(first.labels, second.labels)
    assert first.tracks.equals(second.tracks)
    assert not np.array_equal(first.image, other.image)


def test_frame_by_frame_is_the_same_movie() -> None:
    whole = simulate(SMALL)
    simulation = Simulation(SMALL)
    for frame in simulation:
        assert np.array_equal(frame.image, whole.image[frame.t])
        assert np.array_equal(frame.labels, whole.labels[frame.t])
    assert simulation.tracks.equals(whole.tracks)


def test_truth_is_consistent(flat: SimulatedMovie, stack: SimulatedMovie) -> None:
    check_truth(flat)
    check_truth(stack)
    assert (flat.tracks["fate"] == "divide").sum() >= 5


@settings(deadline=None, max_examples=12)
@given(
    st.integers(0, 2**31),
    st.sampled_from([2, 3]),
    st.floats(0, 0.1),
    st.floats(0, 0.2),
    st.floats(0, 15),
    st.floats(0.02, 0.5),
)
def test_truth_is_consistent_for_any_settings(
    seed: int, dim: int, division: float, death: float, drift: float, density: float
) -> None:
    movie = simulate(
        SimulationSettings(
            frames=6,
            cells=12,
            depth=5,
            dim=dim,
            seed=seed,
            division_rate=division,
            death_rate=death,
            drift=drift,
            density=density,
        )
    )
    check_truth(movie)


def test_each_label_is_in_one_place() -> None:
    crowded = simulate(replace(SMALL, frames=6, density=0.55))
    full = np.ones((3, 3))
    for frame in crowded.labels:
        for label in np.unique(frame)[1:]:
            assert ndimage.label(frame == label, full)[1] == 1


def test_centres_lie_in_their_masks(flat: SimulatedMovie) -> None:
    nodes = flat.nodes
    inside = nodes[nodes[["y", "x"]].ge(12).all(axis=1)]
    inside = inside[inside[["y", "x"]].le(flat.labels.shape[1] - 12).all(axis=1)]
    y, x = np.rint(inside[["y", "x"]].to_numpy()).astype(int).T
    hits = flat.labels[inside["frame"], y, x] == inside["label"]
    assert hits.mean() > 0.995
    counted = [np.bincount(f.ravel(), minlength=flat.labels.max() + 1) for f in flat.labels]
    assert np.array_equal(np.array(counted)[nodes["frame"], nodes["label"]], nodes["area"])


def test_cells_brighten_before_they_divide_and_daughters_start_small(
    flat: SimulatedMovie,
) -> None:
    image, nodes = flat.image.astype(float), flat.nodes
    means = [
        ndimage.mean(image[t], flat.labels[t], nodes.loc[nodes["frame"] == t, "label"])
        for t in range(len(image))
    ]
    nodes = nodes.assign(mean=np.concatenate(means))
    mothers = flat.tracks.loc[flat.tracks["fate"] == "divide"]
    mothers = mothers[mothers["end"] - mothers["begin"] >= 8]
    indexed = nodes.set_index(["label", "frame"])
    last = indexed.loc[list(zip(mothers["label"], mothers["end"], strict=True))]
    early = indexed.loc[list(zip(mothers["label"], mothers["end"] - 7, strict=True))]
    assert len(mothers) >= 3
    assert np.median(last["mean"].to_numpy() / early["mean"].to_numpy()) > 1.3
    assert np.median(last["area"].to_numpy() / early["area"].to_numpy()) < 0.7
    grown = nodes.loc[nodes["phase"] == "interphase", "area"].median()
    born = flat.tracks[flat.tracks["parent"] > 0]
    first = indexed.loc[list(zip(born["label"], born["begin"], strict=True))]
    assert first["area"].median() < 0.6 * grown


def test_sisters_part_along_the_axis_of_the_plate(flat: SimulatedMovie) -> None:
    indexed = flat.nodes.set_index(["label", "frame"])[["y", "x"]]
    born = flat.tracks[flat.tracks["parent"] > 0]
    pairs = [g["label"].tolist() for _, g in born.groupby("parent")]
    begins = born.groupby("parent")["begin"].first().tolist()
    angles, gaps = [], []
    for (a, b), t in zip(pairs, begins, strict=True):
        mother = np.argwhere(flat.labels[t - 1] == born.loc[born["label"] == a, "parent"].item())
        spread = np.linalg.eigh(np.cov(mother.T))
        apart = (indexed.loc[(a, t)] - indexed.loc[(b, t)]).to_numpy()
        gaps.append(np.linalg.norm(apart))
        angles.append(abs(spread[1][:, 0] @ apart) / gaps[-1])
    assert np.median(angles) > 0.9
    assert np.median(gaps) < flat.settings.diameter


def test_drift_moves_every_cell() -> None:
    movie = simulate(replace(SMALL, drift=5.0, speed=0.5, flow=0.0, jitter=0.0))
    tracks = movie.nodes.sort_values(["label", "frame"]).groupby("label")[["y", "x"]].diff()
    assert np.linalg.norm(tracks.dropna().median()) == pytest.approx(5.0, abs=0.3)


def test_no_motion_no_division_no_death_is_a_still_life() -> None:
    still = replace(
        SMALL, drift=0, speed=0, flow=0, jitter=0, division_rate=0, death_rate=0, fading_rate=0
    )
    movie = simulate(still)
    assert set(movie.tracks["parent"]) == {0}
    steps = movie.nodes.groupby("label")[["y", "x"]].diff().dropna()
    assert len(steps) > 100
    assert np.abs(steps.to_numpy()).max() < 1.0


def test_noise_and_background_are_as_asked() -> None:
    silent = simulate(replace(SMALL, frames=2, cells=0, noise=0, unevenness=0))
    assert set(np.unique(silent.image)) == {18}
    assert not silent.labels.any()
    assert len(silent.tracks) == 0
    noisy = simulate(replace(SMALL, frames=2, cells=0, unevenness=0))
    assert noisy.image.std() == pytest.approx(np.sqrt(0.7**2 + 0.05 * 18 + 1 / 12), rel=0.03)


def test_sixteen_bits_and_the_geometry_of_a_stack(stack: SimulatedMovie) -> None:
    assert stack.image.shape == (8, 10, stack.settings.side, stack.settings.side)
    assert stack.geometry.scale == pytest.approx((3 * 0.645, 0.645, 0.645))
    assert stack.geometry.frame_interval == 10.0
    deep = simulate(replace(SMALL, frames=2, bits=16))
    assert deep.image.dtype == np.uint16
    assert 255 < deep.image.max() <= 4095


def test_number_of_cells_is_about_what_was_asked() -> None:
    for kind in ({"cells": 200}, {"cells": 60, "dim": 3}):
        frame = next(iter(Simulation(SimulationSettings(**kind))))
        assert 0.8 * kind["cells"] < len(frame.nodes) < 1.3 * kind["cells"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("dim", 4), ("bits", 12), ("frames", 0), ("density", 0.9), ("noise", float("nan"))],
)
def test_settings_out_of_range_are_named(setting: str, value: float) -> None:
    with pytest.raises(InputError, match=f"setting {setting} is {value}"):
        replace(SMALL, **{setting: value})
