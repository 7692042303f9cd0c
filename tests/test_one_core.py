"""There is one cutting plane core and one trainer; whatever trains goes through them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import qpsolvers

import bridgetrack as bt
from bridgetrack.learning import cccp
from bridgetrack.learning.options import LEARNERS, LearningOptions
from bridgetrack.learning.risk import Risk
from bridgetrack.training.options import TrainingOptions
from simulator import SimulationSettings, simulate
from training.training_cases import bad_prior, confirmed, plain_scene, some_true

SOURCE = Path(bt.__file__).parent
FIT = ("bridgetrack.training.fit", "Movies.fit")
LOOP = ("bridgetrack.learning.cccp", "_learn")
CORE = ("bridgetrack.learning.cutting_planes", "CuttingPlanes.minimise")
PERCEPTRON = ("bridgetrack.learning.perceptron", "train_perceptron")
NOVELTY = ("bridgetrack.learning.curriculum", "novelties")
Trail = frozenset[tuple[str, str]]


def _trail() -> Trail:
    """The functions under way, those included that a generator is driven by."""
    frame, found = sys._getframe(2), set()
    while frame is not None:
        found.add((frame.f_globals.get("__name__", ""), frame.f_code.co_qualname))
        frame = frame.f_back
    return frozenset(found)


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[Trail], list[Trail]]]:
    """What is under way whenever a quadratic program is solved, and whenever a risk is learned."""
    solved, learned = list[Trail](), list[Trail]()
    solve, touch = qpsolvers.solve_problem, Risk.__init__

    def solving(*given: Any, **more: Any) -> Any:
        solved.append(_trail())
        return solve(*given, **more)

    def learning(risk: Risk, *given: Any, **more: Any) -> None:
        learned.append(_trail())
        touch(risk, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(qpsolvers, "solve_problem", solving)
        patch.setattr(Risk, "__init__", learning)
        yield solved, learned


@cache
def annotated() -> Any:
    """A simulated movie with a few answers."""
    return confirmed(plain_scene(), some_true(12))


@cache
def earlier() -> Any:
    """Another one."""
    return confirmed(plain_scene(2), some_true(20, 2))


def plain(**options: Any) -> Callable[[], Any]:
    """Training alone, to no great precision."""
    how = TrainingOptions(strength=1.0, folds=2, **options)
    return lambda: bt.train(annotated(), start=bad_prior(), options=how)


def helped(strategy: str) -> Callable[[], Any]:
    """Training with the help of an earlier movie, or of a model."""
    source = bad_prior() if strategy in ("delta", "prior") else earlier()
    how = TrainingOptions(strength=1.0, folds=2)
    return lambda: bt.train(annotated(), sources=[source], strategy=strategy, options=how)


def asked() -> bt.Session:
    """A session learns from answers that contradict what it begins with."""
    movie = simulate(SimulationSettings(frames=6, cells=10, size=128, seed=4))
    session = bt.Session(movie.labels, model=bad_prior())
    for _ in range(8):
        question = session.ask()
        session.answer(question, min(1, len(question.alternatives) - 1))
    return session


WAYS = {
    "plain": plain(),
    "l1": plain(regularizer="l1"),
    "literal": plain(treatment="literal"),
    "paced": plain(curriculum="slack"),
    "paced by novelty": plain(curriculum="novelty"),
    **{
        learner: plain(optimiser=LearningOptions(learner=learner, max_inferences=30))
        for learner in LEARNERS
    },
    **{s: helped(s) for s in ("union", "transfer", "delta")},
    "a session": lambda: asked().train(),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_trains_goes_through_one_trainer_and_one_core(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded(monkeypatch) as (solved, learned):
        WAYS[way]()
    assert learned
    assert all(FIT in trail for trail in learned)
    if way in ("perceptron", "frank-wolfe", "subgradient"):
        assert not solved
        return
    assert solved
    of_masters = [trail for trail in solved if NOVELTY not in trail]
    assert of_masters
    assert all({FIT, LOOP, CORE} <= trail for trail in of_masters)
    assert (len(of_masters) < len(solved)) == (way == "paced by novelty")


@cache
def imports() -> tuple[tuple[str, str], ...]:
    """What every module imports."""
    return tuple(_imports())


def _imports() -> Iterator[tuple[str, str]]:
    """A module, and what it imports from another: ``package.module.name``."""
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                yield from ((name, f"{node.module}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((name, alias.name) for alias in node.names)


def importers(*wanted: str) -> set[str]:
    """Modules that import any of these."""
    return {name.removeprefix("bridgetrack.") for name, what in imports() if what in wanted}


def test_nothing_stands_beside_the_one_core() -> None:
    learning = "bridgetrack.learning"
    assert importers("qpsolvers") == {"learning.qp"}
    # of a curriculum, novelty is a program of its own: it measures samples, and trains nothing
    solving = {"learning.l1", "learning.l2", "learning.curriculum"}
    assert importers(f"{learning}.qp.call_backend") == solving
    masters = (f"{learning}.l2.solve_l2_master", f"{learning}.l1.ProximalSteps")
    assert importers(*masters) == {"learning.cutting_planes"}
    assert importers(f"{learning}.cutting_planes.CuttingPlanes") == {"learning.cccp"}
    trainers = [f"{m}.{n}" for m in (learning, f"{learning}.cccp") for n in vars(cccp)]
    own = [t for t in trainers if t.rpartition(".")[2] in ("train", "train_joint", "fit_joint")]
    # the papers' Algorithm 1.2 ends in max-margin training of the patches that it chose
    assert importers(*own) == {"training.fit", "learning", "experiments.algorithm"}
