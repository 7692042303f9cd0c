"""Why a cell of the open movie is drawn as it is, worked out beside the window."""

from __future__ import annotations

from dataclasses import replace

from psygnal import Signal

from bridgetrack.annotations.annotation import CellRef
from bridgetrack.errors import InputError
from bridgetrack.pipeline.explain_masks import MaskExplanation, explain_mask
from bridgetrack.pipeline.finding import chosen_as
from bridgetrack.pipeline.masks import MaskSettings
from bridgetrack.progress import Steps
from bridgetrack.session.mended_movie import MendedMovie

JOB = "explain mask"
"""Name of the background work: choosing masks anew around a cell."""


class MaskReasons:
    """Works out why a cell is drawn as it is; emits `changed`.

    Attributes
    ----------
    cell
        The cell that was asked about; None where none was, or its masks have changed since.
    found
        Why it is drawn so; None while that is worked out.
    problem
        Why nothing can be said of it, empty where something can.
    """

    changed = Signal()

    def __init__(self, movie: MendedMovie) -> None:
        self._movie = movie
        self.cell: CellRef | None = None
        self.found: MaskExplanation | None = None
        self.problem = ""
        movie.movie_changed.connect(self.forget)
        movie.masks_changed.connect(lambda _: self.forget())

    @property
    def words(self) -> str:
        """What there is to say, as a few lines."""
        return self.problem if self.found is None else self.found.words()

    def ask(self, cell: CellRef) -> None:
        """Work out why a cell is drawn as it is, by the score that its masks were chosen with.

        Raises
        ------
        InputError
            Where there are no masks, or no image.
        """
        movie, masks = self._movie.movie, self._movie.masks
        if movie is None or masks is None:
            raise InputError(
                "the cells are a table of points, which are not drawn; there is nothing to say of "
                "their outlines"
                if movie is not None
                else "there is no movie in this session; open one first"
            )
        image, labels, said = movie.image, masks.labels, self._movie.said_of_masks()
        if image is None:
            raise InputError(
                "why a cell is drawn so is told by the image that the masks were made from, which "
                "is not there; choose it as well"
            )
        how, model = chosen_as(labels, movie.found), self._movie.model
        how, channel = replace(how, learned=self._movie.learned), movie.channel
        settings = MaskSettings(loyalty=how.loyalty)

        def work() -> Steps[MaskExplanation]:
            answers = yield from said
            # what else a cell could be is told, also where a confirmed event holds it as drawn
            answers = replace(answers, held=tuple(a for a in answers.held if a.wrong))
            return (
                yield from explain_mask(
                    image, labels, cell.frame, cell.label, how.settings, settings,
                    how.known(answers), model, channel=channel,
                )
            )  # fmt: skip

        self.cell, self.found, self.problem = cell, None, ""
        self._movie.run(
            JOB,
            work,
            self._take,
            self._failed,
            unfinished="Why the cell is drawn so was not worked out, as its movie or its cells are "
            "not open any more.",
        )
        self.changed.emit()

    def forget(self) -> None:
        """Say nothing more of the cell."""
        self._movie.cancel(JOB)
        if self.cell is not None:
            self.cell, self.found, self.problem = None, None, ""
            self.changed.emit()

    def _take(self, found: MaskExplanation) -> None:
        self.found = found
        self.changed.emit()

    def _failed(self, error: Exception) -> None:
        self.problem = str(error)
        self.changed.emit()
