"""Small movies of the kinds that dense public movies do not hold, and how many come out right.

    python benchmarks/kinds.py [KIND ...] [--movies 60] [--seed 0] [--wrong] [--picture FILE]

Every kind is a generator over distances, speeds, sizes, numbers, noise and missing frames, in two
and three dimensions, of masks and of points. Prints a table in markdown: movies, those whose links
are all right and none is wrong, and the share of links. ``--wrong`` names the movies that are not
right, ``--picture`` draws the worst one of each kind.

A gap        cells far apart that are missed, blink, or are all dark for one or two frames
B no shift   cells in a regular array, or few ones, that move in directions of their own
C channel    rods in a channel that is closed at one end, grow, divide, and push each other out
D late       a mitosis that is not drawn, or a daughter that is drawn one frame late
E fusion     two or three cells that touch are drawn as one; three may be told in a note
F three      a cell that divides into three; right as three daughters, or told in a note
G slices     a stack whose slices are farther apart than its pixels, without a scale
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from skimage.measure import regionprops

import bridgetrack as bt
from bridgetrack.arrays import Array
from bridgetrack.detections.table import Detections
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from common import row

Rng = np.random.Generator
FRAMES = 5
"""Frames of a movie that are drawn."""
Cell = tuple[int, int]
Link = tuple[Cell, Cell]


@dataclass
class Case:
    """A movie with its truth."""

    words: str
    frames: list[dict[int, tuple[Array, float]]]  # label -> place and radius, frame by frame
    links: set[Link] = field(default_factory=set)
    others: list[set[Link]] = field(default_factory=list)  # links that would be right, too
    told: str = ""  # a note with this word will do in place of the links
    points: bool = False
    labels: NDArray[np.int32] | None = None  # pixels, where cells are no balls
    flat: float = 1.0  # how far slices lie apart, in pixels

    def source(self) -> Movie | Detections:
        """What is tracked."""
        if self.points:
            return self._table()
        pixels = self.pixels() if self.labels is None else self.labels
        geometry = Geometry(len(pixels), pixels.shape[1:], (1.0,) * (pixels.ndim - 1))
        return Movie(da.from_array(pixels[:, None], chunks=-1), geometry, ("0",), self.words)

    def _table(self) -> Detections:
        rows = [
            (t, label, *place, np.pi * radius**2)
            for t, cells in enumerate(self.frames)
            for label, (place, radius) in sorted(cells.items())
        ]
        ndim = len(rows[0]) - 3
        columns = ["frame", "label", *"zyx"[-ndim:], "area"]
        geometry = Geometry(len(self.frames), None, (1.0,) * ndim)
        return Detections(pd.DataFrame(rows, columns=columns), geometry, has_masks=False)

    def pixels(self) -> NDArray[np.int32]:
        """Balls in frames that hold them all; a pixel belongs to the nearest ball."""
        all_cells = [cell for cells in self.frames for cell in cells.values()]
        scale = np.ones(len(all_cells[0][0]))
        scale[0] = self.flat if len(scale) == 3 else 1.0
        low = np.min([(p - r) / scale for p, r in all_cells], axis=0) - 15
        high = np.max([(p + r) / scale for p, r in all_cells], axis=0) + 15
        shape = tuple(np.ceil(high - low).astype(int) + 1)
        out = np.zeros((len(self.frames), *shape), dtype=np.int32)
        for t, cells in enumerate(self.frames):
            depth = np.zeros(shape)
            for label, (place, radius) in cells.items():
                centre = place / scale - low
                reach = radius / scale
                box = tuple(
                    slice(max(int(c - r), 0), int(c + r) + 2)
                    for c, r in zip(centre, reach, strict=True)
                )
                grid = np.moveaxis(np.indices(depth[box].shape).astype(float), 0, -1)
                grid += [b.start for b in box]
                inside = radius - np.linalg.norm((grid - centre) * scale, axis=-1)
                take = inside > depth[box]
                out[t][box][take] = label
                depth[box] = np.maximum(depth[box], inside)
        return out


def same_labels(frames: list[dict[int, tuple[Array, float]]]) -> set[Link]:
    """Links of cells that keep their labels, over frames without them."""
    seen: dict[int, int] = {}
    links = set()
    for t, cells in enumerate(frames):
        for label in cells:
            if label in seen:
                links.add(((seen[label], label), (t, label)))
            seen[label] = t
    return links


def layout(rng: Rng, number: int, spacing: float, ndim: int, loose: float = 0.25) -> Array:
    """Places about so far apart."""
    side = int(np.ceil(number ** (1 / ndim)))
    grid = np.stack(np.meshgrid(*[np.arange(side)] * ndim, indexing="ij"), axis=-1)
    places = grid.reshape(-1, ndim).astype(float)
    places = places[rng.permutation(len(places))[:number]] if loose else places[:number]
    return (places + rng.uniform(-loose, loose, places.shape)) * spacing


def directions(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Vectors of length 1."""
    vectors = rng.normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def walk(rng: Rng, start: Array, step: float, frames: int, own: float = 0.6) -> Array:
    """Places (T, n, ndim) of cells that go on in a direction of their own, more or less."""
    heading = directions(rng, start.shape)
    places = [start]
    for _ in range(frames - 1):
        turn = own * heading + (1 - own) * directions(rng, start.shape)
        turn /= np.maximum(np.linalg.norm(turn, axis=-1, keepdims=True), 1e-9)
        places.append(places[-1] + step * turn * rng.uniform(0.7, 1.1, (len(start), 1)))
    return np.stack(places)


