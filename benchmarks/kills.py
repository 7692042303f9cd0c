"""What is left when the program is killed at random moments, command by command.

    python benchmarks/kills.py [--seconds 720] [--only train batch ...] [--seed 0]

Small movies; every command replaces what it wrote before from other input, in a process that is
forked from one in which everything is imported. Three kills of four are SIGKILL, one is SIGTERM;
half of them come at any moment of the command, half in its last fifth, where files are put in
place. After each kill every unit (a result folder, the labels with their record, a model, a file
of answers) must hold what stood there before or what the whole command leaves, never a mixture and
never less, and no input may have changed. After every third kill the command runs again: then all
must be as if it had never been killed, with nothing hidden left behind. Answers: all that were
acknowledged before the kill must be in the file, and one more at most.

Times are left out of what is compared, as they differ from run to run; and so are the seals in
``.bridgetrack``, which are digests of files with times. A seal that does not fit its file makes
the command refuse when it runs again, which is counted as a fault.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

State = dict[str, dict[str, str]]
"""Digests of the files of every unit."""
TIMES = {"seconds", "created", "run.json"}


@dataclass(frozen=True)
class Case:
    """Two runs of a command into the same place."""

    name: str
    out: Path  # folder with everything that is written
    before: Callable[[], None]
    after: Callable[[], None]
    unit: Callable[[str], str] = lambda name: ""  # of a file, by its path
    growing: frozenset[str] = frozenset()  # tables that are written anew again and again


@dataclass
class Count:
    """What the kills of one command did."""

    kills: int = 0
    in_time: int = 0  # the command was still running
    old: int = 0  # units that were as before, and as the whole command leaves them
    new: int = 0
    again: int = 0
    faults: list[str] = field(default_factory=list)


def quiet(line: str) -> None:
    """Run a command, none of whose words has blanks."""
    from bridgetrack.cli.main import main

    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        status = main(line.split())
    if status:
        raise RuntimeError(f"{line} ended with {status}")


def started(work: Callable[[], None]) -> int:
    """Begin something in another process; its number."""
    child = os.fork()
    if child == 0:
        status = 1
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the program does
        try:
            work()
            status = 0
        except KeyboardInterrupt:
            status = 130
        except Exception as error:
            if not str(error).endswith("130"):  # ended by SIGTERM
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    """Exit status of a process, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def done(work: Callable[[], None]) -> None:
    """Do something in another process to its end."""
    if ended(started(work)) != 0:
        raise RuntimeError("a command failed that nobody killed")


def digest(path: Path) -> str:
    """Of what a file says, but for times."""
    content = path.read_bytes()
    if path.suffix == ".json":
        try:
            content = json.dumps(_timeless(json.loads(content)), sort_keys=True).encode()
        except ValueError:
            return "broken"
    return hashlib.sha256(content).hexdigest()[:16]


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in TIMES}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


