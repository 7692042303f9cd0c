"""The estimate of accuracy: honest about chance, and about how annotations were chosen."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import beta, t

from bridgetrack.hypotheses.events import Event
from bridgetrack.training.estimate import ErrorEstimate, estimate_accuracy, weights_of_kinds

POPULATION = np.array([900.0, 40.0, 0.0, 0.0, 30.0, 30.0, 0.0, 0.0])


def estimated(wrong, part=None):
    """By errors that all weigh alike."""
    return estimate_accuracy(wrong, np.ones(len(wrong)), wrong, part)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.booleans())
@example(3504758, 19, False)  # all are wrong, and the sum is rounded up
def test_the_interval_holds_the_estimate(seed, n, random):
    rng = np.random.default_rng(seed)
    wrong = (rng.random(n) < rng.random()).astype(float)
    weight, part = rng.integers(1, 100, n).astype(float), rng.integers(0, n, n)
    seen = wrong * (rng.random(n) < 0.5)
    found = estimate_accuracy(wrong, weight, seen, None if random else part)
    assert 0 <= found.low <= found.accuracy <= found.high <= 1
    assert (found.n_annotations, found.random) == (n, random)
    assert found.right == pytest.approx(n - wrong.sum())
    assert found.parts == (n if random else len(np.unique(part)))
    order = rng.permutation(n)
    how = wrong[order], weight[order], seen[order], None if random else part[order]
    again = estimate_accuracy(*how)
    assert (again.low, again.high) == pytest.approx((found.low, found.high))
    assert found.to_json()["random"] is random and found.to_json()["annotations"] == n


@pytest.mark.parametrize(("n", "errors"), [(20, 1), (50, 10)])
def test_random_annotations_have_the_exact_interval(n, errors):
    """That of Clopper and Pearson, save for dividing the variance by n - 1."""
    found = estimated((np.arange(n) < errors).astype(float))
    low = beta(n - errors, errors + 1).ppf(0.025)
    high = beta(n - errors + 1, errors).ppf(0.975)
    assert found.accuracy == pytest.approx(1 - errors / n)
    assert found.low == pytest.approx(low, abs=0.01)
    assert found.high == pytest.approx(high, abs=0.01)
    assert found.words.startswith(f"about {100 * found.accuracy:.1f} %")


def test_without_errors_the_interval_is_exact():
    found = estimated(np.zeros(40))
    assert (found.accuracy, found.high) == (1, 1)
    assert found.low == pytest.approx(0.025 ** (1 / 40)) and found.says_something
    assert estimated(np.zeros(40), np.arange(40) // 2).low == pytest.approx(0.025 ** (1 / 20))
    assert not estimated(np.zeros(4)).says_something, "few answers would alarm for nothing"


@pytest.mark.parametrize(("accuracy", "n"), [(0.99, 10), (0.8, 60)])
def test_random_answers_cover(accuracy, n):
    rng = np.random.default_rng(3)
    found = [estimated((rng.random(n) > accuracy).astype(float)) for _ in range(400)]
    assert sum(one.low <= accuracy <= one.high for one in found) >= 0.9 * 400


def test_errors_that_cluster_are_covered():
    """Parts of four answers that are right or wrong together: four answers are one."""
    rng = np.random.default_rng(5)
    part = np.repeat(np.arange(25), 4)
    inside = np.zeros(2)
    for _ in range(200):
        wrong = np.repeat((rng.random(25) < 0.1).astype(float), 4)
        for k, given_part in enumerate((part, None)):
            found = estimated(wrong, given_part)
            inside[k] += found.low <= 0.9 <= found.high
    assert inside[0] >= 0.93 * 200
    assert inside[1] < 0.85 * 200


def test_few_parts_cover_the_truth_as_often_as_they_say():
    """Twenty answers in five, which err together at a share that differs from part to part."""
    rng, part = np.random.default_rng(5), np.repeat(np.arange(5), 20)
    inside = 0
    for _ in range(400):
        share = rng.beta(0.45, 1.05, 5)
        found = estimated((rng.random(len(part)) < share[part]).astype(float), part)
        inside += found.low <= 0.7 <= found.high
    assert inside / 400 >= 0.93


def test_parts_in_which_errors_do_not_hang_together_count_as_more():
    """Ten pairs of answers, one with two errors, one with one: worth 9.6 answers, by hand."""
    wrong, pairs = np.zeros(20), np.arange(20) // 2
    wrong[[4, 5, 9]] = 1
    n = 0.15 * 0.85 / (10 / 9 * (1.7**2 + 0.7**2 + 8 * 0.3**2) / 20**2)
    n *= (t(19).ppf(0.975) / t(9).ppf(0.975)) ** 2
    found = estimated(wrong, pairs)
    assert found.low == pytest.approx(beta(0.85 * n, 0.15 * n + 1).ppf(0.025))
    assert found.high == pytest.approx(beta(0.85 * n + 1, 0.15 * n).ppf(0.975))
    assert "in 10 independent regions" in found.words
    # All in one part, there is nothing to see of it: worth one answer.
    assert estimated(wrong, 0 * pairs).low == pytest.approx(beta(0.85, 1.15).ppf(0.025))


def test_answers_are_worth_no_more_than_their_weights_leave():
    """The error has a small weight, so that its own part of the variance is smaller yet."""
    weight, wrong = np.ones(10), np.zeros(10)
    weight[0], wrong[0] = 0.1, 1
    n, p = 9.1**2 / 9.01, 0.1 / 9.1
    found = estimate_accuracy(wrong, weight, wrong)
    assert found.accuracy == pytest.approx(1 - p)
    assert found.low == pytest.approx(1 - beta(n * p + 1, n - n * p).ppf(0.975))
    assert found.high == pytest.approx(1 - beta(n * p, n - n * p + 1).ppf(0.025))


def test_what_the_final_model_has_learned_widens_the_upper_end():
    wrong, alike = np.zeros(30), np.ones(30)
    wrong[:4] = 1
    plain = estimated(wrong)
    learned = estimate_accuracy(wrong, alike, np.zeros(30))
    assert (learned.accuracy, learned.low) == (plain.accuracy, plain.low)
    assert plain.high < learned.high == 1
    seen = np.minimum(wrong, np.arange(30) < 2)
    some, alone = estimate_accuracy(wrong, alike, seen), estimated(seen)
    assert (some.accuracy, some.low, some.high) == (plain.accuracy, plain.low, alone.high)


def test_kinds_count_as_often_as_they_occur():
    """Divisions are half of the annotations and one in twenty-five of the events."""
    event = np.repeat([Event.MOVE, Event.DIVIDE], 20).astype(np.int8)
    wrong = np.repeat([0.0, 1.0], 20)
    population = np.array([960.0, 40, 0, 0, 0, 0, 0, 0])

    def right(n, population):
        weight = weights_of_kinds(event[:n], population)
        found = estimate_accuracy(wrong[:n], weight, wrong[:n], np.arange(n))
        assert "provided the cells you annotated are representative" in found.words
        assert ("correct less often on them" in found.words) == (found.accuracy > 0.9)
        return found.accuracy

    assert right(40, population) == pytest.approx(0.96)
    assert right(25, population) == pytest.approx(0.96), "however many of each were annotated"
    # a kind that the tracked movie does not have counts as half an event
    assert right(40, np.array([99.5, 0, 0, 0, 0, 0, 0, 0])) == pytest.approx(0.995)


def test_answers_that_leave_several_events_weigh_what_the_others_do():
    event = np.repeat([Event.MOVE, Event.DIVIDE, -1], [10, 10, 20]).astype(np.int8)
    weight = weights_of_kinds(event, np.array([960.0, 40, 0, 0, 0, 0, 0, 0]))
    assert weight[[0, 10, 20]] == pytest.approx([96.0, 4.0, 50.0])
    assert (weights_of_kinds(event[20:], POPULATION) == 1).all()


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Simulated movies whose kinds are wrong at known rates, annotated by stratum."""
    rng = np.random.default_rng(11)
    rates = np.array([0.03, 0.25, 0.0, 0.0, 0.1, 0.1, 0.0, 0.0])
    event = np.repeat([Event.MOVE, Event.DIVIDE, Event.APPEAR, Event.DISAPPEAR], [60, 25, 10, 10])
    event = event.astype(np.int8)
    truth = 1 - float(POPULATION @ rates) / POPULATION.sum()
    inside, weight = 0, weights_of_kinds(event, POPULATION)
    for _ in range(200):
        wrong = (rng.random(len(event)) < rates[event]).astype(float)
        found = estimate_accuracy(wrong, weight, wrong, np.arange(len(event)))
        inside += found.low <= truth <= found.high
    assert 0.9 <= inside / 200 <= 1.0


@pytest.mark.parametrize(("right", "told"), [(4.0, True), (5.0, False)])
def test_a_model_that_is_mostly_wrong_is_warned_of(right, told):
    found = ErrorEstimate(0.4, 0.1, 0.8, 10, right, False, 10).warnings
    assert [("wrong in 60 %" in str(note)) for note in found] == [True] * told


@pytest.mark.parametrize(("n", "words"), [(1, "the only held-out answer"), (2, "all 2 held-out")])
def test_without_errors_the_lower_end_is_told(n, words):
    found = estimated(np.zeros(n))
    assert words in found.words and f"at least {100 * found.low:.1f} %" in found.words