def frames_of(places: Array, radius: float | Array) -> list[dict[int, tuple[Array, float]]]:
    """Cells numbered from 1 in all frames."""
    radii = np.broadcast_to(radius, places.shape[1])
    return [{k + 1: (p, float(radii[k])) for k, p in enumerate(frame)} for frame in places]


def gaps(rng: Rng) -> Case:
    """Kind A. Cells that pass through each other are drawn again: nothing tells which is which."""
    while True:
        case = some_gaps(rng)
        if all(nearest_to_itself(case.frames, *link) for link in case.links):
            return case


def nearest_to_itself(frames: list[dict[int, tuple[Array, float]]], one: Cell, two: Cell) -> bool:
    """Whether no other cell of either frame is nearer to a cell than where it is seen again."""
    (t, a), (u, b) = one, two
    before, after = frames[t][a][0], frames[u][b][0]
    others = [(place, after) for label, (place, _) in frames[t].items() if label != a]
    others += [(place, before) for label, (place, _) in frames[u].items() if label != b]
    moved = np.linalg.norm(after - before)
    return all(np.linalg.norm(place - end) > moved for place, end in others)


def some_gaps(rng: Rng) -> Case:
    """Cells that are missed; what they move in the gap is about a third of their distance."""
    ndim = 3 if rng.random() < 0.2 else 2
    radius = rng.uniform(4, 6) if ndim == 3 else rng.uniform(5, 12)
    spacing = 2 * radius * rng.uniform(2.5, 5 if ndim == 3 else 12)
    how = rng.choice(["missed", "dark", "blinking"])
    missing = 1 if how == "blinking" else int(rng.integers(1, 3))
    step = rng.uniform(0, min(1.6 * radius, spacing / 3.5 / (missing + 1)))
    number, n_frames = int(rng.integers(4, 13)), int(rng.integers(7, 11))
    places = walk(rng, layout(rng, number, spacing, ndim), step, n_frames)
    frames = frames_of(places, radius * rng.uniform(0.9, 1.1, number))
    if how == "dark":
        first = int(rng.integers(1, n_frames - missing - 1))
        for t in range(first, first + missing):
            frames[t] = {}
    elif how == "blinking":
        for t in range(1, n_frames - 1, 2):
            del frames[t][3]
    else:
        for label in rng.permutation(number)[: rng.integers(1, 4)] + 1:
            first = int(rng.integers(1, n_frames - missing - 1))
            for t in range(first, first + missing):
                del frames[t][int(label)]
    words = f"{how} {missing}, {ndim}D, step {step / radius / 2:.2f} and spacing "
    words += f"{spacing / radius / 2:.1f} diameters"
    return Case(words, frames, same_labels(frames), points=rng.random() < 0.25)


def no_shift(rng: Rng) -> Case:
    """Kind B."""
    ndim, radius = (3, 5.0) if rng.random() < 0.15 else (2, rng.uniform(5, 12))
    regular = rng.random() < 0.6
    number = int(rng.choice([8, 27])) if ndim == 3 else int(rng.choice([6, 9, 12, 16]))
    number = number if regular else int(rng.integers(5, 12))
    spacing = 2 * radius * rng.uniform(3.5, 5 if ndim == 3 else 10)
    step = rng.uniform(0.4, min(0.9, spacing / radius / 8)) * 2 * radius
    start = layout(rng, number, spacing, ndim, 0.0 if regular else 0.3)
    places = walk(rng, start, step, int(rng.integers(3, 7)), own=rng.choice([1.0, 0.3]))
    if regular:  # a cell stays in its well
        home = places - start
        far = np.linalg.norm(home, axis=-1, keepdims=True)
        places = start + home * np.minimum(1, 0.3 * spacing / np.maximum(far, 1e-9))
    frames = frames_of(places, radius)
    words = f"{'array' if regular else 'few'} of {number}, {ndim}D, step {step / radius / 2:.2f}"
    words += f" and spacing {spacing / radius / 2:.1f} diameters"
    return Case(words, frames, same_labels(frames), points=rng.random() < 0.25)


