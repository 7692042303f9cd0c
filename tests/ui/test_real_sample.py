"""The real sample: downloaded, checked, unpacked; and what is said where that fails."""

from __future__ import annotations

import hashlib
import http.server
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile

from bridgetrack.errors import InputError
from bridgetrack.progress import run
from bridgetrack.ui.file_menu import HELA, fetch, movie_folder
from bridgetrack.ui.layers import KEY


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def archive(tmp_path) -> bytes:
    """A small archive in the layout of the real one, with parts that are not wanted."""
    path = tmp_path / "made.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for t in range(3):
            for part, stem in (("01", "t"), ("01_ST/SEG", "man_seg"), ("02", "t")):
                pixels = np.zeros((40, 50), dtype=np.uint16)
                pixels[5 + t : 15 + t, 10:20] = 300 if stem == "t" else 1
                one = tmp_path / "one.tif"
                tifffile.imwrite(one, pixels)
                packed.write(one, f"Fluo-N2DL-HeLa/{part}/{stem}{t:03d}.tif")
    return path.read_bytes()


@pytest.fixture
def server(archive):
    """Serves the archive at /movie.zip; `gate` holds back its second half while it is cleared."""
    gate = threading.Event()
    gate.set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path != "/movie.zip":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(archive)))
            self.end_headers()
            half = len(archive) // 2
            self.wfile.write(archive[:half])
            gate.wait(30)
            self.wfile.write(archive[half:])

        def log_message(self, *_):
            pass

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    made.gate = gate
    yield made
    gate.set()
    made.shutdown()
    made.server_close()


@pytest.fixture
def movie(server, archive):
    """The movie at the local server."""
    url = f"http://127.0.0.1:{server.server_address[1]}/movie.zip"
    return replace(HELA, url=url, sha256=hashlib.sha256(archive).hexdigest())


def left_over(movie) -> list[Path]:
    folder = movie_folder(movie).parent
    return list(folder.iterdir()) if folder.is_dir() else []


def test_a_movie_is_fetched_once_and_holds_only_what_is_needed(movie, server):
    folder = run(fetch(movie))
    assert sorted(p.name for p in folder.iterdir()) == ["01", "01_ST"]
    assert len(list((folder / "01").iterdir())) == 3
    assert left_over(movie) == [folder]
    server.shutdown()
    assert run(fetch(movie)) == folder


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(movie):
    with pytest.raises(InputError, match="hash"):
        run(fetch(replace(movie, sha256="0" * 64)))
    assert left_over(movie) == []


def test_without_a_connection_it_says_what_to_do(movie):
    with pytest.raises(InputError, match=r"by other means"):
        run(fetch(replace(movie, url="http://127.0.0.1:9/movie.zip")))
    assert left_over(movie) == []


def test_a_download_can_be_cancelled(movie, server):
    server.gate.clear()
    steps = fetch(movie)
    next(steps)
    steps.close()
    server.gate.set()
    assert left_over(movie) == []


def test_an_archive_of_something_else_is_refused(movie):
    with pytest.raises(InputError, match="lacks"):
        run(fetch(replace(movie, cells="01_GT/NONE")))
    assert left_over(movie) == []


def test_the_layers_know_their_scale_and_keep_answers_elsewhere(movie):
    pytest.importorskip("napari")
    from bridgetrack.ui.file_menu import opening

    image, cells = run(opening(movie))
    assert (image[2], cells[2]) == ("image", "labels")
    assert image[1]["scale"] == cells[1]["scale"] == (1.0, 0.645, 0.645)
    assert cells[0].shape == (3, 40, 50)
    assert image[1]["metadata"][KEY]["frame_interval"] == 30
    assert "path" not in image[1]["metadata"][KEY], "nothing is written beside the download"


@pytest.mark.filterwarnings("ignore")
def test_a_download_is_shown_stopped_explained_and_opened(
    viewer, qtbot, movie, server, monkeypatch
):
    from bridgetrack.ui import file_menu
    from bridgetrack.ui.state import state_of

    monkeypatch.setattr(file_menu.open_real_movie, "__defaults__", (movie,))
    server.gate.clear()
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    widget.segment.real.click()
    bar = widget.project.reading
    qtbot.waitUntil(lambda: "Downloading" in bar.bar.format(), timeout=20_000)
    bar.stop.click()
    assert not state.files.busy("open")
    qtbot.wait(300)
    server.gate.set()
    assert len(viewer.layers) == 0 and not movie_folder(movie).exists()
    file_menu.open_real_movie(state, replace(movie, url="http://127.0.0.1:9/movie.zip"))
    qtbot.waitUntil(lambda: "by other means" in widget.notice.text(), timeout=20_000)
    widget.segment.real.click()
    qtbot.waitUntil(lambda: len(viewer.layers) == 2, timeout=20_000)
    assert [layer.name for layer in viewer.layers][:2] == ["Fluo-N2DL-HeLa", "Cells"]
