"""Settings are declared once: names, defaults, limits, choices and words."""

import pickle
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pytest
from pydantic import Field

import bridgetrack as bt
from bridgetrack.schema import options_of, settings


@settings("machine:")
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

    Raises
    ------
    InputError
        Where a setting is out of its limits.
    """

    speed: Annotated[float | None, Field(ge=0, lt=1)] = None
    low: Annotated[int, Field(ge=1, le=5)] = 2
    high: Literal[8, 16] = 8
    kind: Literal["a", "b"] = "a"
    quiet: bool = False


def test_everything_is_found():
    speed, low, high, kind, quiet = options_of(Settings)
    assert (speed.kind, speed.may_be_none, speed.default) == (float, True, None)
    assert (speed.help, speed.least) == ("How fast it runs.", 0)
    assert (low.kind, low.least, low.most, low.help) == (int, 1, 5, "Both ends.")
    assert (high.help, high.choices) == ("Both ends.", (8, 16))
    assert (kind.kind, kind.choices, kind.default) == (str, ("a", "b"), "a")
    assert (quiet.kind, quiet.help) == (bool, "")
    assert [o.name for o in options_of(Settings, "low", "speed")] == ["low", "speed"]
    assert all(each.help for each in options_of(bt.SegmentationSettings))


@pytest.mark.parametrize(
    "wrong", [{"speed": 1.0}, {"speed": float("nan")}, {"low": 6}, {"high": 9}, {"kind": "c"}]
)
def test_what_is_out_of_its_limits_is_named(wrong):
    with pytest.raises(bt.BridgetrackError, match=f"machine: {next(iter(wrong))}: "):
        Settings(**wrong)
    with pytest.raises(bt.BridgetrackError, match=r"low: should be .* equal to 5, not 6"):
        replace(Settings(), low=6)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"speed": "a"}, "speed: .*number.* not 'a'"),
        ({"low": "a"}, "low: .*integer.* not 'a'"),
        ({"low": 1.5}, "low: .*integer.* not 1.5"),
        ({"quiet": "a"}, "quiet: .*boolean.* not 'a'"),
    ],
)
def test_what_is_of_another_kind_is_shown(wrong, words):
    with pytest.raises(bt.BridgetrackError, match=f"machine: {words}"):
        Settings(**wrong)


def test_names_that_there_are_not_are_refused():
    for given, named in (((), {"sped": 0.5}), ((0.5,), {"speed": 0.5}), ((0.5,) * 6, {})):
        with pytest.raises(TypeError, match="argument"):
            Settings(*given, **named)


def test_settings_are_values():
    made = Settings(speed=np.float32(0.5), low=np.int64(3))
    assert made == Settings(0.5, 3) == pickle.loads(pickle.dumps(made))
    assert hash(made) == hash(Settings(0.5, 3)) and type(made.low) is int
