"""Settings are declared once: names, defaults, limits, choices and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bridgetrack as bt
from bridgetrack.option import check_options, option, options_of


@dataclass(frozen=True)
class Settings:
    """Of a machine.

    Parameters
    ----------
    speed
        How fast ``it``
        runs.
    low, high
        Both ends.
    kind
        What it is.
    name
        How it is called.

    Raises
    ------
    InputError
        Where a setting is out of its limits.
    """

    speed: float | None = option(None, least=0, below=1)
    low: int = option(2, least=1, most=5)
    high: int = option(8, choices=(8, 16))
    kind: Literal["a", "b"] = "a"
    quiet: bool = False
    name: str = "x"

    def __post_init__(self) -> None:
        check_options(self, "machine:")


def test_everything_is_found() -> None:
    speed, low, high, kind, quiet, name = options_of(Settings)
    assert (speed.kind, speed.may_be_none, speed.default) == (float, True, None)
    assert speed.help == "How fast it runs."
    assert (speed.least, speed.below) == (0, 1)
    assert (low.kind, low.least, low.most, low.help) == (int, 1, 5, "Both ends.")
    assert (high.help, high.choices) == ("Both ends.", (8, 16))
    assert (kind.kind, kind.choices, kind.default) == (str, ("a", "b"), "a")
    assert (quiet.kind, quiet.help) == (bool, "")
    assert name.default == "x"
    assert [o.name for o in options_of(Settings, "low", "speed")] == ["low", "speed"]


@pytest.mark.parametrize(
    "wrong",
    [{"speed": 1.0}, {"speed": float("nan")}, {"low": 6}, {"high": 9}, {"kind": "c"}],
)
def test_what_is_out_of_its_limits_is_named(wrong: dict[str, object]) -> None:
    with pytest.raises(bt.BridgetrackError, match=f"machine: {next(iter(wrong))}"):
        Settings(**wrong)  # type: ignore[arg-type]


@given(st.sampled_from([bt.SegmentationSettings]), st.data())
def test_limits_hold_and_defaults_lie_within(settings: type, data: st.DataObject) -> None:
    each = data.draw(st.sampled_from(options_of(settings)))
    assert each.help
    assert each.problem(each.default) is None
    if each.kind is float:
        for limit in (each.least, each.most):
            assert each.problem(limit) is None or abs(limit) == float("inf")
        for limit in (each.above, each.below, each.least - 1, each.most + 1):
            assert each.problem(limit) is not None
