"""Work that is spread over a cluster of real processes gives what one process gives."""

import multiprocessing
import os
import signal
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from operator import mul

import numpy as np
import pytest
import tifffile
from distributed import Client, LocalCluster

import bridgetrack as bt
from bridgetrack.cli.main import main
from bridgetrack.errors import BridgetrackWarning
from bridgetrack.files import program_version
from bridgetrack.spread import ClusterError, Workers, spread, worth_it
from simulator import SimulationSettings, simulate


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def content(folder):
    """Every table of a result."""
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


def test_frames_are_segmented_on_a_cluster(client, tmp_path):
    movie = simulate(SimulationSettings(frames=3, cells=5, size=64))
    tifffile.imwrite(tmp_path / "movie.tif", movie.image, photometric="minisblack")
    scheduler = client.scheduler.address
    for name, more in (("one", []), ("many", ["--scheduler", scheduler])):
        words = ["segment", str(tmp_path / "movie.tif"), "--out", str(tmp_path / f"{name}.tif")]
        assert main([*words, *more]) == 0
    assert tifffile.imread(tmp_path / "one.tif").max() > 3
    assert np.array_equal(*(tifffile.imread(tmp_path / f"{name}.tif") for name in ("one", "many")))


def test_clusters_that_cannot_be_used_are_told(client, tmp_path, capsys, monkeypatch):
    table = tmp_path / "cells.csv"
    table.write_text("t,y,x\n0,1,1\n1,1,2\n", encoding="utf-8")
    words = ["track", str(table), "--out", str(tmp_path / "out"), "--scheduler"]
    monkeypatch.setattr("bridgetrack.spread._PATIENCE", 0.2)
    for wrong in ("tcp://127.0.0.1:1", "nonsense://x", str(tmp_path / "none.json")):
        assert main([*words, wrong]) == 1
        assert f"{wrong}: no dask scheduler was found" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr("bridgetrack.spread.program_version", lambda: "0.0.1")
    with pytest.raises(ClusterError, match=f"has bridgetrack {program_version()}, but 0.0"):
        list(spread(max, 1, [2], client))


def test_work_goes_on_here_where_no_worker_is_left(monkeypatch):
    monkeypatch.setattr("bridgetrack.spread._PATIENCE", 0.3)
    with (
        LocalCluster(n_workers=0, dashboard_address=None, processes=False) as cluster,
        Client(cluster, set_as_default=False) as alone,
    ):
        workers = Workers(alone)
        with pytest.warns(BridgetrackWarning, match="no worker for"):
            assert list(spread(mul, 6, range(9), workers)) == [6 * k for k in range(9)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing is waited for again
            assert list(spread(mul, 6, range(9), workers)) == [6 * k for k in range(9)]


def test_work_goes_on_here_where_the_scheduler_ends(monkeypatch):
    monkeypatch.setattr("bridgetrack.spread._PATIENCE", 5)
    cluster = LocalCluster(n_workers=1, dashboard_address=None, processes=False)
    with (
        Client(cluster, set_as_default=False) as client,
        Client(cluster, set_as_default=False) as later,
    ):
        results = spread(mul, 2, range(40), client)
        assert [next(results), next(results)] == [0, 2]
        cluster.close()
        with pytest.warns(BridgetrackWarning, match="failed"):
            assert list(results) == [2 * k for k in range(2, 40)]
        with pytest.warns(BridgetrackWarning, match="the remaining work was done in this process"):
            assert list(spread(mul, 2, range(3), later)) == [0, 2, 4]


def test_work_goes_on_here_where_processes_of_this_machine_are_killed():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        results = spread(mul, 2, range(40), pool)
        assert next(results) == 0
        os.kill(next(iter(pool._processes)), signal.SIGKILL)
        with pytest.warns(BridgetrackWarning, match="at this machine"):
            assert list(results) == [2 * k for k in range(1, 40)]


@pytest.mark.parametrize("error", [OSError("full"), TimeoutError("late"), ValueError("wrong")])
def test_errors_of_the_work_are_raised_as_they_are(client, error):
    def work(_, part):
        if part == 2:
            raise error
        return part

    results = spread(work, 0, range(4), client)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(type(error), match=str(error)):
        next(results)


def test_results_are_those_of_one_process_although_a_worker_dies(client, tmp_path):
    settings = SimulationSettings(frames=18, cells=12, size=128, division_rate=0.02)
    movie = simulate(settings)
    bt.track(movie.labels, movie.image, window=6).save(tmp_path / "one")
    whole = content(tmp_path / "one")
    assert len(whole) == 4
    stages, killed = set(), {}

    def kill(step):
        stages.add(step.stage)
        if step.stage == "Choosing events" and not killed:
            killed.update(client.run(os.getpid))
            os.kill(next(iter(killed.values())), signal.SIGKILL)

    tracked = bt.track(movie.labels, movie.image, window=6, client=client, progress=kill)
    assert tracked.windows is not None and tracked.windows.count > 1
    assert {"Measuring cells", "Comparing frames", "Joining windows"} < stages
    tracked.save(tmp_path / "many")
    assert content(tmp_path / "many") == whole
    client.wait_for_workers(2, timeout=60)
    assert len(set(client.run(os.getpid).values()) - set(killed.values())) == 1


def test_a_large_movie_is_segmented_on_all_cores_by_itself(tmp_path, monkeypatch):
    movie = simulate(SimulationSettings(frames=3, cells=5, size=64))
    tifffile.imwrite(tmp_path / "movie.tif", movie.image, photometric="minisblack")
    monkeypatch.setattr("bridgetrack.spread._WORTH", movie.image.size)
    monkeypatch.setattr("bridgetrack.spread.os.cpu_count", lambda: 2)
    asked: list[str] = []

    def connected(scheduler):
        asked.append(scheduler)
        return ThreadPoolExecutor(2)

    monkeypatch.setattr("bridgetrack.cli.options.connect", connected)
    words = ["segment", str(tmp_path / "movie.tif"), "--out", str(tmp_path / "labels.tif")]
    assert main(words) == 0
    assert asked == ["local"]
    found = tifffile.imread(tmp_path / "labels.tif")
    assert main([*words, "--scheduler", "here"]) == 0
    assert np.array_equal(tifffile.imread(tmp_path / "labels.tif"), found)
    assert asked == ["local"] and not worth_it(movie.image.size - 1)