def channel(rng: Rng) -> Case:
    """Kind C."""
    growth, n_frames = 1 + rng.uniform(0.03, 0.09), int(rng.integers(14, 22))
    width, full = int(rng.integers(7, 12)), rng.uniform(20, 26)
    noise, open_end = rng.uniform(0, 0.02), 6 * full
    cells = [[k + 1, full * rng.uniform(0.52, 0.95)] for k in range(int(rng.integers(4, 7)))]
    following, links = len(cells) + 1, set()
    labels = np.zeros((n_frames, int(open_end) + 6, width + 10), dtype=np.int32)
    before: dict[int, int] = {}
    origin = {label: label for label, _ in cells}
    for t in range(n_frames):
        if t:
            origin, grown = {}, []
            for label, short in cells:
                length = short * growth * (1 + noise * rng.normal())
                if length > full:
                    part = rng.uniform(0.45, 0.55)
                    for share in (part, 1 - part):
                        grown.append([following, length * share])
                        origin[following] = label
                        following += 1
                else:
                    grown.append([label, length])
                    origin[label] = label
            cells = grown
        top, now = 2.0, {}
        for label, length in cells:
            a, b = round(top), round(top + length)
            if b > open_end:
                break
            labels[t, a : b - 1, 5 : 5 + width] = label
            now[label] = t
            if origin[label] in before:
                links.add(((t - 1, origin[label]), (t, label)))
            top += length
        cells, before = [cell for cell in cells if cell[0] in now], now
    # A mother of whom one daughter has left the channel is a cell that goes on.
    return Case(f"growth {100 * growth - 100:.1f} % a frame", [], links, labels=labels)


def late(rng: Rng) -> Case:
    """Kind D."""
    radius = rng.uniform(7, 12)
    crowded = rng.random() < 0.5
    spacing = 2 * radius * (rng.uniform(2.2, 3.5) if crowded else rng.uniform(4, 9))
    number = 25 if crowded else 5
    start = layout(rng, number, spacing, 2, 0.12)
    middle = int(np.argmin(np.linalg.norm(start - start.mean(axis=0), axis=1)))
    places = walk(rng, start, rng.uniform(0, 0.15) * radius, 8, own=0.3)
    frames = frames_of(places, radius)
    how, born = rng.choice(["not drawn", "one late", "dark"]), int(rng.integers(3, 5))
    mother, one, two = middle + 1, 101, 102
    apart = directions(rng, (2,)) * radius * rng.uniform(0.9, 1.2)
    size = radius * rng.uniform(0.7, 0.8, 2)
    for t in range(born, 8):
        place, _ = frames[t].pop(mother)
        spread = apart * (1 + 0.12 * (t - born))
        frames[t][one], frames[t][two] = (place + spread, size[0]), (place - spread, size[1])
    for t in range(born):
        frames[t][mother] = (frames[t][mother][0], radius * rng.uniform(1.05, 1.3))
    links: set[Link] = set()
    others = []
    if how == "one late":
        del frames[born][two]
        last, first = (born - 1, mother), (born, one)
        links = {(last, first), (last, (born + 1, two))}
        others = [{(last, first), (first, (born + 1, two))}]
    else:
        hidden = [one, two] if how == "not drawn" else list(frames[born])
        for label in hidden:
            del frames[born][label]
        links = {((born - 1, mother), (born + 1, label)) for label in (one, two)}
    links |= same_labels(frames)
    others = [other | same_labels(frames) for other in others]
    words = f"{how}, {'crowded' if crowded else 'sparse'}, spacing {spacing / radius / 2:.1f}"
    return Case(words, frames, links, others, points=rng.random() < 0.2)


