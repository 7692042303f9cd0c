"""Frames with true cells and their candidate regions, for the benchmarks of regions.

Pictures are those of real movies, of simulated ones, or drawn from masks: the same masks give
nuclei, dim nuclei, cells with halos, dark cells and cells that only differ by their texture.
Colonies of rods, as bacteria and yeast that divide by fission are, are simulated here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index
from bridgetrack.movie import label_frame, open_labels, open_movie
from bridgetrack.regions.describe import Described, describe_frame, described
from bridgetrack.regions.propose import propose_frame
from bridgetrack.regions.regions import regions_of_labels, shared_pixels
from bridgetrack.segmentation import SegmentationSettings
from bridgetrack.segmentation.builtin import FrameView, complete_settings
from bridgetrack.segmentation.readings import estimate_settings
from simulator import SimulationSettings, simulate

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Film:
    """Frames and their true cells, shape (T, Y, X)."""

    name: str  # in tables
    image: NDArray[Any]
    truth: NDArray[Any]
    # to look with; None for what the program finds out about the film by itself
    settings: SegmentationSettings | None = None


def candidates(film: Film) -> Iterator[tuple[Array, Index, Array]]:
    """Features and targets of the candidates of every frame, and the best overlap of every cell.

    The target is 1 for right candidates, 0 for wrong ones, -1 for those that are nearly right.
    Right is within 0.15 of the best candidate of a cell, which overlaps it by more than half of the
    union; nearly right is within 0.2. Which of several good outlines a person would draw differs
    between movies.
    """
    settings = film.settings or estimate_settings(open_movie(film.image, axes="TYX")).settings
    views = (FrameView(image, settings) for image in film.image)
    frames = (
        Described(regions, describe_frame(regions, view))
        for view in views
        for regions in [propose_frame(view)]
    )
    for one, cells in zip(described(frames), film.truth, strict=True):
        regions, true = one.regions, regions_of_labels(cells)
        shared = shared_pixels(regions, true).tocoo()
        overlap = shared.data / (regions.area[shared.row] + true.area[shared.col] - shared.data)
        best, iou, of_cell = np.zeros(len(true)), *np.zeros((2, len(regions)))
        np.maximum.at(best, shared.col, overlap)
        order = np.argsort(overlap, kind="stable")
        row = shared.row[order]
        iou[row], of_cell[row] = overlap[order], best[shared.col[order]]
        right = (iou > 0.5) & (iou >= of_cell - 0.15)
        nearly = (iou > 0.4) & (iou >= of_cell - 0.2)
        yield one.features, np.where(right, 1, np.where(nearly, -1, 0)), best


KINDS = ("nuclei", "dim", "halo", "dark", "texture")


def drawn(
    name: str, truth: NDArray[Any], kind: str, seed: int = 0, radius: float | None = None
) -> Film:
    """A film drawn from masks, shape (T, Y, X); equal ids are the same cell in all frames.

    Outlines, blur and halos go with `radius`, which is that of a disc as large as the cells unless
    it is given.
    """
    rng = np.random.default_rng(seed)
    n = int(truth.max()) + 1
    area = np.median(np.bincount(truth[0].ravel())[1:].clip(1))
    radius = float(np.sqrt(max(area, 9) / np.pi)) if radius is None else radius
    spread = {"dim": 0.6, "phase": 0.08, "stretched": 0.08}.get(kind, 0.3)
    bright = np.exp(rng.normal(0, spread, n))
    bright[0] = 0
    uneven = ndi.zoom(rng.normal(1, 0.15, (4, 4)), np.array(truth.shape[1:]) / 4, order=3)
    looks = "phase" if kind == "stretched" else kind
    frames = [_picture(f, looks, bright, radius, uneven, rng) for f in truth]
    if kind == "stretched":
        frames = _stretched(frames, truth > 0, radius, rng)
    settings = None
    if kind == "stretched":  # whose rods side by side are one dark blot: no estimate is right
        known = SegmentationSettings(foreground="dark", diameter=2 * float(np.sqrt(area / np.pi)))
        settings = complete_settings([], known)
    image = np.clip(np.stack(frames), 0, 65535).astype(np.uint16)
    return Film(f"{name} {kind}", image, truth, settings)


def _picture(
    cells: NDArray[Any],
    kind: str,
    bright: Array,
    radius: float,
    uneven: Array,
    rng: np.random.Generator,
) -> Array:
    shape = cells.shape
    grain = ndi.gaussian_filter(rng.normal(size=shape), 0.15 * radius)
    grain /= grain.std()
    inside = cells > 0
    apart = inside.copy()  # cells that touch have a dent between them
    for axis in range(2):
        edge = np.diff(cells, axis=axis) != 0
        pad = [(0, 1) if a == axis else (0, 0) for a in range(2)]
        apart &= ~np.pad(edge, pad)
    depth = np.minimum(ndi.distance_transform_edt(apart) / (0.5 * radius), 1)
    body = bright[cells] * (0.35 + 0.65 * depth) * inside
    blur = radius * rng.uniform(0.1, 0.2)
    if kind == "texture":
        rough = ndi.gaussian_filter(rng.normal(size=shape), 0.06 * radius + 0.5)
        light = 0.25 * rough / rough.std() * (0.15 + np.sqrt(body))
        light = 3 + ndi.gaussian_filter(light, 0.7)
        return 3000 * (light + 0.1 * uneven + rng.normal(0, 0.02, shape))
    if kind == "phase":
        return _phase_contrast(inside, depth, bright[cells], radius, uneven, rng)
    light = body * (1 + 0.15 * grain)
    if kind == "halo":
        near = np.exp(-ndi.distance_transform_edt(~inside) / (0.3 * radius))
        light = light + 0.25 * near * ~inside - 0.35 * (inside & (depth < 0.25))
    light = ndi.gaussian_filter(light, blur)
    if kind == "dark":
        light = 2.5 - 0.5 * light
    level = {"dim": 60.0, "halo": 150.0}.get(kind, 400.0)
    photons = level * np.maximum(light + 0.5 * uneven, 0.01)
    return 8 * (rng.poisson(photons) + rng.normal(0, 3, shape)) + 100


def _phase_contrast(
    inside: NDArray[np.bool_],
    depth: Array,
    bright: Array,
    radius: float,
    uneven: Array,
    rng: np.random.Generator,
) -> Array:
    """Dark bodies, a bright halo around them that adds up between neighbours."""
    body = inside * (0.5 + 0.5 * depth) * bright
    halo = ndi.gaussian_filter(inside.astype(np.float64), 0.8 * radius)
    wide = ndi.gaussian_filter(inside.astype(np.float64), 4 * radius)
    light = 1 + 1.2 * halo + 0.5 * wide - 2.2 * body
    light = ndi.gaussian_filter(light, radius * rng.uniform(0.15, 0.35))
    photons = 150 * np.maximum(light + 0.3 * uneven, 0.02)
    return 8 * (rng.poisson(photons) + rng.normal(0, 3, inside.shape)) + 100


def _stretched(
    frames: list[Array], inside: NDArray[np.bool_], radius: float, rng: np.random.Generator
) -> list[Array]:
    """Contrast as programs set it for looking: cells black, halos white, and blots show, 8 bits."""
    values = np.stack(frames)
    shape = values.shape[1:]
    blots = [ndi.gaussian_filter(rng.normal(size=shape), k * radius) for k in (0.5, 1.0, 2.0)]
    depth = np.median(values[~inside]) - np.median(values[inside])
    for blot in blots:
        values -= rng.uniform(0, 0.25) * depth * np.maximum(blot / blot.std() - 1, 0)
    low = np.quantile(values[inside], rng.uniform(0.5, 0.95))
    high = np.quantile(values[~inside], rng.uniform(0.9, 0.999))
    return list(255 * np.clip((values - low) / (high - low), 0, 1))


@dataclass(frozen=True)
class _Rods:
    """Rods of one frame: centres (y, x), directions, lengths without the caps, and bends."""

    ids: NDArray[np.int64]
    centre: Array
    angle: Array
    length: Array
    bend: Array

    def points(self, at: Array) -> Array:
        """Points of the middle lines, at -0.5 to 0.5 of the lengths; shape (n, len(at), 2)."""
        along = np.stack([np.sin(self.angle), np.cos(self.angle)], axis=1)
        across = np.stack([along[:, 1], -along[:, 0]], axis=1)
        s = at[None] * self.length[:, None]
        off = self.bend[:, None] * self.length[:, None] * (4 * at[None] ** 2 - 1 / 3)
        return (
            self.centre[:, None] + s[..., None] * along[:, None] + off[..., None] * across[:, None]
        )


def colony(
    seed: int, cells: int, frames: int = 4, width: float = 14.0, margin: float = 5.0
) -> NDArray[np.int64]:
    """Masks of a colony of rods that grow, divide and push each other, shape (frames, Y, X).

    It begins with one rod; the frames are the last ones before it has so many cells. The margin
    around them is in widths.
    """
    rng = np.random.default_rng(seed)
    full = width * rng.uniform(3.5, 6.0)  # length at division, without the caps
    one = np.zeros(1)
    rods = _Rods(
        one.astype(np.int64) + 1, np.zeros((1, 2)), one + rng.uniform(0, 3), one + full, one
    )
    past: list[_Rods] = []
    rate = 2 ** (1 / rng.uniform(7, 14))
    while len(rods.ids) < cells:
        past.append(rods)
        grown = replace(rods, length=rods.length * rate ** rng.uniform(0.7, 1.3, len(rods.ids)))
        rods = _apart(_divided(grown, full, width, rng), width)
    past = [*past, rods][-frames:]
    low = np.min([r.points(np.array([-0.5, 0, 0.5])).min(axis=(0, 1)) for r in past], axis=0)
    high = np.max([r.points(np.array([-0.5, 0, 0.5])).max(axis=(0, 1)) for r in past], axis=0)
    shape = tuple(int(n) for n in np.ceil(high - low + 2 * margin * width))
    return np.stack([_rod_masks(r, low - margin * width, shape, width) for r in past])


def _divided(rods: _Rods, full: float, width: float, rng: np.random.Generator) -> _Rods:
    """The same rods, long ones as two."""
    n = len(rods.ids)
    ripe = rods.length > full * np.exp(rng.normal(0, 0.12, n))
    half = np.maximum((rods.length[ripe] - width) / 2, 0.3 * width)
    ends = rods.points(np.array([-0.27, 0.27]))[ripe]
    k, last = int(ripe.sum()), int(rods.ids.max())
    kept = ~ripe
    return _Rods(
        np.concatenate([rods.ids[kept], last + 1 + np.arange(2 * k)]),
        np.concatenate([rods.centre[kept], ends[:, 0], ends[:, 1]]),
        np.concatenate([rods.angle[kept], *(rods.angle[ripe] + rng.normal(0, 0.15, (2, k)))]),
        np.concatenate([rods.length[kept], half, half]),
        np.concatenate([rods.bend[kept], rng.normal(0, 0.04, 2 * k)]),
    )


def _apart(rods: _Rods, width: float, turns: int = 60) -> _Rods:
    """The same rods, pushed and turned until they hardly overlap."""
    at = np.linspace(-0.5, 0.5, 9)
    rods = replace(rods, centre=0.97 * rods.centre)  # they stick together
    for _ in range(turns):
        points = rods.points(at)
        owner = np.repeat(np.arange(len(points)), len(at))
        flat = points.reshape(-1, 2)
        a, b = cKDTree(flat).query_pairs(width, output_type="ndarray").T
        other = owner[a] != owner[b]
        a, b = a[other], b[other]
        if not len(a):
            break
        gap = flat[a] - flat[b]
        far = np.linalg.norm(gap, axis=1).clip(1e-6)
        push = 0.1 * ((width - far) / far)[:, None] * gap
        force = np.zeros_like(flat)
        np.add.at(force, a, push)
        np.add.at(force, b, -push)
        force = force.reshape(points.shape)
        arm = points - rods.centre[:, None]
        torque = (arm[..., 1] * force[..., 0] - arm[..., 0] * force[..., 1]).sum(axis=1)
        inertia = (arm**2).sum(axis=(1, 2)).clip(width**2)
        touched = np.abs(force).sum(axis=2) > 0
        move = force.sum(axis=1) / touched.sum(axis=1).clip(1)[:, None]
        rods = replace(rods, centre=rods.centre + move, angle=rods.angle + torque / inertia)
    return rods


def _rod_masks(
    rods: _Rods, origin: Array, shape: tuple[int, ...], width: float
) -> NDArray[np.int64]:
    """Labels: each pixel belongs to the rod whose middle line is nearest, within half a width."""
    at = np.linspace(-0.5, 0.5, 41)
    flat = rods.points(at).reshape(-1, 2) - origin
    grid = np.indices(shape).reshape(2, -1).T
    far, nearest = cKDTree(flat).query(grid, distance_upper_bound=width / 2)
    owner = np.append(np.repeat(rods.ids, len(at)), 0)[nearest]
    return np.where(np.isfinite(far), owner, 0).reshape(shape)


_COLONIES = ((12, 16.0, 5), (30, 12.0, 5), (60, 10.0, 5), (110, 14.0, 5), (5, 14.0, 15))
"""Rods of simulated colonies, their width, and the margin around them in widths."""


def rod_films(seed: int = 0, frames: int = 4) -> list[Film]:
    """Pictures of simulated colonies of rods, small and large."""
    films = []
    for k, (cells, width, margin) in enumerate(_COLONIES):
        truth = colony(seed + k, cells, frames, width, margin)
        films += [
            drawn(f"colony {seed + k}", truth, kind, seed + k, width / 2)
            for kind in ("phase", "stretched", "dark", "nuclei")
        ]
    return films


def simulated_films(seed: int = 0, frames: int = 4) -> list[Film]:
    """Simulated movies: crowded and sparse nuclei, and pictures of other kinds of the same."""
    films = []
    for name, changes in (
        ("simulated", {"density": 0.2}),
        ("crowded", {"density": 0.45}),
        ("long", {"elongation": 2.2, "density": 0.3}),
    ):
        settings = SimulationSettings(frames=frames, cells=80, seed=seed, **changes)
        movie = simulate(settings)
        films.append(Film(name, movie.image, movie.labels))
        films += [drawn(name, movie.labels.astype(np.int64), k, seed) for k in KINDS[1:]]
    return films


def ipsc_films(seed: int = 0, frames: int = 4) -> list[Film]:
    """Pictures drawn from the true masks of the iPSC movies (MIT licence)."""
    films = []
    for k, (number, first) in enumerate((("01", 10), ("01", 80), ("03", 40), ("04", 20))):
        folder = DATA / f"iPSC-{number}-masks" / f"{number}_GT"
        if folder.is_dir():
            folder = folder / "FULL" if (folder / "FULL").is_dir() else folder / "TRA"
            labels = open_labels(folder)
            truth = np.stack([label_frame(labels, t) for t in range(first, first + frames)])
            films += [drawn(f"iPSC {number}.{first}", truth, kind, seed + k) for kind in KINDS]
    return films
