"""Two versions of the program against each other: seconds, memory, pauses and what comes out.

    xvfb-run -a python benchmarks/old_and_new.py OLD NEW [--repeats 5] [--movie CTC_FOLDER]

OLD and NEW are checkouts, run by the Python that runs this script, on one core. The jobs take
turns, so that both versions meet the same machine. Processor seconds and peak memory are those of
whole processes, start of Python included. Without ``--movie`` the movie is simulated by NEW:
40 frames with 300 cells, 700 x 700 pixels.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

JOBS = ("start", "track", "train", "session", "curve", "window")
CLICKS = (10, 25, 50, 100)
_MAIN = "import sys; from bridgetrack.cli.main import main; sys.exit(main())"
_BEAT = re.compile(
    r"^(?P<what>[^:]+): .*longest pauses (?P<pause>\d+) .*most CPU time in a pause (?P<own>\d+) ms"
)


@dataclass(frozen=True)
class Ran:
    """A process that ended: processor seconds, peak memory in MB, and what it printed."""

    seconds: float
    memory: float
    text: str


def ran(checkout: Path, words: Sequence[object], folder: Path) -> Ran:
    """Run a Python program of a checkout."""
    # The manifest that is installed is that of one version; napari finds the first on the path.
    manifest = folder / checkout.as_posix().replace("/", "_") / "bridgetrack_manifest"
    manifest.mkdir(parents=True, exist_ok=True)
    shutil.copy(checkout / "napari.yaml", manifest)
    path = os.pathsep.join(map(str, (checkout / "src", manifest.parent)))
    own = {"PYTHONPATH": path, "XDG_DATA_HOME": str(folder / "data")}
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with (folder / "printed").open("w+") as file, (folder / "said").open("w+") as said:
        process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            stdout=file,
            stderr=said,
            env={**os.environ, **threads, **own},
            cwd=checkout,
        )
        _, status, used = os.wait4(process.pid, 0)
        file.seek(0)
        said.seek(0)
        text, blame = file.read(), said.read()
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{checkout}: {' '.join(map(str, words))} failed\n{blame}")
    return Ran(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text)


def command(checkout: Path, words: Sequence[object], folder: Path) -> Ran:
    """Run a command of a checkout."""
    return ran(checkout, ["-c", _MAIN, *words], folder)


@dataclass(frozen=True)
class Given:
    """The checkouts, the movie with its clicks, and a folder to write to."""

    old: Path
    new: Path
    folder: Path
    movie: Path
    repeats: int

    @property
    def cells(self) -> list[object]:
        """Labels and image of the movie, as arguments."""
        image = [] if not (self.movie / "01").is_dir() else ["--image", self.movie / "01"]
        return [self.movie / "01_GT" / "TRA", *image]

    @property
    def truth(self) -> list[object]:
        """The truth of the movie, as arguments."""
        return ["--ground-truth", self.movie / "01_GT"]

    def clicks(self, count: int) -> Path:
        """A file of so many answers, the same for both."""
        path = self.folder / f"clicks{count}.json"
        if not path.exists():
            words = [*self.cells[:1], *self.truth, "--count", count, "--seed", 1, "--out", path]
            command(self.new, ["annotate", *words], self.folder)
        return path

    def out(self, checkout: Path, name: str) -> Path:
        """Where a checkout writes."""
        return self.folder / ("old" if checkout == self.old else "new") / name


def in_turn(given: Given, run: Callable[[Path], Ran]) -> list[tuple[Ran, Ran]]:
    """What old and new need, in turn; who begins alternates."""
    pairs = []
    for k in range(given.repeats):
        order = (given.old, given.new) if k % 2 else (given.new, given.old)
        found = {checkout: run(checkout) for checkout in order}
        pairs.append((found[given.old], found[given.new]))
    return pairs


def compare(name: str, pairs: list[tuple[Ran, Ran]]) -> None:
    """Print medians of old and new, and the median and range of their ratios."""
    for what, unit in (("seconds", "s"), ("memory", "MB")):
        old, new = ([getattr(ran, what) for ran in side] for side in zip(*pairs, strict=True))
        ratios = [n / o for o, n in zip(old, new, strict=True)]
        digits = 2 if unit == "s" else 0
        print(
            f"| {name}, {unit} | {statistics.median(old):.{digits}f} | "
            f"{statistics.median(new):.{digits}f} | {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}) |",
            flush=True,
        )


def figure(name: str, old: object, new: object) -> None:
    """Print something that both found."""
    print(f"| {name} | {old} | {new} | {'equal' if old == new else 'differs'} |", flush=True)


def start(given: Given) -> None:
    """Nothing but the start of the program."""
    compare("--help", in_turn(given, lambda c: command(c, ["track", "--help"], given.folder)))


def track(given: Given) -> None:
    """`bridgetrack track`."""

    def once(checkout: Path) -> Ran:
        words = ["track", *given.cells, "--out", given.out(checkout, "tracked")]
        return command(checkout, words, given.folder)

    compare("track", in_turn(given, once))
    old, new = (given.out(c, "tracked") for c in (given.old, given.new))
    tables = ("detections.csv", "edges.csv", "events.csv", "tracks.csv")
    contents = [[(p / t).read_text() for t in tables] for p in (old, new)]
    same = sum(a == b for a, b in zip(*contents, strict=True))
    print(f"| track, tables that are equal | {same} of {len(tables)} | | |", flush=True)


def train(given: Given) -> None:
    """`bridgetrack train` with 100 clicks."""
    clicks = given.clicks(CLICKS[-1])

    def once(checkout: Path) -> Ran:
        out = ["--annotations", clicks, "--out", given.out(checkout, "model.json")]
        return command(checkout, ["train", *given.cells, *out], given.folder)

    compare("train", in_turn(given, once))


def session(given: Given) -> None:
    """A session of 30 questions, answered from the truth with slips."""

    def once(checkout: Path) -> Ran:
        out = ["-n", 30, "--wrong", 0.05, "--out", given.out(checkout, "answers.json"), "--json"]
        return command(
            checkout, ["simulate-annotator", *given.cells, *given.truth, *out], given.folder
        )

    pairs = in_turn(given, once)
    compare("session", pairs)
    figure("session, right", *[_record(ran).get("right") for ran in pairs[0]])


def curve(given: Given) -> None:
    """How right tracks are after more and more clicks."""
    for count in CLICKS:
        scores = []
        for checkout in (given.old, given.new):
            model, out = (given.out(checkout, f"{n}{count}") for n in ("model.json", "curve"))
            words = [*given.cells, "--annotations", given.clicks(count), "--out", model]
            command(checkout, ["train", *words], given.folder)
            command(checkout, ["track", *given.cells, "--model", model, "--out", out], given.folder)
            words = ["evaluate", out, *given.truth, "--json"]
            found = _record(command(checkout, words, given.folder))
            scores.append(tuple(round(found[k], 5) for k in ("edge_f1", "division_f1")))
        figure(f"edge and division F1 after {count} clicks", *scores)


def window(given: Given) -> None:
    """The longest pauses of the window, by the heartbeat of each checkout."""
    found: list[dict[str, list[tuple[int, int]]]] = [{}, {}]
    for pair in in_turn(given, lambda c: ran(c, ["benchmarks/heartbeat.py"], given.folder)):
        for beats, once in zip(found, pair, strict=True):
            for hit in filter(None, map(_BEAT.match, once.text.splitlines())):
                beats.setdefault(hit["what"], []).append((int(hit["pause"]), int(hit["own"])))
    for name in found[1]:
        for k, what in enumerate(("longest pause", "most CPU time in a pause")):
            old, new = ([times[k] for times in beats[name]] for beats in found)
            shown = (f"{statistics.median(x):.0f} ({min(x)} to {max(x)})" for x in (old, new))
            print(f"| {name}, {what}, ms | {' | '.join(shown)} | |", flush=True)


def _record(found: Ran) -> dict[str, float]:
    """The JSON at the end of what a command printed."""
    record: dict[str, float] = json.loads(found.text)
    return record


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--movie", type=Path, help="a folder with 01_GT and perhaps 01")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, old, new = Path(name), words.old.resolve(), words.new.resolve()
        for side in ("old", "new"):
            (folder / side).mkdir()
        if words.movie is None:
            size = ["--frames", 40, "--cells", 300, "--size", 700]
            command(new, ["simulate", "--out", folder / "movie", *size], folder)
        movie = (words.movie or folder / "movie").resolve()
        given = Given(old, new, folder, movie, words.repeats)
        print("| job | old | new | new / old |\n| --- | ---: | ---: | ---: |", flush=True)
        for job in words.jobs:
            globals()[job](given)


if __name__ == "__main__":
    main()
