"""What is tried to hold the weights, on what, and what is chosen; without training anything."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bridgetrack.learning import Coupling
from bridgetrack.progress import Progress, run
from bridgetrack.training import fit
from bridgetrack.training.fit import (
    ALONE,
    DEFAULT,
    DOUBTFUL,
    TRANSFER,
    UNION,
    HoldChoice,
    Movies,
    Tie,
    Trial,
    choose_strength,
    choose_tie,
    cross_validate,
)
from bridgetrack.training.options import STEPS, TrainingOptions, default_strength
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, Validation
from training.training_cases import tiny_set

TARGET, SOURCE = (TrackingModel(tiny_set(np.random.default_rng(k), 12)) for k in (3, 4))
N = TARGET.data.n_annotations
ZERO = np.zeros(TARGET.n_features)
MOVIES = Movies(TARGET, (), ZERO, None)
TIED = Movies(TARGET, (SOURCE,), ZERO, None)


def held(loss: float) -> HeldOut:
    return HeldOut(np.zeros(N), np.full(N, loss))


def test_ties_are_those_built_in_or_what_somebody_gives() -> None:
    assert fit._ties("transfer", None, None, 20) == TRANSFER
    assert fit._ties("union", None, None, 20) == fit._ties("source", None, None, 20) == UNION
    assert fit._ties("union", 0.1, None, 20) == (Tie(2.0, np.inf),)
    assert fit._ties("transfer", None, 0.5, 20) == (Tie(UNION[-1].weight, 10.0),)
    assert fit._ties("transfer", 0.1, 0.5, 20) == (Tie(2.0, 10.0),)
    tried = dict.fromkeys(tie.tie for tie in TRANSFER if not tie.alone)
    assert fit._ties("transfer", 0.1, None, 20) == tuple(Tie(2.0, value) for value in tried)


def test_where_nothing_can_be_tried_the_default_tie_holds_unless_another_is_given() -> None:
    assert fit._default("transfer", TRANSFER) == DEFAULT
    assert fit._default("union", UNION) == fit._default("source", UNION) == UNION[-1]
    given = (Tie(2.0, 5.0), Tie(3.0, 6.0))
    assert fit._default("transfer", given) == fit._default("union", given) == given[0]


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What cross-validation is asked to try; what was learned errs by 1, 2, ... there."""
    asked: list[Any] = []

    def stub(movies: Movies, holds: Sequence[Any], *given: Any, **named: Any) -> Any:
        asked.append((movies, tuple(holds), named))
        yield from ()
        return tuple(held(k + 1.0) for k in range(min(len(holds), 4))), ("states",)

    monkeypatch.setattr(fit, "cross_validate", stub)
    return asked


