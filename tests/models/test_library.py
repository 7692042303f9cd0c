"""The folder of models: what is saved comes back, damage is told, names do not mix."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bridgetrack.errors import BridgetrackError, InputError, ModelError, OutputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.entry import CARD_FILE, ModelCard, card_to_json, new_card
from bridgetrack.models.library import (
    ENVIRONMENT,
    KEPT_REMOVED,
    Library,
    check_name,
    find_model,
    free_name,
)
from bridgetrack.models.model import Model, load_model, save_model
from bridgetrack.models.preview import preview_png
from bridgetrack.models.shipped import shipped_model, untrained_model
from bridgetrack.models.similarity import most_suitable, rank
from library_cases import cards, models, statistics_like

QUICK = settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """An empty library in a folder that is not there yet."""
    return Library(tmp_path / "models")


def _same_model(one: Model, two: Model) -> bool:
    tight = [t if t is None else t.tolist() for t in (one.tightness, two.tightness)]
    return (
        one.keys == two.keys
        and one.units == two.units
        and np.array_equal(one.weights, two.weights)
        and (one.loss, one.strength, one.provenance) == (two.loss, two.strength, two.provenance)
        and tight[0] == tight[1]
    )


def _same_card(one: ModelCard, two: ModelCard) -> bool:
    return card_to_json(one) == card_to_json(two)


@QUICK
@given(models(), cards())
def test_what_is_saved_comes_back(model: Model, card: ModelCard) -> None:
    with tempfile.TemporaryDirectory() as folder:
        library = Library(folder)
        assert library.entries() == ()
        saved = library.save("mine", model, card)
        (entry,) = Library(folder).entries()
        assert entry.name == "mine" == saved.name and not entry.damaged
        assert entry.model is not None and _same_model(entry.model, model)
        assert entry.card is not None and _same_card(entry.card, card)
        assert [p.name for p in Path(folder).iterdir()] == ["mine"]


@QUICK
@given(models(), cards())
def test_an_exported_file_brings_everything_along(model: Model, card: ModelCard) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, two = Library(Path(folder) / "a"), Library(Path(folder) / "b")
        one.save("mine", model, card)
        file = one.export_file("mine", Path(folder) / "theirs.json")
        assert np.array_equal(load_model(file).weights, model.weights)
        entry = two.import_file(file)
        assert entry.name == "theirs"
        assert entry.model is not None and _same_model(entry.model, model)
        assert entry.card is not None and _same_card(entry.card, card)


@QUICK
@given(cards())
def test_records_survive_their_file(card: ModelCard) -> None:
    assert _same_card(CARD_FILE.parse(json.dumps(card_to_json(card)), "here"), card)


DAMAGE = {
    "no model": lambda p: (p / "model.json").unlink(),
    "half a model": lambda p: (p / "model.json").write_text((p / "model.json").read_text()[:200]),
    "no entry": lambda p: (p / "entry.json").unlink(),
    "bytes": lambda p: (p / "entry.json").write_bytes(b"\xff\xfe\x00"),
    "a list": lambda p: (p / "entry.json").write_text("[]"),
    "deep": lambda p: (p / "entry.json").write_text("[" * 100_000),
    "a folder": lambda p: [(p / "entry.json").unlink(), (p / "entry.json").mkdir()],
    "later version": lambda p: _edit(p, version=99),
    "NaN": lambda p: (p / "entry.json").write_text('{"format": NaN}'),
    "negative count": lambda p: _edit(p, counts={"move": -1}),
    "unknown event": lambda p: _edit(p, counts={"jump": 1}),
    "no accuracy": lambda p: _edit(p, accuracy=[2.0, 0.0, 1.0]),
    "no date": lambda p: _edit(p, created="yesterday"),
    "statistics": lambda p: _edit(p, statistics={"features": [{"name": 3}]}),
    "huge": lambda p: _edit(
        p,
        statistics={
            "dimensions": 2,
            "cells": 1,
            "features": [
                {"name": "a", "count": 1, "mean": 10**400, "deviation": 0, "quantiles": [0, 0, 0]}
            ],
        },
    ),
}


def _edit(folder: Path, **changes: object) -> None:
    content = json.loads((folder / "entry.json").read_text())
    (folder / "entry.json").write_text(json.dumps({**content, **changes}))


@pytest.mark.parametrize("kind", list(DAMAGE))
def test_damage_is_told_and_hides_nothing(library: Library, kind: str) -> None:
    model, card = untrained_model(), new_card(untrained_model(), "x", statistics_like())
    for name in ("a", "b", "c"):
        library.save(name, model, card)
    assert not any(e.damaged for e in library.entries())
    DAMAGE[kind](library.folder / "b")
    entries = library.entries()
    assert [e.name for e in entries] == ["a", "b", "c"]
    assert [e.damaged for e in entries] == [False, True, False]
    assert str(library.folder / "b") in entries[1].problem
    with pytest.raises(ModelError, match="'b' of the library is damaged"):
        library.load("b")
    assert library.load("c").name == "c"
    assert rank(entries, statistics_like())[-1].entry.name == "b"
    gone = library.remove("b")
    assert [e.name for e in library.entries()] == ["a", "c"]
    assert library.restore(gone).damaged


def test_a_picture_that_is_none_is_not_shown(library: Library) -> None:
    card = new_card(untrained_model(), "x", statistics_like())
    library.save("a", untrained_model(), card, preview_png(card))
    assert library.entry("a").preview is not None
    (library.folder / "a" / "preview.png").write_bytes(b"<script>")
    assert library.entry("a").preview is None and not library.entry("a").damaged


def test_one_of_two_wins_a_name(library: Library) -> None:
    contents = [np.full(len(untrained_model().keys), float(k)) for k in range(8)]

    def save(k: int) -> int | None:
        model = untrained_model()
        mine = Model(model.keys, contents[k], model.units)
        try:
            library.save("same", mine, ModelCard(str(k)))
        except InputError:
            return None
        return k

    with ThreadPoolExecutor(8) as pool:
        done = [k for k in pool.map(save, range(8)) if k is not None]
    (winner,) = done
    entry = library.entry("SAME")
    assert entry.card is not None and entry.card.description == str(winner)
    assert np.array_equal(library.load("same").weights, contents[winner])
    assert [p.name for p in library.folder.iterdir()] == ["same"]


def test_names_of_different_models_can_be_saved_at_once(library: Library) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: library.save(f"m{k}", untrained_model(), ModelCard()), range(12)))
    assert len(library.entries()) == 12 and not any(e.damaged for e in library.entries())


def test_two_that_take_in_one_file_keep_both(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = save_model(untrained_model(), tmp_path / "mine.json")
    usual, stale = Library.free_name, ["mine", "mine"]
    library.import_file(file)  # after the others have looked which names are free
    monkeypatch.setattr(
        Library, "free_name", lambda self, name: stale.pop() if stale else usual(self, name)
    )
    assert library.import_file(file).name == "mine 2"
    stale.append("mine")
    assert library.restore(library.remove("mine 2")).name == "mine 2"
    assert library.names() == ("mine", "mine 2")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are asked for in another way")
def test_what_a_killed_program_left_is_swept(library: Library) -> None:
    program = "import os, sys; from pathlib import Path\n"
    program += "from bridgetrack.leftovers import spare_name\n"
    program += "spare = spare_name(Path(sys.argv[1]) / 'model'); spare.mkdir(parents=True)\n"
    program += "(spare / 'model.json').write_text('{'); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program, str(library.folder)], check=False)
    assert len(list(library.folder.iterdir())) == 1 and library.names() == ()
    library.save("a", untrained_model(), ModelCard())
    assert [path.name for path in library.folder.iterdir()] == ["a"]


def test_remove_and_restore(library: Library) -> None:
    library.save("a", untrained_model(), ModelCard("first"))
    gone = library.remove("A")
    assert library.names() == () and library.removed() == (gone,)
    library.save("a", untrained_model(), ModelCard("second"))
    back = library.restore(gone)
    assert back.name == "a 2" and back.card is not None and back.card.description == "first"
    assert library.names() == ("a", "a 2")
    with pytest.raises(ModelError, match="not there any more"):
        library.restore(gone)
    with pytest.raises(ModelError, match=r"no model 'b' in the library .it holds a, a 2"):
        library.remove("b")


def test_only_the_last_removed_are_kept(library: Library) -> None:
    for k in range(KEPT_REMOVED + 2):
        library.save("a", untrained_model(), ModelCard(str(k)))
        library.remove("a")
    kept = library.removed()
    assert len(kept) == KEPT_REMOVED
    card = library.restore(kept[0]).card
    assert card is not None and card.description == str(KEPT_REMOVED + 1)


BAD_NAMES = ["", "  ", "a/b", "..", ".x", "a\x00b", "CON", "nul.x", "x" * 41, "m.json", "Shipped"]


@pytest.mark.parametrize("name", [*BAD_NAMES, "a\nb", "\ud800", "~x", "x."])
def test_names_that_cannot_be(library: Library, name: str) -> None:
    with pytest.raises(InputError, match="choose another name"):
        library.save(name, untrained_model(), ModelCard())
    assert not library.folder.exists()


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=4))
@example("con", [])
@example("model", ["MODEL", "model 2"])
@example("a.json", [])
@example("a.json.json", [])
def test_a_free_name_can_be_used(wanted: str, taken: list[str]) -> None:
    name = free_name(wanted, taken)
    assert check_name(name) == name
    assert name.casefold() not in {t.casefold() for t in taken}


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("")
    library = Library(tmp_path / "models")
    with pytest.raises(ModelError, match="cannot be read"):
        library.entries()
    with pytest.raises(BridgetrackError):
        library.save("a", untrained_model(), ModelCard())


def test_a_full_disk_leaves_nothing(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.save("a", untrained_model(), ModelCard())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bridgetrack.models.entry._write", full)
    with pytest.raises(OutputError, match="No space left"):
        library.save("b", untrained_model(), ModelCard())
    assert [p.name for p in library.folder.iterdir()] == ["a"]


def test_a_damaged_description_in_a_model_file(library: Library, tmp_path: Path) -> None:
    model = untrained_model()
    file = save_model(
        Model(model.keys, model.weights, model.units, provenance={"library": {"format": "x"}}),
        tmp_path / "m.json",
    )
    with pytest.raises(
        ModelError, match=r"m\.json: the card: this is not an entry of a model library"
    ):
        library.import_file(file)
    assert library.names() == ()


def test_the_folder_can_be_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "here"))
    assert Library().folder == tmp_path / "here"
    monkeypatch.delenv(ENVIRONMENT)
    assert Library().folder.name == "models"


def test_find_a_model(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library.save("good one", untrained_model(), ModelCard())
    file = save_model(untrained_model(), tmp_path / "file.json")
    monkeypatch.chdir(tmp_path)
    assert find_model("Good one", library).name == "good one"
    assert find_model(file, library).name == load_model(file).name
    assert find_model("shipped", library).tightness is not None
    save_model(shipped_model(), tmp_path / "good one")
    assert find_model("good one", library).name == "shipped"
    with pytest.raises(ModelError, match=r"no such file, and no model of that name.*good one"):
        find_model("other", library)
    with pytest.raises(ModelError, match=r"gone\.json"):
        find_model("gone.json", library)
    shutil.rmtree(library.folder / "good one")
    with pytest.raises(ModelError, match="it is empty"):
        find_model("other", library)


def test_what_is_no_file_is_called_what_it_is(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    entry = library.save("mine", untrained_model(), ModelCard())
    (tmp_path / "folder").mkdir()
    for path in ("folder", tmp_path / "folder"):
        with pytest.raises(ModelError, match="folder: a folder, not a model; give the file"):
            find_model(path, library)
    with pytest.raises(ModelError, match=r"such as .*model\.json"):
        find_model(entry.folder, library)
    assert find_model("mine", library).name == "mine"
    (tmp_path / "mine").mkdir()
    assert find_model("mine", library).name == "mine", "the library comes before a folder"
    (tmp_path / "lost").symlink_to("nowhere")
    with pytest.raises(InputError, match="a link to nowhere"):
        find_model("lost", library)
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        with pytest.raises(InputError, match="a pipe or a device"):
            find_model("pipe", library)


def test_only_a_very_similar_model_is_preferred(library: Library) -> None:
    yours = statistics_like()
    far = statistics_like(move__raw_distance=3.0, move__covered=2.0, divide__separation=4.0)
    library.save("far", untrained_model(), ModelCard(statistics=far))
    library.save("nobody knows", untrained_model(), ModelCard())
    ranked = rank(library.entries(), yours)
    assert [r.entry.name for r in ranked] == ["far", "nobody knows"]
    assert ranked[1].similarity.level == "unknown"
    assert most_suitable([r for r in ranked if r.similarity.level != "very similar"]) is None
    library.save("near", untrained_model(), ModelCard(statistics=statistics_like(seed=1)))
    ranked = rank(library.entries(), yours)
    best = most_suitable(ranked)
    assert best is not None and best.entry.name == "near" == ranked[0].entry.name
    assert most_suitable(rank(library.entries(), None)) is None


def test_models_that_are_as_near_but_for_rounding_are_ordered_by_name(library: Library) -> None:
    yours = statistics_like()
    single = yours.deviation.astype(np.float32).astype(np.float64)
    library.save("b", untrained_model(), ModelCard(statistics=yours))
    library.save("a", untrained_model(), ModelCard(statistics=replace(yours, deviation=single)))
    assert [r.entry.name for r in rank(library.entries(), yours)] == ["a", "b"]


def test_a_new_card_takes_over_the_estimate() -> None:
    plain = untrained_model()
    estimate = {
        "accuracy": 0.9,
        "low": 0.8,
        "high": 0.95,
        "per_event": [{"event": "move", "annotations": 7, "right": 1.0}],
    }
    model = Model(plain.keys, plain.weights, plain.units, estimate=estimate)
    card = new_card(model, "  words ")
    assert card.description == "words" and card.accuracy == (0.9, 0.8, 0.95)
    assert card.counts == {"move": 7}
    assert new_card(model, counts={Event.MOVE: 3, Event.DIVIDE: 0}).counts == {"move": 3}
    assert new_card(plain).accuracy is None
