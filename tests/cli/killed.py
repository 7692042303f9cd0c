"""Kills a command at every step of putting its files in place, and tells what it left each time.

A program of its own, so that it can fork: everything is imported and the movies are tracked only
once. Reads a `Case` as JSON from the standard input and writes a list of what was left.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EVENTS = ("os.rename", "os.remove", "os.rmdir", "ctypes.dlsym")


@dataclass(frozen=True)
class Case:
    """A command that replaces what an earlier one left in the same folder."""

    before: list[str]  # words of the first command; none where the folder is new
    words: list[str]  # words of the command that is killed
    out: str
    others: dict[str, str]  # files of other people in the folder
    exchange: bool = True  # whether the system can give two folders each other's name
    steps: list[int] = field(default_factory=list)  # numbers of those at which it is killed
    moments: int = 0  # so many random moments in place of every step
    read: str | None = None  # what is read after every other kill; else the command runs again


def main() -> None:
    """Kill again and again."""
    case = Case(**json.load(sys.stdin))
    import dask
    import geff  # noqa: F401 - so that no child has to
    import zarr  # noqa: F401

    import bridgetrack.placing
    from bridgetrack.cli.main import main as command
    from bridgetrack.importing.tracks import read_tracks

    if not case.exchange:
        bridgetrack.placing.exchange = lambda one, other: False
    out = Path(case.out)
    dask.config.set(scheduler="synchronous")  # a fork would lose its threads
    _remember(None if case.moments else out.with_name("written"))

    def run(words: list[str]) -> None:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            assert command(words) == 0

    def again() -> None:
        if case.read is None or len(left) % 2:
            run(case.words)
            return
        try:
            read_tracks(case.read)
        except Exception:
            assert not Path(case.read).exists()

    # Only children write arrays: that starts threads, too.
    for words in filter(None, (case.before, case.words)):
        warm = [*words, "--out", str(out.with_name("warm"))]
        run([*warm, "--format", "csv"] if words[0] == "track" else warm)
    left: list[dict[str, Any]] = []
    ends: dict[str, Any] = {}
    start = out.with_name("start")
    for name, words in (("before", case.before), ("after", case.words)):
        shutil.rmtree(out, ignore_errors=True)
        if words:
            assert in_child(lambda words=words: run(words)) == 0
        ends[name] = visible(out)
        if name == "before":
            for inner, text in case.others.items():
                (out / inner).parent.mkdir(parents=True, exist_ok=True)
                (out / inner).write_text(text)
            if out.is_dir():
                shutil.copytree(out, start)
    for begin in _kills(case, lambda: run(case.words)):
        for path in out.parent.glob(".*.part"):
            shutil.rmtree(path)
        shutil.rmtree(out, ignore_errors=True)
        if start.exists():
            shutil.copytree(start, out)
        killed = in_child(begin) != 0
        state: dict[str, Any] = {"killed": killed, "files": visible(out), "run": record(out)}
        assert in_child(again) == 0
        state |= {"later": visible(out), "later_run": record(out), "hidden": hidden(out)}
        left.append(state)
        if not killed and not case.moments:
            break
    json.dump({"ends": ends, "left": left}, sys.stdout)


def _kills(case: Case, run: Callable[[], None]) -> Iterator[Callable[[], None]]:
    def at_step(n: int) -> None:
        count = 0

        def heard(event: str, args: tuple[Any, ...]) -> None:
            nonlocal count
            paths = [str(a) for a in args if isinstance(a, str | os.PathLike)]
            ours = any(p.startswith("/") and "/new/" not in p for p in paths)
            if event in EVENTS and (ours or count):  # from the first step outside of the staging
                count += 1
                if count == n:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(heard)
        run()

    def at_time(seconds: float) -> None:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process as SIGKILL does
        signal.setitimer(signal.ITIMER_REAL, seconds)
        run()

    if not case.moments:
        yield from (lambda n=n: at_step(n) for n in [*case.steps, 10_000])
        return
    begun = time.perf_counter()
    assert in_child(run) == 0
    usual = time.perf_counter() - begun
    draw = random.Random(3)
    for _ in range(case.moments):
        seconds = draw.uniform(0.001, usual)
        yield lambda seconds=seconds: at_time(seconds)


def in_child(work: Callable[[], None]) -> int:
    """Do something in another process; its exit status, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _remember(written: Path | None) -> None:
    """Track each movie only once, and write it only once: what is tested comes after that."""
    from bridgetrack.export import results
    from bridgetrack.pipeline import project, windows

    known: dict[str, Any] = {}
    solve, repeat, write = windows.track_movie, project.run_project, results.stage_results

    def track_movie(cells: Any, *args: Any, **named: Any) -> Any:
        if cells.source not in known:
            known[cells.source] = yield from solve(cells, *args, **named)
        return known[cells.source]

    def run_project(given: Any) -> Any:
        key = str(given.labels.path)
        if key not in known:
            known[key] = yield from repeat(given)
        return known[key]

    def stage_results(tracks: Any, labels: Any, staging: Path, formats: Any, *more: Any) -> Any:
        key = hashlib.sha256(repr([labels.source, formats]).encode()).hexdigest()
        if not (written / key).exists():
            write(tracks, labels, written / key, formats, *more)
        shutil.copytree(written / key, staging, dirs_exist_ok=True)
        return ()

    windows.track_movie, project.run_project = track_movie, run_project
    if written is not None:
        results.stage_results = stage_results


def visible(folder: Path) -> dict[str, str]:
    """Digests of all files in a folder that are not hidden; by their paths."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:32]
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.relative_to(folder).parts[0].startswith(".")
    }


def record(folder: Path) -> dict[str, str] | None:
    """The files that a record tells of."""
    try:
        return json.loads((folder / "run.json").read_text())["manifest"]
    except FileNotFoundError:
        return None


def hidden(out: Path) -> list[str]:
    """Spare names in a folder and beside it."""
    return [str(p) for place in (out, out.parent) for p in place.glob(".*.part")]


if __name__ == "__main__":
    main()
