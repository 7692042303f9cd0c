"""How functions become commands, and the words of all their options."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from bridgetrack.cli.console import Answer
from bridgetrack.errors import InputError, Note, collecting_warnings
from bridgetrack.files import as_path
from bridgetrack.io.columns import parse_columns
from bridgetrack.io.results import FORMATS
from bridgetrack.models.library import find_model_file
from bridgetrack.pipeline.inputs import RunOptions
from bridgetrack.schema import options_of
from bridgetrack.spread import Workers, connect, worth_it

Reading = Annotated[
    RunOptions, "axes", "scale", "unit", "frame_interval", "image_axes", "columns", "without"
]
"""Options of commands that open a movie and do not track it."""

# ------------------------------------------------------------------ values


def a_name(text: str) -> Path:
    """The name of a file or folder; an empty one would mean the current folder."""
    if not text:
        raise typer.BadParameter(
            "the name is empty (was a variable in a script not set?); use '.' for the current "
            "folder"
        )
    return as_path(text)


def parse_scale(text: str) -> tuple[float, ...]:
    """Two or three positive numbers separated by commas."""
    try:
        numbers = tuple(float(part) for part in text.replace(";", ",").split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 3) or not all(math.isfinite(n) and n > 0 for n in numbers):
        raise typer.BadParameter(
            f"{text!r} must be two or three positive numbers, e.g. 0.65,0.65 (Y,X) or "
            "1,0.09,0.09 (Z,Y,X)"
        )
    return numbers


def _parse_formats(text: str) -> tuple[str, ...]:
    words = _listed(text)
    wrong = [w for w in words if w not in FORMATS] or ([] if words else [text])
    if wrong:
        raise typer.BadParameter(f"{wrong[0]!r} is unknown; choose from {','.join(FORMATS)}")
    return words


def _listed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(w for w in (p.strip().lower() for p in text.split(",")) if w))


def _meant(make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Call a function with values of the command line; an error that it raises is wrong usage."""
    told = list[Note]()
    try:
        with collecting_warnings(told):
            found = make(*given, **named)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error
    if told:
        raise typer.BadParameter(str(told[0]))
    return found


# ------------------------------------------------------------------ words

_FORMATS = ", ".join(f"{name} ({form.words})" for name, form in FORMATS.items())
_RESULT = "Folder that `bridgetrack track` wrote"

