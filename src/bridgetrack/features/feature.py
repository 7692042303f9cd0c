"""Features, the sets of them that models use, and the matrix of features of a movie.

Also scores that another program gave to links, which are features if they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError, ModelError
from bridgetrack.features.view import CellMeasures, EventView, describe_cells
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.spread import THREADS

Block = NDArray[np.float32]
Rows = NDArray[np.integer]

_AT_ONCE = 1 << 15
"""About how many hypotheses are processed at once."""

LINK_SCORE = "link_score"
"""Name of the features that exist only if another program's scores are given."""


@dataclass(frozen=True)
class Feature:
    """One number per hypothesis of one event.

    Parameters
    ----------
    event
        The event it describes.
    name
        Short name, unique within the event.
    formula
        What is computed, in words or symbols.
    unit
        Unit of the value; ``"1"`` for dimensionless ones.
    compute
        Function of a `EventView` that returns shape (H_event,).
    needs
        ``"mask"`` or ``"image"`` where the value is only known with masks or intensities;
        it is 0 where they are missing.
    start
        Weight in models that do not have it; None if every model must have it.
    """

    event: Event
    name: str
    formula: str
    unit: str
    compute: Callable[[EventView], Array]
    needs: str = ""
    start: float | None = None

    @property
    def key(self) -> str:
        """Name in model files, e.g. ``"move.distance"``."""
        return f"{self.event.key}.{self.name}"