def test_lambda_is_chosen_where_there_are_enough_answers(
    tried: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = default_strength(N)
    for enough, given, strengths, by in (
        (N, None, tuple(usual * step for step in STEPS), "cross-validation"),
        (N + 1, None, (usual,), "default"),
        (N, 0.5, (0.5,), "user"),
    ):
        monkeypatch.setattr(fit, "ENOUGH_TO_CHOOSE", enough)
        choice = run(choose_strength(MOVIES, TrainingOptions(strength=given)))
        assert tried[-1][1] == strengths
        assert choice.by == by
        assert choice.validation is not None
        # what was not tried, as it had become worse, is not chosen
        assert choice.validation.strengths == strengths[:4]
        assert choice.hold == strengths[choice.validation.best]
        assert choice.validation.prior.risk == fit.judge(TARGET, ZERO).risk


def test_too_few_answers_to_divide_choose_nothing(tried: list[Any]) -> None:
    few = TrackingModel(replace(TARGET.data, pair=np.zeros(N, dtype=np.int64)))
    movies = replace(MOVIES, target=few)
    assert run(choose_strength(movies, TrainingOptions())) == HoldChoice(
        default_strength(N), "default"
    )
    given = run(choose_strength(movies, TrainingOptions(strength=0.5)))
    assert given == HoldChoice(0.5, "user")
    assert not tried


@pytest.mark.parametrize("doubtful", [False, True])
def test_movies_that_mislead_come_last_and_are_not_begun_with(
    doubtful: bool, tried: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = ZERO + 1

    def learned(movies: Movies, *_: Any, **__: Any) -> Any:
        assert movies.target is None
        yield from ()
        return SimpleNamespace(w=theirs, states=("earlier",))

    monkeypatch.setattr(Movies, "fit", learned)
    loss = {True: 1.0 if doubtful else 0.0, False: 0.0}
    monkeypatch.setattr(fit, "judge", lambda _, w: held(loss[w is theirs]))
    monkeypatch.setattr(fit, "DOUBTFUL", DOUBTFUL[:2])
    monkeypatch.setattr(fit, "TRANSFER", TRANSFER[:3])
    choice = run(choose_tie(TIED, "transfer", TrainingOptions(), None))
    movies, ties, named = tried[0]
    assert ties == (DOUBTFUL[:2] if doubtful else TRANSFER[:3])
    assert named["states"] == ("earlier",)
    assert movies.start is choice.start is (None if doubtful else theirs)
    assert choice.earlier is theirs
    assert choice.by == "cross-validation"
    assert choice.states == ("states",)
    assert [trial.tie for trial in choice.trials] == list(ties)
    assert choice.hold == ties[0]
    one = run(choose_tie(TIED, "transfer", TrainingOptions(strength=0.1), 0.2))
    assert one.by == "user"
    assert one.hold == Tie(0.1 * N, 0.2 * N)
    # too few answers to divide
    few = TrackingModel(replace(TARGET.data, pair=np.zeros(N, dtype=np.int64)))
    untried = run(choose_tie(replace(TIED, target=few), "transfer", TrainingOptions(), None))
    start = None if doubtful else theirs
    expected = HoldChoice(DEFAULT, "default", states=("earlier",), earlier=theirs, start=start)
    assert (untried.hold, untried.by) == (fit._default("transfer", fit.TRANSFER), "default")
    assert replace(untried, hold=DEFAULT) == expected


def test_a_choice_knows_which_of_its_models_were_not_finished() -> None:
    some = replace(held(1.0), unfinished=2)
    trials = (Trial(ALONE[0], some), Trial(ALONE[1], some))
    validation = Validation((1.0, 0.1, 0.01), (some,) * 3, held(0.0))
    assert HoldChoice(0.1, "default").unfinished == 0
    assert HoldChoice(0.1, "cross-validation", validation).unfinished == 6
    assert HoldChoice(ALONE[0], "cross-validation", None, trials).unfinished == 4
    assert HoldChoice(ALONE[0], "cross-validation", validation, trials).unfinished == 4


RISKS = {1.0: 1.0, 0.5: 0.9, 0.2: 1.0, 0.1: 1.1, 0.05: 0.5}
"""Held-out loss that each λ leads to."""


@pytest.mark.parametrize(
    ("risks", "count"),
    [((1.0, 1.1, 1.2, 0.5), 3), ((1.0, 1.1, 1.1, 1.2), 4), ((1.0, 1.0, 1.1, 0.5), 4)],
)
def test_what_is_no_better_is_not_yet_worse(
    risks: tuple[float, ...], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(shared: Any, part: Any) -> Generator[Any, None, Any]:
        yield SimpleNamespace(weights=ZERO)
        return SimpleNamespace(w=ZERO, state=None, states=(None,)), held(risks[int(part[0])])

    monkeypatch.setattr(fit, "_without_fold", without)
    holds = tuple(float(k) for k in range(len(risks)))
    steps = cross_validate(MOVIES, holds, TrainingOptions(), np.arange(12) % 2, until_worse=True)
    assert len(run(steps)[0]) == count


@pytest.mark.parametrize(("until_worse", "count"), [(True, 4), (False, 5)])
def test_lambdas_are_tried_until_they_become_worse_twice(
    until_worse: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[Any, ...]] = []

    def without(shared: Any, part: Any) -> Generator[Any, None, Any]:
        hold, k, states = part
        given.append((hold, k, states, shared[1].optimiser.precision))
        yield SimpleNamespace(weights=ZERO + 3)
        state = f"{hold} {k}"
        return SimpleNamespace(w=ZERO, state=state, states=(state, "source")), held(RISKS[hold])

    monkeypatch.setattr(fit, "_without_fold", without)
    fold, options = np.arange(12) % 2, TrainingOptions()
    steps = cross_validate(MOVIES, tuple(RISKS), options, fold, until_worse=until_worse)
    told: list[tuple[float, np.ndarray | None]] = []
    found, _ = run(steps, told.append)
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(count / 5)
    # what the first fold learns is better than nothing, and what a whole one learned is kept
    assert [weights.max() for _, weights in told if weights is not None] == [3] * 4 + [0] * (
        4 * count - 4
    )
    assert [one.risk for one in found] == pytest.approx(list(RISKS.values())[:count])
    # each begins with the bounds that its own fold had before
    assert [(hold, k, states[0]) for hold, k, states, _ in given[:4]] == [
        (1.0, 0, None),
        (1.0, 1, None),
        (0.5, 0, "1.0 0"),
        (0.5, 1, "1.0 1"),
    ]
    assert {precision for *_, precision in given} == {options.optimiser.precision}
    given.clear()
    states = ("first",)
    _, states = run(cross_validate(TIED, (1.0, 0.5), options, fold, states=states))
    assert [states[1:] for _, _, states, _ in given] == [("first",)] * 2 + [("source",)] * 2
    assert states == ("source",)
    others = SOURCE.data.n_annotations
    looser = max(options.optimiser.precision, 5e-3) * (1 + others / N) ** 0.25
    assert {precision for *_, precision in given} == {looser}


def test_a_fit_goes_on_from_what_is_known_unless_it_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[dict[str, Any]] = []

    def stub(*_: Any, **named: Any) -> Any:
        given.append(named)
        yield Progress("Learning", 1.0)

    monkeypatch.setattr(fit, "train", stub)
    movies, state = replace(MOVIES, start=ZERO + 2), SimpleNamespace()
    for states, anew in (((state,), False), ((state,), True), ((), False)):
        run(movies.fit(0.1, TrainingOptions(), states=states, anew=anew))  # type: ignore[arg-type]
    assert [named["state"] for named in given] == [state, state, None]
    assert [named["initial"] is None for named in given] == [True, False, True]
    assert given[1]["initial"] is movies.prior
    rows = np.array([0, 2])
    run(movies.fit(0.1, TrainingOptions(), rows=rows))
    assert given[-1]["n_annotations"] == np.isin(TARGET.data.annotation_sample, rows).sum() < N


@dataclass(frozen=True)
class Fitted:
    weights: np.ndarray
    w: np.ndarray | None = None
    states: tuple[str, ...] = ("first", "second")


@pytest.mark.parametrize("alone", [False, True])
def test_tied_movies_share_one_scale_and_begin_together(
    alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[Any, ...]] = []

    def stub(domains: Any, coupling: Coupling, **named: Any) -> Any:
        given.append((domains, coupling, named))
        yield from ()
        return Fitted(np.arange(len(domains))[:, None] + ZERO)

    monkeypatch.setattr(fit, "train_joint", stub)
    movies = replace(TIED, start=ZERO + 2)
    tie = Tie(np.inf, 6.0) if alone else Tie(3.0, 6.0)
    result = run(movies.fit(tie, TrainingOptions(), states=("mine", "theirs")))  # type: ignore[arg-type]
    ((domains, coupling, named),) = given
    count = 1 if alone else 2
    assert [domain.n_annotations for domain in domains] == [N] * count
    assert [domain.model for domain in domains] == [TARGET, SOURCE][:count]
    assert (coupling.weight, coupling.tie) == (tie.weight / N, 6.0 / N)
    np.testing.assert_array_equal(named["initial"], np.full((count, len(ZERO)), 0 if alone else 2))
    assert named["states"] == ("mine", "theirs")[:count]
    np.testing.assert_array_equal(result.w, ZERO)
    assert movies.states_of_sources(result) == ("second",)
    if alone:
        return
    sources = Movies(None, (SOURCE, TARGET), ZERO, None)
    result = run(sources.fit(tie, TrainingOptions()))
    n = SOURCE.data.n_annotations + N
    assert [domain.n_annotations for domain in given[-1][0]] == [n] * 2
    np.testing.assert_array_equal(result.w, given[-1][1].shared(result.weights))
    assert sources.states_of_sources(result) == ("first", "second")
