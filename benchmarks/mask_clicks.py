"""What clicks that mend masks are worth: some parts of frames are mended, then all is redone.

    python benchmarks/mask_clicks.py [--data ../shared/data] [--clicks 50] [--seeds 5]
        [--strokes 0] [--questions 0] [--border N] [--frames A:B] [NAME ...]

A person looks at areas around places drawn at random, half as wide and high as the picture where
they do not reach beyond it, as masks were chosen from the image alone, and mends what is wrong
there by the same acts as on the canvas: cuts, joins, finds missing cells, says what is no cell (as
the truth has it), and presses for other outlines, where a cell is not drawn well enough to count
and for some that could be drawn better. Every place clicked and every press is a click, also in
vain; one more says that all in view is right. This goes on until the clicks are spent. Then masks
are chosen again with these answers, movies are tracked with the shipped weights, and scored as in
`masks.py`. With strokes, a person paints these before, on five frames. With questions, so many of
the clicks go to what the program asks about these masks, the most valuable first; what is no
better either way is passed over, which is a click, too. Then masks are chosen once more.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bridgetrack.active.mask_questions import MaskQuestion, mask_questions
from bridgetrack.pipeline.mask_doubts import mask_doubts
from bridgetrack.segmentation.pixels import PixelModel
from numpy.typing import NDArray
from scipy import ndimage as ndi
from strokes import draw_strokes

import bridgetrack as bt
import masks
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.detections.measure import measure
from bridgetrack.detections.table import Detections
from bridgetrack.movie.movie import label_frame
from bridgetrack.pipeline import mask_candidates
from bridgetrack.pipeline.mask_candidates import READING_LOYALTY, GivenMasks
from bridgetrack.pipeline.masks import MaskSettings, choose_masks
from bridgetrack.regions.acts import act
from bridgetrack.regions.mend import MendKind
from bridgetrack.regions.regions import Regions, labels_of, regions_of_labels
from bridgetrack.session.masks import MaskStep, MovieMasks

Labels = NDArray[np.int32]
Index = NDArray[np.int64]

RIGHT = 0.5  # overlap above which a cell is found
POOR = 0.7  # overlap below which its outline could be better
BETTER = 0.05  # by which an outline must overlap more to be taken
PRESSES = 2  # for another outline, after which the person gives up
PAINTED = 5  # frames
OUTLINES = 3  # looked at in each part, of cells that are found


@dataclass
class Person:
    """Somebody who knows the truth, and counts the clicks that it takes to say it.

    Attributes
    ----------
    masks
        What is shown and can be mended, with the answers given so far.
    detections
        The same, measured at first.
    truth
        The true labels of every frame.
    left
        Clicks that are left.
    """

    masks: MovieMasks
    detections: Detections
    truth: list[Labels]
    left: int

    def look(self, t: int, low: list[int], high: list[int]) -> None:
        """Mend every error that lies wholly in a part of a frame, then say that all is right."""
        view = np.zeros(self.truth[t].shape, dtype=bool)
        view[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = True
        seen = view.reshape(-1)
        cells = regions_of_labels(self.truth[t], t)
        inside = [k for k in range(len(cells)) if seen[pixels(cells, k)].all()]
        for k in inside:
            if self.like(t, pixels(cells, k)) <= RIGHT:
                self.mend(t, pixels(cells, k))
        shown = regions_of_labels(self.now(t), t)
        touched = self.truth[t].reshape(-1)
        for j in range(len(shown)):
            mine = pixels(shown, j)
            if self.left > 0 and seen[mine].all() and not touched[mine].any():
                self.click(MendKind.REMOVE, t, mine)
        poor = [k for k in inside if self.like(t, pixels(cells, k)) < POOR]
        for k in poor[:OUTLINES]:
            self.outline(t, pixels(cells, k))
        if self.left > 0:
            places = (tuple(map(float, low)), tuple(float(n - 1) for n in high))
            self.left -= 1
            self.act(MendKind.CHECK, t, *places)

    def mend(self, t: int, cell: Index) -> None:
        """Have a cell that was missed, cut or joined with others drawn as one."""
        now = self.now(t).reshape(-1)
        labels, counts = np.unique(now[cell], return_counts=True)
        pieces = [(n, k) for k, n in zip(labels.tolist(), counts.tolist(), strict=True) if k]
        over = [k for n, k in pieces if n > len(cell) / 2]
        within = [k for n, k in sorted(pieces, reverse=True) if 2 * n > np.sum(now == k)]
        beside = self.truth[t].reshape(-1)[now == over[0]] if over else np.zeros(0, dtype=np.int32)
        others = np.setdiff1d(beside, [0, self.truth[t].reshape(-1)[cell[0]]])
        if len(others):
            there = np.flatnonzero((now == over[0]) & np.isin(self.truth[t].reshape(-1), others))
            self.click(MendKind.CUT, t, cell[now[cell] == over[0]], there)
        elif len(within) > 1:
            self.click(MendKind.JOIN, t, *(cell[now[cell] == k] for k in within[:2]))
        elif not pieces:
            self.click(MendKind.GROW, t, cell)
        if self.like(t, cell) <= RIGHT:
            self.outline(t, cell)

    def outline(self, t: int, cell: Index) -> None:
        """Click where the outline should be, or, where it is within, for the next; once or twice.

        What is not better is taken back, which is a click, too.
        """
        before, place = self.like(t, cell), self.beyond(t, cell)
        for _ in range(1 if place else PRESSES):
            if self.left < 1:
                return
            self.left -= 1
            if not self.act(MendKind.OUTLINE, t, place or self.middle(t, cell)):
                return
            if self.like(t, cell) > before + BETTER:
                return
            self.masks.undo()
            self.left -= 1

    def beyond(self, t: int, cell: Index) -> tuple[float, ...] | None:
        """A place on the rim of a true cell beside what is drawn of it, if there is any."""
        now = self.now(t)
        labels, counts = np.unique(now.reshape(-1)[cell], return_counts=True)
        if labels[0] or len(labels) < 2:
            return None
        mine = labels[1:][np.argmax(counts[1:])]
        inside = np.zeros(now.size, dtype=bool)
        inside[cell] = True
        inside = inside.reshape(now.shape)
        away, nearest = ndi.distance_transform_edt(now == 0, return_indices=True)
        near = now[tuple(nearest)] == mine
        rim = np.argwhere(inside & ~ndi.binary_erosion(inside) & (now == 0) & near)
        if not len(rim):
            return None
        far = np.argsort(away[tuple(rim.T)], kind="stable")
        return tuple(map(float, rim[far[len(far) // 2]].tolist()))

    def reply(self, questions: list[MaskQuestion], border: int) -> str:
        """Answer what is asked about cells within the border until the clicks are spent."""
        done: list[MaskQuestion] = []
        counts = dict.fromkeys(("as drawn", "instead", "passed over"), 0)
        rest = list(questions)
        while self.left > 0 and rest:
            # What is near an answered one may be settled by that.
            asked = max(rest, key=lambda q: q.value / (2 if any(q.near(o) for o in done) else 1))
            rest.remove(asked)
            now = self.now(asked.frame)
            places = np.unravel_index(asked.doubt.concerned, now.shape)[-2:]
            within = [
                i.min() >= border and i.max() < n - border
                for i, n in zip(places, now.shape[-2:], strict=True)
            ]
            if not (all(within) and asked.holds_for(now)):
                continue
            self.left -= 1
            drawn, instead = (self.judged(asked, side) for side in (True, False))
            if drawn[0] == instead[0] and (drawn[0] or abs(drawn[1] - instead[1]) < BETTER):
                counts["passed over"] += 1
                continue
            right = (-drawn[0], drawn[1]) >= (-instead[0], instead[1])
            site = self.masks.site(asked.frame, self.detections)
            self.masks.make(asked.mend(site.labels, right, site.free), self.detections)
            counts["as drawn" if right else "instead"] += 1
            done.append(asked)
        return ", ".join(f"{n} {what}" for what, n in counts.items())

    def judged(self, asked: MaskQuestion, drawn: bool) -> tuple[int, float]:
        """How many cells are missed or wrong if one side holds, and how well the others overlap."""
        doubt, true = asked.doubt, self.truth[asked.frame].reshape(-1)
        there = np.bincount(true[doubt.concerned])
        meant = np.flatnonzero(2 * there > np.bincount(true)[: len(there)])
        found, wrong, overlap = set(), 0, 0.0
        for cell in doubt.drawn if drawn else doubt.instead:
            shared = np.bincount(true[cell])
            shared[0] = 0
            label = int(shared.argmax())
            like = shared[label] / (len(cell) + (true == label).sum() - shared[label])
            if like > RIGHT:
                found.add(label)
                overlap += float(like)
            else:
                wrong += 1
        return wrong + len(set(meant[meant > 0].tolist()) - found), overlap

    def click(self, kind: MendKind, t: int, *cells: Index) -> bool:
        """Click on the middles of sets of pixels; whether anything came of it."""
        if self.left < len(cells):
            return False
        self.left -= len(cells)
        return self.act(kind, t, *(self.middle(t, cell) for cell in cells))

    def act(self, kind: MendKind, t: int, *places: tuple[float, ...]) -> bool:
        """Do what some clicks say, where it can be done."""
        try:
            self.masks.make(
                act(kind, self.masks.site(t, self.detections), *places), self.detections
            )
        except bt.BridgetrackError:
            return False
        return True

    def middle(self, t: int, cell: Index) -> tuple[float, ...]:
        """The pixel of a set that is nearest to its middle, drawn over where anything is."""
        now = self.now(t)
        on = cell[now.reshape(-1)[cell] > 0]
        cell = on if len(on) else cell
        places = np.stack(np.unravel_index(cell, now.shape), axis=1).astype(float)
        return tuple(places[((places - places.mean(axis=0)) ** 2).sum(axis=1).argmin()].tolist())

    def now(self, t: int) -> Labels:
        """The labels of a frame as they are shown."""
        return label_frame(self.masks.labels, t)

    def like(self, t: int, cell: Index) -> float:
        """Overlap of a true cell with what is shown for it."""
        now = self.now(t).reshape(-1)
        labels, counts = np.unique(now[cell], return_counts=True)
        unions = [len(cell) + np.sum(now == k) - n for k, n in zip(labels, counts, strict=True)]
        return max(
            (n / u for k, n, u in zip(labels, counts, unions, strict=True) if k), default=0.0
        )


def pixels(regions: Regions, row: int) -> Index:
    """Places of a region in the flat frame."""
    return regions.pixels[regions.starts[row] : regions.starts[row + 1]]


def person_of(task: masks.Task, shown: list[Labels], clicks: int) -> Person:
    """Somebody who looks at masks."""
    labels = masks.of_frames([frame.copy() for frame in shown], task.image)
    mine = MovieMasks(labels, task.image, None, None)
    return Person(mine, measure(labels, task.image), task.truth, clicks)


def replied(
    task: masks.Task, shown: list[Labels], given: GivenMasks, clicks: int
) -> tuple[MaskAnswers, str]:
    """All answers, with those to questions about masks; and how they were answered."""
    person = person_of(task, shown, clicks)
    person.masks.take(MaskStep(added=tuple(given.answers or ())))
    labels = person.masks.labels
    how = MaskSettings(loyalty=READING_LOYALTY)  # as the window asks about masks found there
    doubts = bt.run(mask_doubts(task.image, labels, range(len(shown)), None, how, given))
    said = person.reply(mask_questions(doubts), task.border)
    return person.masks.answers, said


def answered(
    task: masks.Task, shown: list[Labels], clicks: int, seed: int
) -> tuple[MaskAnswers, float]:
    """What the person says, and how much larger the outlines are that were corrected."""
    rng, truth = np.random.default_rng(seed), task.truth
    person = person_of(task, shown, clicks)
    shape, border = truth[0].shape, task.border
    views: set[int] = set()
    while person.left > 0 and len(views) < len(truth):
        t = int(rng.integers(len(truth)))
        middle = [int(rng.integers(border, n - border)) for n in shape[-2:]]
        sides = list(zip(middle, shape[-2:], strict=True))
        low = [*[0] * (len(shape) - 2), *(max(border, m - n // 4) for m, n in sides)]
        high = [*shape[:-2], *(min(n - border, m + n // 4) for m, n in sides)]
        if t not in views:
            views.add(t)
            person.look(t, low, high)
    answers = person.masks.answers
    return answers, answers.outline_ratio


def painted(task: masks.Task, count: int, seed: int) -> PixelModel | None:
    """What strokes teach that somebody paints who knows the truth."""
    if not count:
        return None
    n = len(task.truth)
    frames = [round((k + 0.5) * n / PAINTED) for k in range(PAINTED)]
    shape = task.truth[0].shape
    strokes = np.zeros((n, *shape), dtype=np.uint8)
    for t, marks in draw_strokes(task.truth.__getitem__, frames, shape, count, seed).items():
        strokes[t] = marks
    return bt.learn_pixels(task.image, strokes)


def remember() -> dict[Any, Any]:
    """Keep what is read of an image with some settings: it does not hang on answers.

    What is kept must go where strokes teach anew.
    """
    proposed, read = mask_candidates.propose_frame, mask_candidates.segment_frame
    kept: dict[Any, Any] = {}

    def once(key: Any, work: Any) -> Any:
        if key not in kept:
            kept[key] = work()
        return kept[key]

    def propose_frame(image: Any, *args: Any, t: int, **named: Any) -> Any:
        brought = tuple((k, v.tobytes()) for k, v in named["labels"].items())
        key = (image.tobytes()[:4096], t, hash(brought), repr(args))
        return once(key, lambda: proposed(image, *args, t=t, **named))

    def segment_frame(image: Any, *args: Any, **named: Any) -> Any:
        return once((image.tobytes(), repr(args)), lambda: read(image, *args, **named))

    mask_candidates.propose_frame = propose_frame
    mask_candidates.segment_frame = segment_frame
    return kept


def chosen(image: Any, given: GivenMasks) -> list[Labels]:
    """Labels of every frame."""
    choices: list[Any] = []
    bt.run(choose_masks(image, choices.append, given=given))
    return [labels_of(c.candidates.regions, c.chosen, c.frame) for c in choices]


def main() -> None:
    """Print a table in markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*masks.SETS, []])
    parser.add_argument("--data", type=Path, default=masks.DATA)
    parser.add_argument("--clicks", type=int, default=50)
    parser.add_argument("--strokes", type=int, default=0)
    parser.add_argument("--questions", type=int, default=0, help="so many of the clicks")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--border", type=int, help="pixels left out; as the movie's own")
    parser.add_argument("--frames", type=lambda text: tuple(map(int, text.split(":"))))
    args = parser.parse_args()
    kept = remember()
    print("| movie | clicks | edge F1 | divisions | complete | TRA | DET | SEG | BIO |")
    print("|" + " --- |" * 9)
    for name in args.names or ["hela", "psc"]:
        task = masks.open_task(masks.SETS[name], args.data, args.frames, args.border)
        if task is None:
            continue
        image = task.image

        def figures(frames: list[Labels], task: masks.Task = task) -> list[float]:
            found = masks.scored(task, frames)
            return [float(found.get(k, np.nan)) for k in masks.COLUMNS]

        shown = chosen(image, GivenMasks())
        print(row(name, "0", np.array([figures(shown)])), flush=True)
        rows = []
        for seed in range(args.seeds):
            pixels = painted(task, args.strokes, seed)
            if pixels is not None:
                kept.clear()
                shown = chosen(image, GivenMasks(pixels=pixels))
                print(f"{name}, seed {seed}: strokes alone, {figures(shown)}", file=sys.stderr)
            answers, ratio = answered(task, shown, args.clicks - args.questions, seed)
            given = GivenMasks(answers=answers or None, pixels=pixels)
            frames = chosen(image, given) if answers else shown
            if args.questions:
                print(f"{name}, seed {seed}: before questions {figures(frames)}", file=sys.stderr)
                answers, told = replied(task, frames, given, args.questions)
                print(f"{name}, seed {seed}: questions {told}", file=sys.stderr)
                frames = chosen(image, replace(given, answers=answers))
            rows.append(figures(frames))
            seen = sum(len(a.right) for a in answers if a.kind == MendKind.CHECK)
            said = f"{len(answers)} answers, {seen} cells in view, outlines {ratio:.2f} as large"
            print(f"{name}, seed {seed}: {said}, {rows[-1]}", file=sys.stderr)
        print(row(name, str(args.clicks), np.array(rows)), flush=True)


def row(name: str, clicks: str, rows: NDArray[np.float64]) -> str:
    """A line of the table: mean and standard deviation."""
    spread = rows.std(axis=0) if len(rows) > 1 else None
    cells = [
        f"{mean:.3f}" + ("" if spread is None else f" ± {spread[k]:.3f}")
        for k, mean in enumerate(rows.mean(axis=0))
    ]
    return "| " + " | ".join([name, clicks, *cells]) + " |"


if __name__ == "__main__":
    main()
