"""Finding the cells of a movie: one way in, for the window and for the command line."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import PureWindowsPath
from typing import Any

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import Movie, check_same_extent
from bridgetrack.movie.opening import open_labels
from bridgetrack.pipeline.mask_candidates import GivenMasks
from bridgetrack.pipeline.masks import learn_masks, segment_by_choice
from bridgetrack.pipeline.sizing import fitted_settings
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.taught import MovieScore
from bridgetrack.segmentation.backends import CellposeReading
from bridgetrack.segmentation.movie import SegmentedFrame, segment_movie
from bridgetrack.segmentation.readings import SettingsEstimate, estimate_settings
from bridgetrack.segmentation.settings import Choose, SegmentationSettings
from bridgetrack.spread import Workers

_ROUNDING = 1e-6
_WAYS = {
    "jointly": "together with their tracks",
    "plain": "by the plain segmentation",
}


@dataclass(frozen=True)
class Finding:
    """How the cells of a movie are found; everything but its image and what people say of masks.

    Parameters
    ----------
    settings
        Of the built-in segmentation; what is left open is decided by the movie.
    choose
        See `MaskChoice`; the cells of a network are taken as they are (plain), or are candidates
        beside others.
    backend, network
        See `make_segmenter`.
    given
        Labels brought along, which are repaired.
    beside
        Label movies brought along, whose cells are candidates beside others.
    probability
        What another program says of pixels, see `open_probability`.
    learned
        What the movie and the answers about it taught, where that is known already.
    gap
        By how much the score of what was chosen may fall short of the best choice; 0 where it is
        the best of every window of frames.
    """

    settings: SegmentationSettings | None = None
    choose: Choose = "jointly"
    backend: str = "builtin"
    network: str | None = None
    given: Movie | None = None
    beside: tuple[Movie, ...] = ()
    probability: Movie | None = None
    learned: MovieScore | None = None
    gap: float = 0.0

    @property
    def chooses(self) -> bool:
        """Whether it chooses among candidates, so that answers about masks count."""
        return self.choose != "plain"

    @property
    def short(self) -> bool:
        """Whether there may be a better choice, by more than rounding."""
        return self.gap > _ROUNDING

    @property
    def words(self) -> str:
        """How, in words that go on from *cells found*."""
        if self.short:
            return f"{self._way}, within {self.gap:.3g} of the best score"
        return self._way

    @property
    def _way(self) -> str:
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
        weights: Model | None = None,
        *,
        channel: int | str = 0,
        workers: Workers | None = None,
    ) -> Steps[Finding]:
        """The same with what the movie and these answers teach; parameters are those of `steps`."""
        if not self.chooses or self._learned_from(answers) is not None:
            return self
        given = replace(self, learned=None).known(answers)
        learned = yield from learn_masks(
            image, self.settings, given=given, model=weights, channel=channel, workers=workers
        )
        return replace(self, learned=learned)

    def decided(self, image: Movie, *, channel: int | str = 0) -> Steps[SettingsEstimate]:
        """What suits a movie where the settings leave it open; parameters are those of `steps`.

        Where masks are chosen, the size of cells is that at which candidates are surest. The plain
        segmentation draws no candidates: it takes the estimate, which is there sooner.
        """
        if self.chooses:
            return (yield from fitted_settings(image, self.settings, channel=channel))
        yield Progress("Looking at the movie", 0.0)
        return estimate_settings(image, self.settings, channel=channel)

    def prepared(
        self,
        image: Movie,
        answers: MaskAnswers | None = None,
        weights: Model | None = None,
        *,
        channel: int | str = 0,
        workers: Workers | None = None,
    ) -> Steps[tuple[Finding, SettingsEstimate | None]]:
        """The same with what suits the movie, and what it teaches; parameters as of `steps`.

        The estimate says how sure the settings are; None where they are not needed.
        """
        found, estimate = self, None
        if self.backend == "builtin":
            estimate = yield from self.decided(image, channel=channel)
            found = replace(self, settings=estimate.settings)
        found = yield from found.taught(image, answers, weights, channel=channel, workers=workers)
        return found, estimate

    @property
    def brought(self) -> bool:
        """Whether labels, or what another program says of pixels, were brought along."""
        return bool(self.given or self.beside or self.probability)

    def known(self, answers: MaskAnswers | None) -> GivenMasks:
        """What is known of the masks besides the image, with what these answers taught."""
        labels = self.beside if self.given is None else (self.given, *self.beside)
        cellpose = None
        if self.backend == "cellpose":
            cellpose = CellposeReading(self.network, self.settings)
        score = self._learned_from(answers)
        return GivenMasks(labels, self.probability, cellpose, answers, score)

    def _learned_from(self, answers: MaskAnswers | None) -> MovieScore | None:
        """What was learned, where that was from these answers, neither more nor less."""
        ids = frozenset() if answers is None else frozenset(answer.id for answer in answers.told)
        known = self.learned
        return known if known is not None and known.answers == ids else None

    def steps(
        self,
        image: Movie,
        answers: MaskAnswers | None = None,
        weights: Model | None = None,
        *,
        channel: int | str = 0,
        workers: Workers | None = None,
        frames: Sequence[int] | None = None,
    ) -> Generator[Progress | SegmentedFrame, None, Finding]:
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
        workers
            Who looks at the frames; this process where None.
        frames
            Which frames, where masks are not chosen; all where None.

        Returns
        -------
        Finding
            This one, with the gap that was left.
        """
        if self.chooses:
            gap = yield from segment_by_choice(
                image, self.settings, given=self.known(answers), model=weights, channel=channel,
                workers=workers,
            )  # fmt: skip
            return replace(self, gap=gap)
        yield Progress("Finding cells", 0.0)
        found = segment_movie(
            image, self.settings, channel=channel, backend=self.backend, network=self.network,
            workers=workers, frames=frames,
        )  # fmt: skip
        for done in found:
            yield done
            yield Progress("Finding cells", (done.frame + 1) / done.n_frames)
        return self


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
