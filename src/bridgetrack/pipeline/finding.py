"""Finding the cells of a movie, and the record of how they were found that is kept beside them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.annotations.mask_targets import as_candidates
from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie, check_same_extent, label_frame, looks_like_labels
from bridgetrack.movie.opening import open_labels
from bridgetrack.pipeline.joint import FrameChoice, MaskSettings, choose_jointly
from bridgetrack.pipeline.mask_candidates import MaskReader, fitted_settings, learned_score
from bridgetrack.pipeline.mask_changes import (
    MaskChange,
    changes,
    check_some_left,
    keep_numbers,
    with_outlines_of,
)
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.regions.propose import label_sources
from bridgetrack.regions.regions import labels_of
from bridgetrack.regions.taught import MovieScore
from bridgetrack.schema import FileFormat, OpenEntry, of_dataclass
from bridgetrack.segmentation.readings import SettingsEstimate, estimate_settings
from bridgetrack.segmentation.segment import CellposeReading, SegmentedFrame, segment_movie
from bridgetrack.segmentation.settings import Backend, Choose, SegmentationSettings

_WAYS = {"jointly": "together with their tracks", "plain": "by the plain segmentation"}


@dataclass(frozen=True)
class Finding:
    """How the cells of a movie are found; everything but its image and what people say of masks.

    Parameters
    ----------
    settings
        Of the built-in segmentation; what is left open is decided by the movie.
    choose
        See `Choose`; the cells of a network are taken as they are (plain), or are candidates
        beside others.
    backend, network
        See `segment_frame`.
    given
        Labels brought along, which are repaired.
    beside
        Label movies brought along, whose cells are candidates beside others.
    probability
        What another program says of pixels, see `open_probability`.
    learned
        What the movie and the answers about it taught, where that is known already.
    """

    settings: SegmentationSettings | None = None
    choose: Choose = "jointly"
    backend: str = "builtin"
    network: str | None = None
    given: Movie | None = None
    beside: tuple[Movie, ...] = ()
    probability: Movie | None = None
    learned: MovieScore | None = None

    @property
    def chooses(self) -> bool:
        """Whether it chooses among candidates, so that answers about masks count."""
        return self.choose != "plain"

    @property
    def words(self) -> str:
        """How, in words that go on from *cells found*."""
        if self.given is not None:
            return "brought along and repaired by the image"
        if self.backend != "builtin":
            way = f"{_WAYS[self.choose]}, beside those of" if self.chooses else "by"
            return f"{way} {self.network_words}"
        words = _WAYS[self.choose]
        if self.settings is not None and self.settings.diameter is not None:
            words += f", {self.settings.foreground} cells of {self.settings.diameter:.0f} pixels"
        if self.kind == "rods":
            words += ", as rods"
        if self.beside or self.probability is not None:
            return f"{words}, by what other programs say, too"
        return words

    @property
    def network_words(self) -> str:
        """The program that was asked, with the name of its network, without its folders."""
        # a Windows path takes both kinds of slashes
        if self.network is None:
            return self.backend
        return f"{self.backend} ({PureWindowsPath(self.network).name})"

    @property
    def kind(self) -> str | None:
        """As what cells are judged, one of `KINDS`; None where that is not known yet."""
        return None if self.learned is None else self.learned.start.kind

    @property
    def sentence(self) -> str:
        """The same as a sentence about cells that are open."""
        start = "They were" if self.given is not None else "Found here"
        return f"{start} {self.words}."

    def taught(
        self,
        image: Movie,
        answers: MaskAnswers | None = None,
        *,
        channel: int | str = 0,
        client: Any = None,
    ) -> Steps[Finding]:
        """The same with what the movie and these answers teach; parameters are those of `steps`."""
        if not self.chooses or self._learned_from(answers) is not None:
            return self
        reader = yield from self.reader(image, answers, channel=channel, client=client)
        return replace(self, learned=(yield from learned_score(reader)))

    def decided(self, image: Movie, *, channel: int | str = 0) -> Steps[SettingsEstimate]:
        """What suits a movie where the settings leave it open; parameters are those of `steps`.

        Where masks are chosen, the size of cells is that at which candidates are surest. The plain
        segmentation draws no candidates: it takes the estimate, which is there sooner.
        """
        if self.chooses:
            return (yield from fitted_settings(image, self.settings, channel=channel))
        yield Progress("Looking at the movie", 0.0)
        return estimate_settings(image, self.settings, channel=channel)

    @property
    def brought(self) -> bool:
        """Whether labels, or what another program says of pixels, were brought along."""
        return bool(self.given or self.beside or self.probability)

    def reader(
        self,
        image: Movie,
        answers: MaskAnswers | None = None,
        *,
        channel: int | str = 0,
        client: Any = None,
    ) -> Steps[MaskReader]:
        """What proposes candidates, with settings that suit the movie; as for `steps`."""
        labels = self.beside if self.given is None else (self.given, *self.beside)
        for other in (*labels, *([self.probability] if self.probability else [])):
            check_same_extent(image, other)
        network = None
        if self.backend == "cellpose":
            network = CellposeReading(self.network, self.settings)
        settings = self.settings
        if settings is None or not settings.complete:
            if labels or network is not None or self.probability is not None:
                yield Progress("Looking at the movie", 0.0)
                settings = estimate_settings(image, settings, channel=channel).settings
            else:
                settings = (yield from fitted_settings(image, settings, channel=channel)).settings
        # Cells at the edge are left out after the choice.
        settings, number = replace(settings, clear_border=False), image.channel_number(channel)
        return MaskReader(
            image, number, settings, labels, self.probability, network, answers, client
        )

    def _learned_from(self, answers: MaskAnswers | None) -> MovieScore | None:
        """What was learned, where that was from these answers, neither more nor less."""
        ids = frozenset() if answers is None else frozenset(answer.id for answer in answers)
        known = self.learned
        return known if known is not None and known.answers == ids else None

    def choices(
        self,
        image: Movie,
        answers: MaskAnswers | None = None,
        weights: Model | None = None,
        settings: MaskSettings | None = None,
        *,
        channel: int | str = 0,
        client: Any = None,
    ) -> Generator[Progress | FrameChoice, None, None]:
        """Choose the cells among candidates; a window of frames is in memory.

        Parameters are those of `steps`, and how to choose.
        """
        reader = yield from self.reader(image, answers, channel=channel, client=client)
        score = self._learned_from(answers) or (yield from learned_score(reader))
        settings, model = settings or MaskSettings(), weights or shipped_model()
        candidates = reader.candidates(score, settings)
        work = choose_jointly(candidates, image.geometry, image.channels, model, settings)
        if self.settings is not None and self.settings.clear_border:
            work = relayed(work, partial(_off_the_edge, label_sources(reader.labels)))
        yield from work

    def _segmented(self, choice: FrameChoice, n_frames: int) -> SegmentedFrame:
        """Labels; those brought along keep their numbers where cells stay as they are."""
        regions, rows, t = choice.candidates.regions, np.flatnonzero(choice.chosen), choice.frame
        labels = labels_of(regions, choice.chosen, t)
        brought = (*([self.given] if self.given else []), *self.beside)
        if brought:
            labels = keep_numbers(label_frame(brought[0], t), labels)
        margins = pd.DataFrame(
            {
                "frame": t,
                "label": labels.reshape(-1)[regions.pixels[regions.starts[rows]]],
                "score": choice.candidates.scores[rows],
                "margin_at_least": choice.margin[rows],
            }
        )
        return SegmentedFrame(t, n_frames, labels, margins)

    def steps(
        self,
        image: Movie,
        answers: MaskAnswers | None = None,
        weights: Model | None = None,
        *,
        channel: int | str = 0,
        client: Any = None,
        frames: Sequence[int] | None = None,
    ) -> Generator[Progress | SegmentedFrame, None, None]:
        """Find the cells, giving each frame's labels between the steps of the work.

        Parameters
        ----------
        image
            The movie.
        answers
            What people said of masks.
        weights
            Of events; the shipped ones where None.
        channel
            Number or name of the channel that shows the cells.
        client
            A dask client, over whose cluster the frames are spread; this process where None.
        frames
            Which frames, where masks are not chosen; all where None.
        """
        if self.chooses:
            for step in self.choices(image, answers, weights, channel=channel, client=client):
                yield step if isinstance(step, Progress) else self._segmented(step, image.n_frames)
            return
        yield Progress("Finding cells", 0.0)
        found = segment_movie(
            image, self.settings, channel=channel, backend=self.backend, network=self.network,
            client=client, frames=frames,
        )  # fmt: skip
        for done in found:
            yield done
            yield Progress("Finding cells", (done.frame + 1) / done.n_frames)


def _off_the_edge(brought: tuple[str, ...], step: Progress | FrameChoice) -> Progress | FrameChoice:
    """A choice without cells at the frame's edge, but for those that people drew or brought.

    They go after the choice: while it is made they keep their own parts from being taken for
    cells, and the movie from looking as if they came and went.
    """
    if not isinstance(step, FrameChoice):
        return step
    regions, stays = step.candidates.regions, step.candidates.pinned.copy()
    for name in brought:
        stays |= regions.votes[:, regions.sources.index(name)] > 0
    return replace(step, chosen=step.chosen & (stays | ~regions.at_edge()))


def open_beside(source: Any, image: Movie) -> Movie:
    """Labels of a movie whose cells are candidates, or anything that `open_labels` takes.

    Raises
    ------
    InputError
        Where they cannot be read, or have another extent than the movie.
    """
    labels = open_labels(source)
    check_same_extent(image, labels, cure="give labels of this movie, with every frame")
    return labels


def chosen_as(labels: Movie, found: Finding | None) -> Finding:
    """How masks are chosen, or judged, once more: as they were found.

    Where they were not chosen here, they are taken for labels brought along.
    """
    return Finding(given=labels) if found is None or not found.chooses else found


@dataclass(frozen=True)
class FoundMasks:
    """How cells were found, and how many in every frame.

    `margins` says how sure each cell is, where masks were found by choosing; see `SegmentedFrame`.
    """

    finding: Finding
    counts: list[int]
    estimate: SettingsEstimate | None = None
    margins: pd.DataFrame | None = None

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is doubtful about the settings that were estimated, as sentences."""
        return () if self.estimate is None else self.estimate.doubts


