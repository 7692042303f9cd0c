"""Damaged files of every format that is read: one sentence, soon, and without much memory.

    BRIDGETRACK_FUZZ=2000 python -m pytest tests/fuzz

tries 2,000 mutations, other ones at each run; without it 200 are tried, always the same.
"""

import json
import os
import re
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import bridgetrack as bt
from bridgetrack.annotations.from_tracks import draw_annotations
from bridgetrack.cli.main import main
from bridgetrack.io.geff import read_trackmate
from bridgetrack.pipeline.project import load_project
from project_files import write_project
from simulator import SimulationSettings, simulate

TRIES = os.environ.get("BRIDGETRACK_FUZZ")
SECONDS = 30
MOST = 400e6
"""Bytes that reading one damaged file of a few kB may take."""

TRACKMATE = Path(__file__).parents[1] / "io" / "files" / "trackmate7.xml"


def all_frames(path, opened):
    """Open a movie and look at its pixels."""
    movie = opened(path)
    assert np.prod(movie.array.shape, dtype=float) < 1e9, "a few kB are no such movie"
    for t in range(min(movie.n_frames, 4)):
        movie.frame(t)


def command(*words):
    """Run a command; its own errors are those of the library."""
    assert main([str(word) for word in words]) in (0, 1, 2)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Good files of all formats, and how each is read."""
    root = tmp_path_factory.mktemp("corpus")
    few = SimulationSettings(frames=5, cells=4, size=40, division_rate=0.05)
    movie = simulate(few)
    tifffile.imwrite(root / "labels.tif", movie.labels.astype(np.uint16), metadata={"axes": "TYX"})
    tifffile.imwrite(root / "movie.ome.tif", movie.image, metadata={"axes": "TYX"})
    np.save(root / "labels.npy", movie.labels)
    labels = bt.open_labels(root / "labels.tif", axes="TYX")
    tracking = bt.track(labels)
    bt.save_labels(labels, root / "labels.ome.zarr")
    tracking.save(root / "result", ["csv", "ctc", "geff"])
    answers = draw_annotations(
        tracking.scene.hypotheses.take(tracking.solution.chosen), tracking.scene.detections, count=5
    )
    bt.save_annotations(answers, root / "answers.json")
    bt.save_model(bt.shipped_model(), root / "model.json")
    shutil.copy(TRACKMATE, root / "trackmate.xml")
    write_project(root / "p.bridgetrack", root / "labels.tif", answers, bt.shipped_model())
    words = ["track", root / "labels.tif", "--axes", "TYX", "--out", root / "run"]
    command(*words)
    readers: dict[Path, Callable[[Path], Any]] = {
        root / "labels.tif": lambda p: all_frames(p, bt.open_labels),
        root / "movie.ome.tif": lambda p: all_frames(p, bt.open_movie),
        root / "labels.npy": lambda p: all_frames(p, bt.open_labels),
        root / "labels.ome.zarr": lambda p: all_frames(p, bt.open_labels),
        root / "result" / "detections.csv": bt.read_detections_csv,
        root / "result" / "tracks.geff": bt.read_tracks,
        root / "result" / "ctc": bt.read_tracks,
        root / "trackmate.xml": read_trackmate,
        root / "answers.json": bt.load_annotations,
        root / "model.json": bt.load_model,
        root / "p.bridgetrack": load_project,
        root / "run": lambda p: command("explain", p, "--frame", "1", "--cell", "1"),
    }
    beside = root / "result" / "units.json"
    readers[beside] = lambda p: bt.read_detections_csv(p.parent / "detections.csv")
    readers = {path: read for path, read in readers.items() if path.exists()}
    for path, read in readers.items():
        read(path)  # what is whole is read
    assert len(readers) >= 11
    return readers


def files_of(path):
    """A file, or the files that make a folder what it is."""
    if path.is_file():
        return [path]
    if path.name == "run":
        return [path / "run.json"]
    return sorted(p for p in path.rglob("*") if p.is_file() and p.stat().st_size)


WILD = [
    b"-1", b"1e300", b"1e999", b"Infinity", b"NaN", b"99999999999999999999", b"100000000", b"null",
    b'"x"', b"[]", b"{}", b"0", b"-0.5", b"true", b"[" * 300, b'{"a":' * 300, b"\xff\xfe", b"\x00",
    b"'", b",", b"=cmd()", b"<!ENTITY a 'b'>",
]  # fmt: skip
NUMBER = re.compile(rb"-?\d+\.?\d*(?:[eE][+-]?\d+)?|null|true|false|\"[^\"]*\"")


@st.composite
def mutations(draw):
    """What is done to a file."""
    kind = draw(st.sampled_from(["cut", "flip", "value", "value", "value", "twice", "insert"]))
    where, more = draw(st.floats(0, 1)), draw(st.integers(1, 8))
    wild, byte = draw(st.sampled_from(WILD)), draw(st.integers(0, 255))

    def change(content):
        place = int(where * max(len(content) - 1, 0))
        if kind == "cut":
            return content[:place]
        if kind == "flip":
            return content[:place] + bytes([byte] * more) + content[place + more :]
        if kind == "twice":
            return content[:place] + content[place // 2 :]
        if kind == "value":
            found = list(NUMBER.finditer(content[:200_000]))
            if found:
                one = found[int(where * (len(found) - 1))]
                return content[: one.start()] + wild + content[one.end() :]
        return content[:place] + wild + content[place:]

    return change


@contextmanager
def within(seconds):
    """Fail what hangs, rather than wait for ever."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(*_):
        raise AssertionError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def highest():
    """Bytes that this process has held at most."""
    if not sys.platform.startswith("linux"):
        return 0.0
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * float(status.split("VmHWM:")[1].split()[0])


def test_damaged_files_are_refused_in_a_sentence(corpus, capsys):
    formats = [(path, files_of(path)) for path in corpus]
    refused = []

    @settings(
        max_examples=int(TRIES or 200),
        derandomize=TRIES is None,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(formats), st.floats(0, 1), mutations())
    def damaged(chosen, which, change):
        path, files = chosen
        file = files[int(which * (len(files) - 1))]
        content, before = file.read_bytes(), highest()
        broken = change(content)
        file.write_bytes(broken)
        told = f"{file.name}: {broken[:300]!r}"
        try:
            with within(SECONDS), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                corpus[path](path)
            said = capsys.readouterr().err
            assert "unexpected error" not in said, f"{told}\n{said}"
            own = [w for w in caught if not issubclass(w.category, (UserWarning,))]
            assert not own, f"{told}\n{own[0].message}"
        except bt.BridgetrackError as error:
            refused.append(str(error))
            assert str(error).strip(), told
        except Exception as error:
            raise AssertionError(f"{told}\n{type(error).__name__}: {error}") from error
        finally:
            file.write_bytes(content)
        assert highest() - before < MOST + 100 * len(broken), told

    damaged()
    assert len(refused) > int(TRIES or 200) // 5
    assert json.dumps(refused)
