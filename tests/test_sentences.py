"""Nothing in the program hangs on the words of a message: what matters is a kind or a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import bridgetrack as bt

SPOKEN = {"error", "exception", "message", "note", "notes", "reason", "remark", "said"}
"""Names that hold sentences, of variables and of attributes; of attributes also ``words``."""
LOOKS = {"startswith", "endswith", "find", "index", "count", "removeprefix", "removesuffix"}
SEARCHES = {"match", "search", "fullmatch", "findall"}


def speaks(node: ast.AST) -> bool:
    """Whether an expression is a sentence, as far as its name says."""
    if isinstance(node, ast.Name):
        return node.id.lstrip("_") in SPOKEN
    if isinstance(node, ast.Attribute):
        return node.attr.lstrip("_") in {*SPOKEN, "words"}
    if isinstance(node, ast.Call):
        inner = node.func
        if isinstance(inner, ast.Name):
            return inner.id in ("str", "repr") and any(map(speaks, node.args))
        return isinstance(inner, ast.Attribute) and (
            inner.attr == "getMessage" or speaks(inner.value)
        )
    return isinstance(node, ast.Subscript) and speaks(node.value)


def text(node: ast.AST, *, equal: bool) -> bool:
    """Whether an expression is a text that stands in the code; a single word may be a value."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return " " in node.value if equal else node.value != ""


def hanging(tree: ast.AST) -> Iterator[int]:
    """Lines on which something is decided by the words of a sentence."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            equal = all(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
            if any(text(side, equal=equal) for side in sides) and any(map(speaks, sides)):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            looked = node.func.attr in LOOKS and speaks(node.func.value)
            searched = node.func.attr in SEARCHES and any(map(speaks, node.args))
            if looked or searched:
                yield node.lineno


@pytest.mark.parametrize(
    "line",
    [
        'if "kept" not in reason: pass',
        'if model.reason == "the limit of epochs": pass',
        'message.startswith("the ")',
        'if "disk" in str(error): pass',
        'str(error).lower().startswith("no")',
        're.search("full", str(error))',
        'if "cut" in record.getMessage(): pass',
        'if note.words != "nothing was found": pass',
    ],
)
def test_what_is_looked_for(line: str) -> None:
    assert list(hanging(ast.parse(line))) == [1]


def test_nothing_hangs_on_sentences() -> None:
    root = Path(bt.__file__).parent
    found = [
        f"{path.relative_to(root)}:{line}"
        for path in sorted(root.rglob("*.py"))
        for line in hanging(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_no_attribute_is_looked_up_by_a_name_put_together() -> None:
    root = Path(bt.__file__).parent
    calls = (
        (path, node)
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    found = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path, node in calls
        if node.func.id in ("getattr", "hasattr", "setattr")  # type: ignore[attr-defined]
        and isinstance(node.args[1], ast.JoinedStr | ast.BinOp)
    ]
    assert found == []