def find_masks(
    how: Finding,
    image: Movie,
    write: Callable[[NDArray[np.int32]], object],
    answers: MaskAnswers | None = None,
    weights: Model | None = None,
    *,
    channel: int | str = 0,
    client: Any = None,
) -> Steps[FoundMasks]:
    """Find the cells of a movie; `write` takes the labels of one frame after the other.

    Parameters
    ----------
    how, image, answers, weights, channel, client
        See `Finding.steps`; settings that are left open are decided by the movie.
    write
        Takes a frame of labels.

    Warns
    -----
    BridgetrackWarning
        Where the movie looks like labels.
    """
    if looks_like_labels(image):
        warnings.warn(
            f"{image.source}: its pixels look like the numbers of cells, not like a picture; if "
            "these are masks, track them as they are (bridgetrack track), and give the picture "
            "that they were made from to find cells anew",
            BridgetrackWarning,
            stacklevel=2,
        )
    finding, estimate = how, None
    if how.backend == "builtin":
        estimate = yield from how.decided(image, channel=channel)
        finding = replace(how, settings=estimate.settings)
    finding = yield from finding.taught(image, answers, channel=channel, client=client)
    counts: list[int] = []
    tables: list[pd.DataFrame] = []
    for step in finding.steps(image, answers, weights, channel=channel, client=client):
        if isinstance(step, Progress):
            yield step
            continue
        write(step.labels)
        tables += [] if step.margins is None else [step.margins]
        counts.append(len(np.unique(step.labels[step.labels > 0])))
    margins = pd.concat(tables, ignore_index=True) if tables else None
    return FoundMasks(finding, counts, estimate, margins)


