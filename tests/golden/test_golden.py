"""The program does what it did: the cases are compared with what was kept of them (`make`)."""

from __future__ import annotations

import json

import pytest

from golden.cases import CASES, FRAGILE, Bench
from golden.plain import differences, load, outline, surroundings


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The movies of all cases."""
    return Bench(tmp_path_factory.mktemp("golden"))


_LONG = (
    "python_training",
    "python_transfer",
    "train_l1",
    "train_lambda",
    "train_learner_subgradient",
    "train_loss_ramp",
    "train_sample",
)
"""Others of their kind are compared every time."""


def _param(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.thorough) if name in _LONG else name


@pytest.mark.parametrize("name", map(_param, CASES))
def test_as_before(name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGETRACK_MODELS", str(bench.folder / "library"))
    # Through a file, as what was kept: whole arrays become lists, and keys become text.
    found = json.loads(json.dumps(CASES[name](bench)))
    kept = load(name)
    if name in FRAGILE and load("made_with") != surroundings():
        kept, found = outline(kept), outline(found)
    different = list(differences(kept, found, name))
    assert not different, f"{len(different)} differences:\n" + "\n".join(different[:30])


def test_a_difference_is_seen() -> None:
    table = "id,score,kind\n1,0.5,move\n2,0.25,skip\n"
    kept = {"a.csv": table, "n": [1, 2.5, None, True], "m": {"x": 1.0}}
    same = {
        "a.csv": table.replace("0.25", "0.2500000000001"),
        "n": [1, 2.5, None, True],
        "m": {"x": 1},
    }
    assert not list(differences(kept, same))
    for changed in (
        {**kept, "a.csv": table.replace("0.25", "0.2501")},
        {**kept, "a.csv": table.replace("skip", "move")},
        {**kept, "a.csv": table.replace("kind", "event")},
        {**kept, "a.csv": table + "3,1,move\n"},
        {**kept, "n": [1, 2.5, None, 1]},
        {**kept, "n": [1, 2.5, None]},
        {**kept, "n": [1, 2.6, None, True]},
        {**kept, "m": {}},
        {**kept, "more": 1},
    ):
        assert len(list(differences(kept, changed))) == 1, changed