def fusion(rng: Rng) -> Case:
    """Kind E."""
    radius, parents = rng.uniform(7, 12), int(rng.integers(2, 4))
    turn, gap = rng.uniform(0, 2 * np.pi), rng.uniform(0.0, 0.25)
    around = np.array([[np.sin(a), np.cos(a)] for a in turn + np.arange(3) * 2 * np.pi / parents])
    near = radius * (1 + gap) / np.sin(np.pi / parents)
    begin, n_frames = int(rng.integers(3, 6)), 9
    centre = np.full(2, 7 * radius)
    frames: list[dict[int, tuple[Array, float]]] = []
    links: set[Link] = set()
    others = layout(rng, 4, 14 * radius, 2, 0.2)
    for t in range(n_frames):
        cells = {10 + k: (place, radius) for k, place in enumerate(others)}
        if t < begin:
            speed = rng.uniform(0.05, 0.15) * radius
            for k in range(parents):
                cells[k + 1] = (centre + around[k] * (near + speed * (begin - 1 - t)), radius)
        frames.append(cells)
    places = {k + 1: frames[begin - 1][k + 1][0] for k in range(parents)}
    case = Case(f"{parents} cells, gap {gap:.2f} radii", frames, points=False)
    drawn = Case("", [*frames, {9: (centre, 3 * radius)}]).pixels()[:n_frames]
    everything = [cell for cells in [*frames, {9: (centre, 3 * radius)}] for cell in cells.values()]
    low = np.min([p - r for p, r in everything], axis=0) - 15
    grid = np.moveaxis(np.indices(drawn.shape[1:]).astype(float), 0, -1) + low
    region = np.zeros(drawn.shape[1:], dtype=bool)
    for a in places.values():
        for b in places.values():
            for share in np.linspace(0, 1, 9):
                middle = a + share * (b - a)
                wide = radius * (1 - 0.3 * np.sin(np.pi * share))
                region |= np.linalg.norm(grid - middle, axis=-1) < wide * 0.98
    for t in range(begin, n_frames):
        drawn[t][region & (drawn[t] == 0)] = 50
    for t in range(1, n_frames):
        links |= {((t - 1, 10 + k), (t, 10 + k)) for k in range(4)}
        if t < begin:
            links |= {((t - 1, k + 1), (t, k + 1)) for k in range(parents)}
        elif t == begin:
            links |= {((t - 1, k + 1), (t, 50)) for k in range(parents)}
        else:
            links.add(((t - 1, 50), (t, 50)))
    case.labels, case.links = drawn, links
    case.told = "drawn as one" if parents > 2 else ""
    return case


def three(rng: Rng) -> Case:
    """Kind F."""
    radius, born = rng.uniform(8, 12), int(rng.integers(3, 5))
    start = np.concatenate([[[0.0, 0.0]], layout(rng, 5, rng.uniform(8, 12) * radius, 2, 0.1)])
    start[1:] += 9 * radius
    places = walk(rng, start, rng.uniform(0, 0.1) * radius, 8, own=0.2)
    frames = frames_of(places, radius * 0.75)
    turn, size = rng.uniform(0, 2 * np.pi), radius / np.sqrt(3) * rng.uniform(0.9, 1.05)
    away = rng.uniform(0.85, 1.05)
    for t in range(8):
        place, _ = frames[t].pop(1)
        if t < born:
            frames[t][1] = (place, radius)
            continue
        for k in range(3):
            angle = turn + k * 2 * np.pi / 3
            offset = np.array([np.sin(angle), np.cos(angle)]) * radius * away
            frames[t][20 + k] = (place + offset * (1 + 0.1 * (t - born)), size)
    links = same_labels(frames) | {((born - 1, 1), (born, 20 + k)) for k in range(3)}
    return Case(f"daughters {away:.2f} radii off", frames, links, told="three or more daughters")


def slices(rng: Rng) -> Case:
    """Kind G."""
    flat, radius = rng.uniform(2, 6), rng.uniform(6, 9)
    spacing = 2 * radius * rng.uniform(1.3, 2.0)
    step = rng.uniform(0.25, 0.36) * spacing
    start = layout(rng, int(rng.integers(20, 40)), spacing, 3, 0.1)
    places = walk(rng, start, step, 4, own=0.3)
    home = places - start
    far = np.linalg.norm(home, axis=-1, keepdims=True)
    places = start + home * np.minimum(1, 0.4 * spacing / np.maximum(far, 1e-9))
    frames = frames_of(places, radius)
    words = f"slices {flat:.1f} pixels apart, step {step / radius / 2:.2f}"
    case = Case(words, frames, flat=flat)
    case.labels = case.pixels()
    kept = [set(np.unique(frame).tolist()) - {0} for frame in case.labels]
    frames = [{k: v for k, v in cells.items() if k in there}
              for cells, there in zip(frames, kept, strict=True)]  # fmt: skip
    case.links = same_labels(frames)
    return case


