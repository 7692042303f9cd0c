"""Does a test fail when a line of a folder is changed?

Lines are drawn at random and changed one at a time: a comparison, a number, a sign, a condition, a
statement that is left out. The tests that run the line are run until one fails. Changes that no
test notices are printed. Needs pytest-cov and a clean working copy, as lines are changed in place.

    python tools/mutate.py --record                     (once: which test runs which line)
    python tools/mutate.py learning --count 20 --seed 1
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "bridgetrack"
RECORD = ROOT / "build" / "which_test.coverage"
SECONDS = 300
MOST = 60
"""Tests that are run for a change, at most."""

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def changed(node: ast.AST) -> ast.AST | None:
    """Return the node with one change, None if there is none to make."""
    new: ast.AST = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[first, *_]) if type(first) in COMPARED:
            new.ops[0] = COMPARED[type(first)]()
        case ast.BinOp(op=op) if type(op) in COMPUTED:
            new.op = COMPUTED[type(op)]()
        case ast.BoolOp():
            new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            new = new.operand
        case ast.Constant(value=bool()):
            new.value = not new.value
        case ast.Constant(value=int() | float()):
            new.value = new.value + 1
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue():
            new = ast.Pass()
        case ast.If():
            new = ast.UnaryOp(op=ast.Not(), operand=new.test)
        case _:
            return None
    return new


def places(path: Path) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what may be changed in a module (inside functions), with its changed form."""
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                if (new := changed(node)) is not None:
                    yield (node.test if isinstance(node, ast.If) else node), new


def with_change(text: str, node: ast.AST, new: ast.AST) -> str:
    """Return a module's text with the node's characters replaced."""
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    stop = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    written = ast.unparse(ast.fix_missing_locations(new))
    if isinstance(new, ast.expr):
        written = f"({written})"
    return (text.encode()[:start] + written.encode() + text.encode()[stop:]).decode()


def tests_of(data: coverage.CoverageData, path: Path, line: int) -> list[str]:
    """Return tests that run a line, those of the module and of its folder first."""
    known = data.contexts_by_lineno(str(path.relative_to(ROOT)))
    # of a statement over several lines not all are recorded
    ran = max((k for k, contexts in known.items() if k <= line and any(contexts)), default=0)
    tests = sorted({context.split("|")[0] for context in known.get(ran, []) if context})
    folder, module = path.parent.relative_to(SOURCE), path.stem

    def far(test: str) -> int:
        """How little a test has to do with the module, by its name and folder."""
        return (f"/test_{module}.py" not in test) + (not test.startswith(f"tests/{folder}/"))

    return sorted(tests, key=far)[:MOST]


def noticed(tests: list[str]) -> bool:
    """Whether one of the tests fails, or does not end, with what is on disk now."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def record() -> None:
    """Run all tests and note which of them runs which line."""
    RECORD.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--cov=bridgetrack"]
    # one acts as another user, who may not write the record
    command += ["--cov-context=test", "--cov-report=", "-k", "not test_no_permission"]
    subprocess.run(command, cwd=ROOT, check=False)
    (ROOT / ".coverage").replace(RECORD)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", default=".")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.record:
        record()
        return
    data = coverage.CoverageData(str(RECORD))
    data.read()
    drawn = random.Random(options.seed)
    folder = SOURCE / options.folder
    candidates = [(path, *place) for path in sorted(folder.glob("*.py")) for place in places(path)]
    lines = sorted({(path, node.lineno) for path, node, _ in candidates})
    red = 0
    for path, line in drawn.sample(lines, min(options.count, len(lines))):
        here = [found for found in candidates if found[0] == path and found[1].lineno == line]
        _, node, new = drawn.choice(here)
        text = path.read_text()
        tests = tests_of(data, path, line)
        try:
            path.write_text(with_change(text, node, new))
            seen = bool(tests) and noticed(tests)
        finally:
            path.write_text(text)
        red += seen
        where = f"{path.relative_to(ROOT)}:{line}"
        change = f"{ast.unparse(node)}  ->  {ast.unparse(new)}"
        print(
            f"{'red' if seen else 'NOT NOTICED'}  {where}  {change}  ({len(tests)} tests)",
            flush=True,
        )
    print(f"{options.folder}: {red} of {min(options.count, len(lines))}")


if __name__ == "__main__":
    main()
