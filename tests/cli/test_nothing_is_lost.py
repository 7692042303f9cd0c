"""No command deletes or writes over what it reads, or what it did not write itself."""

import os
import shutil

import numpy as np
import pytest
import tifffile

import bridgetrack as bt
from bridgetrack import files as bt_files
from bridgetrack.errors import OutputError
from bridgetrack.files import refuse_other, sign, signed
from bridgetrack.io.results import FORMATS
from bridgetrack.models.model import save_model, untrained_model
from bridgetrack.movie import open_labels, save_labels
from cli.conftest import content, folder, project_of, squares, write_tiff

TABLE = "t,y,x,label,mine\n0,5,5,1,a\n0,30,30,2,b\n1,5,6,1,c\n1,30,31,2,d\n"


@pytest.fixture
def masks(tmp_path):
    """Three frames with two cells."""
    return save_labels(open_labels(squares()), tmp_path / "masks")


@pytest.fixture
def files(movie, truth, clicks, tmp_path):
    """An input of every kind; nothing about them is known to be ours."""
    made = folder(tmp_path / "made")
    answers = clicks.rename(made / "answers.json")
    project_of(truth, answers, made / "project.bridgetrack")
    save_model(untrained_model(), made / "model.json")
    labels = np.stack([tifffile.imread(p) for p in sorted(truth.glob("*.tif"))])
    for name in ("labels.tif", "image.tif"):
        write_tiff(made / name, labels)
    shutil.copytree(movie / "01_GT", made / "01_GT")
    for name in ("other.tif", "outlines.json"):
        (made / name).write_text("refused before it is opened")
    return {p.name.partition(".")[0]: p for p in made.iterdir()}


@pytest.fixture(autouse=True)
def library(monkeypatch, tmp_path_factory):
    """An empty library."""
    place = tmp_path_factory.mktemp("library")
    monkeypatch.setenv("BRIDGETRACK_MODELS", str(place))
    return place


def ways(files):
    """Commands that write one file: words, the option that says where, and what they read."""
    f = files
    truth, answers = ("--ground-truth", f["01_GT"]), ("--annotations", f["answers"])
    image = ("--image", f["image"])
    said = ("--network", f["model"], "--annotations", f["outlines"])
    yield "segment", (f["image"], *said), "--out", ("image", "model", "outlines")
    others = ("--candidates", f["labels"], f["other"])
    yield "segment", (f["image"], *others), "--out", ("labels", "other")
    drawn = ("labels", "image", "01_GT/TRA/man_track.txt")
    yield "annotate", (f["labels"], *truth, *image, "--count", 5), "--out", drawn
    learned = (f["labels"], *answers, *image, "--prior", f["model"], "--lambda", 1)
    yield "train", learned, "--out", ("labels", "answers", "image", "model")
    scored = (f["labels"], *answers, "--link-scores", f["other"])
    yield "train", scored, "--out", ("other",)
    helped = (f["labels"], *answers, "--source", f["project"])
    yield "train", helped, "--out", ("project/answers.json",)


def test_no_input_is_written_over(refused, files, tmp_path):
    linked = folder(tmp_path / "linked")
    for command, words, option, inputs in ways(files):
        for name in inputs:
            first, _, rest = name.partition("/")
            own = files[first] / rest if rest else files[first]
            symlink = linked / own.name
            symlink.symlink_to(own)
            sign(own)  # that we wrote it ourselves is no excuse
            around = own.parent / ".." / own.parent.name / own.name
            for target in (own, around, symlink):
                refused((command, *words, option, target), own.name)
            symlink.unlink()


def test_no_file_of_others_is_written_over(refused, files, masks, tmp_path):
    theirs, pipe = tmp_path / "theirs.tif", tmp_path / "pipe"
    theirs.write_text("not ours")
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe)
    places = [place for place in (theirs, pipe) if place.exists()]
    for place in places:
        for command, words, option, _ in ways(files):
            refused((command, *words, option, place), place.name, "not written by Bridgetrack")
        refused(("track", masks, "--out", place), place.name)


def test_the_library_is_no_place_to_write(refused, files, library):
    kept = shutil.copy(files["model"], library / "lab.json")
    before = content(library)
    words = (files["labels"], "--annotations", files["answers"], "--lambda", 1, "--prior", "lab")
    refused(("train", *words, "--out", kept), "being read")
    assert content(library) == before


def test_own_files_are_replaced_until_someone_changes_them(run, refused, files, tmp_path):
    labels, out = files["labels"], tmp_path / "own.json"
    words = ("annotate", labels, "--ground-truth", files["01_GT"], "--count", 5, "--out", out)
    run(*words, "--seed", 1)
    first = out.read_bytes()
    run(*words, "--seed", 2)
    assert out.read_bytes() != first
    out.write_text(out.read_text() + " ")
    refused(words, "own.json", "changed")
    refused((*words[:-1], out / "x"), "is a file")


def test_masks_that_someone_corrected_are_kept(run, refused, files, tmp_path):
    out, few = tmp_path / "found", tmp_path / "few.tif"
    tifffile.imwrite(few, tifffile.imread(files["image"])[:3], photometric="minisblack")
    words = ("segment", few, "--out", out, "--choose", "plain", "--diameter", 20)
    run(*words)
    run(*words)
    mask = out / "mask001.tif"
    tifffile.imwrite(mask, np.zeros((160, 160), dtype=np.uint16))
    refused(words, "mask001.tif", "changed")
    shutil.rmtree(tmp_path / ".bridgetrack")
    refused(words, "found", "not written by Bridgetrack")


