"""Cells chosen among candidates of a movie."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels, open_movie
from bridgetrack.pipeline.finding import FINDING_FILE, CellSearch, Finding, finding_to_json
from bridgetrack.pipeline.joint import Candidates
from bridgetrack.progress import run
from bridgetrack.regions.acts import MendSite, act
from bridgetrack.regions.mend import MaskAnswer, MendKind
from bridgetrack.regions.score import MovieScore, starting_score
from bridgetrack.segmentation.settings import SegmentationSettings
from drawn_movie import NUCLEI, SIZE, added, colony, drawn
from fake_networks import cellpose_that
from pictures import blobs, found_share, photograph

DISCS = replace(NUCLEI, diameter=16.0)
"""What suits discs."""


def found(
    image: Movie, how: Finding | None = None, answers: MaskAnswers | None = None
) -> list[np.ndarray]:
    search = CellSearch(image, how or Finding(NUCLEI), answers)
    frames = run(search.in_memory())
    assert len(search.counts) == image.n_frames
    return list(frames)


def choices(image: Movie, how: Finding, answers: MaskAnswers | None = None) -> list[Candidates]:
    search = CellSearch(image, how, answers)
    steps = search.choices(run(search.prepared()))
    return [step for step in steps if isinstance(step, Candidates)]


def decided(image: Movie, how: Finding, answers: MaskAnswers | None = None) -> Finding:
    search = CellSearch(image, how, answers)
    run(search.prepared())
    return search.finding


def test_cells_of_a_network_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = drawn()
    images = images.astype(np.float32)
    known = {frame.tobytes(): mask for frame, mask in zip(images, labels, strict=True)}
    looked = cellpose_that(monkeypatch, lambda image: known[image.tobytes()])
    finding = Finding(choose="plain", backend="cellpose")
    assert finding.words == "by cellpose"
    for true, mask in zip(labels, found(open_movie(images), finding), strict=True):
        np.testing.assert_array_equal(mask > 0, true > 0)
    assert len(looked) == len(images)
    with pytest.raises(InputError, match="give it as candidates"):
        Finding(backend="cellpose")


def at_the_edge(labels: np.ndarray) -> np.ndarray:
    """Numbers of the cells that touch the frame's edge."""
    return np.setdiff1d(np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]]), [0])


def test_cells_at_the_edge_are_left_out_unless_people_drew_or_brought_them() -> None:
    images = drawn(3)[0][:, 20:, 20:]  # three nuclei are cut
    movie = open_movie(images)
    every = found(movie)
    wanted = replace(NUCLEI, clear_border=True)
    inner = found(movie, Finding(wanted))
    for before, after in zip(every, inner, strict=True):
        cut = at_the_edge(before)
        assert len(cut) >= 2
        np.testing.assert_array_equal(after > 0, (before > 0) & ~np.isin(before, cut))
    said = at_the_edge(every[1])[0]
    cell = every[1] == said
    keep = MaskAnswer.of(1, MendKind.KEEP, [np.flatnonzero(cell)])
    answers = added(MaskAnswers(movie.geometry), keep)
    kept = found(movie, Finding(wanted), answers)
    assert (kept[1][cell] > 0).all()
    assert len(at_the_edge(kept[1])) == 1 and not any(len(at_the_edge(m)) for m in kept[2:])
    brought = found(movie, Finding(wanted, given=open_labels(np.stack(every))))
    for before, after in zip(every, brought, strict=True):
        np.testing.assert_array_equal(at_the_edge(after), at_the_edge(before))


def test_what_was_brought_along_is_among_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridgetrack.pipeline.mask_candidates.PER_CELL", 1.0)
    images, labels = drawn()
    odd = np.zeros_like(labels)
    odd[:, 84:90, 5:60] = 1  # where the image shows nothing
    odd[:, 70:94, 62:66] = 2  # across a nucleus
    how = Finding(NUCLEI, given=open_labels(odd))
    for c in choices(open_movie(images), how):
        regions = c.regions
        areas = regions.area[regions.votes[:, regions.sources.index("labels")] > 0]
        assert {6 * 55, 24 * 4} <= set(areas.tolist())