def files_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """All files under a folder that are not hidden ones of ours, by their paths."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(leftover(part) for part in name.parts):
            yield name.as_posix(), path


def leftover(name: str) -> bool:
    """Whether a name is a spare one."""
    return name.startswith(".") and name.endswith((".part", ".old"))


def state_of(case: Case) -> State:
    """What stands there."""
    found: State = {}
    for name, path in files_of(case.out):
        if name not in case.growing and ".bridgetrack/" not in f"/{name}":
            found.setdefault(case.unit(name), {})[name] = digest(path)
    return found


def whole_table(path: Path) -> bool:
    """Whether all rows of a table have as many cells as its head."""
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    return bool(rows) and all(len(row) == len(rows[0]) for row in rows)


def inputs_of(folder: Path) -> str:
    """One digest of everything that is read."""
    every = hashlib.sha256()
    for name, path in files_of(folder):
        every.update(f"{name}{hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return every.hexdigest()


class Killer:
    """Kills one command again and again."""

    def __init__(self, case: Case, inputs: Path, draw: random.Random) -> None:
        self.case, self.inputs, self.draw, self.count = case, inputs, draw, Count()
        shutil.rmtree(case.out, ignore_errors=True)
        case.out.mkdir()
        done(case.before)
        self.before = state_of(case)
        self.start = case.out.with_name(f"{case.out.name}.start")
        shutil.rmtree(self.start, ignore_errors=True)
        shutil.copytree(case.out, self.start)
        self.usual: list[float] = []
        last: State | None = None
        for _ in range(2):
            self._reset()
            begun = time.perf_counter()
            done(case.after)
            self.usual.append(time.perf_counter() - begun)
            self.after = state_of(case)
            if last is not None and self.after != last:
                raise RuntimeError(f"{case.name}: two runs differ: {different(self.after, last)}")
            last = self.after
        if self.before == self.after:
            raise RuntimeError(f"{case.name}: nothing changes, so nothing can be told apart")
        self.given = inputs_of(inputs)

    def _reset(self) -> None:
        shutil.rmtree(self.case.out, ignore_errors=True)
        shutil.copytree(self.start, self.case.out)

    def kill(self) -> None:
        """One kill, and what is left by it."""
        count, case = self.count, self.case
        self._reset()
        late = self.draw.random() < 0.5
        longest = max(self.usual)
        moment = self.draw.uniform(0.8 * longest if late else 0.0, 1.05 * longest)
        which = signal.SIGTERM if self.draw.random() < 0.25 else signal.SIGKILL
        child = started(case.after)
        time.sleep(moment)
        with suppress(ProcessLookupError):
            os.kill(child, which)
        count.kills += 1
        count.in_time += ended(child) != 0
        told = f"{which.name} after {moment:.3f} s"
        self._look(told, (self.before, self.after))
        if count.kills % 3 == 0:
            count.again += 1
            if ended(started(case.after)) != 0:
                count.faults.append(f"again after {told}: the command failed")
            self._look(f"again after {told}", (self.after,), hidden=True)

    def _look(self, told: str, allowed: tuple[State, ...], hidden: bool = False) -> None:
        count, case, found = self.count, self.case, state_of(self.case)
        for unit in sorted({*found, *self.before, *self.after}):
            here = found.get(unit, {})
            if here not in [state.get(unit, {}) for state in allowed]:
                wrong = [different({unit: here}, {unit: s.get(unit, {})}) for s in allowed]
                count.faults.append(f"{told}: {unit or case.name} is mixed: {wrong}")
            elif not hidden:
                count.old += here == self.before.get(unit, {})
                count.new += here != self.before.get(unit, {})
        for name in case.growing:
            path = case.out / name
            if not path.exists() or not whole_table(path):
                count.faults.append(f"{told}: {name} is broken")
        if inputs_of(self.inputs) != self.given:
            count.faults.append(f"{told}: an input changed")
        left = [p for p in case.out.rglob("*") if leftover(p.name)] if hidden else []
        if left:
            count.faults.append(f"{told}: left behind {left}")


def different(one: State, other: State) -> list[str]:
    """Files that differ."""
    flat = [
        {f"{u}:{n}": d for u, files in s.items() for n, d in files.items()} for s in (one, other)
    ]
    return sorted(n for n in {*flat[0], *flat[1]} if flat[0].get(n) != flat[1].get(n))


class Annotator:
    """Kills a process that gives answers; see the top."""

    def __init__(self, answers: Path, draw: random.Random) -> None:
        from bridgetrack.annotations.files import load_annotations

        self.count, self.draw, self.path = Count(), draw, answers.with_name("clicks.json")
        self.listed = list(load_annotations(answers))
        self.movie = load_annotations(answers).geometry

    def kill(self) -> None:
        """One kill."""
        from bridgetrack.annotations.annotation_set import AnnotationSet
        from bridgetrack.annotations.files import load_annotations, save_annotations
        from bridgetrack.annotations.history import AnswerChange
        from bridgetrack.annotations.store import AutosavingStore

        count = self.count
        self.path.unlink(missing_ok=True)
        first = self.listed[:2]
        save_annotations(AnnotationSet(self.movie, first), self.path)
        here, there = os.pipe()

        def click() -> None:
            os.close(here)
            store = AutosavingStore(self.path, self.movie)
            for k in range(100_000):
                one = replace(self.listed[k % len(self.listed)], id=f"k{k}")
                gone = (store.annotations[f"k{k - 3}"],) if k % 7 == 6 else ()
                store.edit(AnswerChange(gone, (one,)))
                os.write(there, f"{k}\n".encode())

        child = started(click)
        os.close(there)
        time.sleep(self.draw.uniform(0.01, 0.4))
        os.kill(child, signal.SIGKILL)
        count.in_time += ended(child) == -signal.SIGKILL
        with os.fdopen(here) as pipe:
            acknowledged = len(pipe.read().splitlines())
        count.kills += 1
        ids = [a.id for a in load_annotations(self.path)]
        possible = [self._after(acknowledged), self._after(acknowledged + 1)]
        if set(ids) not in [set(p) for p in possible]:
            count.faults.append(f"{acknowledged} acknowledged, {len(ids)} in the file")
        count.old += set(ids) == set(possible[0])
        count.new += set(ids) != set(possible[0])
        if count.kills % 3 == 0:
            store = AutosavingStore(self.path, self.movie)
            store.edit(AnswerChange(added=(replace(self.listed[0], id="last"),)))
            count.again += 1
            if any(leftover(p.name) for p in self.path.parent.iterdir()):
                count.faults.append("something hidden was left behind")

    def _after(self, steps: int) -> list[str]:
        ids = [a.id for a in self.listed[:2]]
        for k in range(steps):
            if k % 7 == 6:
                ids.remove(f"k{k - 3}")
            ids.append(f"k{k}")
        return ids


def prepare(root: Path) -> tuple[list[Case], Path]:
    """Movies, answers, projects and models; and the commands that are killed."""
    from bridgetrack.models.model import save_model, untrained_model
    from simulator import SimulationSettings, simulate_to_folder

    given, out = root / "given", root / "out"
    given.mkdir()
    out.mkdir()
    plain = save_model(untrained_model(), given / "untrained.json")
    movies = [given / f"m{k}" for k in (1, 2)]
    masks = [movie / "01_GT" / "TRA" for movie in movies]
    answers = [given / f"answers{k}.json" for k in (1, 2)]
    projects = [given / f"p{k}.bridgetrack" for k in (1, 2)]
    for k, movie in enumerate(movies):
        simulate_to_folder(SimulationSettings(frames=4, cells=10, size=112, seed=k + 1), movie)
        drawn = f"annotate {masks[k]} --ground-truth {movie}/01_GT --count 8 --out {answers[k]}"
        done(partial(quiet, drawn))
        done(partial(_project, masks[k], answers[k], projects[k]))
    for k in (0, 1):
        shutil.copytree(masks[k], given / f"b{k}" / "one")
        shutil.copytree(masks[1 - k], given / f"b{k}" / "two")
    commands: dict[str, Callable[[int], str]] = {
        "track": lambda k: f"track {masks[k]} --out {out}/track/r --format csv,ctc",
        "run": lambda k: f"run {projects[k]} --out {out}/run/r",
        "segment": lambda k: f"segment {movies[k]}/01 --out {out}/segment/labels.tif",
        "train": lambda k: (
            f"train {masks[k]} --annotations {answers[k]} --out {out}/train/model.json"
            + f" --prior {plain}" * k
        ),
        "batch": lambda k: f"batch {given}/b{k} --out {out}/batch",
    }
    each: dict[str, Any] = {"unit": lambda name: name.split("/")[0]}
    more = {"batch": {**each, "growing": frozenset({"batch.csv"})}}
    cases = []
    for name, line in commands.items():
        before, after = (partial(quiet, line(k)) for k in (0, 1))
        cases.append(Case(name, out / name, before, after, **more.get(name, {})))
    return cases, given


def _project(masks: Path, answers: Path, path: Path) -> None:
    from bridgetrack.annotations.files import load_annotations
    from bridgetrack.annotations.history import AnswerHistory
    from bridgetrack.movie.opening import open_labels
    from bridgetrack.pipeline.project import MovieFile, Project, save_project

    history = AnswerHistory(load_annotations(answers), settings={"formats": ["csv", "ctc"]})
    save_project(Project(MovieFile(masks), None, open_labels(masks).geometry, history), path)


def main() -> None:
    """Kill, count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=720.0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    import dask
    import geff  # noqa: F401 - so that no child has to
    import zarr  # noqa: F401

    import bridgetrack.cli.main
    import bridgetrack.pipeline.windows
    import bridgetrack.segmentation.builtin
    import bridgetrack.training.train  # noqa: F401

    dask.config.set(scheduler="synchronous")  # a fork would lose its threads
    draw = random.Random(options.seed)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        cases, given = prepare(root)
        killers: dict[str, Any] = {}
        for case in cases:
            if not options.only or case.name in options.only:
                killers[case.name] = Killer(case, given, draw)
        if not options.only or "answers" in options.only:
            (root / "out" / "answers").mkdir()
            shutil.copy(given / "answers1.json", root / "out" / "answers" / "a.json")
            killers["answers"] = Annotator(root / "out" / "answers" / "a.json", draw)
        while time.monotonic() - begun < options.seconds:
            for killer in killers.values():
                killer.kill()
    print("| what ran | kills | while it ran | unchanged | replaced | run again | faults |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, killer in killers.items():
        c = killer.count
        row = (c.kills, c.in_time, c.old, c.new, c.again, len(c.faults))
        print(f"| {name} | {' | '.join(f'{n:,}' for n in row)} |")
    print(f"\n{sum(k.count.kills for k in killers.values()):,} kills in all")
    for name, killer in killers.items():
        for fault in killer.count.faults[:10]:
            print(f"{name}: {fault}")
    sys.exit(any(killer.count.faults for killer in killers.values()))


if __name__ == "__main__":
    main()
