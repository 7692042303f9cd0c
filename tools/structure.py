"""Count lines and modules of the program, of the tests and of the benchmarks, by folder.

python tools/structure.py
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def code_lines(path: Path) -> int:
    """Lines of a file that are neither empty, nor comments, nor docstrings."""
    text = path.read_text(encoding="utf-8")
    kept = {n for n, line in enumerate(text.splitlines(), 1) if line.strip(" ")}
    kept -= {n for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            kept -= set(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    return len(kept)


def main() -> None:
    """Print a row a folder, and sums."""
    print(f"{'folder':32}{'files':>7}{'lines':>9}{'of code':>9}")
    for top in ("src/bridgetrack", "tests", "benchmarks"):
        count: dict[str, Counter[str]] = {}
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT / top).parts
            folder = parts[0] if len(parts) > 1 else "."
            size = Counter(
                files=1,
                lines=len(path.read_text(encoding="utf-8").splitlines()),
                code=code_lines(path),
            )
            count.setdefault(f"{top}/{folder}", Counter()).update(size)
        total: Counter[str] = Counter()
        for folder, size in count.items():
            total.update(size)
            print(f"{folder:32}{size['files']:7,}{size['lines']:9,}{size['code']:9,}")
        print(f"{top + ', all':32}{total['files']:7,}{total['lines']:9,}{total['code']:9,}\n")


if __name__ == "__main__":
    main()
