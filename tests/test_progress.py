"""Long work is driven to its end, or told in other words, without losing its result."""

from __future__ import annotations

from collections.abc import Generator

from bridgetrack.progress import relayed, run


def counting(n: int) -> Generator[int, None, str]:
    yield from range(n)
    return f"counted to {n}"


def test_each_step_is_reported_in_its_own_words_and_the_result_returned() -> None:
    seen: list[int] = []
    assert run(counting(3), seen.append) == "counted to 3"
    assert seen == [0, 1, 2]
    told: list[str] = []
    assert run(relayed(counting(2), lambda n: f"step {n}"), told.append) == "counted to 2"
    assert told == ["step 0", "step 1"]
