"""A folder of results holds one run, whatever kills the program, and nothing else is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run, draw_answers, project_of
from cli.killed import Case
from simulator import SimulationSettings, simulate_to_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
SOME = "csv,geff"
"""The others are killed step by step, and writing zarr takes most of the time."""
THEIRS = {"notes.txt": "mine", "data/labels.txt": "mine, too"}


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Masks of two movies that differ in every frame."""
    made = []
    for seed in (1, 2):
        folder = tmp_path_factory.mktemp("movie")
        settings = SimulationSettings(frames=3, cells=8, size=96, seed=seed)
        made.append(simulate_to_folder(settings, folder).with_name("01_GT") / "TRA")
    return made


def killed(case: Case) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What stood in the folder before and after, and what was left by each kill."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed.py"))],
        input=json.dumps(asdict(case)), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["ends"], found["left"]


def check(case: Case) -> list[dict[str, Any]]:
    """Kill, and look at what is left."""
    ends, left = killed(case)
    assert sum(state["killed"] for state in left) >= (len(case.steps) or 1)
    runs = [without(ends[name], "run.json") for name in ("before", "after")]
    assert runs[0].get("detections.csv") != runs[1]["detections.csv"]
    for state in left:
        for files, run in (("files", "run"), ("later", "later_run")):
            ours = without(state[files], "run.json", *case.others)
            assert any(ours.items() <= known.items() for known in runs)
            if state[run] is not None:
                assert ours == without(state[run], "run.json")
            assert set(case.others) <= set(state[files])
        assert not state["hidden"]
        ours = without(state["later"], "run.json", *case.others)
        assert ours in (runs if case.read else runs[1:])
    if not case.moments:
        assert not left[-1]["killed"]
        assert without(left[-1]["files"], "run.json", *case.others) == runs[1]
    return left


def without(files: dict[str, str], *names: str) -> dict[str, str]:
    """Files with other names."""
    return {name: digest for name, digest in files.items() if name not in names}


KINDS = {"new": [1], "own": [1, 3], "own, no exchange": [2, 14], "shared": range(1, 22, 3)}
"""Steps at which the files are put in place, or some of them."""


@pytest.mark.parametrize(
    "kind",
    ["new", "own", *(pytest.param(k, marks=pytest.mark.thorough) for k in list(KINDS)[2:])],
)
def test_track_killed_while_files_are_put_in_place(
    movies: list[Path], tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    first, second = (
        ["track", str(m), "--out", str(out), "--format", "csv,ctc,zarr"] for m in movies
    )
    case = Case(
        [] if kind == "new" else first,
        second,
        str(out),
        THEIRS if kind == "shared" else {},
        exchange="no exchange" not in kind,
        steps=list(KINDS[kind]),
        read=str(out / "detections.csv") if kind == "shared" else None,
    )
    left = check(case)
    if kind in ("new", "own"):  # one step: at every moment a whole result, or none
        assert all((state["run"] is None) == (not state["files"]) for state in left)
    else:
        assert {None} < {state["run"] and 1 for state in left}


def test_run_killed_while_files_are_put_in_place(
    run: Run, movies: list[Path], tmp_path: Path
) -> None:
    out, words = tmp_path / "out", []
    for k, masks in enumerate(movies):
        answers = draw_answers(run, masks, tmp_path / f"a{k}.json", 5)
        project = project_of(masks, answers, tmp_path / f"p{k}.json", formats=("csv", "ctc"))
        words.append(["run", str(project), "--out", str(out)])
    check(Case(words[0], words[1], str(out), THEIRS, steps=[4, 14]))


def test_track_killed_at_random_moments(movies: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    first, second = (["track", str(m), "--out", str(out), "--format", SOME] for m in movies)
    check(Case(first, second, str(out), THEIRS, moments=4, read=str(out / "tracks.geff")))