KINDS: dict[str, Callable[[Rng], Case]] = {
    "A gap": gaps,
    "B no shift": no_shift,
    "C channel": channel,
    "D late": late,
    "E fusion": fusion,
    "F three": three,
    "G slices": slices,
}


@dataclass
class Outcome:
    """A movie that was tracked."""

    case: Case
    true: set[Link]
    found: set[Link]
    told: bool  # in a note

    @property
    def right(self) -> bool:
        """Whether all links are right, or a note says what could not be tracked."""
        return self.found == self.true or self.told

    @property
    def links(self) -> tuple[int, int]:
        """Links that are right, and those that are true or found."""
        return len(self.found & self.true), len(self.found | self.true)


def tracked(case: Case) -> Outcome:
    """Track a movie and compare its links with the truth."""
    tracks = bt.track(case.source()).tracks
    cells = list(zip(tracks.nodes["frame"].tolist(), tracks.nodes["label"].tolist(), strict=True))
    cell = dict(zip(tracks.nodes["id"].tolist(), cells, strict=True))
    found = {
        (cell[a], cell[b])
        for a, b in zip(tracks.edges["source"], tracks.edges["target"], strict=True)
    }
    best = min((case.links, *case.others), key=lambda links: len(links ^ found))
    told = bool(case.told) and any(case.told in note for note in tracks.notes)
    return Outcome(case, best, found, told)


def worst(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The movie with the smallest share of right links; None where all movies are right."""
    wrong = [o for o in outcomes if not o.right]
    return min(wrong, key=lambda o: o.links[0] / o.links[1], default=None)


def draw(shown: dict[str, Outcome], path: Path) -> None:
    """Frames around the first wrong link of some movies, a movie a row, with the links into each.

    Links are green where they are right, red where they are wrong, and dashed where they are
    missed; stacks are seen from above.
    """
    fig, axes = plt.subplots(
        len(shown), FRAMES, figsize=(2 * FRAMES, 2.2 * len(shown)), squeeze=False
    )
    plt.setp(axes, xticks=[], yticks=[])
    for row_of_axes, (kind, outcome) in zip(axes, shown.items(), strict=True):
        case = outcome.case
        labels = case.pixels() if case.labels is None else case.labels
        flat = labels.max(axis=1) if labels.ndim == 4 else labels
        places = [{r.label: r.centroid[::-1] for r in regionprops(frame)} for frame in flat]
        first = min(t for (t, _), _ in outcome.true ^ outcome.found)
        start = max(0, min(first - 1, len(flat) - FRAMES))
        for ax, t in zip(row_of_axes, range(start, min(start + FRAMES, len(flat))), strict=False):
            ax.set_title(f"{kind}, frame {t}", fontsize=8)
            ax.imshow(flat[t] > 0, cmap="Greys", vmax=4)
            for link in outcome.true | outcome.found:
                (before, one), (after, other) = link
                if after == t and one in places[before] and other in places[t]:
                    ends = np.array([places[before][one], places[t][other]])
                    right, missed = link in outcome.true & outcome.found, link in outcome.true
                    color = "tab:green" if right else "tab:red"
                    ax.plot(*ends.T, lw=1.5, color=color, ls="--" if missed and not right else "-")
    fig.tight_layout()
    fig.savefig(path, dpi=70)


def cases(kind: str, number: int, seed: int) -> Iterable[Case]:
    """Movies of a kind, the same for the same seed."""
    for k in range(number):
        yield KINDS[kind](np.random.default_rng([seed, ord(kind[0]), k]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", help="letters of kinds, all by default")
    parser.add_argument("--movies", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--picture", type=Path, help="where to draw the worst movies")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(row("kind", "movies", "all links right", "links right"))
    print("| --- |" + " ---: |" * 3)
    shown = {}
    for kind in KINDS:
        if given.kinds and kind[0] not in given.kinds:
            continue
        found = [tracked(case) for case in cases(kind, given.movies, given.seed)]
        for k, one in enumerate(found):
            if given.wrong and not one.right:
                print(f"    {kind[0]}{k}: {one.case.words}, {one.links[0]} of {one.links[1]} links")
        some, every = np.sum([one.links for one in found], axis=0).tolist()
        right, n = sum(one.right for one in found), len(found)
        print(row(kind, n, f"{right / n:.1%}", f"{some / every:.1%}"), flush=True)
        if (least := worst(found)) is not None:
            shown[kind] = least
    if given.picture is not None and shown:
        draw(shown, given.picture)


if __name__ == "__main__":
    main()