@dataclass(frozen=True)
class FeatureSet:
    """An ordered set of features, grouped into one block of weights per event.

    Parameters
    ----------
    features
        Sorted by event; within an event in the order of the weights.
    """

    features: tuple[Feature, ...]

    def __post_init__(self) -> None:
        events = [f.event for f in self.features]
        if events != sorted(events):
            raise InputError("the features of a set must be sorted by event, in the events' order")
        keys = self.keys
        twice = sorted({k for k in keys if keys.count(k) > 1})
        if twice:
            raise InputError(f"features must have different names; {twice} occur more than once")

    def __len__(self) -> int:
        return len(self.features)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names in model files, in the order of the weights, shape (d,)."""
        return tuple(f.key for f in self.features)

    def of(self, event: Event) -> tuple[Feature, ...]:
        """Features of one event."""
        return tuple(f for f in self.features if f.event == event)

    def block(self, event: Event) -> slice:
        """Where the weights of an event lie in the weight vector."""
        start = sum(f.event < event for f in self.features)
        return slice(start, start + len(self.of(event)))

    def with_feature(self, feature: Feature) -> FeatureSet:
        """A set with one more feature (a user's own), placed last in its event's block.

        Raises
        ------
        InputError
            Where the event already has a feature of this name.
        """
        ordered = sorted([*self.features, feature], key=lambda f: f.event)
        return replace(self, features=tuple(ordered))

    def align(
        self, keys: tuple[str, ...], values: Array, otherwise: Array | float | None = None
    ) -> Array:
        """Bring the weights, or other values, of a model into the order of this set, shape (d,).

        A feature that the model does not have gets the value `otherwise`, or if that is None its
        `Feature.start`; link scores that only the model has are left out, as if none were given.

        Raises
        ------
        ModelError
            Where the model has features that this set lacks, or lacks some without a start.
        """
        known = dict(zip(keys, values, strict=True))
        others: Iterable[float | None] = [f.start for f in self.features]
        if otherwise is not None:
            others = np.broadcast_to(otherwise, len(self)).tolist()
        found = [known.get(k, other) for k, other in zip(self.keys, others, strict=True)]
        unknown = sorted(k for k in set(keys) - set(self.keys) if not needs_link_scores([k]))
        missing = sorted(k for k, v in zip(self.keys, found, strict=True) if v is None)
        if unknown or missing:
            raise ModelError(
                "the model was made with other features than this program has"
                + (f"; only in the model: {', '.join(unknown)}" if unknown else "")
                + (f"; only in the program: {', '.join(missing)}" if missing else "")
                + ". Train a new model, or use the version of Bridgetrack that made this one"
            )
        return np.asarray(found, dtype=np.float64)


def needs_link_scores(keys: Iterable[str]) -> bool:
    """Whether a model with these features learned from scores of links."""
    return any(key.endswith(f".{LINK_SCORE}") for key in keys)


def _parts(n: int) -> list[slice]:
    """Slices of rows: numpy copies the rows that it multiplies in double precision."""
    return [slice(k, k + _AT_ONCE) for k in range(0, n, _AT_ONCE)]


def _times(block: Block, weights: Array) -> Array:
    """Features times weights, shape (h,)."""
    parts = (block[some].astype(np.float64, order="C") for some in _parts(len(block)))
    return np.concatenate([np.zeros(0), *(part @ weights for part in parts)])


def _value(feature: Feature, view: EventView) -> Block:
    count = len(view.source)
    computed = np.asarray(feature.compute(view))
    with np.errstate(over="ignore"):  # values that are too large are refused below
        value = computed.astype(np.float32)
    if value.shape != (count,):
        raise InputError(
            f"feature {feature.key} returned shape {value.shape} for {count} hypotheses; it must "
            "return one number each"
        )
    if not np.isfinite(value).all():
        bad = int(np.flatnonzero(~np.isfinite(value))[0])
        raise InputError(
            f"feature {feature.key} is not a number for the event at cell row "
            f"{max(int(view.source[bad]), int(view.target[bad]))}; check its formula"
        )
    return value


class FeatureMatrix:
    """The matrix Φ of all hypotheses (000, eq. 1.1), one block per event, computed on demand.

    A block is kept when it is asked for a second time: blocks take more memory than all other data
    of a movie, and tracking needs each only once. They are held in single precision; sums are
    computed in double precision. A feature (a user's own) that returns the wrong shape or something
    not finite raises an InputError when it is computed.

    Parameters
    ----------
    evidence, hypotheses, features
        The movie, and the features that are computed.
    cells
        The measures of the movie's cells, where they are known already.

    Attributes
    ----------
    rows
        Hypotheses of every event, one index array per `Event`.
    """

    def __init__(
        self,
        evidence: Evidence,
        hypotheses: Events,
        features: FeatureSet,
        cells: CellMeasures | None = None,
    ) -> None:
        self.features, self._evidence, self._hypotheses = features, evidence, hypotheses
        self.rows = tuple(np.flatnonzero(hypotheses.event == e).astype(np.int32) for e in Event)
        if cells is not None:
            self._cells = cells
        self._kept: dict[Event, Block] = {}
        self._asked: set[Event] = set()

    def values(self, event: Event) -> Block:
        """Features of the hypotheses of an event, shape (H_event, d_event)."""
        if event in self._kept:
            return self._kept[event]
        block = self._of(event, self.rows[event])
        if event in self._asked:
            self._kept[event] = block
        self._asked.add(event)
        return block

    def keeping(self) -> Iterator[Event]:
        """Compute all blocks that are missing; yields each event before its block."""
        for event in Event:
            if event not in self._kept:
                yield event
                self._kept[event] = self._of(event, self.rows[event])

    def scores(self, weights: Array) -> Array:
        """Φ w, shape (H,)."""
        out = np.zeros(len(self._hypotheses))
        for event in Event:
            out[self.rows[event]] = self._times(event, weights[self.features.block(event)])
        return out

    def row(self, hypothesis: int) -> Array:
        """Features of one hypothesis, zero outside its event's block, shape (d,)."""
        out, event = np.zeros(len(self.features)), Event(self._hypotheses.event[hypothesis])
        place = np.searchsorted(self.rows[event], hypothesis)
        out[self.features.block(event)] = self.values(event)[place]
        return out

    def sparse(self, some: Index | None = None) -> sp.csr_matrix:
        """Φ as one sparse matrix, shape (H, d); of some hypotheses only, in their order."""
        wanted = np.arange(len(self._hypotheses)) if some is None else some
        place = np.full(len(self._hypotheses), -1, dtype=np.int64)
        place[wanted] = np.arange(len(wanted))
        rows, columns, values = [], [], []
        for event in Event:
            mine = place[self.rows[event]]
            block = self.values(event)[mine >= 0]
            row, column = np.nonzero(block)
            rows.append(mine[mine >= 0][row])
            columns.append(column.astype(np.int32) + self.features.block(event).start)
            values.append(block[row, column].astype(np.float64))
        places = np.concatenate(rows), np.concatenate(columns)
        shape = (len(wanted), len(self.features))
        return sp.csr_matrix((np.concatenate(values), places), shape=shape)

    @cached_property
    def _cells(self) -> CellMeasures:
        return describe_cells(self._evidence)

    def _times(self, event: Event, weights: Array) -> Array:
        """Features of an event times weights, some frames at a time if they are not kept."""
        if event in self._asked or event in self._kept:
            return _times(self.values(event), weights)
        self._asked.add(event)
        _ = self._cells  # described once, before the threads need them
        with ThreadPoolExecutor(THREADS) as pool:
            some = self._some_frames(self.rows[event])
            parts = pool.map(lambda mine: _times(self._of(event, mine), weights), some)
            return np.concatenate([np.zeros(0), *parts])

    def _some_frames(self, mine: Rows) -> list[Rows]:
        """The hypotheses of an event in parts; those of a frame pair are compared and stay
        together."""
        frame = self._evidence.detections.frame[self._hypotheses.take(mine).first]
        if len(mine) <= _AT_ONCE or (np.diff(frame) < 0).any():
            return [mine]
        cuts = np.searchsorted(frame, frame[_AT_ONCE::_AT_ONCE])
        return np.split(mine, np.unique(cuts))

    def _of(self, event: Event, mine: Rows) -> Block:
        """Features of some hypotheses of an event."""
        sources, targets = self._hypotheses.sources[mine], self._hypotheses.targets[mine]
        view = EventView(self._evidence, self._cells, *sources.T, *targets.T)
        detections, wanted = self._evidence.detections, self.features.of(event)
        known = {"": True, "mask": detections.has_masks, "image": bool(detections.channels)}
        # Stored by columns, and zero: columns that are never written, as the movie lacks the data,
        # take no memory.
        block = np.zeros((len(mine), len(wanted)), dtype=np.float32, order="F")
        for k, feature in enumerate(wanted):
            if known[feature.needs]:
                block[:, k] = _value(feature, view)
        return block


# --- scores of links --------------------------------------------------------------------------

_LARGEST_LOGIT = 4.0
_SAME = 1.0
"""Largest distance, in pixels, between two positions of the same cell."""


@dataclass(frozen=True)
class LinkScores:
    """Scores that another program gave to links from a cell to one of the next frame.

    As a feature the value is the logit of the score, within -4 and 4: a calibrated score is a
    probability, whose logit is what it adds to the log-odds of a link, so that the weight 1 trusts
    it fully; training finds the best weight. A division has the mean of its two links. The value is
    0 for links without a score.

    Parameters
    ----------
    frame
        Frame of the earlier cell, shape (n,).
    source, target
        Labels of both cells, or their rows in `cells`, shape (n,).
    score
        How probable the link is, 0 to 1, shape (n,).
    name
        Where they came from, for messages.
    cells
        Frame and position in pixels of every cell that is not known by its label, shape
        (m, 1 + ndim); None for labels. A cell of the movie within a pixel is the same.

    Raises
    ------
    InputError
        Where a score is out of range or a link is scored twice.
    """

    frame: Index
    source: Index
    target: Index
    score: Array
    name: str = "the link scores"
    cells: Array | None = None
    _table: pd.Series = field(init=False, repr=False, compare=False)
    _places: cKDTree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wrong = ~((self.score >= 0) & (self.score <= 1))
        if wrong.any():
            raise InputError(
                f"{self.name}: the score {self.score[wrong][0]:g} is no probability; scores of "
                "links must lie between 0 and 1 (pass others through a logistic function first)"
            )
        index = pd.MultiIndex.from_arrays([self.frame, self.source, self.target])
        if index.has_duplicates:
            frame, source, target = index[index.duplicated()][0]
            raise InputError(
                f"{self.name}: the link of cell {source} in frame {frame} to cell {target} is "
                "scored twice"
            )
        tiny = 1 / (1 + np.exp(_LARGEST_LOGIT))
        odds = np.clip(self.score, tiny, 1 - tiny)
        object.__setattr__(self, "_table", pd.Series(np.log(odds / (1 - odds)), index))
        places = None if self.cells is None else cKDTree(_far_apart(self.cells))
        object.__setattr__(self, "_places", places)

    def __len__(self) -> int:
        return len(self.score)

    def values(self, detections: Detections, i: Index, j: Index) -> Array:
        """Logits of the links from rows `i` to rows `j`, 0 where unknown, shape of i."""
        frame = detections.frame
        ends = [self._numbers(detections, rows) for rows in (i, j)]
        wanted = pd.MultiIndex.from_arrays([frame[i], *ends])
        found = self._table.reindex(wanted).fillna(0.0).to_numpy(dtype=np.float64)
        return np.where(frame[j] == frame[i] + 1, found, 0.0)

    def matched(self, detections: Detections) -> int:
        """How many of the links join cells that are there."""
        number = self._numbers(detections, np.arange(len(detections)))
        cells = pd.MultiIndex.from_arrays([detections.frame, number])
        ends = [
            pd.MultiIndex.from_arrays([self.frame + k, labels]).isin(cells)
            for k, labels in enumerate((self.source, self.target))
        ]
        return int((ends[0] & ends[1]).sum())

    def _numbers(self, detections: Detections, rows: Index) -> Index:
        """The numbers of cells as source and target give them, -1 for unknown ones."""
        if self.cells is None:
            return detections.label[rows]
        place = (detections.position[rows] / detections.geometry.scale_array).T
        if len(place) != self.cells.shape[1] - 1:
            return np.full(len(rows), -1)
        wanted = np.column_stack([detections.frame[rows], *place])
        apart, number = self._places.query(_far_apart(wanted))
        return np.where(apart <= _SAME, number, -1)


def _far_apart(cells: Array) -> Array:
    """Frames and positions of cells as points; those of different frames are never the same."""
    return np.column_stack([2 * _SAME * cells[:, 0], cells[:, 1:]])
