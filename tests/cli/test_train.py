"""Weights from clicks."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.store import load_annotations, save_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.may_write import signed
from bridgetrack.models.model import load_model, save_model
from bridgetrack.models.shipped import untrained_model
from bridgetrack.progress import Progress
from cli.conftest import Run, draw_answers, one_line


@pytest.fixture
def clicks(run: Run, truth: Path, tmp_path: Path) -> Path:
    """A few answers about the small movie."""
    return draw_answers(run, truth, tmp_path / "a.json", 25)


def test_clicks_to_a_model_that_tracks(
    run: Run, movie: Path, truth: Path, clicks: Path, tmp_path: Path
) -> None:
    model, plain = tmp_path / "m.json", untrained_model()
    # the answers contradict weights that would have no cell move
    turned = [
        -5.0 if k == "move.bias" else v for k, v in zip(plain.keys, plain.weights, strict=True)
    ]
    start = save_model(replace(plain, weights=np.array(turned)), tmp_path / "start.json")
    given = (truth, "--image", movie / "01", "--annotations", clicks, "--out", model)
    shown = run("train", *given, "--prior", start, "--lambda", 0.1, "--json")
    assert shown.status == 0, shown.err
    assert shown.err == ""
    record = json.loads(shown.out)
    assert record["annotations"] > 0
    assert record["lambda"] == 0.1
    assert record["gap"] is not None
    assert record["prior"] == str(start)
    for change in record["changes"].values():
        assert change["after"] - change["before"] == change["gained"] - change["lost"]
    trained = load_model(model)
    assert trained.keys == plain.keys
    assert trained.name == "trained"
    assert not np.array_equal(trained.weights, turned)
    tracked = run("track", truth, "--model", model, "--out", tmp_path / "out", "--json")
    assert json.loads(tracked.out)["model"]["name"] == trained.name


def test_a_summary_for_people(run: Run, truth: Path, clicks: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    shown = run("train", truth, "--annotations", clicks, "--out", model, "--lambda", 1)
    assert shown.status == 0, shown.err
    for words in ("annotations used", "lambda 1,", "gap ", "starting model", str(model)):
        assert words in shown.out
    assert "starts from the shipped model\n" in shown.out


def crossed(said: AnnotationSet) -> tuple[AnnotationSet, set[str]]:
    """The answers with the links of two cells of a frame exchanged, and their ids."""
    moves = [a for a in said if a.events[0].event == Event.MOVE]
    one, other = next(
        (a, b)
        for a, b in combinations(moves, 2)
        if a.events[0].sources[0].frame == b.events[0].sources[0].frame
    )
    wrong = {
        mine.id: replace(mine, events=(replace(mine.events[0], targets=theirs.events[0].targets),))
        for mine, theirs in ((one, other), (other, one))
    }
    return AnnotationSet(said.geometry, (wrong.get(a.id, a) for a in said)), set(wrong)


def test_slips_are_named(run: Run, truth: Path, clicks: Path, tmp_path: Path) -> None:
    said, slips = crossed(load_annotations(clicks))
    save_annotations(said, clicks)
    given = ("train", truth, "--annotations", clicks, "--out", tmp_path / "m.json")
    record = json.loads(run(*given, "--json").out)
    assert set(record["unusual"]) == slips
    told = run(*given).out
    assert all(f"{name} (the move of" in told for name in slips)


@pytest.mark.parametrize(
    "words",
    [("--loss", "zero"), ("--regularizer", "l7"), ("--lambda", "much"), ("--lambda", "-1")],
)
def test_wrong_use(run: Run, truth: Path, tmp_path: Path, words: tuple[str, str]) -> None:
    out = tmp_path / "m.json"
    shown = run("train", truth, "--annotations", tmp_path / "a.json", "--out", out, *words)
    assert shown.status == 2
    assert one_line(shown.err)
    assert not out.exists()


@pytest.mark.parametrize("with_model", [True, False])
def test_ctrl_c_keeps_the_best_model_so_far(
    run: Run,
    truth: Path,
    clicks: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    with_model: bool,
) -> None:
    from bridgetrack.training.outcome import TrainingProgress

    best = untrained_model()

    def interrupted(*_: object, **__: object) -> Iterator[TrainingProgress]:
        yield TrainingProgress("Learning", 0.5, 1.0, 0.1, best if with_model else None)
        raise KeyboardInterrupt

    # imported for the first time now, it would keep what is patched for all tests after this one
    importlib.import_module("bridgetrack.training.train")
    monkeypatch.setattr("bridgetrack.training.train.strategy_steps", interrupted)
    out = tmp_path / "m.json"
    shown = run("train", truth, "--annotations", clicks, "--out", out)
    assert shown.status == 130
    assert one_line(shown.err)
    assert out.exists() == with_model
    assert str(out) in shown.err
    assert ("nothing" in shown.err or "anything" in shown.err) != with_model
    if with_model:
        assert np.array_equal(load_model(out).weights, best.weights)
        assert "interrupted" in load_model(out).provenance["note"]


def test_ctrl_c_while_answers_are_set_aside_keeps_what_was_learned(
    run: Run, truth: Path, clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("bridgetrack.training.train")
    steps_of = module.strategy_steps

    def interrupted(*given: Any, **named: Any) -> Iterator[Progress]:
        for step in steps_of(*given, **named):
            yield step
            if step.stage == "Testing on answers set aside" and step.done > 0:
                raise KeyboardInterrupt

    monkeypatch.setattr(module, "strategy_steps", interrupted)
    out = tmp_path / "m.json"
    plain = untrained_model()  # with answers that contradict it, so that something is learned
    turned = np.where(np.array(plain.keys) == "move.bias", -5.0, plain.weights)
    start = save_model(replace(plain, weights=turned), tmp_path / "start.json")
    shown = run("train", truth, "--annotations", clicks, "--prior", start, "--out", out)
    assert shown.status == 130
    assert str(out) in shown.err
    learned = load_model(out)
    assert "interrupted" in learned.provenance["note"]
    assert not np.array_equal(learned.weights, turned)


def test_ctrl_c_while_cells_are_measured_says_that_nothing_was_learned(
    run: Run, truth: Path, clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "m.json"
    with signed(out) as spare:
        save_model(untrained_model(), spare)
    before = out.read_bytes()

    def interrupted(*_: object, **__: object) -> Iterator[Progress]:
        yield Progress("Measuring cells", 0.5)
        raise KeyboardInterrupt

    module = importlib.import_module("bridgetrack.pipeline.scene")
    monkeypatch.setattr(module, "prepare", interrupted)
    for path, left in ((out, "is as it was"), (tmp_path / "new.json", "was not written")):
        shown = run("train", truth, "--annotations", clicks, "--out", path)
        assert shown.status == 130
        assert shown.err == f"interrupted before anything was learned; {path} {left}\n"
        assert out.read_bytes() == before
        assert {p.name for p in tmp_path.iterdir() if p.suffix} == {clicks.name, out.name}


def test_ctrl_c_before_the_weights_move_keeps_no_model(
    run: Run, truth: Path, clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("bridgetrack.training.train")
    steps_of = module.strategy_steps
    seen: list[Progress] = []

    def interrupted(*given: Any, **named: Any) -> Iterator[Progress]:
        for step in steps_of(*given, **named):
            seen.append(step)
            yield step
            if isinstance(step, module.TrainingProgress):
                raise KeyboardInterrupt

    monkeypatch.setattr(module, "strategy_steps", interrupted)
    out = tmp_path / "m.json"
    shown = run("train", truth, "--annotations", clicks, "--out", out)
    assert shown.status == 130
    assert seen[-1].model is None  # type: ignore[attr-defined]
    assert "before anything was learned" in shown.err
    assert not out.exists()


def test_ctrl_c_while_the_model_is_saved_saves_it(
    run: Run, truth: Path, clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("bridgetrack.models.model")
    save, tries = module.save_model, []

    def impatient(*given: Any) -> Path:
        tries.append(given)
        if len(tries) == 1:
            raise KeyboardInterrupt
        return save(*given)

    monkeypatch.setattr(module, "save_model", impatient)
    out = tmp_path / "m.json"
    shown = run("train", truth, "--annotations", clicks, "--out", out)
    assert shown.status == 130
    assert "training was done" in shown.err and str(out) in shown.err
    assert "interrupted" not in str(load_model(out).provenance)
    assert {p.name for p in tmp_path.iterdir() if p.suffix} == {clicks.name, out.name}


def test_nothing_to_learn_from(run: Run, truth: Path, tmp_path: Path) -> None:
    empty = tmp_path / "a.json"
    movie = {"n_frames": 10, "shape": [160, 160], "scale": [1, 1], "unit": "pixel"}
    movie["frame_interval"] = None
    content = {"format": "bridgetrack-annotations", "version": 1, "movie": movie}
    empty.write_text(json.dumps({**content, "annotations": []}))
    shown = run("train", truth, "--annotations", empty, "--out", tmp_path / "m.json")
    assert shown.status == 1
    assert one_line(shown.err)
    assert "annotation" in shown.err
    assert not (tmp_path / "m.json").exists()
