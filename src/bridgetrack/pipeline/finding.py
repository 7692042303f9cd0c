"""Finding the cells of a movie, and the record of how they were found that is kept beside them.

Repairing masks is the same: they are candidates, and cells that stay keep their numbers and
outlines.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers, as_candidates, targets
from bridgetrack.errors import InputError, warn
from bridgetrack.models.model import Model, shipped_model
from bridgetrack.movie.movie import (
    Movie,
    check_labels,
    check_same_extent,
    label_frame,
    looks_like_labels,
)
from bridgetrack.pipeline.joint import Candidates, choose_jointly
from bridgetrack.pipeline.mask_candidates import MaskReader, fitted_settings, learned_score
from bridgetrack.pipeline.mask_changes import (
    MaskChange,
    changes,
    check_some_left,
    keep_numbers,
    repainted,
    with_outlines_of,
)
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.regions.mend import MaskAnswer
from bridgetrack.regions.propose import label_sources
from bridgetrack.regions.regions import labels_of, regions_of_labels
from bridgetrack.regions.score import MovieScore
from bridgetrack.schema import FileFormat, OpenEntry, of_dataclass
from bridgetrack.segmentation.readings import SettingsEstimate, estimate_settings
from bridgetrack.segmentation.segment import check_backend, segment_frame
from bridgetrack.segmentation.settings import Backend, Choose, SegmentationSettings
from bridgetrack.spread import Workers, spread

_LOOKING = 0.1
"""Approximate share of the time of a search that is spent on the movie as a whole."""
_WAYS = {"jointly": "together with their tracks", "plain": "by the plain segmentation"}


@dataclass(frozen=True)
class Finding:
    """How the cells of a movie are found; everything except its image and answers about masks.

    Raises
    ------
    InputError
        Where there is no such way to choose, labels are brought along and not chosen from, or the
        cells of a network are, which are taken as they are.
    """

    # of the built-in segmentation; missing ones are estimated from the movie
    settings: SegmentationSettings | None = None
    # whether cells are chosen among candidates, together with their tracks
    # (jointly), or each frame is segmented in one way, which is fastest (plain)
    choose: Choose = "jointly"
    # backend, network: see `segment_frame`
    backend: str = "builtin"
    network: str | None = None
    given: Movie | None = None  # given labels, which are repaired
    # given label movies, whose cells are candidates beside others
    beside: tuple[Movie, ...] = ()
    # score learned from the movie and the answers about it, if that is known already
    learned: MovieScore | None = None

    def __post_init__(self) -> None:
        check_backend(self.backend)
        if self.choose not in _WAYS:
            raise InputError(f"masks are chosen {' or '.join(_WAYS)}, not {self.choose!r}")
        if self.brought and not self.chooses:
            raise InputError("masks given as candidates need 'jointly'")
        if self.backend != "builtin" and self.chooses:
            raise InputError(
                f"masks from {self.backend} are used unchanged ('plain'); to choose among them "
                "and others, write them to a file, and give it as candidates"
            )

    @property
    def chooses(self) -> bool:
        """Whether it chooses among candidates, so that answers about masks count."""
        return self.choose != "plain"

    @property
    def brought(self) -> tuple[Movie, ...]:
        """All given label movies; cells of the first keep their numbers."""
        return self.beside if self.given is None else (self.given, *self.beside)

    @property
    def words(self) -> str:
        """The method, in words that continue *cells found*."""
        if self.given is not None:
            return "by repairing given masks with the image"
        if self.backend != "builtin":
            # a Windows path takes both kinds of slashes
            name = "" if self.network is None else f" ({PureWindowsPath(self.network).name})"
            return f"by {self.backend}{name}"
        words = _WAYS[self.choose]
        if self.settings is not None and self.settings.diameter is not None:
            words += f", {self.settings.foreground} cells of {self.settings.diameter:.0f} pixels"
        if self.kind == "rods":
            words += ", as rods"
        return f"{words}, also with masks from other programs" if self.beside else words

    @property
    def kind(self) -> str | None:
        """Kind of cells, one of `KINDS`; None if that is not known yet."""
        return None if self.learned is None else self.learned.start.kind

    @property
    def sentence(self) -> str:
        """The same as a sentence about cells that are open."""
        start = "They were" if self.given is not None else "Found here"
        return f"{start} {self.words}."

    def decided(self, image: Movie, *, channel: int | str = 0) -> Steps[SettingsEstimate]:
        """Missing settings, estimated from a movie.

        If masks are chosen, the size of cells is that with the highest scores of candidates. The
        plain segmentation has no candidates, and repaired masks have a size: these use the faster
        estimate.
        """
        if self.chooses and self.given is None:
            return (yield from fitted_settings(image, self.settings, channel=channel))
        yield Progress("Looking at the movie", 0.0)
        return estimate_settings(image, self.settings, channel=channel)


def usual_choice(backend: str) -> Choose:
    """The default way of choosing masks: the cells of a network are used unchanged."""
    return "jointly" if backend == "builtin" else "plain"


@dataclass
class CellSearch:
    """A search for the cells of a movie, or a repair of given ones, and its result.

    Parameters
    ----------
    movie, finding
        The movie and the method; later also with the estimated settings and the learned score.
    answers
        Answers about masks.
    weights
        Of events; the shipped ones where None.
    channel
        Number or name of that which shows the cells.
    client
        Over whose workers frames are spread; this process where None.
    """

    movie: Movie
    finding: Finding
    answers: MaskAnswers | None = None
    weights: Model | None = None
    channel: int | str = 0
    client: Any = None
    estimate: SettingsEstimate | None = None  # estimate of settings of the built-in method
    # cells of every frame found so far; a frame is complete once it is counted, as another thread
    # may look at it
    counts: list[int] = field(default_factory=list)
    changes: list[MaskChange] = field(default_factory=list)  # made by a repair, in order of time
    labels: NDArray[np.int32] | None = None  # shape (T, [Z,] Y, X), of `in_memory`

    @property
    def doubts(self) -> tuple[str, ...]:
        """Doubts about the estimated settings, as sentences."""
        return () if self.estimate is None else self.estimate.doubts

    def in_memory(self) -> Steps[NDArray[np.int32]]:
        """Process all frames and keep their labels, 0 in later ones; raises as `steps`."""
        shape = (self.movie.n_frames, *(self.movie.geometry.shape or ()))
        labels = self.labels = np.zeros(shape, np.int32)

        def keep(frame: NDArray[np.int32]) -> None:
            labels[len(self.counts)] = frame

        yield from self.steps(keep)
        return labels

    def steps(self, write: Callable[[NDArray[np.int32]], object]) -> Steps[None]:
        """Process all frames; `write` receives the labels of each in order.

        Raises
        ------
        InputError
            Where movies differ in extent, answers exclude each other, or a repair would leave no
            cell.

        Warns
        -----
        BridgetrackWarning
            Where the movie looks like labels.
        """
        if looks_like_labels(self.movie):
            warn(
                f"{self.movie.source}: its pixels look like the numbers of cells, not like a "
                "picture; if these are masks, track them as they are (bridgetrack track), and give "
                "the picture that they were made from to find cells again"
            )
        given, had = self.finding.given, False
        work = self.prepared()
        reader = yield from relayed(work, lambda step: replace(step, done=_LOOKING * step.done))
        for step in self.masks(reader):
            if isinstance(step, Progress):
                yield replace(step, done=_LOOKING + (1 - _LOOKING) * step.done)
                continue
            write(step)
            if given is not None:
                before = label_frame(given, len(self.counts)).astype(np.int64)
                self.changes += changes(before, step, len(self.counts))
                had = had or bool(before.any())
            self.counts.append(len(np.unique(step[step > 0])))
        if given is not None:
            check_some_left(given, had, any(self.counts))

    def prepared(self) -> Steps[MaskReader]:
        """Estimate all missing settings, and the score, from the movie and answers about masks."""
        movie, finding = self.movie, self.finding
        for other in finding.brought:
            check_same_extent(movie, other)
            check_labels(other)
        number = movie.channel_number(self.channel)
        if finding.backend == "builtin":
            self.estimate = yield from finding.decided(movie, channel=number)
            finding = replace(finding, settings=self.estimate.settings)
        # Where they are chosen, cells at the edge are left out after the choice.
        inner = replace(finding.settings or SegmentationSettings(), clear_border=False)
        said = MaskAnswers(movie.geometry) if self.answers is None else self.answers
        workers = Workers.of(self.client)
        reader = MaskReader(movie, number, inner, said, finding.brought, workers)
        known = finding.learned is not None and finding.learned.answers == reader.answered
        if finding.chooses and not known:
            finding = replace(finding, learned=(yield from learned_score(reader)))
        self.finding = finding
        return reader

    def masks(self, reader: MaskReader) -> Generator[Progress | NDArray[np.int32], None, None]:
        """Labels of one frame after the other, between the steps of the work."""
        if self.finding.chooses:
            for step in self.choices(reader):
                yield step if isinstance(step, Progress) else _labelled(self.finding, reader, step)
            return
        yield Progress("Finding cells", 0.0)
        n, known = self.movie.n_frames, (self.finding, self.movie, reader.channel)
        for t, labels in enumerate(spread(plain_frame, known, range(n), reader.client), 1):
            yield labels
            yield Progress("Finding cells", t / n)

    def choices(self, reader: MaskReader) -> Generator[Progress | Candidates, None, None]:
        """Choose the cells among candidates; a window of frames is in memory.

        Cells at the frame's edge are left out, if asked for, only after the choice: otherwise their
        parts might be chosen, or cells would seem to appear and disappear. Given cells and those
        drawn by people stay.
        """
        assert self.finding.learned is not None
        movie, settings = self.movie, self.finding.settings
        candidates = reader.candidates(self.finding.learned)
        model = self.weights or shipped_model()
        for step in choose_jointly(candidates, movie.geometry, movie.channels, model):
            if isinstance(step, Progress) or settings is None or not settings.clear_border:
                yield step
                continue
            regions = step.regions
            brought = regions.voted(*label_sources(reader.labels))
            stays = step.pinned | brought | ~regions.at_edge()
            yield replace(step, chosen=step.chosen & stays)


def plain_frame(known: tuple[Finding, Movie, int], t: int) -> NDArray[np.int32]:
    """Labels of a frame by the plain segmentation, for a method, the movie, and its channel."""
    how, movie, channel = known
    image, scale = movie.channel_frame(t, channel), movie.geometry.scale
    return segment_frame(image, how.settings, scale=scale, backend=how.backend, network=how.network)


def _labelled(finding: Finding, reader: MaskReader, choice: Candidates) -> NDArray[np.int32]:
    """Labels; given ones keep their numbers if the cells are unchanged."""
    t, answers = choice.frame, reader.answers
    labels = labels_of(choice.regions, choice.chosen)
    brought = label_frame(finding.brought[0], t) if finding.brought else None
    before = None if brought is None else brought.astype(np.int64)
    found = finding.given is None
    # In a repair, cells that stay keep their outline. Cells that are found get the outline of the
    # built-in method if that is larger, since candidates end above some share of their height.
    # Cells that somebody drew or confirmed are drawn as chosen.
    outlines = choice.read if found else before
    if outlines is not None:
        cells, right = regions_of_labels(outlines, t), as_candidates(answers, {t})
        wrong = cells.select(targets(cells, answers) < 0).pixels
        outlines = outlines.copy()
        outlines.reshape(-1)[wrong] = 0
        sure = labels.reshape(-1)[right.pixels[right.starts[:-1]]]
        labels = with_outlines_of(outlines, labels, sure, larger=found)
    return labels if before is None else keep_numbers(before, labels)


def chosen_again(
    search: CellSearch, labels: Movie, named: dict[int, int]
) -> Steps[list[MaskAnswer]]:
    """The changes of each frame if the result of a search replaces the present masks.

    Cells keep their numbers; no new one takes a number up to the highest `named` in its frame.
    """
    changed: list[MaskAnswer] = []
    had = False

    def compare(masks: NDArray[np.int32]) -> None:
        nonlocal had
        t = len(search.counts)
        before = label_frame(labels, t).astype(np.int64)
        changed.extend(repainted(before, masks, t, named.get(t, 0)))
        had = had or bool(before.any())

    yield from search.steps(compare)
    check_some_left(labels, had, any(search.counts))
    return changed


# ---------------------------------------------------------------------- records


# earlier versions had more settings
_Settings = Annotated[SegmentationSettings, of_dataclass(SegmentationSettings, "ignore")]


class _Content(OpenEntry):
    backend: str
    choose: Literal["jointly", "frame", "plain"] = "plain"
    settings: _Settings | None = None
    network: str | None = None
    candidates: bool = False
    repaired: bool = False
    pixel_model: Any = None

    def finding(self) -> Finding | None:
        # A repair, or a search among given labels, starts again from the present masks.
        # Earlier versions knew StarDist, and strokes that taught pixels.
        known = self.backend in get_args(Backend) and self.pixel_model is None
        ours = self.backend == "builtin"
        # In one of them cells of a network could be candidates, too.
        if self.repaired or not known or (self.candidates and not ours):
            return None
        choose: Choose = "jointly" if ours and self.choose != "plain" else "plain"
        return Finding(self.settings, choose, self.backend, self.network)


FINDING_FILE = FileFormat(
    "bridgetrack-segmentation",
    1,
    "a record of how cells were found",
    _Content,
    _Content.finding,
)
"""Records of how cells were found, as `Finding`; None if other methods were involved."""


def record_beside(cells: Path) -> Path:
    """The file beside labels with the record of how they were found."""
    name = cells.stem if cells.suffix.lower() in (".tif", ".tiff", ".zarr") else cells.name
    return cells.with_name(f"{name.removesuffix('.ome')}.run.json")


def how_found(cells: Path) -> Finding | None:
    """How cells were found, by the record beside them; None if there is none."""
    with suppress(InputError):
        return FINDING_FILE.read(record_beside(cells))
    return None


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """How cells were found, as the JSON values of its file."""
    return {
        **FINDING_FILE.head,
        "backend": finding.backend,
        "network": finding.network,
        "choose": finding.choose,
        "judged_as": finding.kind,
        "settings": None if finding.settings is None else asdict(finding.settings),
        "repaired": bool(finding.brought),
    }
