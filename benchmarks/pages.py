"""Measure the figures of a page anew, and say which pages are older than the code they report on.

    python benchmarks/pages.py              # every result: its date, and whether it is old
    python benchmarks/pages.py transfer     # measure a page of docs/evidence anew
    python benchmarks/pages.py learning --only losses.py    # the results of one script on it

A result stands on a page between two comments, below the commands that print it::

        python benchmarks/losses.py --seeds 10

    <!-- measured 2026-11-22, code 1f0c2a9b7d3e -->
    | loss | wrong % |
    ...
    <!-- end -->

The commands run in ``build/evidence/<fingerprint>``, so that rows that a script keeps there are
never those of other code; what they print takes the place of what stood there. *code* is a
fingerprint of the script, of what it imports from this folder, and of the folders and files of
``src/bridgetrack`` that the page names at its head (``<!-- code: learning pipeline/scene.py -->``).
Comments, docstrings and empty lines do not count. *unknown* stands where a result is older than
this record.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import io
import re
import shlex
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "evidence"
_BLOCK = re.compile(
    r"^<!-- measured (?P<date>\S+), code (?P<code>\w+) -->\n(?P<text>.*?)^<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
_COMMANDS = re.compile(r"(?:^    (?:python benchmarks/.*|  .*)\n)+", re.MULTILINE)
_CODE = re.compile(r"^<!-- code: (.*?) -->$", re.MULTILINE)


class PageError(Exception):
    """A page that does not say what was run."""


@dataclass(frozen=True)
class Result:
    """What some commands printed, where it stands on a page.

    Parameters
    ----------
    page
        Name of the page, without its ending.
    commands
        As they stand on the page, continued lines joined.
    date, code
        When it was measured, and the fingerprint of the code of then.
    span
        Where the block stands in the page's text.
    depth
        Number of hashes of the heading above it.
    folders
        Folders of the package that the figures hang on.
    """

    page: str
    commands: tuple[str, ...]
    date: str
    code: str
    span: tuple[int, int]
    depth: int
    folders: tuple[str, ...]

    @property
    def scripts(self) -> tuple[str, ...]:
        """Names of the scripts, without their folder."""
        return tuple(Path(shlex.split(c)[1]).name for c in self.commands)

    def fingerprint(self, root: Path = ROOT) -> str:
        """Of the code as it is now."""
        return fingerprint(sources(self.scripts, self.folders, root), root)

    def is_older(self, root: Path = ROOT) -> bool:
        """Whether the code has changed since."""
        return self.code != self.fingerprint(root)


def results(text: str, page: str) -> list[Result]:
    """All results of a page; a PageError where one has no commands or nothing says its code."""
    code = _CODE.search(text)
    found = []
    for block in _BLOCK.finditer(text):
        above = text[: block.start()]
        commands = list(_COMMANDS.finditer(above))
        if not commands or code is None:
            line = above.count("\n") + 1
            what = "no commands stand above it" if code else "nothing says '<!-- code: ... -->'"
            raise PageError(f"{page}.md, line {line}: {what}")
        headings = re.findall(r"^(#+) ", above, re.MULTILINE)
        found.append(
            Result(
                page,
                _joined(commands[-1].group()),
                block["date"],
                block["code"],
                block.span(),
                len(headings[-1]) if headings else 1,
                tuple(code.group(1).split()),
            )
        )
    return found


def _joined(text: str) -> tuple[str, ...]:
    """Commands one by one, without remarks; a backslash continues a line."""
    whole = re.sub(r"\\\n\s*", "", text)
    return tuple(re.sub(r"\s+# .*", "", line.strip()) for line in whole.splitlines())


def sources(scripts: tuple[str, ...], folders: tuple[str, ...], root: Path = ROOT) -> list[Path]:
    """Files that the figures hang on, sorted."""
    found: set[Path] = set()
    waiting = [root / "benchmarks" / name for name in scripts]
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            waiting += [root / "benchmarks" / f"{name}.py" for name in names if name]
    for folder in folders:
        named = root / "src" / "bridgetrack" / folder
        inside = [named] if named.is_file() else named.rglob("*")
        found.update(p for p in inside if p.is_file() and p.suffix != ".pyc")
    return sorted(found)


def fingerprint(files: list[Path], root: Path = ROOT) -> str:
    """Twelve digits that change with the code, not with its comments."""
    whole = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        if path.suffix == ".py":
            content = bare(content.decode("utf-8")).encode("utf-8")
        whole.update(path.relative_to(root).as_posix().encode() + b"\0" + content + b"\0")
    return whole.hexdigest()[:12]


def bare(code: str) -> str:
    """Code without comments, docstrings and empty lines."""
    lines = code.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(code)):
        # A string that is a statement does nothing: docstrings of modules, classes and names.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for row in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def filled(text: str, result: Result, output: str, date: str, code: str) -> str:
    """The page with another output in the place of a result."""
    begin, end = result.span
    block = f"<!-- measured {date}, code {code} -->\n{_below(output, result.depth)}\n<!-- end -->"
    return text[:begin] + block + text[end:]


def _below(output: str, depth: int) -> str:
    """The output with its headings one below that of the page."""
    levels = [len(h) for h in re.findall(r"^(#+) ", output, re.MULTILINE)]
    deeper = depth + 1 - min(levels) if levels else 0
    moved = re.sub(
        r"^(#+) ", lambda m: "#" * (len(m[1]) + deeper) + " ", output, flags=re.MULTILINE
    )
    return moved.strip()


def measure(result: Result, root: Path = ROOT) -> str:
    """Run the commands of a result one after another; what they printed."""
    place = root / "build" / "evidence" / result.fingerprint(root)
    place.mkdir(parents=True, exist_ok=True)
    printed = []
    for command in result.commands:
        _, script, *words = shlex.split(command)
        print(f"{result.page}: {command}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, str(root / script), *words],
            cwd=place, stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise PageError(
                f"{command}: ended with status {done.returncode}; the page is as it was"
            )
        printed.append(done.stdout.strip())
    return "\n\n".join(printed)


def renew(page: Path, only: str | None = None) -> None:
    """Measure the results of a page anew; each is written once it is there."""
    wanted = [
        result.commands
        for result in results(page.read_text(encoding="utf-8"), page.stem)
        if only is None or only in result.scripts
    ]
    if not wanted:
        raise PageError(f"{page.name}: it has no results" + (f" of {only}" if only else ""))
    for commands in wanted:
        output = measure(_printed_by(commands, page))
        result = _printed_by(commands, page)  # somebody may have edited the page meanwhile
        text, today = page.read_text(encoding="utf-8"), datetime.date.today().isoformat()
        page.write_text(filled(text, result, output, today, result.fingerprint()), encoding="utf-8")


def _printed_by(commands: tuple[str, ...], page: Path) -> Result:
    """The result of these commands where it stands now."""
    for result in results(page.read_text(encoding="utf-8"), page.stem):
        if result.commands == commands:
            return result
    raise PageError(f"{page.name}: the result of {commands[0]} is no longer there")


def all_results(folder: Path = PAGES) -> Iterator[Result]:
    """The results of all pages."""
    for page in sorted(folder.glob("*.md")):
        yield from results(page.read_text(encoding="utf-8"), page.stem)


def age(result: Result, root: Path = ROOT) -> str:
    """In words: whether the code has changed since."""
    if result.code == "unknown":
        return "of code before the present"
    return "older than the code" if result.is_older(root) else "current"


def remark(text: str, page: str, root: Path = ROOT) -> str:
    """A sentence for the head of a page some of whose results are older than the code, or ''."""
    older = [r for r in results(text, page) if r.is_older(root)]
    if not older:
        return ""
    scripts = dict.fromkeys(f"{', '.join(dict.fromkeys(r.scripts))} ({r.date})" for r in older)
    return (
        "The code that these results report on has changed since they were measured: "
        f"{'; '.join(scripts)}. `make evidence PAGE={page}` measures them anew."
    )


def show(*, brief: bool = False) -> int:
    """Print every result with its date; the number of those that are older than the code."""
    found = list(all_results())
    older = [result for result in found if result.is_older()]
    for result in [] if brief else found:
        scripts = ", ".join(dict.fromkeys(result.scripts))
        print(f"{result.page:13} {result.date}  {age(result):26} {scripts}")
    print(f"evidence: {len(older)} of {len(found)} results are older than the code they report on")
    return len(older)


def main() -> None:
    """Measure one page, or list all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("page", nargs="?", help="name of a page of docs/evidence")
    parser.add_argument("--only", metavar="SCRIPT", help="results of one script only")
    parser.add_argument("--brief", action="store_true", help="how many are old, not which")
    parser.add_argument(
        "--strict", action="store_true", help="status 1 where a result is older than the code"
    )
    given = parser.parse_args()
    try:
        if given.page is None:
            older = show(brief=given.brief)
            sys.exit(1 if given.strict and older else 0)
        page = PAGES / f"{given.page}.md"
        if not page.is_file():
            names = ", ".join(sorted(p.stem for p in PAGES.glob("*.md") if p.stem != "README"))
            raise PageError(f"{given.page}: there is no such page; the pages are {names}")
        renew(page, given.only)
    except PageError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