def repair_masks(
    labels: Movie,
    image: Movie,
    repaired: Callable[[NDArray[np.int32]], Any],
    model: Model,
    answers: MaskAnswers | None = None,
    client: Any = None,
    *,
    channel: int | str = 0,
) -> Steps[tuple[MaskChange, ...]]:
    """Repair the masks of a movie; they stay where the image does not object.

    Cells that stay are drawn as they were given, but for those that somebody drew or called right.

    Parameters
    ----------
    labels, image
        The masks, and what they were made from.
    repaired
        Called with the labels of every frame, in order.
    model
        Weights of events.
    answers
        What people said of masks.
    client
        A dask client, over whose cluster the frames are spread; this process where None.
    channel
        Number or name of the channel that shows the cells.

    Yields
    ------
    Progress

    Returns
    -------
    tuple of MaskChange
        What was cut, joined, added, dropped and outlined anew, in order of time.

    Raises
    ------
    InputError
        Where the movies differ in extent, answers exclude each other, or no cell would be left.
    """
    found: list[MaskChange] = []
    had = left = False
    work = Finding(given=labels).steps(image, answers, model, channel=channel, client=client)
    for step in work:
        if isinstance(step, Progress):
            yield step
            continue
        before = label_frame(labels, step.frame)
        sure = _said_right(step.labels, answers, step.frame)
        masks = with_outlines_of(before, step.labels, sure)
        repaired(masks)
        found += changes(before, masks, step.frame)
        had, left = had or bool(before.any()), left or bool(masks.any())
    check_some_left(labels, had, left)
    return tuple(found)


