"""The masks of the open movie: mended by clicks, each change kept as an answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation_set import AnswerChange
from bridgetrack.annotations.mask_answers import MaskAnswer, MaskAnswers, in_order
from bridgetrack.annotations.mask_targets import honoured
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.arrays import Array, Index
from bridgetrack.detections.labels import checked_labels
from bridgetrack.detections.table import Detections, cell_diameter
from bridgetrack.errors import InputError
from bridgetrack.movie.movie import Movie, pixels_of
from bridgetrack.regions.acts import agreement
from bridgetrack.regions.describe import FEATURES, SPATIAL, describe_frame
from bridgetrack.regions.mend import Judge, Mend, MendKind, MendSite, Place
from bridgetrack.regions.regions import Regions
from bridgetrack.regions.score import RegionScore, starting_score
from bridgetrack.regions.taught import MovieScore
from bridgetrack.segmentation.builtin import FrameView, complete_settings
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.session.movie import LazyFrames, MovieAndCells


class _EditedFrames(LazyFrames):
    """Frames of a label movie, some of them changed in memory."""

    def __init__(self, movie: Movie) -> None:
        super().__init__(movie.array.shape, movie.array.dtype)
        self._array = movie.array
        self.changed: dict[int, NDArray[Any]] = {}

    def frame(self, t: int) -> NDArray[Any]:
        """One frame with its changes."""
        return self.changed[t] if t in self.changed else pixels_of(self._array[t])


class MovieMasks:
    """The label movie of a session with the answers about its masks.

    Changes are written into the array that its labels show, where there is one, else kept in
    memory beside them.

    Parameters
    ----------
    movie
        The movie with its segmentation.
    store
        The answers about it, which hold all changes of masks.

    Attributes
    ----------
    labels
        The segmentation with all changes.
    """

    def __init__(self, movie: MovieAndCells, store: AutosavingStore) -> None:
        assert movie.labels is not None
        self.labels = movie.labels
        self._image, self._channel, self._pixels = movie.image, movie.channel, movie.pixels
        # Cells that were found here may be found anew, which makes others of them.
        self._anew = movie.found is not None and movie.files[1] is None
        self._store = store
        self._edited: _EditedFrames | None = None
        self._found = (movie.found and movie.found.settings) or SegmentationSettings()
        self._settings: SegmentationSettings | None = None

    @property
    def answers(self) -> MaskAnswers:
        """What was said of the masks."""
        return self._store.masks

    @cached_property
    def _score(self) -> RegionScore:
        return starting_score()

    @property
    def has_image(self) -> bool:
        """Whether there is a movie to choose other masks by."""
        return self._image is not None

    def restore(self) -> tuple[set[int], int]:
        """Make the changes anew that were made before the movie was opened.

        Returns
        -------
        frames, lost
            The frames changed, and in how many others the masks are neither those before nor
            what the answers say; these stay as they are.
        """
        changes = _by_frame(self.answers.past)
        chosen = {a.frame for a in self.answers.past if a.says_nothing}
        fits = [self._led(t, changes[t]) for t in chosen]
        others = 2 * sum(fits) < len(fits)  # these are other masks than those chosen from
        if others:
            changes = _by_frame(self.answers)
        frames, lost = set(), len(chosen) if others and not self._anew else 0
        for t, mine in changes.items():
            pixels, _, after = _composed(mine)
            there = self._frame(t).reshape(-1)[pixels]
            if np.array_equal(there, after):
                continue
            if self._led(t, mine):
                self._write(t, pixels, after)
                frames.add(t)
            elif not (others and t in chosen):
                lost += t in chosen or not honoured(self._frame(t), self.answers, t)
        return frames, lost

    def _led(self, t: int, changes: list[MaskAnswer]) -> bool:
        """Whether changes led from the masks of a frame to what they say."""
        pixels, before, after = _composed(changes)
        there = self._frame(t).reshape(-1).copy()
        if np.array_equal(there[pixels], before):
            return True
        for mend in (a.mend for a in changes):
            if mend.fits(there):
                there[mend.pixels] = mend.after
        return np.array_equal(there[pixels], after)

    def label_at(self, t: int, place: Place) -> int:
        """The label at a place of a frame, 0 for background and beyond the frame."""
        frame = self._frame(t) if 0 <= t < self.labels.n_frames else np.zeros((0,) * len(place))
        at = tuple(round(p) for p in place)
        inside = all(0 <= a < n for a, n in zip(at, frame.shape, strict=True))
        return int(frame[at]) if inside else 0

    # ------------------------------------------------------------------ changes

    def site(self, t: int, detections: Detections, learned: MovieScore | None = None) -> MendSite:
        """A frame, ready to be mended, by what the movie taught where that is known.

        Raises
        ------
        InputError
            Where there is no such frame.
        """
        if not 0 <= t < self.labels.n_frames:
            raise InputError(
                f"there is no frame {t}; the movie has 0 to {self.labels.n_frames - 1}"
            )
        labels = self._frame(t)
        image = None if self._image is None else self._image.channel_frame(t, self._channel)
        if self._settings is None:
            self._settings = self._complete(image, detections)
        free, scale = self._free(labels, detections), self.labels.geometry.scale
        judge = _judge(learned or MovieScore(self._score), self._settings, scale)
        return MendSite(t, labels, self._settings, free, image, scale, judge)

    def _complete(self, image: NDArray[Any] | None, detections: Detections) -> SegmentationSettings:
        """What cells were found with; what that leaves open is decided by them and by a frame."""
        width = cell_diameter(detections) / float(np.mean(detections.geometry.scale[-2:]))
        # cells at the edge are left out where cells are found, not where somebody points at one
        known = replace(
            self._found, diameter=self._found.diameter or max(width, 2.0), clear_border=False
        )
        return known if image is None or np.ptp(image) == 0 else complete_settings([image], known)

    def _free(self, labels: NDArray[Any], detections: Detections) -> int:
        """A number that no cell ever had."""
        known = (int(detections.label.max(initial=0)), int(labels.max(initial=0)))
        return 1 + max(*known, self.answers.last_label)

    def numbered(self, mend: Mend, detections: Detections) -> Mend:
        """A change that can be made now; a new cell's number is free in the whole movie.

        Raises
        ------
        InputError
            Where the masks changed since, or the number of a new cell cannot be stored.
        """
        if not self.fits(mend):
            raise InputError(
                f"frame {mend.frame}: the masks have changed there since; point at the cell again"
            )
        if mend.kind in (MendKind.CUT, MendKind.GROW):
            free = self._free(self._frame(mend.frame), detections)
            [old] = np.setdiff1d(mend.after, [*mend.before.tolist(), 0]).tolist()
            new = max(old, free)
            after = np.where(mend.after == old, new, mend.after)
            cells = tuple(new if c == old else c for c in mend.cells)
            mend = replace(mend, after=after, cells=cells)
        self.check_numbers(mend)
        return mend

    def check_numbers(self, *mends: Mend) -> None:
        """Complain where the number of a cell cannot be stored.

        Raises
        ------
        InputError
            As above.
        """
        dtype = self.labels.array.dtype
        limit = np.iinfo(dtype).max if dtype.kind in "iu" else 2**24
        highest = max(int(mend.after.max(initial=0)) for mend in mends)
        if highest > limit:
            raise InputError(
                f"the labels are stored as {dtype}, in which {highest}, the next free number, has "
                "no place; save them with more bits (for example as uint32) and open them again"
            )

    def painted(self, t: int, pixels: Index, before: Index) -> Mend | None:
        """What somebody painted in a frame, as it is there now; None where that says nothing.

        Parameters
        ----------
        t
            The frame.
        pixels
            Places in the flat frame that were painted, ascending.
        before
            Their labels before.
        """
        labels = self._frame(t)
        after = labels.reshape(-1)[pixels].astype(np.int64)
        changed = after != before
        pixels, before, after = pixels[changed], before[changed].astype(np.int64), after[changed]
        if not len(pixels):
            return None
        cells = np.unique(np.concatenate([before, after]))
        right = [(k, np.flatnonzero(labels.reshape(-1) == k)) for k in cells[cells > 0].tolist()]
        there = [(k, p) for k, p in right if len(p)]
        numbers, sets = tuple(k for k, _ in there), tuple(p for _, p in there)
        gone = np.setdiff1d(before, [0, *numbers])
        wiped = tuple(pixels[before == k] for k in gone.tolist())
        return Mend(MendKind.PAINT, t, (), pixels, before, after, numbers, sets, wiped)

    def follow(self, change: AnswerChange) -> tuple[set[int], bool]:
        """Make what a step changes in the masks, where they are what it begins with.

        Returns
        -------
        frames, done
            The frames that changed, and whether all was as it must be.
        """
        mends = [a.mend.inverse for a in reversed(in_order(change.masks_removed))]
        mends += [a.mend for a in in_order(change.masks_added)]
        frames, done = set(), True
        for mend in mends:
            there = self._frame(mend.frame).reshape(-1)[mend.pixels]
            if np.array_equal(there, mend.after):
                continue  # it was painted, or says that all is right
            if np.array_equal(there, mend.before):
                self._write(mend.frame, mend.pixels, mend.after)
                frames.add(mend.frame)
            else:
                done = False
        return frames, done

    def fits(self, mend: Mend) -> bool:
        """Whether the masks are what a change begins with."""
        return mend.fits(self._frame(mend.frame))

    def is_as(self, answer: MaskAnswer, *, before: bool) -> bool:
        """Whether the masks are as before an answer, or as after it."""
        mend = answer.mend.inverse if not before else answer.mend
        return self.fits(mend)

    # ------------------------------------------------------------------ pixels

    def _frame(self, t: int) -> NDArray[np.integer]:
        return checked_labels(self.labels, t)

    def _write(self, t: int, pixels: Index, labels: Index) -> None:
        where = np.unravel_index(pixels, self.labels.geometry.shape or ())
        if self._pixels is not None:
            self._pixels[t][where] = labels
            return
        if self._edited is None:
            edited = self._edited = _EditedFrames(self.labels)
            chunks = tuple((1,) * n if k < 2 else (n,) for k, n in enumerate(edited.shape))
            array = da.from_array(edited, chunks=chunks, name=False, asarray=False)
            self.labels = replace(self.labels, array=array)
        frame = self._edited.frame(t).copy()
        frame[0][where] = labels
        self._edited.changed[t] = frame


def _judge(score: MovieScore, settings: SegmentationSettings, scale: tuple[float, ...]) -> Judge:
    """How probably candidates are cells, by what one frame shows and how large cells are."""

    def judge(regions: Regions, image: NDArray[Any] | None) -> Array:
        if image is None or not len(regions):
            return agreement(regions)
        known = describe_frame(regions, FrameView(image, settings, scale))
        unknown = np.zeros((len(regions), len(FEATURES) - SPATIAL))
        odds = score.start.log_odds(np.concatenate([known, unknown], axis=1))
        odds = odds - score.doubt(regions.area.astype(np.float64))
        return np.asarray(1 / (1 + np.exp(-odds)))

    return judge


def _composed(answers: list[MaskAnswer]) -> tuple[Index, Index, Index]:
    """Pixels that some answers changed, with their first label before and last one after."""
    changes = [a.mend for a in answers]
    pixels = np.concatenate([m.pixels for m in changes])
    before = np.concatenate([m.before for m in changes])
    after = np.concatenate([m.after for m in changes])
    known, first = np.unique(pixels, return_index=True)
    last = len(pixels) - 1 - np.unique(pixels[::-1], return_index=True)[1]
    return known, before[first], after[last]


def _by_frame(changes: Iterable[MaskAnswer]) -> dict[int, list[MaskAnswer]]:
    """Changes of each frame, in their order."""
    found: dict[int, list[MaskAnswer]] = {}
    for change in changes:
        found.setdefault(change.frame, []).append(change)
    return found
