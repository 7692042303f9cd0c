"""The list of bad moves names tests that exist, and all moves at the wrong moment are on it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
FEWEST = 40


def names_in(path: Path) -> set[str]:
    """Names of the tests of a file."""
    made = ast.parse(path.read_text(encoding="utf-8")).body
    return {each.name for each in made if isinstance(each, ast.FunctionDef)}


def moves_of(path: Path) -> set[str]:
    """Keys of its table of moves."""
    for each in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "MOVES":
            assert isinstance(each.value, ast.Dict)
            return {key.value for key in each.value.keys if isinstance(key, ast.Constant)}
    return set()


def test_every_move_of_the_list_has_its_test() -> None:
    text = (ROOT / "tests" / "bad_moves.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| `(.+?)::(\w+)(?:\[(.+)\])?` \|$", text, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^\| .*`", text, re.MULTILINE)) >= FEWEST
    listed: dict[str, set[str]] = {}
    for _, happens, file, name, case in rows:
        assert happens
        assert name in names_in(ROOT / file), f"{file}::{name}"
        if case:
            listed.setdefault(file, set()).add(case)
    for file, cases in listed.items():
        assert cases == moves_of(ROOT / file), file
    assert len({row[0] for row in rows}) == len(rows), "each move stands there once"