def test_results_do_not_take_the_place_of_their_masks(run, refused, masks, tmp_path):
    out = tmp_path / "out"
    run("track", masks, "--out", out, "--format", "ctc")
    links = folder(tmp_path / "links")
    for mask in (out / "ctc").glob("*.tif"):
        (links / mask.name).symlink_to(mask)
    for labels in (links, out / "ctc", out / ".." / "out" / "ctc", out / "ctc" / "mask*.tif"):
        refused(("track", labels, "--out", out, "--format", "csv"), "overwrite", "being read")


def test_what_a_person_put_into_results_is_kept(run, refused, masks, tmp_path):
    out = tmp_path / "out"
    both = ("track", masks, "--out", out, "--format", "csv,ctc")
    run(*both)
    run(*both)
    (out / "ctc" / ".DS_Store").write_text("left by a file manager")
    run(*both)
    for name, text in (("notes.txt", "mine"), ("ctc/README.txt", "mine"), ("tracks.csv", "x")):
        kept = (out / name).read_bytes() if (out / name).exists() else None
        (out / name).write_text(text)
        refused((*both[:-1], "geff"), out / name)
        (out / name).unlink() if kept is None else (out / name).write_bytes(kept)
    run(*both[:-1], "geff")
    assert sorted(p.name for p in out.iterdir()) == ["methods.txt", "run.json", "tracks.geff"]


def test_the_folder_in_which_one_stands_is_kept(refused, masks, tmp_path, monkeypatch):
    here = folder(tmp_path / "here")
    monkeypatch.chdir(here)
    for out in (".", "..", here):
        refused(("track", masks, "--out", out), "in use", "the name of a new one")


def test_folders_and_links_that_others_made(refused, masks, tmp_path):
    theirs, out = folder(tmp_path / "theirs"), tmp_path / "out"
    (theirs / "mask000.tif").write_text("mine")
    out.symlink_to(theirs)
    for target in (theirs, out):
        refused(("track", masks, "--out", target), target.name, "not written by Bridgetrack")


def test_the_result_that_is_checked(run, refused, masks, tmp_path):
    out, sample = tmp_path / "out", tmp_path / "sample.csv"
    run("track", masks, "--out", out)
    run("check", out, "--out", sample)
    sample.write_text(sample.read_text().replace(",\n", ",yes\n"))
    for name in ("detections.csv", "run.json", "methods.txt"):
        refused(("check", out, "--out", out / name), name)
    refused(("check", out, "--out", sample), "sample.csv", "changed")
    refused(("check", out / "events.csv", "--out", out / "events.csv"), "events.csv")
    run("check", out, "--judged", sample)
    run("track", masks, "--out", out)  # what was added is ours, too
    (out / "methods.txt").write_text("mine\n")
    run("check", out, "--judged", sample)
    assert (out / "methods.txt").read_text().startswith("mine\n")
    refused(("track", masks, "--out", out), "changed")


def test_a_table_that_is_read(refused, masks, tmp_path):
    out = folder(tmp_path / "D")
    table = out / "detections.csv"
    table.write_text(TABLE)
    refused(("track", table, "--out", out), "detections.csv")
    for option in ("--annotations", "--image", "--link-scores"):
        refused(("track", masks, option, table, "--out", out), "D")


def test_a_project_and_its_movies(refused, files, tmp_path):
    out = folder(tmp_path / "out")
    shutil.copytree(files["01_GT"] / "TRA", out / "ctc")
    (out / "ctc" / "man_track.txt").unlink()
    answers = files["answers"]
    project = project_of(out / "ctc", answers, tmp_path / "p.bridgetrack", formats=("ctc",))
    within = project_of(out / "ctc", answers, out / "q.bridgetrack", formats=("ctc",))
    refused(("run", project, "--out", out), "ctc")
    refused(("run", project, "--out", project), "p.bridgetrack", "being read")
    refused(("run", within, "--out", out), "out")
    source = ("--annotations", answers, "--source", project)
    refused(("train", files["labels"], *source, "--out", out / "ctc" / "mask000.tif"), "mask000")


def test_exports_and_runs_in_one_folder(run, masks, tmp_path):
    out = tmp_path / "out"
    result = bt.track(masks)
    result.save(out, ["csv", "geff"])
    assert not (out / "run.json").exists()
    run("track", masks, "--out", out, "--format", "csv")
    others = {p.name for p in out.iterdir()} - set(FORMATS["csv"].files)
    assert others == {"methods.txt", "run.json"}
    assert any("was replaced" in note for note in result.save(out, ["csv"]))
    assert not (out / "run.json").exists()


@pytest.mark.parametrize("as_folder", [False, True])
def test_what_was_ended_while_it_took_its_place_is_still_ours(tmp_path, monkeypatch, as_folder):
    path = tmp_path / "ours"

    def write(text):
        with signed(path) as spare:
            if as_folder:
                spare.mkdir()
            (spare / "part" if as_folder else spare).write_text(text)

    write("first")
    file = path / "part" if as_folder else path
    for step in ("_keep", "_replace"):
        with monkeypatch.context() as ended:
            ended.setattr(bt_files, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                write("second")
        refuse_other(path)
        assert file.read_text() == "first"
    write("second")
    refuse_other(path)
    file.write_text("changed by somebody")
    with pytest.raises(OutputError, match="was changed since"):
        refuse_other(path)


def interrupted(*given):
    """What a program is ended in."""
    raise KeyboardInterrupt