WORDS: dict[str, tuple[str, str]] = {
    "labels": (
        "LABELS",
        "Label movie (TIFF stack, folder of TIFFs, OME-TIFF, zarr, .npy) or a CSV table of "
        "detections.",
    ),
    "image": ("IMAGE", "The movie that the labels were made from."),
    "out": ("DIR", "Folder for the results."),
    "model": ("MODEL", "Model file, or its name in the model library; by default the shipped one."),
    "annotations": (
        "A.json",
        "Annotations that the tracks must agree with; with --repair also annotations of masks, "
        "either this file or one beside it.",
    ),
    "format": ("LIST", f"Formats to write: {_FORMATS}; by default csv."),
    "channel": (
        "C", "Number (from 0) or name of the channel with the cells; by default the first one."
    ),
    "repair": (
        "",
        "First repair labels where the image and the neighbouring frames show that cells were "
        "joined, cut, missed or are not cells; the repaired labels and a list of all changes are "
        "part of the result.",
    ),
    "memory": (
        "SIZE",
        "Memory limit, such as 4GB: a movie that needs more is tracked in windows of frames. By "
        "default the free memory of the computer.",
    ),
    "window": ("N", "Number of frames that are tracked together."),
    "scheduler": (
        "ADDRESS",
        "Run on a dask cluster: the address or the file of its scheduler, 'local' for processes on "
        "this computer, 'here' for no cluster. The result is the same.",
    ),
    "without": (
        "LIST",
        "Kinds of events that do not occur in the movie: divisions, gaps, splits, merges, specks "
        "(masks that are not cells).",
    ),
    "link_scores": (
        "FILE",
        "Scores, 0 to 1, that another program gave to links: a table of frame, source, target "
        "(labels) and score, as Trackastra writes it, or a GEFF store, as HOCT writes it "
        "(--full-graph).",
    ),
    "axes": ("ORDER", "Axis order of the file, letters from TCZYX, e.g. TZYX."),
    "scale": (
        "[Z,]Y,X", "Size of a pixel along each axis, in micrometres; by default read from the file."
    ),
    "unit": ("UNIT", "Unit of the scale: micrometer or pixel."),
    "frame_interval": ("MINUTES", "Minutes between two frames."),
    "image_axes": ("ORDER", "Axis order of the image."),
    "columns": (
        "LIST",
        "Column names of a table of detections if they are not recognised, e.g. "
        "y=Row,x=Col,t=Image; the others are z, id, track, parent, label, area, radius.",
    ),
    "json": ("", "Print the result as JSON, and nothing else."),
    "ground_truth": (
        "CTC_DIR",
        "Ground truth in the format of the Cell Tracking Challenge: a folder with masks and "
        "man_track.txt, or an NN_GT folder.",
    ),
    "open image": ("[IMAGE]", "Movie, masks, table of detections, or project."),
    "open labels": ("[LABELS]", "Cells of the movie: masks or a table."),
    "segment image": ("IMAGE", "Movie: TIFF stack, folder of TIFFs, OME-TIFF, zarr, .npy."),
    "segment out": (
        "LABELS",
        "Where to write: a name that ends in .tif gives a TIFF stack, in .ome.zarr an OME-Zarr, "
        "any other a folder of masks.",
    ),
    "choose": (
        "jointly|plain",
        "jointly: cells are chosen among candidates, together with their tracks (the default); "
        "plain: a single segmentation of each frame, which is faster. Masks from --backend "
        "cellpose are used unchanged.",
    ),
    "backend": ("NAME", "builtin, or cellpose if installed."),
    "network": ("NAME", "Cellpose network: name or file."),
    "candidates": (
        "LABELS...",
        "Masks of this movie from other programs; their cells become candidates. Cells chosen from "
        "the first file keep their label numbers.",
    ),
    "segment annotations": (
        "A.json",
        "Annotations of masks: the masks agree with them, and the score of a cell is learned from "
        "them.",
    ),
    "project": ("PROJECT", "Project, NAME.bridgetrack beside a movie."),
    "folder": (
        "FOLDER",
        "Folder of movies: images, masks, or tables of detections; NAME.tif belongs to "
        "NAME_labels.tif, NAME_masks.tif or NAME_cells.tif.",
    ),
    "batch labels": ("DIR", "Folder with the masks, named like their movies."),
    "suggest annotations": ("A.json", "Annotations so far; these events are not suggested again."),
    "suggest count": ("N", "Number of suggestions."),
    "annotate out": ("A.json", "File to write."),
    "fraction": ("F", "Share of the true events, 0 to 1."),
    "annotate count": ("N", "Number of events."),
    "annotate seed": ("S", "Random seed."),
    "train out": ("MODEL.json", "File to write."),
    "train annotations": ("A.json", "Annotations to learn from."),
    "prior": (
        "MODEL", "Model to start from: a file or a name in the library; by default the shipped one."
    ),
    "source": (
        "MODEL|PROJECT",
        "A model (file or name in the library), or a project (NAME.bridgetrack: a movie with its "
        "annotations); can be given several times.",
    ),
    "strategy": (
        "NAME",
        "How to use the sources: transfer (default for projects), union or source; prior (default "
        "for a model) or delta.",
    ),
    "evaluate result": (
        "RESULT_DIR",
        f"{_RESULT}, a CTC result folder, or a .csv, .geff or TrackMate .xml file.",
    ),
    "evaluate labels": (
        "LABELS", "The label movie that was tracked; by default the one named in run.json."
    ),
    "sparse": (
        "",
        "The ground truth covers only some of the cells: print only scores that are valid for it.",
    ),
    "check result": ("RESULT_DIR", f"{_RESULT}, or a .csv, .geff or TrackMate .xml file."),
    "check out": ("SAMPLE.csv", "Where to write the events to judge."),
    "judged": ("SAMPLE.csv", "The same table with its last column filled in: yes, no or ?."),
    "explain result": ("RESULT_DIR", f"{_RESULT}."),
    "frame": ("T", "Frame of the cell."),
    "cell": ("LABEL", "Label of the cell."),
    "to": (
        "LABEL[,LABEL]",
        "Cells in the next frame: explains the link to them, whether chosen or not.",
    ),
    "event": ("NAME", "Kind of event to explain, e.g. divide."),
}  # fmt: skip
"""Place-holder and help of every option, by the parameter's name, after the name of the command
where commands differ; those of settings are in the docstrings of their dataclasses."""

_WIDEST = 24
"""Most letters of place-holders that list all choices; longer lists are in the help."""

