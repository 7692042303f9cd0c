"""Why a cell is drawn as it is."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.pipeline.explain_masks import MaskExplanation, explain_mask
from bridgetrack.pipeline.joint import MaskSettings
from bridgetrack.pipeline.masks import segment_by_choice
from bridgetrack.progress import run
from bridgetrack.segmentation.movie import SegmentedFrame
from drawn_movie import drawn

T = 1


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return drawn()[0]


@pytest.fixture(scope="module")
def found(images: np.ndarray) -> np.ndarray:
    """Masks as they are chosen from the image alone."""
    steps = segment_by_choice(open_movie(images))
    return np.stack([s.labels for s in steps if isinstance(s, SegmentedFrame)])


def explained(
    images: np.ndarray, labels: np.ndarray, label: int, frame: int = T
) -> MaskExplanation:
    """Nothing speaks for masks only because they are drawn."""
    how = MaskSettings(loyalty=0.0)
    return run(explain_mask(open_movie(images), open_labels(labels), frame, label, settings=how))


def test_a_cell_that_was_chosen_beats_its_alternatives(
    images: np.ndarray, found: np.ndarray
) -> None:
    label = int(found[T][21, 20])
    why = explained(images, found, label)
    assert why.chosen and why.probability > 0.5
    assert why.area == (found[T] == label).sum()
    assert why.alternatives
    assert all(a.cost >= 0 for a in why.alternatives)
    costs = [a.cost for a in why.alternatives]
    assert costs == sorted(costs)
    words = why.words()
    assert "; chosen." in words and "worse" in words and "better" not in words
    effects = [abs(r.effect) for r in why.reasons]
    assert effects == sorted(effects, reverse=True) and effects[0] > 0.1


def test_two_cells_drawn_as_one_lose_to_their_cut(images: np.ndarray, found: np.ndarray) -> None:
    first, second = int(found[T][21, 20]), int(found[T][21, 34])
    assert first != second
    labels = found.copy()
    labels[T][labels[T] == second] = first
    why = explained(images, labels, first)
    assert not why.chosen
    [cut] = why.alternatives
    assert len(cut.areas) == 2 and cut.words.startswith("2 cells of ")
    assert cut.cost < 0
    assert cut.of_masks < 0 and cut.of_events < 0, "looks and tracks both speak for two cells"
    assert "not what would be chosen now" in why.words() and "better" in why.words()


def test_what_is_too_small_to_be_a_cell_is_told_so(images: np.ndarray, found: np.ndarray) -> None:
    labels = found.copy()
    labels[T, 84:86, 84:86] = 99
    with pytest.raises(InputError, match="4 pixels"):
        explained(images, labels, 99)


@pytest.mark.parametrize(("frame", "label"), [(T, 99), (T, 0), (9, 1)])
def test_cells_that_are_not_there(
    images: np.ndarray, found: np.ndarray, frame: int, label: int
) -> None:
    with pytest.raises(InputError, match="there is no"):
        explained(images, found, label, frame)