def test_a_movie_of_rods_starts_from_a_score_of_rods() -> None:
    rods, round_ones = [frames[:2] for frames in colony()], drawn(2)
    known = SegmentationSettings(foreground="dark", diameter=16.6), NUCLEI
    movies = [open_movie(images, axes="TYX") for images, _ in (rods, round_ones)]
    ways = [decided(m, Finding(s)) for s, m in zip(known, movies, strict=True)]
    assert [way.kind for way in ways] == ["rods", "cells"]
    assert [way.words.endswith("as rods") for way in ways] == [True, False]
    assert [finding_to_json(way)["judged_as"] for way in ways] == ["rods", "cells"]
    recall = {}
    other = replace(ways[0], learned=MovieScore(starting_score()))
    for kind, how in (("chosen", ways[0]), ("cells", other)):
        got = found(movies[0], how)
        recall[kind] = np.mean([found_share(t, m) for t, m in zip(rods[1], got, strict=True)])
    assert recall["chosen"] > max(0.8, recall["cells"] + 0.3), recall


def test_what_was_learned_holds_until_something_is_said_of_masks() -> None:
    images, labels = drawn()
    movie, site = open_movie(images), MendSite(1, labels[1], DISCS, free=99)
    answers = added(MaskAnswers(movie.geometry), act("check", site))
    first = decided(movie, Finding(NUCLEI))
    again = decided(movie, first, answers)
    assert (first.learned.answers, again.learned.answers) == (frozenset(), {"m1"})
    for finding, said in ((first, None), (again, answers)):
        assert decided(movie, finding, said).learned is finding.learned


def test_an_answer_where_nothing_is_teaches_nothing() -> None:
    labels = np.zeros((3, SIZE, SIZE), dtype=np.int32)
    labels[1, 40:50, 40:50] = 1
    site = MendSite(1, labels[1], SegmentationSettings(diameter=14.0), free=99)
    answers = added(MaskAnswers(open_labels(labels).geometry), act("remove", site, (45, 45)))
    got = found(open_movie(np.full((3, SIZE, SIZE), 100.0)), answers=answers)
    assert not any(mask.any() for mask in got)


def test_what_was_left_out_where_all_was_checked_is_left_out_elsewhere() -> None:
    """E.g. cells at the edge of the picture, which look as the others do."""
    places = [(float(y), float(x)) for y in range(12, 150, 25) for x in range(12, 150, 25)]
    inside = [all(20 < i < 130 for i in place) for place in places]
    n, inner = len(places), 1 + np.flatnonzero(inside)
    rng = np.random.default_rng(1)
    frames = []
    for _ in range(3):
        moved = np.array(places) + rng.normal(0, 1.0, (n, 2))
        frames.append(blobs((150, 150), list(map(tuple, moved)), 8))
    truth = np.stack(frames)
    images = np.stack([photograph(f, seed=t) for t, f in enumerate(frames)])
    wanted = np.where(np.isin(truth, inner), truth, 0)
    removed = MaskAnswers(open_labels(truth).geometry)
    settings = SegmentationSettings(diameter=16.0)
    for t in (0, 2):
        for k in np.flatnonzero(~np.array(inside)).tolist():
            removed = added(
                removed, act("remove", MendSite(t, truth[t], settings, free=999), places[k])
            )
        site = MendSite(t, wanted[t], settings, free=999)
        removed = added(removed, act("check", site))
    before = found(open_movie(images[1:2], axes="TYX"), Finding(DISCS))[0]
    after = found(open_movie(images), Finding(DISCS), removed)[1]
    assert before.max() > n - 3
    assert abs(int(after.max()) - len(inner)) <= 1
    assert ((after > 0) & (wanted[1] > 0)).sum() > 0.8 * (wanted[1] > 0).sum()


def test_records_of_earlier_versions_open() -> None:
    record = {"format": FINDING_FILE.name, "version": 1, "backend": "builtin", "choose": "frame"}
    before = FINDING_FILE.parse(json.dumps(record), "it")
    assert before is not None and before.choose == "jointly"
    others = {"backend": "stardist", "choose": "plain"}, {"backend": "cellpose", "candidates": True}
    for more in ({"pixel_model": {"classes": ""}}, *others):
        assert FINDING_FILE.parse(json.dumps(record | more), "it") is None
