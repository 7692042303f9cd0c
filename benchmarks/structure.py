"""How much code there is, by folder, and how much of it three journeys lead through.

Run with a screen (`xvfb-run -a python benchmarks/structure.py`); `--journey none` only counts. A
module counts for a journey where a function of it runs that is not part of an import:
`bridgetrack track` on the sample movie with tables as the output, `bridgetrack train` on its
clicks, and a click on a cell in the annotate panel, from pointing at it until it is drawn.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import io
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

JOURNEYS = ("track", "train", "click")


# ---------------------------------------------------------------------------- counting


@dataclass(frozen=True)
class Module:
    """A source file: its lines by kind, and the modules of the package that it imports."""

    name: str
    folder: str
    lines: int
    code: int
    docstrings: int
    comments: int
    imports: frozenset[str]


def source() -> Path:
    """The folder of the package that Python finds, without importing it."""
    spec = importlib.util.find_spec("bridgetrack")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def modules() -> list[Module]:
    """All modules of the package."""
    root = source()
    paths = sorted(p for p in root.rglob("*.py") if "_sample" not in p.parts)
    names = {_name(p, root): p for p in paths}
    return [_measured(name, path, root, set(names)) for name, path in names.items()]


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _measured(name: str, path: Path, root: Path, known: set[str]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    spoken: set[int] = set()
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            spoken.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    code: set[int] = set()
    comments: set[int] = set()
    quiet = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in quiet:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= spoken
    folder = path.parent.relative_to(root).as_posix()
    return Module(
        name,
        "(top)" if folder == "." else folder,
        text.count("\n"),
        len(code),
        len(spoken),
        len(comments - code - spoken),
        frozenset(_imports(tree, name, known)),
    )


def _imports(tree: ast.AST, name: str, known: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module


def table(found: list[Module]) -> list[str]:
    """One line a folder, and one for all."""
    importers = Counter(i for m in found for i in m.imports if i != m.name)
    head = ("folder", "modules", "lines", "code", "docstrings", "comments", "median", "1 importer")
    shape = "{:14s}" + "{:>11s}" * (len(head) - 1)
    lines = [shape.format(*head)]
    for folder in [*sorted({m.folder for m in found}), "all"]:
        inside = [m for m in found if folder in ("all", m.folder)]
        numbers = (
            len(inside),
            sum(m.lines for m in inside),
            sum(m.code for m in inside),
            sum(m.docstrings for m in inside),
            sum(m.comments for m in inside),
            round(statistics.median(m.lines for m in inside)),
            sum(importers[m.name] == 1 for m in inside),
        )
        lines.append(shape.format(folder, *map(str, numbers)))
    return lines


# ---------------------------------------------------------------------------- journeys


class Steps:
    """Modules in which a function ran since the last `clear`, imports aside."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._importing = threading.local()

    def note(self, name: str) -> None:
        """A function of a module begins."""
        if not getattr(self._importing, "depth", 0):
            self.seen.add(name)

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """What runs meanwhile is part of an import."""
        self._importing.depth = getattr(self._importing, "depth", 0) + 1
        try:
            yield
        finally:
            self._importing.depth -= 1


STEPS = Steps()


class _Noting(ast.NodeTransformer):
    """Lets every function begin with a note of its module; this reaches all threads."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _visit(self, node: Any) -> Any:
        self.generic_visit(node)
        note = ast.parse(f"__note__({self._name!r})").body[0]
        spoken = ast.get_docstring(node, clean=False) is not None
        node.body.insert(int(spoken), ast.copy_location(note, node.body[0]))
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _visit  # noqa: N815


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(self.get_data(self.path), self.path)
        tree = ast.fix_missing_locations(_Noting(fullname).visit(tree))
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__note__"] = STEPS.note
        with STEPS.importing():
            super().exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname.split(".", maxsplit=1)[0] != "bridgetrack":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def travel(journey: str) -> None:
    """Run a journey and print the modules that it leads through."""
    sys.meta_path.insert(0, _Finder())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = str(Path(folder, "data"))
        if journey == "click":
            _click(Path(folder))
        else:
            _command(journey, Path(folder))
    print(*sorted(STEPS.seen), sep="\n")


def _command(journey: str, out: Path) -> None:
    import bridgetrack as bt
    from bridgetrack.cli.main import main

    sample = bt.sample_folder()
    STEPS.seen.clear()
    words = [journey, str(sample / "01_GT" / "TRA"), "--image", str(sample / "01"), "--out"]
    if journey == "track":
        words += [str(out / "result"), "--format", "csv"]
    else:
        words += [str(out / "model.json"), "--annotations", str(sample / "annotations.json")]
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(words) == 0


def _click(data: Path) -> None:
    """Click until an answer is on disk; only the last click counts."""
    import napari
    from qtpy.QtCore import QPoint, Qt
    from qtpy.QtTest import QTest
    from qtpy.QtWidgets import QApplication

    warnings.simplefilter("ignore")
    viewer = napari.Viewer(show=True)
    viewer.window.resize(1200, 800)
    centres = np.array([(20, 20), (20, 60), (60, 20), (60, 60)])
    labels = np.zeros((4, 80, 80), dtype=np.uint16)
    for t in range(len(labels)):
        for k, (y, x) in enumerate(centres, 1):
            labels[t, y - 5 : y + 6, x - 5 + t : x + 6 + t] = k
    viewer.add_labels(labels, name="cells")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    widget.open_step(1)
    kinds = [w for w in QApplication.allWidgets() if "CanvasBackend" in type(w).__name__]
    canvas = next(w for w in kinds if w.isVisible())
    until = time.monotonic() + 120
    while time.monotonic() < until:
        QTest.qWait(1000)
        viewer.dims.set_current_step(0, 1)
        QTest.qWait(200)
        y, x = centres[0] + (0, 1)
        middle = np.array([canvas.height(), canvas.width()]) / 2
        where = ((y, x) - np.array(viewer.camera.center[-2:])) * viewer.camera.zoom + middle
        spot = QPoint(round(where[1]), round(where[0]))
        QTest.mouseMove(canvas, QPoint(3, 3))
        QTest.qWait(200)
        STEPS.seen.clear()
        QTest.mouseMove(canvas, spot)
        QTest.qWait(50)
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=spot)
        QTest.qWait(1500)
        kept = list(data.rglob("*.annotations.json"))
        if any('"confirm"' in path.read_text(encoding="utf-8") for path in kept):
            break
    else:
        raise SystemExit("no click was noted within two minutes")
    seen = set(STEPS.seen)
    viewer.close()
    STEPS.seen = seen


# ---------------------------------------------------------------------------- the command


def main() -> None:
    """Print the table, and how many modules each journey leads through."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--journey", choices=[*JOURNEYS, "all", "none"], default="all")
    parser.add_argument("--names", action="store_true", help="name the modules of the journeys")
    parser.add_argument("--travel", choices=JOURNEYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.travel:
        travel(given.travel)
        return
    print(*table(modules()), sep="\n", flush=True)
    chosen = JOURNEYS if given.journey == "all" else (given.journey,)
    for journey in () if given.journey == "none" else chosen:
        # Each in a process of its own, so that none finds what another one began.
        command = [sys.executable, __file__, "--travel", journey]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        names = [n for n in ran.stdout.split() if n.startswith("bridgetrack")]
        print(f"{journey}: {len(names)} modules" if not ran.returncode else ran.stderr, flush=True)
        if given.names:
            print(*(f"    {n}" for n in names), sep="\n")


if __name__ == "__main__":
    main()