_HOW: dict[str, dict[str, Any]] = {
    "scale": {"parser": parse_scale},
    "columns": {"parser": lambda text: _meant(parse_columns, text)},
    "without": {"parser": _listed},
    "channel": {"parser": lambda text: int(text) if text.isdecimal() else text},
    "format": {"parser": _parse_formats},
    "model": {"parser": lambda text: find_model_file(a_name(text))},
    "memory": {"parser": str},
    "count": {"min": 1},
    "fraction": {"min": 0, "max": 1},
    "seed": {"min": 0},
}
"""Further declarations of some options."""


# ------------------------------------------------------------------ commands


def command(function: Callable[..., Answer | None], called: str = "") -> Callable[..., None]:
    """A function as a command of the program.

    Parameters before ``/`` become arguments, others options with the same name; a dataclass of
    settings becomes an option for each field, with ``Annotated[Settings, "one", "two"]`` for these.
    An `Answer` that is returned is printed, and the command gets the option ``--json``.
    """
    called = called or function.__name__
    own = inspect.signature(function, eval_str=True)
    parameters, more = list[inspect.Parameter](), list[inspect.Parameter]()
    settings: dict[str, tuple[type[Any], list[str]]] = {}
    positional = [p.name for p in own.parameters.values() if p.kind == p.POSITIONAL_ONLY]
    for each in own.parameters.values():
        kind, *names = get_args(each.annotation) or (each.annotation,)
        if isinstance(kind, type) and is_dataclass(kind):
            added = _of_settings(kind, names, called)
            settings[each.name] = kind, [field.name for field in added]
            more += added
        else:
            place = typer.Argument if each.name in positional else typer.Option
            parameters.append(_declared(each.name, each.annotation, each.default, called, place))
    if own.return_annotation is Answer:
        more.append(_declared("json", bool, False))

    @wraps(function)
    def run(**given: Any) -> None:
        as_json = given.pop("json", False)
        for name, (kind, names) in settings.items():
            values = {field: given.pop(field) for field in names}
            if kind is RunOptions:
                values = {field: value for field, value in values.items() if value is not None}
            given[name] = _meant(kind, **values)
        first = [given.pop(name) for name in positional]
        found = function(*first, **given)
        if found is not None:
            found.show(as_json)

    made: Any = run
    made.__signature__ = inspect.Signature(parameters + more)
    made.__annotations__ = {p.name: p.annotation for p in parameters + more}
    return run


def _declared(
    name: str, kind: Any, default: Any, called: str = "", place: Any = typer.Option
) -> inspect.Parameter:
    """The argument or option that a parameter becomes."""
    metavar, text = WORDS.get(f"{called} {name}") or WORDS[name]
    how = _HOW.get(name, {})
    if "parser" in how:
        kind = Any
    elif Path in (kind, *get_args(kind)):
        how = {"parser": a_name}
    flags = [_flag(name)] if place is typer.Option else []
    shown = place(*flags, metavar=metavar or None, help=text, show_default=bool(default), **how)
    return _keyword(name, default, Annotated[kind, shown])


def _of_settings(settings: type[Any], names: list[str], called: str) -> list[inspect.Parameter]:
    """An option for each field of a dataclass."""
    if settings is RunOptions:
        kinds: Mapping[str, Any] = get_type_hints(RunOptions)
        wanted = names or [field.name for field in fields(RunOptions)]
        return [_declared(name, kinds[name], None, called) for name in wanted]
    added = []
    for each in options_of(settings, *names):
        flag, text = _flag(each.name), each.help
        metavar: str | None = "|".join(map(str, each.choices))
        if each.kind is bool:
            flag, metavar = f"{flag}/--no-{flag[2:]}", None
        elif not metavar or len(metavar) > _WIDEST:
            metavar = {int: "N", float: "X", str: "WORD"}[each.kind]
            if each.choices:
                text = f"{text.rstrip('.')}: {', '.join(each.choices)}."
        kind = each.kind | None if each.may_be_none else each.kind
        shown = typer.Option(flag, help=text, metavar=metavar)
        added.append(_keyword(each.name, each.default, Annotated[kind, shown]))
    return added


def _flag(name: str) -> str:
    return f"--{name.strip('_').replace('_', '-')}"


def _keyword(name: str, default: Any, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


@contextmanager
def cluster_at(scheduler: str | None, pixels: int = 0) -> Iterator[Any]:
    """A dask client, or processes on this computer, while they are used; or None.

    Without a scheduler, local processes are used if it is worth it for this number of ``pixels``
    to segment; ``here`` always means None.
    """
    if scheduler is None and worth_it(pixels):
        scheduler = "local"
    if scheduler in (None, "here"):
        yield None
        return
    with connect(scheduler) as client:
        yield Workers(client)