def _said_right(masks: NDArray[np.int32], answers: MaskAnswers | None, t: int) -> NDArray[Any]:
    """Labels of the cells of a frame that somebody drew or called right."""
    if answers is None:
        return np.zeros(0, dtype=np.int32)
    said = as_candidates(answers, {t})
    return masks.reshape(-1)[said.pixels[said.starts[:-1]]]


# ---------------------------------------------------------------------- records


_EARLIER = (
    "smoothing",
    "background_window",
    "threshold",
    "edge",
    "seeds",
    "separation",
    "fill_holes",
)
_Settings = Annotated[SegmentationSettings, of_dataclass(SegmentationSettings, *_EARLIER)]


class _Content(OpenEntry):
    backend: str
    choose: Literal["jointly", "frame", "plain"] = "plain"
    settings: _Settings | None = None
    network: str | None = None
    candidates: bool = False
    repaired: bool = False
    pixel_model: Any = None

    def finding(self) -> Finding | None:
        # What was repaired, or found by what others say, is so again from the masks as they are.
        # Earlier versions knew StarDist, and strokes that taught pixels.
        known = self.backend in get_args(Backend) and self.pixel_model is None
        if self.repaired or not known:
            return None
        # Cells of a network were taken as they are before they could be candidates, whatever way
        # of choosing was written down.
        chosen = self.backend == "builtin" or self.candidates
        choose: Choose = "jointly" if chosen and self.choose != "plain" else "plain"
        return Finding(self.settings, choose, self.backend, self.network)


FINDING_FILE = FileFormat(
    "bridgetrack-segmentation",
    1,
    "a record of how cells were found",
    _Content,
    _Content.finding,
    largest=100_000_000,
)
"""Records of how cells were found, as `Finding`; None where others had a part in it."""


def beside_labels(cells: Path, what: str, suffix: str = "json") -> Path:
    """The file beside labels: their record (``"run"``), or how sure they are (``"masks"``)."""
    name = cells.stem if cells.suffix.lower() in (".tif", ".tiff", ".zarr") else cells.name
    return cells.with_name(f"{name.removesuffix('.ome')}.{what}.{suffix}")


def how_found(cells: Path) -> Finding | None:
    """How cells were found, by the record beside them; None where nothing is known."""
    record = beside_labels(cells, "run")
    if not record.exists():
        return None
    try:
        return FINDING_FILE.read(record)
    except InputError:
        return None


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """How cells were found, as the JSON values of its file."""
    return {
        **FINDING_FILE.head,
        "backend": finding.backend,
        "network": finding.network,
        "choose": finding.choose,
        "candidates": finding.chooses,
        "judged_as": finding.kind,
        "settings": None if finding.settings is None else asdict(finding.settings),
        "repaired": finding.brought,
    }
